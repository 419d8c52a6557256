"""Few points that draw the same curve as many."""

import numpy as np

from calibrant.core.arrays import Array, Ints

MOST_POINTS = 400


def thin(place: Array, most: int = MOST_POINTS) -> Ints:
    """Indices of about `most` points at most, spread evenly over an ascending `place`; both ends are kept.

    >>> thin(np.linspace(0, 1, 9), 3)
    array([0, 4, 8])
    """
    if len(place) <= most:
        return np.arange(len(place))
    wanted = np.linspace(place[0], place[-1], most)
    return np.unique(np.concatenate([[0], np.searchsorted(place, wanted, side="left"), [len(place) - 1]]))
