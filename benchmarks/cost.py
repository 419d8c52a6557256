"""What an ECE costs against the number of rows and of classes, ours and the peers'."""

import altair as alt
import polars as pl
import vl_convert

from benchmarks._clock import NUMPY, OURS, Call, Effort, Lap, race, with_numpy
from benchmarks._data import Data, overconfident
from benchmarks._page import Section, show, table
from benchmarks._peers import BINNED, BINS, Input, thread_turn
from calibrant import Predictions
from calibrant.measures import make

ROWS, AT_CLASSES = (10**3, 10**4, 10**5, 10**6, 10**7), 2
CLASSES, AT_ROWS = (2, 10, 100, 1000, 10**4), 10_000
SMOKE_ROWS, SMOKE_CLASSES, SMOKE_AT_ROWS = (100, 1000), (2, 10), 200
FIGURE = "benchmarks_cost.svg"
WORDS = (
    "The ECE from float32 logits, as above: milliseconds against the number of rows (two classes) and against the "
    "number of classes (10,000 rows), both axes logarithmic. A line of slope one costs the same for every number."
)


def run(*, smoke: bool) -> Section:
    rows, classes, at = (SMOKE_ROWS, SMOKE_CLASSES, SMOKE_AT_ROWS) if smoke else (ROWS, CLASSES, AT_ROWS)
    sides = {
        f"rows, {AT_CLASSES} classes": {n: _race(overconfident(n, AT_CLASSES), smoke) for n in rows},
        f"classes, {at:,} rows": {k: _race(overconfident(at, k), smoke) for k in classes},
    }
    tables = []
    for words, sizes in sides.items():
        names = list(next(iter(sizes.values())))
        lines = [[f"{size:,}", *(_cell(laps[name]) for name in names)] for size, laps in sizes.items()]
        tables.append(table([words, *(f"{name}, ms" for name in names)], lines))
    return Section("Cost against rows and classes", WORDS, [], tables, {FIGURE: _figure(sides)})


def _race(data: Data, smoke: bool) -> dict[str, Lap]:
    x = Input.of(data)
    entries: dict[str, Call] = {OURS: lambda: make("ece")(Predictions.from_logits(data.logits, data.labels))}
    entries[NUMPY] = with_numpy(entries[OURS])
    entries |= {name: lambda peer=peer: peer(x.softmax(), BINS) for name, peer in BINNED["ECE"].items()}
    return race(entries, Effort(1, 0.0) if smoke else Effort(8, 1.0, in_a_row=3), turn=thread_turn)


def _cell(lap: Lap) -> str:
    return show(1000 * lap.best) if lap.ran else lap.note


def _figure(sides: dict[str, dict[int, dict[str, Lap]]]) -> str:
    charts = []
    for words, sizes in sides.items():
        points = [
            {"size": size, "ms": 1000 * lap.best, "package": name}
            for size, laps in sizes.items()
            for name, lap in laps.items()
            if lap.ran
        ]
        charts.append(
            alt.Chart(pl.DataFrame(points), width=330, height=280)
            .mark_line(point=True)
            .encode(
                x=alt.X("size:Q", title=words, scale=alt.Scale(type="log")),
                y=alt.Y("ms:Q", title="milliseconds", scale=alt.Scale(type="log")),
                color=alt.Color("package:N", title=None, sort=None),
            )
        )
    return str(vl_convert.vegalite_to_svg(alt.hconcat(*charts).configure(background="white").to_dict()))
