"""Number format: the only place that decides it, with measuring/measure_format for measures.

Shares are percentages with a space ("97.6 %"), differences of shares are points, losses are decimals. Two numbers that
differ and stand side by side get enough digits to look different.
"""

from collections.abc import Sequence
from textwrap import fill

from calibrant.core.arrays import Ints

MOST_DIGITS = 6
TERMINAL = 80  # columns
UNDEFINED = "undefined"
BETTER = {
    "down": "lower",
    "up": "higher",
    "zero": "near 0",
    "one": "near 1",
    "none": "",
}  # by the direction of a measure


# -- one number -------------------------------------------------------------------------------------


def percent(value: float | None, digits: int | None = None) -> str:
    """Format a share in percent: one decimal, or two where one would hide the number.

    >>> percent(0.9763), percent(0.0068), percent(None)
    ('97.6 %', '0.68 %', 'undefined')
    """
    if value is None or value != value:
        return UNDEFINED
    return f"{100 * value:.{_digits(value) if digits is None else digits}f} %"


def percents_beside(*shares: float) -> list[str]:
    """Format shares in whole percent, or so that the smallest of them keeps two figures.

    >>> percents_beside(0.98, 0.9), percents_beside(0.008, 0.0137), percents_beside(0.0, 0.04)
    (['98 %', '90 %'], ['0.80 %', '1.37 %'], ['0.0 %', '4.0 %'])
    """
    least = min((share for share in shares if share > 0), default=1.0)
    digits = next((d for d in range(MOST_DIGITS) if round(100 * least, d) >= 10 ** (1 - d)), MOST_DIGITS)
    return [percent(share, digits) for share in shares]


def significant_percent(share: float) -> str:
    """Format a share with three figures, as thresholds are.

    >>> significant_percent(1 / 51), significant_percent(0.5)
    ('1.96 %', '50 %')
    """
    return f"{100 * share:.3g} %"


def whole_percent(share: float) -> str:
    """Format a share in whole percent; "all" of it is said only where it is exactly that.

    >>> whole_percent(0.42), whole_percent(0.999), whole_percent(0.001), whole_percent(1.0)
    ('42 %', 'over 99 %', 'under 1 %', '100 %')
    """
    if 0.995 <= share < 1:
        return "over 99 %"
    return "under 1 %" if 0 < share < 0.005 else f"{100 * share:.0f} %"


def level(confidence: float) -> str:
    """Format the confidence level of an interval.

    >>> level(0.95), level(0.999)
    ('95 %', '99.9 %')
    """
    return f"{100 * confidence:g} %"


def points(value: float, *, sign: bool = False) -> str:
    """Format a difference of two percentages.

    >>> points(0.04), points(-0.0031, sign=True), points(0.0101)
    ('4.0 points', '-0.31 points', '1.0 point')
    """
    number = f"{100 * value:{'+' if sign else ''}.{_digits(value)}f}"
    return f"{number} point{'' if number.lstrip('+-') == '1.0' else 's'}"


def relative(value: float, truth: float) -> str:
    """Format the distance of a share from the true one, relative to the true one.

    >>> relative(0.0349, 0.0458), relative(0.9, 0.3)
    ('24 %', '200 %')
    """
    return f"{100 * abs(value / truth - 1):.0f} %"


def number(value: float | None, *, sign: bool = False) -> str:
    """Format a number with four decimals, or more where four would show zeros only.

    >>> number(0.12345), number(0.0000123), number(-0.02, sign=True), number(float("nan"))
    ('0.1235', '1.2e-05', '-0.0200', 'undefined')
    """
    if value is None or value != value:
        return UNDEFINED
    plus = "+" if sign else ""
    return f"{value:{plus}.1e}" if 1e-12 < abs(value) < 5e-4 else f"{value + 0.0:{plus}.4f}"


def significant(value: float) -> str:
    """Format a number with four significant digits.

    >>> significant(0.0123456), significant(1234.5), significant(2.0)
    ('0.01235', '1234', '2')
    """
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


# -- two numbers side by side -----------------------------------------------------------------------


def apart(values: Sequence[float], digits: int, *, sign: bool = False) -> list[str]:
    """Format numbers with this many decimals, or as many more as it takes for different numbers to look different.

    Numbers with signs also get enough digits to show on which side of zero they are.

    >>> apart([0.8617, 0.8624], 2), apart([0.8617, 0.8617], 2)
    (['0.8617', '0.8624'], ['0.86', '0.86'])
    >>> apart([-0.12, -0.00004], 4, sign=True), apart([0.0, -1e-17], 4, sign=True)
    (['-0.12000', '-0.00004'], ['+0.0000', '+0.0000'])
    """
    finest = [round(value, MOST_DIGITS) for value in values]  # noise of the last bits is no difference
    rounded, plus = [value if fine else 0.0 for value, fine in zip(values, finest, strict=True)], "+" if sign else ""
    while True:
        texts = [f"{value:{plus}.{digits}f}" for value in rounded]
        hidden = sign and any(fine and not float(text) for fine, text in zip(finest, texts, strict=True))
        if (len(set(texts)) >= len(set(finest)) and not hidden) or digits >= MOST_DIGITS:
            return texts
        digits += 1


