"""Networks that others published, calibrated: `python tools/published.py [--store JOBS]` writes docs/published.md.

With a store (the folder `jobs` of `calibrant study run published-networks`) its rows are collected first, into
docs/published/rows.parquet, seconds.parquet and compared.parquet; committed rows of what the store has not are kept.
Without one the committed rows are read again.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory
from typing import Any

import altair as alt
import polars as pl
import vl_convert

import calibrant as cal
from calibrant.core.config.code_trust import allow_code
from calibrant.core.files import write_whole
from calibrant.core.text import number_format as fmt
from calibrant.measuring import measure_format as mf
from calibrant.studying.claims import LEVEL, Finding, decide_claims, paired_difference
from calibrant.studying.plan import Claim, Plan
from calibrant.studying.plan_files import read_plan
from calibrant.studying.study import Study, open_plan
from calibrant.studying.tables import cells_in_words, difference

ROOT = Path(__file__).parents[1]
PLAN = "published-networks"
FOLDER, PAGE = ROOT / "docs" / "published", ROOT / "docs" / "published.md"
MARKERS = ("<!-- written by tools/published.py -->\n", "<!-- end -->")
MEASURES = {
    "error": "error",
    "nll": "NLL",
    "ece": "ECE",
    "ece:scheme=mass": "ECE, equal mass",
    "classwise": "class-wise ECE",
    "auroc_correct": "AUROC",
}
AGAINST = "Temperature Scaling"
ORDER = [
    "Uncalibrated",
    AGAINST,
    "Vector Scaling",
    "Matrix Scaling",
    "MS-ODIR",
    "Dir-ODIR",
    "SVS",
    "SMS",
    "Isotonic",
    "auto",
    "Neural Clamping (CE)",
    "Neural Clamping (FL)",
    "Neural Clamping, efficient",
    "TrustScore",
    "ConfidNet",
]
SECONDS = {"what": pl.String, "model": pl.String, "seconds": pl.Float64}
COMPARED = {"entry": pl.String, "model": pl.String, "seed": pl.Int64, "measure": pl.String} | dict.fromkeys(
    ("difference", "low", "high"), pl.Float64
)
DRAWN = ("Uncalibrated", AGAINST, "SVS", "auto")
COLOURS = alt.Scale(domain=list(DRAWN), range=["#8a8a8a", "#0072b2", "#e69f00", "#d55e00"])


def collect(store: Path) -> None:
    """Rows of everything that is judged, and the seconds of one core that every fit took."""
    with TemporaryDirectory() as folder:
        with allow_code():
            study = open_plan(PLAN, Path(folder) / PLAN, store=store)
        rows = study.rows().drop("job").filter(pl.col("entry") != "")
        _add("rows", rows, ["entry", "model", "seed"])
        fits = study.store.rows("judge", [cell.judge.key for cell in study.cells])
        fits = fits.filter((pl.col("rescorer") == "") & (pl.col("set") == "test")).unique(["job", "calibrator"])
        places = {cell.judge.key: cell.place for cell in study.cells if cell.method == "Uncalibrated"}
        results = [
            {"what": row["calibrator"], "model": places[row["job"]]["model"], "seconds": row["cpu_seconds"]}
            for row in fits.select("job", "calibrator", "cpu_seconds").to_dicts()
            if row["job"] in places
        ]
        seconds = {row["job"]: row["cpu_seconds"] for row in study.store.rows("rescore").to_dicts()}
        jobs = {
            (job.key, job.options["rescorer"], cell.place["model"])
            for cell in study.cells
            for job in cell.jobs
            if job.kind == "rescore" and job.key in seconds
        }
        results += [{"what": spec, "model": model, "seconds": seconds[key]} for key, spec, model in jobs]
        _add("seconds", pl.DataFrame(results, schema=SECONDS), ["what", "model", "seconds"])
        _add("compared", pl.DataFrame(_compared(study), schema=COMPARED), ["entry", "model", "seed"])


def _compared(study: Study) -> Iterator[dict[str, Any]]:
    """Rescored predictions against a temperature, on the same half: paired by image, so one half has an interval."""
    done, plan = study.store.done(), study.plan
    for cell in study.cells:
        half = study.store.files(next(job for job in cell.jobs if job.kind == "halve").key)
        for entry, one in plan.rows.items():
            job = next(
                (j for j in cell.judge.needs if j.options.get("rescorer") == plan.after.rescorers.get(one.rescorer)),
                None,
            )
            if one.method != cell.method or not one.rescorer or job is None or job.key not in done:
                continue
            val, test = (cal.Predictions.load(half / f"{part}.npz") for part in ("val", "test"))
            ours, tempered = (
                cal.Predictions.load(study.store.files(job.key) / "test.npz"),
                cal.fit(val, "temperature")(test),
            )
            for measure in ("ece", "nll"):
                c = cal.compare(tempered, ours, measure)  # ours minus the temperature's
                facts = {"difference": c.difference, "low": c.low, "high": c.high}
                yield {
                    "entry": entry,
                    "model": cell.place["model"],
                    "seed": cell.place["seed"],
                    "measure": measure,
                    **facts,
                }


def _add(name: str, new: pl.DataFrame, place: list[str]) -> None:
    """Write new rows and the committed ones of other places: halves may come from several machines."""
    file = FOLDER / f"{name}.parquet"
    table = pl.concat([pl.read_parquet(file, glob=False).join(new, on=place, how="anti"), new])
    table = table.sort(table.columns)
    write_whole(file, lambda stream: table.write_parquet(stream))


def summary(folder: Path) -> str:
    """Everything on the page that has numbers."""
    plan, rows = read_plan(PLAN), pl.read_parquet(folder / "rows.parquet", glob=False)
    seconds = pl.read_parquet(folder / "seconds.parquet", glob=False)
    test = rows.filter(pl.col("set") == "test")
    parts = [_how_far(plan, test), _claims(decide_claims(plan, rows))]
    parts.append(_paired(pl.read_parquet(folder / "compared.parquet", glob=False)))
    parts += [_network(plan, model, test, seconds) for model in plan.grid["model"]]
    return "\n".join([*parts, _corrupted(plan, rows)])


def _how_far(plan: Plan, test: pl.DataFrame) -> str:
    """Which halves are judged, of which entries and networks."""
    lines = []
    for entry in ORDER:
        own = test.filter(pl.col("entry") == entry)
        counts = {m: own.filter(pl.col("model") == m)["seed"].n_unique() for m in plan.grid["model"]}
        n = next(iter(counts.values()))
        text = f"{fmt.count(n, 'half', 'halves')} of every network" if set(counts.values()) == {n} else ""
        lines.append((entry, text or ", ".join(f"{n} of {m}" for m, n in counts.items())))
    groups: dict[str, list[str]] = {}
    for entry, text in lines:
        groups.setdefault(text, []).append(entry)
    return "".join(f"- {text}: {fmt.list_words(entries, len(entries))}\n" for text, entries in groups.items())


def _claims(findings: list[Finding]) -> str:
    lines = [
        "\n### The claims\n",
        f"Intervals of {findings[0].claims} claims are corrected together (Holm), and are about other images.\n",
        "| claim | difference | halves x networks | |",
        "|---|---|---|---|",
    ]
    for f in findings:
        words = "<br>".join([difference(f), *cells_in_words(f)])
        pairs = 0 if not f.cells else sum(cell.pairs for _, cell in f.cells)
        says = f"{f.claim.says} ({f.claim.measure}; {f.claim.source})"
        lines.append(f"| {says} | {words} | {pairs} | **{f.verdict}** |")
    return "\n".join([*lines, ""])


def _paired(compared: pl.DataFrame) -> str:
    """Minutes of fitting leave few halves: these intervals come from the images of each."""
    clamped = compared.filter(pl.col("entry").str.starts_with("Neural Clamping"))
    if not clamped.height:
        return ""
    lines = [
        "\n### Neural Clamping against temperature scaling, half by half\n",
        "Both are fitted on one half. The difference on the other is paired by image, with its 95 % interval.\n",
        "| | network | half | ECE - TS | NLL - TS |",
        "|---|---|---|---|---|",
    ]
    for (entry, model, seed), own in clamped.group_by("entry", "model", "seed", maintain_order=True):
        values = {row["measure"]: row for row in own.to_dicts()}
        cells = []
        for measure in ("ece", "nll"):
            d, low, high = (mf.change(measure, values[measure][key]) for key in ("difference", "low", "high"))
            cells.append(f"{d} [{low}, {high}]")
        lines.append(f"| {entry} | {str(model).replace('resnet', 'ResNet-')} | {seed} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def _network(plan: Plan, model: Any, test: pl.DataFrame, seconds: pl.DataFrame) -> str:
    own = test.filter(pl.col("model") == model)
    lines = [
        f"\n### {str(model).replace('resnet', 'ResNet-')}\n",
        f"| | {' | '.join(MEASURES.values())} | ECE - TS | NLL - TS | halves | seconds |",
        "|---|" + "---|" * (len(MEASURES) + 4),
    ]
    for entry in ORDER:
        some = own.filter(pl.col("entry") == entry)
        if not some.height:
            continue
        means = [_mean(some, measure) for measure in MEASURES]
        beside = [_beside(own, entry, measure) for measure in ("ece", "nll")]
        halves = some["seed"].n_unique()
        lines.append(
            f"| {entry} | {' | '.join([*means, *beside, str(halves), _seconds(plan, entry, model, seconds)])} |"
        )
    return "\n".join([*lines, ""])


def _mean(rows: pl.DataFrame, measure: str) -> str:
    values = rows.filter(pl.col("measure") == measure)["value"].drop_nulls().to_list()
    return mf.value(measure, fmean(values)).removesuffix(" %").lstrip("+") if values else "-"


def _beside(rows: pl.DataFrame, entry: str, measure: str) -> str:
    """The paired difference to temperature scaling on the same halves, with its 95 % interval about other images."""
    if entry == AGAINST:
        return ""
    values = {(r["entry"], r["seed"]): r["value"] for r in rows.filter(pl.col("measure") == measure).to_dicts()}
    both = [values[entry, seed] - values[AGAINST, seed] for name, seed in values if name == entry]
    claim = Claim(says="", of=entry, against=AGAINST, measure=measure, is_="lower")
    result = paired_difference(claim, [pl.Series(both).to_numpy()[:, None]], LEVEL, overlap=1.0)
    if result.low is None:
        return mf.change(measure, result.difference)
    return (
        f"{mf.change(measure, result.difference)} [{mf.change(measure, result.low)}, {mf.change(measure, result.high)}]"
    )


def _seconds(plan: Plan, entry: str, model: Any, seconds: pl.DataFrame) -> str:
    one = plan.rows[entry]
    what = plan.after.rescorers.get(one.rescorer, one.calibrator)
    result = seconds.filter((pl.col("what") == what) & (pl.col("model") == model))["seconds"].to_list()
    if not result or (one.calibrator == "identity" and not one.rescorer):
        return "-"
    return f"{median(result):,.0f}" if median(result) >= 10 else f"{median(result):.2g}"


def _corrupted(plan: Plan, rows: pl.DataFrame) -> str:
    """ECE and error on corrupted images, mean over halves and over the networks that have seen them."""
    shown = set(rows.filter(pl.col("set") != "test")["model"])
    rows = rows.filter(pl.col("model").is_in(shown))
    sets = [name for name in ("test", *plan.after.shifts) if name in set(rows["set"])]
    words = fmt.list_words([str(model).replace("resnet", "ResNet-") for model in sorted(shown)])
    lines = [
        "\n### Corrupted images\n",
        f"Fitted on clean images, judged on corrupted ones: ECE in percent, mean over halves and {words}.\n",
        f"| | {' | '.join('clean' if name == 'test' else name for name in sets)} |",
        "|---|" + "---|" * len(sets),
    ]
    for entry, measure in [("Uncalibrated", "error"), *((entry, "ece") for entry in ORDER)]:
        own = rows.filter(pl.col("entry") == entry)
        if not own.filter(pl.col("set") != "test").height:
            continue
        cells = [_mean(own.filter(pl.col("set") == name), measure) for name in sets]
        name = "error of the networks" if measure == "error" else entry
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def draw(folder: Path) -> None:
    """Two figures: the ECE of every half, and the ECE on corrupted images."""
    plan, rows = read_plan(PLAN), pl.read_parquet(folder / "rows.parquet", glob=False)
    ece = rows.filter(pl.col("measure") == "ece").with_columns((100 * pl.col("value")).alias("ECE"))
    halves = ece.filter((pl.col("set") == "test") & pl.col("entry").is_in(ORDER[1:])).select("entry", "model", "ECE")
    order = [entry for entry in ORDER if entry in set(halves["entry"])]
    dots = alt.Chart(halves).mark_point(filled=True, size=36, opacity=0.6)
    y = alt.Y("entry", sort=order, title=None)
    dots = dots.encode(
        x=alt.X("ECE", title="ECE in percent, a dot a half"),
        y=y,
        color=alt.Color("model", title=None, scale=alt.Scale(range=["#0072b2", "#d55e00", "#009e73"])),
        yOffset="model",
    )
    _save("halves", dots.properties(width=430, height=26 * len(order)))
    names = ["test", *plan.after.shifts]
    seen = set(ece.filter(pl.col("set") != "test")["model"])
    some = (
        ece.filter(pl.col("entry").is_in(DRAWN) & pl.col("model").is_in(seen))
        .group_by("entry", "set")
        .agg(pl.col("ECE").mean())
    )
    some = some.with_columns(pl.col("set").replace("test", "clean"))
    x = alt.X("set", sort=["clean", *names[1:]], title=None, axis=alt.Axis(labelAngle=0))
    bars = alt.Chart(some).mark_bar()
    offset = alt.XOffset("entry", sort=list(DRAWN))
    colour = alt.Color("entry", title=None, scale=COLOURS, sort=list(DRAWN))
    bars = bars.encode(x=x, y=alt.Y("ECE", title="ECE in percent"), xOffset=offset, color=colour)
    _save("corrupted", bars.properties(width=430))


def _save(name: str, chart: alt.Chart) -> None:
    svg = vl_convert.vegalite_to_svg(chart.configure(background="white").to_json())
    write_whole(ROOT / "docs" / f"published-{name}.svg", lambda stream: stream.write(svg.encode()))


def write(file: Path, text: str) -> None:
    before = file.read_text()
    head, rest = before.split(MARKERS[0], 1)
    whole = head + MARKERS[0] + "\n" + text + "\n" + MARKERS[1] + rest.partition(MARKERS[1])[2]
    write_whole(file, lambda stream: stream.write(whole.encode()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--store", type=Path, help="jobs of the study: collect its rows first")
    arguments = parser.parse_args()
    if arguments.store:
        collect(arguments.store)
    write(PAGE, summary(FOLDER))
    draw(FOLDER)
