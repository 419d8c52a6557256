"""Predictions of test images in two halves: one to fit on, one to judge by."""

import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from calibrant.core.predictions import Predictions
from calibrant.datasets import half_rows
from calibrant.studying.job_kinds import Row


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """Split predictions into halves, drawn by `seed` class by class; half a run is a run again, for rescorers."""
    source, seed = needs[0], options["seed"]
    whole = Predictions.load(source / "test.npz", allow_few_rows=True)
    fit, judge = half_rows(whole.labels, seed)
    folder.mkdir(parents=True, exist_ok=True)
    whole.take(fit).save(folder / "val.npz")
    whole.take(judge).save(folder / "test.npz")
    if (source / "run.json").exists():
        from calibrant.training.run import open_run

        of_all = open_run(source)
        shutil.copyfile(of_all.weights, folder / of_all.weights.name)
        data = replace(of_all.recipe.data, split="half test", split_seed=seed)
        half = replace(of_all, folder=folder, recipe=replace(of_all.recipe, data=data))
        half.write(finished=True, selected_epoch=0)
    return [{"n_fit": len(fit), "n": len(judge)}]
