"""Rescore a run by the name of a method: whatever the method needs of the run, it gets."""

from pathlib import Path

from calibrant.core.predictions import Predictions
from calibrant.rescorers import Rescorer, make
from calibrant.rescorers.clamping import NeuralClamping
from calibrant.rescorers.confidnet import ConfidNet
from calibrant.rescorers.density_ratio import DensityRatio
from calibrant.rescorers.trust_score import TrustScore
from calibrant.rescoring.clamping import Images, clamp
from calibrant.rescoring.confidnet import rescore_by_confidnet
from calibrant.rescoring.density_ratio import rescore_by_density_ratio
from calibrant.rescoring.trust_score import rescore_by_trust_score


def rescore(
    run: str | Path, method: str | Rescorer, out: str | Path, *, device: str = "auto", allow_code: bool = False
) -> Predictions:
    """Test predictions of the run in a folder with another confidence, also written to `out`/test.npz.

    `method` is an entry of the rescorers such as `clamping:gamma=0`, fitted on the run's validation part (ConfidNet and
    TrustScore: on training images). `allow_code`: see `open_run`.
    """
    folder, out = Path(run), Path(out)
    match make(method) if isinstance(method, str) else method:
        case NeuralClamping() as options:
            made = clamp(str(folder), options, Images(batch=options.batch), device=device, allow_code=allow_code)
            made.save(out)
            return made.predictions["test"]
        case ConfidNet() as options:
            return rescore_by_confidnet(folder, options, out, device=device, allow_code=allow_code).after
        case TrustScore() as options:
            after = rescore_by_trust_score(folder, options, device=device, allow_code=allow_code).after
        case DensityRatio() as options:
            after = rescore_by_density_ratio(folder, options, device=device, allow_code=allow_code).after
        case other:
            raise TypeError(f"{type(other).__name__}: a rescorer that rescoring/rescore.py does not know yet")
    after.save(out / "test.npz")
    return after
