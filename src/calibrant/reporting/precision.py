"""Precision of the numbers, and how many more rows would settle what is still open."""

from math import ceil, inf

from calibrant.core.text import number_format as fmt
from calibrant.measuring import measure_format as mf
from calibrant.measuring.measure import Measurement
from calibrant.repairing.rule import Ruling
from calibrant.reporting.parts import CalibrationState, Certainty, Noise

SHARP = 0.005  # half a point: sharper than most uses need
SMALL_ERROR = 0.01  # an ECE that is worth seeing
FAR = 1e9  # rows nobody has


def certainty(n: int, gap: Measurement, noise: Noise, state: CalibrationState, ruling: Ruling) -> Certainty:
    """The precision of the numbers, and the rows that would settle what is open: intervals shrink by the root of n."""
    low = gap.value if gap.low is None else gap.low
    high = gap.value if gap.high is None else gap.high
    half = (high - low) / 2
    wanted, words = _rows_wanted(n, gap.value, half, noise, state)
    known = (
        f"The gap of {fmt.points(gap.value, sign=True)} is known to about ±{fmt.points(half)} (95 % interval "
        f"{mf.interval('gap', low, high)})."
    )
    chance = (
        ""
        if noise.p_value != noise.p_value
        else f"By chance alone a perfectly calibrated model shows an ECE of {fmt.percent(noise.expected)} on "
        f"{fmt.count(n, 'row')}, and stays below {fmt.percent(noise.upper)} 95 times in 100. This one shows "
        f"{fmt.percent(noise.observed)} ({fmt.chance(noise.p_value)})."
    )
    return Certainty(half, wanted, tuple(w for w in (known, chance, words, ruling.rival_words) if w))


def _rows_wanted(n: int, gap: float, half: float, noise: Noise, state: CalibrationState) -> tuple[int | None, str]:
    if state == "untested":
        return None, ""
    if state in ("inconclusive", "calibrated"):
        target = min(SMALL_ERROR, noise.upper)
        wanted = _rows(n, noise.upper / target) if target else None
        if wanted is None or wanted <= n:
            return n, f"These rows are enough to see an ECE of {fmt.percent(SMALL_ERROR)}, if there were one."
        return wanted, (
            f"An ECE of {fmt.percent(SMALL_ERROR)} could hide in the noise of {fmt.count(n, 'row')}: about "
            f"{wanted:,} in all, {wanted - n:,} more, would show it."
        )
    if state in ("perhaps_over", "perhaps_under"):
        wanted = _rows(n, noise.upper / max(abs(gap), 1e-9))
        if wanted is not None and wanted > n:
            return wanted, f"If the gap stays the same, about {wanted - n:,} more rows would settle it."
        return n, "These rows are enough for the gap on average, not for every bin."
    if half <= SHARP:
        return n, "More rows are not needed: the gap is known to within half a point."
    wanted = _rows(n, half / SHARP)
    if wanted is None:
        return None, ""
    return wanted, (
        f"That it is miscalibrated is settled. To know the gap to half a point takes about {wanted:,} rows in all, "
        f"{wanted - n:,} more."
    )


def _rows(n: int, ratio: float) -> int | None:
    """The number of rows that would reduce the noise by this ratio, to two figures; None above a billion."""
    wanted = n * ratio * ratio if ratio < inf else inf
    if wanted > FAR:
        return None
    step = int(10 ** max(0, len(str(ceil(wanted))) - 2))
    return ceil(wanted / step) * step
