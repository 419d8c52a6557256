"""Is the confidence that a language model states calibrated? Measure it, repair it on half of the rows, judge the rest.

Needs a table with one row per answer: the confidence that the model stated, and whether the answer was right.
"""

from importlib.resources import files

import polars as pl

import calibrant as cal

table = pl.read_csv(str(files("calibrant") / "data" / "llm_stated.csv"))  # comes with calibrant
stated = table.drop_nulls("stated")
print(f"{table.height:,} answers, {1 - stated.height / table.height:.1%} of them without a confidence")

p = cal.Predictions.from_confidence(stated["stated"], stated["correct"], groups=stated["category"].to_numpy())
for name in ("accuracy", "gap", "ece", "auroc_correct"):
    print(cal.measure(p, name))

half, rest = p.split(0.5, seed=1)
repaired = cal.fit(half, "isotonic")(rest)  # a few distinct values, so a stair fits
print(cal.compare(rest, repaired, "ece"))
print(cal.compare(rest, repaired, "nll"))
