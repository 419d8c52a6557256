"""Wilson's interval of a share, which keeps its coverage in small samples."""

from statistics import NormalDist

import numpy as np

from calibrant.core.arrays import Array


def wilson(share: Array | float, count: Array | float, level: float = 0.95) -> tuple[Array, Array]:
    """The score interval of a share among `count` rows: never empty, never outside [0, 1].

    >>> low, high = wilson(np.array([1.0, 0.5]), np.array([10.0, 100.0]))
    >>> low.round(3), high.round(3)
    (array([0.722, 0.404]), array([1.   , 0.596]))
    """
    share, count = np.asarray(share, dtype=np.float64), np.asarray(count, dtype=np.float64)
    z = NormalDist().inv_cdf((1 + level) / 2)
    centre = share + z * z / (2 * count)
    half = z * np.sqrt(share * (1 - share) / count + z * z / (4 * count * count))
    below = 1 + z * z / count
    return np.maximum((centre - half) / below, 0.0), np.minimum((centre + half) / below, 1.0)