def from_to(before: float, after: float, digits: int = 3) -> str:
    """Format a change of a loss.

    >>> from_to(0.5989, 0.503), from_to(0.86211, 0.86213)
    ('0.599 to 0.503', '0.86211 to 0.86213')
    """
    return " to ".join(apart([before, after], digits))


def percent_from_to(before: float, after: float) -> str:
    """Format a change of a share.

    >>> percent_from_to(0.068, 0.0267), percent_from_to(0.0104, 0.0101)
    ('6.8 % to 2.7 %', '1.04 % to 1.01 %')
    """
    digits = max(_digits(before), _digits(after))
    return " to ".join(f"{text} %" for text in apart([100 * before, 100 * after], digits))


def bracket(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Format an interval in a table of decimals.

    >>> bracket(0.0562, 0.0748), bracket(-0.00001, 0.00002, sign=True), bracket(None, None)
    ('[0.0562, 0.0748]', '[-0.00001, +0.00002]', '')
    """
    if low is None or high is None or low != low or high != high:
        return ""
    return f"[{', '.join(apart([low, high], 4, sign=sign))}]"


# -- chance, counts, lists --------------------------------------------------------------------------


def p_value(p: float) -> str:
    """
    >>> p_value(0.000999), p_value(0.032), p_value(1.0), p_value(float("nan"))
    ('< 0.001', '0.032', '1', 'undefined')
    """
    return UNDEFINED if p != p else "< 0.001" if p < 0.001 else f"{p:.2g}"


def chance(p: float) -> str:
    """
    >>> chance(0.000999), chance(0.032)
    ('p < 0.001', 'p = 0.032')
    """
    text = p_value(p)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def count(number: int, noun: str = "", many: str | None = None) -> str:
    """
    >>> count(4000, "row"), count(1, "row"), count(2, "class", "classes")
    ('4,000 rows', '1 row', '2 classes')
    """
    word = noun if number == 1 else many or f"{noun}s"
    return f"{number:,} {word}" if noun else f"{number:,}"


def two_figures(rows: int) -> int:
    """A number of rows that would be needed, rounded up: more digits would promise too much.

    >>> two_figures(7), two_figures(437)
    (7, 440)
    """
    step = int(10 ** max(0, len(str(rows)) - 2))
    return -(-rows // step) * step


def list_words(names: Sequence[str], most: int = 4) -> str:
    """
    >>> list_words(["a"]), list_words(["a", "b"]), list_words(["a", "b", "c", "d", "e"], most=3)
    ('a', 'a and b', 'a, b, c and 2 more')
    """
    listed = list(names)
    if len(listed) > most:
        listed = [*listed[:most], f"{len(names) - most} more"]
    return listed[0] if len(listed) == 1 else f"{', '.join(listed[:-1])} and {listed[-1]}"


def join_clauses(parts: Sequence[str], most: int = 8) -> str:
    """A list of clauses, cut after a few. Names hold commas, so semicolons.

    >>> join_clauses(["a", "b"]), join_clauses(["a", "b", "c", "d"], most=2)
    ('a; b', 'a; b; and 2 more')
    """
    more = len(parts) - most
    return "; ".join([*parts[:most], f"and {more} more"] if more > 0 else parts)


def name_classes(classes: Sequence[int] | Ints) -> str:
    """Class numbers in words, only the first few of many.

    >>> name_classes([3]), name_classes([1, 2, 5, 7, 9])
    ('class 3', '5 classes (1, 2, 5, ...)')
    """
    if len(classes) == 1:
        return f"class {classes[0]}"
    return f"{len(classes)} classes ({', '.join(str(c) for c in classes[:3])}{', ...' if len(classes) > 3 else ''})"


def sentence(text: str) -> str:
    """The text with a capital first letter.

    >>> sentence("isotonic regression")
    'Isotonic regression'
    """
    return text[:1].upper() + text[1:]


def _digits(value: float) -> int:
    return 1 if abs(value) >= 0.00995 or value == 0 else 2


def wrap(text: str, indent: str = "", more: str = "  ") -> str:
    """Break text into terminal lines of at most 80 columns, without cutting a word, such as a path."""
    return fill(
        text,
        TERMINAL,
        initial_indent=indent,
        subsequent_indent=indent + more,
        break_long_words=False,
        break_on_hyphens=False,
    )


def duration(seconds: float) -> str:
    """Format a duration in the unit that people would use.

    >>> duration(20), duration(600), duration(9000), duration(7e6)
    ('20 seconds', '10 minutes', '2.5 hours', '1,944 hours')
    """
    if seconds <= 90:
        return f"{seconds:.0f} seconds"
    if seconds <= 5400:
        return f"{seconds / 60:.0f} minutes"
    hours = seconds / 3600
    return f"{hours:,.1f} hours" if hours < 100 else f"{hours:,.0f} hours"
