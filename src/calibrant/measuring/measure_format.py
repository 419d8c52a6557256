"""Format of the numbers of a measure, in the unit that the measure says it has."""

from functools import cache

from calibrant.core.catalogue import name_of
from calibrant.core.text.number_format import UNDEFINED, apart
from calibrant.measures import find

WIDE = 0.1  # width of an interval that leaves a share no decimals, and other numbers two


def value(measure: str, number: float | None) -> str:
    """Format a value in the unit of its measure.

    >>> value("ece:bins=30", 0.0681), value("nll", 0.50301), value("gap", 0.063)
    ('6.81 %', '0.5030', '+6.30 %')
    """
    if number is None or number != number:
        return UNDEFINED
    if is_share(measure):
        return f"{100 * number:{'+' if _has_sign(measure) else ''}.2f} %"
    return f"{number:.4f}"


def measured(measure: str, number: float | None, low: float | None, high: float | None) -> tuple[str, str]:
    """Format a value and both ends of its interval, with no more digits than a wide interval leaves it.

    >>> measured("ece", 0.0681, 0.0562, 0.0748), measured("mce", 0.0848, 0.0, 0.4299)
    (('6.81 %', '5.62 to 7.48'), ('8 %', '0 to 43'))
    """
    if number is None or number != number or low is None or high is None or not high - low >= WIDE:
        return value(measure, number), interval(measure, low, high)
    scale, digits, unit = (100, 0, " %") if is_share(measure) else (1, 2, "")
    plus = "+" if _has_sign(measure) else ""
    text, *ends = (f"{round(scale * x, digits) + 0.0:{plus}.{digits}f}" for x in (number, low, high))
    return f"{text}{unit}", " to ".join(ends)


def change(measure: str, number: float | None) -> str:
    """Format a difference of two values of a measure, with its sign, without the unit."""
    if number is None or number != number:
        return UNDEFINED
    return f"{100 * number:+.2f}" if is_share(measure) else f"{number:+.4f}"


def interval(measure: str, low: float | None, high: float | None) -> str:
    """Format both ends of an interval without the unit, which stands beside the value.

    >>> interval("ece", 0.0562, 0.0748), interval("nll", 0.86211, 0.86213)
    ('5.62 to 7.48', '0.86211 to 0.86213')
    """
    return _ends(measure, low, high, sign=_has_sign(measure))


def change_interval(measure: str, low: float | None, high: float | None) -> str:
    """Format both ends of the interval of a difference, with signs.

    >>> change_interval("nll", -0.0002, 0.00004), change_interval("ece", -0.02, -0.01)
    ('-0.00020 to +0.00004', '-2.00 to -1.00')
    """
    return _ends(measure, low, high, sign=True)


@cache
def is_share(measure: str) -> bool:
    """Whether a measure is printed in percent, by its `unit`.

    >>> is_share("sece"), is_share("nll"), is_share("cost")
    (True, False, False)
    """
    return getattr(_measure(measure), "unit", "number") == "percent"


@cache
def _has_sign(measure: str) -> bool:
    return getattr(_measure(measure), "direction", "") == "zero"


def _measure(spec: str) -> object:
    """The class of a measure; None for other numbers, for instance a cost."""
    try:
        return find(name_of(spec))
    except ValueError:
        return None


def _ends(measure: str, low: float | None, high: float | None, *, sign: bool) -> str:
    if low is None or high is None or low != low or high != high:
        return ""
    scale, digits = (100, 2) if is_share(measure) else (1, 4)
    return " to ".join(apart([scale * low, scale * high], digits, sign=sign))
