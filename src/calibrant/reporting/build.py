"""From predictions to a report: numbers and sentences only. Nothing is drawn or written here."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy.typing as npt

from calibrant.core import wording
from calibrant.core.errors import LeakWarning, visible
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measuring.limits import affordable, find_limits
from calibrant.measuring.resampled import CONFIDENCE, Draws
from calibrant.repairing.rule import KEEP_ARGMAX, UNCALIBRATED
from calibrant.reporting import aspects, meanings, pictures, request, verdict
from calibrant.reporting.certainty import certainty
from calibrant.reporting.cost import CostRule, check_rule, cost_of, cost_row, read_rule
from calibrant.reporting.finding import find
from calibrant.reporting.provenance import how_made, source_of
from calibrant.reporting.ranking import rank
from calibrant.reporting.report import CostRow, Model, Number, Report, SourceFile
from calibrant.reporting.request import OnStep, Options
from calibrant.reporting.segments import by_group, by_prediction, check_groups
from calibrant.reporting.trials import RESAMPLES, Trial, calibrators_for, candidates, try_all

MANY_ROWS, FEWER = 5000, 400  # above, a measure takes at most this many resamples: seconds count too
RESAMPLED_ROWS, FEWEST = 50_000_000, 100  # rows drawn in all for one measure, and resamples that are always drawn
BETTER = {"down": "lower", "up": "higher", "zero": "near 0", "none": ""}


def build(
    models: Predictions | Mapping[str, Predictions],
    *,
    fit_on: Predictions | Mapping[str, Predictions] | None = None,
    groups: npt.ArrayLike | Literal["none"] | None = None,
    group_name: str = "group",
    cost: str | CostRule | None = None,
    class_names: Sequence[str] | None = None,
    calibrators: Sequence[str] | None = None,
    keep_argmax: bool = KEEP_ARGMAX,
    bins: int = 15,
    title: str | None = None,
    seed: int = 0,
    resamples: int | None = None,
    sources: Sequence[SourceFile] | None = None,
    command: str | None = None,
    on_step: OnStep | None = None,
) -> Report:
    """A report of one model or several on the same rows.

    Calibrators are fitted on `fit_on` (one for each model, by name); without it they are cross-fitted, and the report
    says so. The one to use is chosen by the rule of `choose`; `keep_argmax` lets only those win that cannot change a
    prediction. `groups` are the segments to look at (default: the groups of the predictions, "none" for none).
    """
    request.check_numbers(bins, resamples)
    named = request.check_models(models)
    fits = request.check_fit_on(fit_on, named)
    made_of = sources or _sources(named, fits)
    first = next(iter(named.values()))
    segments = None if isinstance(groups, str) else first.groups if groups is None else groups
    grouped = None if segments is None else check_groups(segments, first.n, group_name)
    few, all_rows = request.sample_rows(first, seed), first.n
    if few is not None:
        named = {name: p.take(few) for name, p in named.items()}
        grouped = None if grouped is None else grouped[few]
        first = next(iter(named.values()))
    fits = {name: p if (rows := request.sample_rows(p, seed)) is None else p.take(rows) for name, p in fits.items()}
    not_tried: tuple[str, ...] = ()
    if calibrators is None:
        fitting = next(iter(fits.values()), None)
        calibrators = calibrators_for(first, fitting, len(named))
        not_tried = tuple(name for name in candidates(first, fitting) if name not in calibrators)
    request.check_calibrators(calibrators, first)
    options = Options(
        calibrators,
        not_tried,
        request.check_class_names(class_names, first),
        bins,
        keep_argmax,
        seed,
        resamples,
        check_rule(read_rule(cost) if isinstance(cost, str) else cost, first),
        None if grouped is None else (grouped, group_name),
        on_step or (lambda what: None),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)  # said on the page instead, once
        looked = {name: _look(name, p, fits.get(name), options) for name, p in named.items()}
        made = [model for model, _ in looked.values()]
        ranking = None
        if len(named) > 1:
            repaired = {name: trial.after for name, (_, trial) in looked.items()}
            size = resamples or _affordable(first, RESAMPLES)
            ranking = rank(named, repaired, ece=options.ece, resamples=size, seed=seed, on_step=options.on_step)
            made = [looked[name][0] for name in ranking.order]
            drawn = {m.name: named[m.name] for m in made[: pictures.MOST_MODELS]}
        else:
            (model, trial), name = *looked.values(), next(iter(named))
            drawn = {name: first} if model.best == UNCALIBRATED else {"uncalibrated": first, model.best: trial.after}
        options.on_step("figures")
        figures = pictures.compute(drawn)
    if few is not None:
        note = request.sampled_words(first.n, all_rows, seed)
        made = [replace(model, cautions=(note, *model.cautions)) for model in made]
    how = how_made(made_of, command, seed, resamples)
    return Report(visible(title or _title(list(named))), bins, tuple(made), ranking, figures, how)


def report(
    models: Predictions | Mapping[str, Predictions],
    *,
    fit_on: Predictions | Mapping[str, Predictions] | None = None,
    groups: npt.ArrayLike | Literal["none"] | None = None,
    cost: str | CostRule | None = None,
    class_names: Sequence[str] | None = None,
    calibrators: Sequence[str] | None = None,
    keep_argmax: bool = KEEP_ARGMAX,
    bins: int = 15,
    title: str | None = None,
    seed: int = 0,
    resamples: int | None = None,
) -> Report:
    """A report of one model, or of several by name: `.save("report.html")`, or look at it in a notebook.

    Calibrators are fitted on `fit_on`; without it they are cross-fitted, and the report says so. `keep_argmax` lets
    only calibrators win that cannot change a prediction.
    """
    return build(
        models,
        fit_on=fit_on,
        groups=groups,
        cost=cost,
        class_names=class_names,
        calibrators=calibrators,
        keep_argmax=keep_argmax,
        bins=bins,
        title=title,
        seed=seed,
        resamples=resamples,
    )


def _look(name: str, p: Predictions, fit_on: Predictions | None, options: Options) -> tuple[Model, Trial]:
    """Everything about one model."""
    ece, seed, rule, costs = options.ece, options.seed, options.rule, list[CostRow]()
    options.on_step(name)
    drawn = Draws.of(p, {spec: _resamples(p, spec, options) for spec in aspects.specs(p.shape, ece)}, seed)
    numbers = _numbers(p, drawn, seed)
    trial = try_all(
        p,
        fit_on,
        options.calibrators,
        ece=ece,
        before=drawn,
        keep_argmax=options.keep_argmax,
        resamples=options.resamples or _affordable(p, RESAMPLES),
        seed=seed,
        on_step=options.on_step,
        look=None if rule is None else lambda calibrator, q: costs.append(cost_row(q, rule, calibrator)),
    )
    found = find(p, ece=ece, bins=options.bins, resamples=_resamples(p, ece, options), seed=seed)
    gap = next(number for number in numbers if number.measure == "gap")
    after = None if trial.best == UNCALIBRATED else trial.after
    model = Model(
        name,
        p.n,
        p.k,
        found.says,
        found.right,
        verdict.write(found, trial.rows, trial.ruling, trial.judged_on),
        numbers,
        found.noise,
        trial.judged_on,
        trial.rows,
        trial.best,
        trial.ruling,
        options.not_tried,
        found.bins,
        by_prediction(p, after, options.class_names) if p.shape == "classes" else None,
        None if options.groups is None else by_group(p, after, *options.groups),
        None if rule is None else cost_of(rule, costs, trial.best),
        certainty(p.n, gap, found.noise, found.state, trial.ruling),
        tuple(caution for caution in (_seen(p), trial.caution) if caution),
        p.shape,
        aspects.notes(p),
    )
    return model, trial


def _numbers(p: Predictions, drawn: Draws, seed: int) -> tuple[Number, ...]:
    """As `measure` finds them, and what they mean."""
    made, tail = [], (1 - CONFIDENCE) / 2
    for spec, value in drawn.values.items():
        chosen, draws = make(spec), drawn.draws[spec]
        low = high = None
        if len(draws) or spec in drawn.spreads:
            found = find_limits(chosen, p, tail=tail, seed=seed, drawn=draws)
            low, high = found.low, found.high
        mass = spec.endswith("scheme=mass")
        meaning = meanings.meaning(spec, p.shape)
        title = f"{chosen.title}{', equal mass' if mass else ''}"
        made.append(Number(spec, title, value, low, high, BETTER[chosen.direction], chosen.defined(p), meaning))
    return tuple(made)


def _resamples(p: Predictions, spec: str, options: Options) -> int:
    if options.resamples is not None:
        return options.resamples
    default = affordable(make(spec), p.n)
    return default if p.n <= MANY_ROWS else _affordable(p, min(default, FEWER))


def _affordable(p: Predictions, resamples: int) -> int:
    """Fewer resamples of very many rows, whose intervals are short."""
    return min(resamples, max(FEWEST, RESAMPLED_ROWS // p.n))


def _seen(p: Predictions) -> str:
    if not p.extras.seen:
        return ""
    return (
        f"The map that made these predictions was fitted on about {wording.whole_percent(p.extras.seen)} of these "
        "rows, so all numbers here flatter it. Measure on other rows."
    )


def _title(names: list[str]) -> str:
    return "Calibration report" if names == ["model"] else f"Calibration of {wording.listed(names)}"


def _sources(models: Mapping[str, Predictions], fits: Mapping[str, Predictions]) -> list[SourceFile]:
    return [source_of(p, name, "judged on") for name, p in models.items()] + [
        source_of(p, name, "fitted on") for name, p in fits.items()
    ]
