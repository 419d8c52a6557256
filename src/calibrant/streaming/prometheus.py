"""Write gauges in the text format that Prometheus reads."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from calibrant.core.errors import visible
from calibrant.measuring.measure import Measurement

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


def measure_exposition(by: Sequence[str], results: Mapping[tuple[str, ...], tuple[int, Iterable[Measurement]]]) -> str:
    """Of each key, the number of rows, every measure and both ends of its interval; without an interval, no ends."""
    rows, gauges = Gauge("calibrant_rows", "rows added"), dict[str, Gauge]()
    for key, (n, measurements) in results.items():
        labels = dict(zip(by, key, strict=True))
        rows.values.append((labels, n))
        for m in measurements:
            name, _, options = m.measure.partition(":")
            own = labels | ({"options": options} if options else {})
            for end, value in (("", m.value), ("_low", m.low), ("_high", m.high)):
                if value is not None and value == value:
                    words = f"{end[1:]} end of the interval of {name}" if end else m.definition
                    gauge = gauges.setdefault(f"calibrant_{name}{end}", Gauge(f"calibrant_{name}{end}", words))
                    gauge.values.append((own, value))
    return exposition([rows, *gauges.values()])


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
