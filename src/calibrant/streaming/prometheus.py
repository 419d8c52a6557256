"""Write gauges in the text format that Prometheus reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from calibrant.core.errors import visible

Labels = Mapping[str, str]


@dataclass(frozen=True)
class Gauge:
    """A metric with its values by label."""

    name: str
    help: str
    values: list[tuple[Labels, float]] = field(default_factory=list)


def exposition(gauges: Sequence[Gauge]) -> str:
    """The lines of all gauges, each below its HELP and TYPE, as the format requires.

    >>> print(exposition([Gauge("calibrant_rows", "rows added", [({"day": "monday"}, 300)])]), end="")
    # HELP calibrant_rows rows added
    # TYPE calibrant_rows gauge
    calibrant_rows{day="monday"} 300
    """
    lines = []
    for gauge in gauges:
        lines += [f"# HELP {gauge.name} {_escape(gauge.help)}", f"# TYPE {gauge.name} gauge"]
        lines += [f"{gauge.name}{_format_labels(labels)} {value!r}" for labels, value in gauge.values]
    return "\n".join(lines) + "\n"


def _format_labels(labels: Labels) -> str:
    """
    >>> _format_labels({"day": 'a "b"'})
    '{day="a \\\\"b\\\\""}'
    """
    if not labels:
        return ""
    return "{" + ",".join(f'{_label_name(name)}="{_escape(value)}"' for name, value in labels.items()) + "}"


def _escape(text: str) -> str:
    return visible(text.replace("\\", "\\\\").replace('"', '\\"'))


def _label_name(text: str) -> str:
    """The name with letters, digits and underscores only, without a digit in front."""
    name = "".join(c if c.isascii() and (c.isalnum() or c == "_") else "_" for c in text)
    return name if name[:1].isalpha() or name[:1] == "_" else f"_{name}"
