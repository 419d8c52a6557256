"""How numbers look to a reader: shares in percent, gaps in points, losses as they are."""

PERCENT = {
    "accuracy", "error", "gap", "ece", "classwise", "mce", "ks", "smooth", "kde", "mmce", "avgce", "rmsce", "debiased"
}  # fmt: skip


def percent(value: float | None, digits: int | None = None) -> str:
    """One decimal, or two where one would hide the number.

    >>> percent(0.9763), percent(0.0068), percent(None)
    ('97.6 %', '0.68 %', 'undefined')
    """
    if value is None or value != value:
        return "undefined"
    return f"{100 * value:.{_digits(value) if digits is None else digits}f} %"


def points(value: float, *, sign: bool = False) -> str:
    """A difference of two percentages.

    >>> points(0.04), points(-0.0031, sign=True), points(0.0101)
    ('4.0 points', '-0.31 points', '1.0 point')
    """
    number = f"{100 * value:{'+' if sign else ''}.{_digits(value)}f}"
    return f"{number} point{'' if number.lstrip('+-') == '1.0' else 's'}"


def value(measure: str, number: float | None) -> str:
    """As its measure is read.

    >>> value("ece:bins=30", 0.0681), value("nll", 0.50301), value("gap", 0.063)
    ('6.81 %', '0.5030', '+6.30 %')
    """
    if number is None or number != number:
        return "undefined"
    name = measure.partition(":")[0]
    if name in PERCENT:
        return f"{100 * number:{'+' if name == 'gap' else ''}.2f} %"
    return f"{number:.4f}"


def change(measure: str, number: float | None) -> str:
    """A difference of two values of a measure, with its sign."""
    if number is None or number != number:
        return "undefined"
    return f"{100 * number:+.2f}" if measure.partition(":")[0] in PERCENT else f"{number:+.4f}"


def interval(measure: str, low: float | None, high: float | None) -> str:
    """Both ends without the unit, which stands beside the value.

    >>> interval("ece", 0.0562, 0.0748)
    '5.62 to 7.48'
    """
    if low is None or high is None or low != low or high != high:
        return ""
    return f"{value(measure, low).removesuffix(' %')} to {value(measure, high).removesuffix(' %')}"


def count(number: int, what: str = "", many: str | None = None) -> str:
    """
    >>> count(4000, "row"), count(1, "row"), count(2, "class", "classes")
    ('4,000 rows', '1 row', '2 classes')
    """
    word = what if number == 1 else many or f"{what}s"
    return f"{number:,} {word}" if what else f"{number:,}"


def chance(p_value: float) -> str:
    """
    >>> chance(0.000999), chance(0.032), chance(1.0)
    ('p < 0.001', 'p = 0.032', 'p = 1')
    """
    return "p < 0.001" if p_value < 0.001 else f"p = {p_value:.2g}"


def listed(names: "list[str] | tuple[str, ...]", most: int = 4) -> str:
    """
    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c", "d", "e"], most=3)
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    shown = list(names)
    if len(shown) > most:
        shown = [*shown[:most], f"{len(names) - most} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def _digits(value: float) -> int:
    return 1 if abs(value) >= 0.00995 or value == 0 else 2
