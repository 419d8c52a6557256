"""Draw the pictures of docs/understand.md from predictions that come with calibrant: python docs/understand.py"""

from pathlib import Path

import altair as alt
import numpy as np
import polars as pl
import vl_convert

import calibrant as cal

DOCS = Path(__file__).parent
BINS = (5, 10, 15, 20, 25, 50, 100, 200, 500)
SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
REPEATS = 50
COLOURS = alt.Scale(range=["#0072b2", "#d55e00"])


def main() -> None:
    val, test = cal.example("fashion")
    calibrated = cal.fit(val, "temperature")(test)
    save("reliability", reliability(test))
    save("bins", bins({"uncalibrated": test, "calibrated": calibrated}))
    save("noise", noise())
    save("refinement", refinement())


def reliability(p: cal.Predictions) -> alt.LayerChart:
    """Accuracy in ten bins of confidence, with the diagonal."""
    rows = p.top_label.bins(10)
    kept = rows.count > 0
    data = pl.DataFrame({"confidence": rows.confidence[kept], "accuracy": rows.accuracy[kept]})
    share = alt.Scale(domain=[0, 1])
    bars = alt.Chart(data).mark_bar(size=18, color="#0072b2")
    bars = bars.encode(x=alt.X("confidence", scale=share), y=alt.Y("accuracy", scale=share))
    line = alt.Chart(pl.DataFrame({"x": [0, 1], "y": [0, 1]})).mark_line(strokeDash=[5, 4], color="#8a8a8a")
    return bars + line.encode(x=alt.X("x", title="confidence"), y=alt.Y("y", title="accuracy"))


def bins(models: dict[str, cal.Predictions]) -> alt.Chart:
    """ECE by number of bins."""
    rows = [
        {"model": name, "bins": count, "ECE": cal.measure(p, f"ece:bins={count}", resamples=0).value}
        for name, p in models.items()
        for count in BINS
    ]
    x = alt.X("bins", scale=alt.Scale(type="log"), title="number of bins", axis=alt.Axis(values=list(BINS)))
    y = alt.Y("ECE", scale=alt.Scale(domain=[0, 0.1]))
    return alt.Chart(pl.DataFrame(rows)).mark_line(point=True).encode(x=x, y=y, color=alt.Color("model", scale=COLOURS))


def noise() -> alt.LayerChart:
    """ECE of models that are calibrated by construction: the mean over repeats, and where 95 % of them lie."""
    rng, rows = np.random.default_rng(0), []
    for n in SIZES:
        values = [ece_by_chance(rng, n) for _ in range(REPEATS)]
        low, high = np.quantile(values, [0.025, 0.975])
        rows.append({"rows": n, "low": low, "ECE": np.mean(values), "high": high})
    x = alt.X(
        "rows", scale=alt.Scale(type="log"), title="number of rows", axis=alt.Axis(values=list(SIZES), format="~s")
    )
    chart = alt.Chart(pl.DataFrame(rows)).encode(x=x)
    band = chart.mark_area(opacity=0.25, color="#0072b2").encode(y=alt.Y("low", title="ECE"), y2="high")
    return band + chart.mark_line(point=True, color="#0072b2").encode(y="ECE")


def ece_by_chance(rng: np.random.Generator, n: int) -> float:
    probs = rng.dirichlet(np.ones(5), n)
    labels = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=4)
    return cal.measure(cal.Predictions.from_probs(probs, labels), "ece", resamples=0).value


def refinement() -> alt.Chart:
    """Histograms of confidence of right and of wrong predictions, for two made-up models."""
    models = {
        "ECE .06, AUROC .77": cal.synthetic(ece=0.06, auroc=0.774),
        "ECE .18, AUROC .99": cal.synthetic(ece=0.18, auroc=0.9946),
    }
    frames = [
        pl.DataFrame({"model": name, "confidence": p.confidence, "prediction": np.where(p.correct, "right", "wrong")})
        for name, p in models.items()
    ]
    chart = alt.Chart(pl.concat(frames)).mark_bar(opacity=0.6)
    x, y = alt.X("confidence", bin=alt.Bin(step=0.05)), alt.Y("count()", stack=None, title="rows")
    return chart.encode(x=x, y=y, color=alt.Color("prediction", scale=COLOURS), column=alt.Column("model", title=None))


def save(name: str, chart: alt.TopLevelMixin) -> None:
    size = chart if name == "refinement" else chart.properties(width=420, height=240)
    (DOCS / f"understand-{name}.svg").write_text(vl_convert.vegalite_to_svg(size.to_json()))


if __name__ == "__main__":
    alt.data_transformers.disable_max_rows()
    main()
