"""The interval of a share that stays honest in small bins."""

from statistics import NormalDist

import numpy as np

from calibrant.core.arrays import Array


def wilson(share: Array, count: Array, level: float) -> tuple[Array, Array]:
    """Wilson's score interval of a share among `count` rows, which is never empty and never leaves [0, 1].

    >>> low, high = wilson(np.array([1.0]), np.array([10.0]), 0.95)
    >>> [round(float(end), 3) for end in (low[0], high[0])]
    [0.722, 1.0]
    """
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = share + z * z / (2 * count)
    half = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    below = 1 + z * z / count
    return np.maximum((centre - half) / below, 0.0), np.minimum((centre + half) / below, 1.0)
