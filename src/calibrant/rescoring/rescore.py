"""`rescore`: predictions of a run with another confidence, by the name of a method."""

from pathlib import Path

from calibrant.core.predictions import Predictions
from calibrant.rescorers import Rescorer, make
from calibrant.rescoring.run import RunToRescore


def rescore(
    run: str | Path, method: str | Rescorer, out: str | Path, *, device: str = "auto", allow_code: bool = False
) -> Predictions:
    """Test predictions of the run in a folder with another confidence, also written to `out`/test.npz.

    `method` is an entry of the rescorers such as `clamping:gamma=0`, fitted on the run's validation part (ConfidNet and
    TrustScore: on training images). `allow_code`: see `open_run`.
    """
    rescorer = make(method) if isinstance(method, str) else method
    predictions = rescorer.rescore(RunToRescore(Path(run), Path(out), device=device, allow_code=allow_code))
    predictions.save(Path(out) / "test.npz")
    return predictions
