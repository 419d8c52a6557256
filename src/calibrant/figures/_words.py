"""How numbers read in a sentence."""

from collections.abc import Sequence


def percent(share: float) -> str:
    """Whole percent; "all" of it is said only where it is exactly that.

    >>> percent(0.42), percent(0.999), percent(0.001), percent(1.0)
    ('42%', 'over 99%', 'under 1%', '100%')
    """
    if 0.995 <= share < 1:
        return "over 99%"
    return "under 1%" if 0 < share < 0.005 else f"{share:.0%}"


def number(value: float) -> str:
    """Four digits that mean something.

    >>> number(0.0123456), number(1234.5), number(2.0)
    ('0.01235', '1234', '2')
    """
    return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def listed(parts: Sequence[str], most: int = 8) -> str:
    """A list in a sentence, cut where nobody would listen any longer. Names hold commas, so semicolons.

    >>> listed(["a", "b"]), listed(["a", "b", "c", "d"], most=2)
    ('a; b', 'a; b; and 2 more')
    """
    more = len(parts) - most
    return "; ".join([*parts[:most], f"and {more} more"] if more > 0 else parts)
