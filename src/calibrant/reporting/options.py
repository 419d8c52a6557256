"""Options of a report, checked before anything takes long."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.calibrators import CATALOGUE
from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError, visible
from calibrant.core.predictions import Predictions
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import describe_task
from calibrant.deciding.costs import CostRule
from calibrant.measures import check_predictions
from calibrant.measuring.matching_rows import match_rows
from calibrant.reporting.contents_by_task import ece_spec
from calibrant.reporting.curves import FEWEST_BINS, MOST_BINS

MOST_ROWS = 500_000  # of a model: its accuracy is then known to 0.14 points, and no sentence needs more
MOST_ELEMENTS = 10**8  # rows x classes
FEWEST_ROWS = 10_000  # however many the classes
FEWEST_RESAMPLES = 40  # the smallest two-sided p-value of n resamples is 2 / (n + 1)

OnStep = Callable[[str], None]  # told what is being done


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of the analysis of a model; the same for all models of a report."""

    calibrators: Sequence[str]
    not_tried: tuple[str, ...]  # left out of the default list, because they take long here
    class_names: Sequence[str]
    bins: int
    keep_argmax: bool
    seed: int
    resamples: int | None
    rule: CostRule | None
    groups: tuple[npt.NDArray[Any], str] | None  # values, and the name of their column
    on_step: OnStep

    @property
    def ece(self) -> str:
        return ece_spec(self.bins)


def sample_rows(p: Predictions, seed: int) -> Ints | None:
    """The random rows that a report of very many looks at; None for all of them."""
    most = max(FEWEST_ROWS, min(MOST_ROWS, MOST_ELEMENTS // p.k))
    return None if p.n <= most else np.sort(np.random.default_rng(seed).choice(p.n, most, replace=False))


def sampled_words(n: int, of: int, seed: int) -> str:
    """The sentence of the page on a random sample of rows."""
    return (
        f"All numbers here are of {n:,} of the {of:,} rows, drawn at random with seed {seed}, and the calibrators were "
        "fitted on no more: a report of all rows would take longer and say the same. calibrant measure takes them all."
    )


def check_numbers(bins: int, resamples: int | None) -> None:
    if not FEWEST_BINS <= bins <= MOST_BINS:
        raise InputError("bins", expected=f"{FEWEST_BINS} to {MOST_BINS}", got=str(bins), fix="use 15")
    if resamples is not None and resamples < FEWEST_RESAMPLES:
        raise InputError(
            "resamples",
            expected=f"at least {FEWEST_RESAMPLES}, because fewer can show nothing at 95 %",
            got=str(resamples),
            fix="use 200 or more",
        )


def check_calibrators(specs: Sequence[str], p: Predictions) -> None:
    for spec in specs:
        for name in spec.split("+"):
            CATALOGUE.make(name.strip()).check_shape(p)


def check_class_names(names: Sequence[str] | None, p: Predictions) -> Sequence[str]:
    k = p.k
    if names is None:
        return [visible(name) for name in p.classes] or [f"class {c}" for c in range(k)]
    if len(names) != k or not all(isinstance(name, str) and name.strip() for name in names):
        raise InputError(
            "class names", expected=f"{k} names, none empty", got=f"{len(names)}", fix="one for each class, in order"
        )
    return [visible(name) for name in names]


def check_models(models: Predictions | Mapping[str, Predictions]) -> tuple[dict[str, Predictions], str]:
    """Models by name, on the rows that all of them have and in the same order; and what was left out, in words."""
    if not isinstance(models, Mapping):
        check_predictions(models)
    by_name = {"model": models} if isinstance(models, Predictions) else dict(models)
    for p in by_name.values():
        check_predictions(p)
    if not by_name:
        raise InputError("report", expected="predictions of at least one model", got="none", fix="give some")
    named = {visible(name): p for name, p in by_name.items()}
    first_name, first = next(iter(named.items()))
    others = list(named.items())[1:]
    for name, p in others:
        try:
            first = match_rows(first, p).a
        except InputError as error:
            raise InputError.inside(f"{first_name} and {name}", error) from None
    aligned = {first_name: first} | {name: match_rows(first, p).b for name, p in others}
    more = [f"{name} has {p.n - first.n:,} more" for name, p in named.items() if p.n > first.n]
    return (
        aligned,
        f"All numbers are of the {first.n:,} rows that every model has: {fmt.join_clauses(more)}." if more else "",
    )


def check_fit_on(
    fit_on: Predictions | Mapping[str, Predictions] | None, models: Mapping[str, Predictions]
) -> dict[str, Predictions]:
    """The rows that each model is fitted on, by name: for all of them or for none."""
    named = {next(iter(models)): fit_on} if isinstance(fit_on, Predictions) else dict(fit_on or {})
    fits = {visible(name): p for name, p in named.items()}
    if fits and set(fits) != set(models):
        raise InputError(
            "fit_on",
            expected=f"rows to fit on for each of {', '.join(models)}",
            got=f"for {', '.join(fits)} only",
            fix="give one for every model, or none to cross-fit",
        )
    for name, p in fits.items():
        if p.n < 2:
            fix = "give more, or none to cross-fit"
            raise InputError(f"rows to fit {name} on", expected="at least 2", got=str(p.n), fix=fix)
        if p.task != models[name].task:
            expected, got = describe_task(models[name].task), describe_task(p.task)
            raise InputError(f"rows to fit {name} on", expected=expected, got=got, fix="give both in one form")
        if p.k != models[name].k:
            raise InputError(
                f"rows to fit {name} on",
                expected=f"{models[name].k} classes",
                got=f"{p.k}",
                fix="predict with the same model",
            )
    return fits
