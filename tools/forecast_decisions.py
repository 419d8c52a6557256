"""Decide on real forecasts, end to end, for docs/decide.md: python tools/forecast_decisions.py FOLDER

FOLDER holds nba_games.csv, mlb_games.csv and nfl_games.csv of FiveThirtyEight's "checking our work" (CC BY 4.0). Games
are in order of their date: the first half fits a map, the next quarter decides, the last quarter judges.
"""

import sys
from pathlib import Path

import polars as pl

import calibrant as cal

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "decide.md"
BEGIN, END = "<!-- forecasts: written by tools/forecast_decisions.py -->\n", "<!-- end of forecasts -->"
LEAGUES = ("nba", "mlb", "nfl")
MAX_ERROR, COST = 0.3, "fn=2,fp=1"


def games(file: Path) -> cal.Predictions:
    """P(team 1 wins) of every game that has a winner, the oldest first."""
    frame = pl.read_csv(file, infer_schema_length=None).reverse().drop_nulls(["prob1", "prob1_outcome"])
    frame = frame.filter(pl.col("prob1_outcome") != 0.5)  # no ties
    frame = frame.sort("date", maintain_order=True)
    return cal.Predictions.binary(frame["prob1"].to_numpy(), frame["prob1_outcome"].cast(pl.Int64).to_numpy())


def line(name: str, p: cal.Predictions) -> str:
    """One league: what can be answered with a guarantee, and what a threshold by cost costs, on the last quarter."""
    half, quarter = p.n // 2, 3 * p.n // 4
    fit_on, val, test = (p.take(range(a, b)) for a, b in ((0, half), (half, quarter), (quarter, p.n)))
    m = cal.fit(fit_on, "platt")
    sure, cheap = cal.decide(val, max_error=MAX_ERROR, map=m), cal.decide(val, cost=COST, map=m)
    answered, costs = cal.evaluate(sure, test), {one.choice: one for one in cal.evaluate(cheap, test).costs}
    cells = [name.upper(), f"{p.n:,}"]
    if sure.possible and answered.answered is not None:
        result = answered.answered
        cells += [
            f"{100 * (sure.threshold or 0):.1f} %",
            f"{100 * result.share:.1f} %",
            f"{100 * result.error:.1f} % ({100 * result.low:.1f} to {100 * result.high:.1f})",
            str(answered.outcome),
        ]
    else:
        more = "no number of rows" if sure.rows_needed is None else f"about {sure.rows_needed:,} rows needed"
        cells += [f"not possible: {more}", "", "", ""]
    own = costs["chosen"]
    cells += [f"{own.cost:.3f} ({own.low:.3f} to {own.high:.3f})"]
    cells += [f"{costs[name].cost:.3f}" for name in ("hindsight", "always", "never")]
    return "| " + " | ".join(cells) + " |"


def table(folder: Path) -> str:
    heads = ["league", "games", "answer from", "answered", "wrong among them", "the bound", "cost per game"]
    heads += ["best threshold of the quarter before", "always", "never"]
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
    return "\n".join([*lines, *(line(name, games(folder / f"{name}_games.csv")) for name in LEAGUES)])


def main(folder: str) -> None:
    head, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(head + BEGIN + "\n" + table(Path(folder)) + "\n\n" + END + rest.partition(END)[2])


if __name__ == "__main__":
    main(sys.argv[1])
