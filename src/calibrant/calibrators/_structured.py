"""The first step of structured scaling: temperature, then a little of the uniform distribution."""

import numpy as np

from calibrant.calibrators._base import scaled
from calibrant.calibrators._steps import LogProbs, Mix, Step
from calibrant.core.predictions import Predictions
from calibrant.core.temperature import find_temperature


def smoothed_temperature(p: Predictions) -> tuple[tuple[Step, ...], float, Predictions]:
    """The steps, the temperature, and the log-probabilities they give: those that structured scaling acts on."""
    T = find_temperature(p).T
    share = 1 / (p.n + 1)
    steps = (scaled(T), Mix(1.0, np.array([0.0, 1 - share, share])), LogProbs())
    q = p
    for step in steps:
        q = step(q)
    return steps, T, q
