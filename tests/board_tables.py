"""Made-up answers of models to the same questions, for the tests of boards."""

import numpy as np
import polars as pl

GROUPS = ("law", "math", "history")
MODELS = {  # name -> how often it is right, what it adds to its confidence
    "tiny-1B": (0.40, 0.35),
    "tiny-4B": (0.60, 0.20),
    "tiny-1B-think": (0.55, 0.10),
    "tiny-4B-think": (0.75, 0.02),
    "tiny-4B-FP8": (0.60, 0.20),
}


def answers(questions=600, *, models=MODELS, seed=0):
    """A long table: hard questions are hard for all models, confidences have few different values."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(size=questions)
    parts = []
    for i, (name, (right, more)) in enumerate(models.items()):
        chance = 1 / (1 + np.exp(-(1.5 * ease + 2.2 * np.log(right / (1 - right)) + 0.5 * rng.normal(size=questions))))
        stated = np.clip(np.round(20 * (chance + more + 0.1 * rng.normal(size=questions))) / 20, 0, 1)
        parts.append(
            pl.DataFrame(
                {
                    "model": name,
                    "question": np.arange(questions),
                    "category": [GROUPS[q % 3] for q in range(questions)],
                    "correct": (rng.random(questions) < chance).astype(int),
                    "stated": stated,
                    "tokens": np.clip(chance + 0.15 * rng.normal(size=questions) + 0.01 * i, 0, 1),
                }
            )
        )
    return pl.concat(parts)


def messy(questions=600):
    """The same with what real files have: gaps, confidences above 1, and a model that answers nothing."""
    table = answers(questions)
    first = (pl.col("model") == "tiny-1B") & (pl.col("question") % 10 == 0)
    strange = (pl.col("model") == "tiny-1B") & (pl.col("question") == 5)
    stated = pl.when(first).then(None).when(strange).then(362880.0).otherwise(pl.col("stated"))
    silent = table.filter(pl.col("model") == "tiny-4B").with_columns(
        model=pl.lit("silent"), correct=pl.lit(0, pl.Int64), stated=pl.lit(None, pl.Float64)
    )
    return pl.concat([table.with_columns(stated=stated), silent])
