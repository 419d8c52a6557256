"""Measures as the text that Prometheus reads: one gauge for the value, and one for each end of its interval."""

from collections.abc import Mapping, Sequence

from calibrant.core.errors import visible
from calibrant.measuring.accumulate import Accumulator


def exposition(by: Sequence[str], each: Mapping[tuple[str, ...], Accumulator]) -> str:
    """Lines such as calibrant_ece{day="monday"} 0.068, grouped by measure, as the format asks."""
    families: dict[str, list[str]] = {}
    rows = ["# HELP calibrant_rows rows counted", "# TYPE calibrant_rows gauge"]
    for key, one in each.items():
        labels = dict(zip(by, key, strict=True))
        rows.append(f"calibrant_rows{_written(labels)} {one.n}")
        for m in one.measure_all():
            name, _, options = m.measure.partition(":")
            own = labels | ({"options": options} if options else {})
            for end, value in (("", m.value), ("_low", m.low), ("_high", m.high)):
                if value is not None and value == value:
                    family = f"calibrant_{name}{end}"
                    said = m.definition if not end else f"{end[1:]} end of the interval of {name}"
                    head = [f"# HELP {family} {_escaped(said)}", f"# TYPE {family} gauge"]
                    families.setdefault(family, head).append(f"{family}{_written(own)} {value!r}")
    return "\n".join([*rows, *(line for lines in families.values() for line in lines)]) + "\n"


def _written(labels: Mapping[str, str]) -> str:
    """
    >>> _written({"day": 'a "b"'})
    '{day="a \\\\"b\\\\""}'
    """
    return "{" + ",".join(f'{_name(name)}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(text: str) -> str:
    return visible(text.replace("\\", "\\\\").replace('"', '\\"'))


def _name(text: str) -> str:
    """Letters, digits and underscores, not beginning with a digit."""
    made = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return made if made[:1].isalpha() or made[:1] == "_" else f"_{made}"
