"""Harmonic calibration score: accuracy and calibration in one number, to rank many models."""

import numpy as np
import numpy.typing as npt

from calibrant.core.errors import InputError


def harmonic_score(
    accuracy: npt.ArrayLike, ece: npt.ArrayLike, *, beta: float = 1.0
) -> float | npt.NDArray[np.float64]:
    """The harmonic mean of accuracy and 1 - ECE, of one model or of many; beta above 1 counts calibration more.

    A ranking of models, not a proper score: a network that is wrong with little confidence scores well in half of it.

    >>> harmonic_score(0.5, 0.0)  # 2 (0.5)(1) / (0.5 + 1)
    0.6666666666666666
    """
    right, calibration = np.asarray(accuracy, dtype=np.float64), 1 - np.asarray(ece, dtype=np.float64)
    for name, value in (("accuracy", right), ("ece", calibration)):
        if not np.all((value >= 0) & (value <= 1)):
            worst = value[~((value >= 0) & (value <= 1))].flat[0] if value.ndim else value
            got = f"{float(worst if name == 'accuracy' else 1 - worst):g}"
            raise InputError(name, expected="shares from 0 to 1", got=got, fix="divide percentages by 100")
    if not 0 < beta < np.inf:
        raise InputError("beta", expected="a number above 0", got=f"{beta:g}", fix="use 1 for the plain harmonic mean")
    below = beta * right + calibration
    score = np.where(below > 0, (1 + beta) * right * calibration / np.where(below > 0, below, 1), 0.0)
    return float(score) if score.ndim == 0 else score
