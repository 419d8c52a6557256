"""`rescore`: predictions of a run with another confidence, by the name of a method."""

from pathlib import Path

from calibrant.core.predictions import Predictions
from calibrant.rescorers import Rescorer, make
from calibrant.rescoring.run import RunToRescore


def rescore(
    run: str | Path,
    method: str | Rescorer,
    out: str | Path,
    *,
    train: str | Path | None = None,
    device: str = "auto",
) -> Predictions:
    """Test predictions of the run in a folder with another confidence, also written to `out`/test.npz.

    `method` is an entry of the rescorers such as `clamping:gamma=0`, fitted on the run's validation part (ConfidNet and
    TrustScore: on training images). `train` are predictions of the training images that are known already; else they
    are made where a method needs them.
    """
    rescorer = make(method) if isinstance(method, str) else method
    known = None if train is None else Path(train)
    source = RunToRescore(Path(run), Path(out), train=known, device=device)
    predictions = rescorer.rescore(source)
    predictions.save(Path(out) / "test.npz")
    return predictions
