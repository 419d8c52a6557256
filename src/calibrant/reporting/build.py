"""Build a report from predictions or from an accumulator: numbers and sentences. Drawing and writing come later."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Literal

import numpy.typing as npt

from calibrant.core.errors import LeakWarning, visible
from calibrant.core.parallel import one_blas_thread
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.sampling import Sampling, affordable
from calibrant.core.text import number_format as fmt
from calibrant.deciding.costs import CostRule, check_rule, cost_rule
from calibrant.measures import make
from calibrant.measuring.estimating import estimate
from calibrant.measuring.measure import Measurement
from calibrant.repairing.rule import KEEP_ARGMAX, UNCALIBRATED, Ruling
from calibrant.reporting import contents_by_task, pictures, sentences, verdict
from calibrant.reporting.base_rate import base_rate_notes
from calibrant.reporting.calibration_state import assess, assess_error
from calibrant.reporting.calibrator_trials import RESAMPLES, Trials, calibrators_for, candidates, try_all
from calibrant.reporting.cost import CostTable
from calibrant.reporting.from_sums import refuse_options, report_of_sums
from calibrant.reporting.options import (
    OnStep,
    Options,
    check_calibrators,
    check_class_names,
    check_fit_on,
    check_models,
    check_numbers,
    sample_rows,
    sampled_words,
)
from calibrant.reporting.parts import Model, SourceFile
from calibrant.reporting.precision import certainty
from calibrant.reporting.provenance import provenance, source_of
from calibrant.reporting.ranking import cheapest, rank
from calibrant.reporting.report import Report
from calibrant.reporting.segments import by_group, by_prediction, check_groups
from calibrant.streaming.accumulator import Accumulator
from calibrant.streaming.accumulators import Accumulators

Source = Predictions | Mapping[str, Predictions] | Accumulator | Accumulators

MANY_ROWS, FEWER = 5000, 400  # above, a measure takes at most this many resamples: seconds count too
RESAMPLED_ROWS, FEWEST = 50_000_000, 100  # rows drawn in all for one measure, and resamples that are always drawn


def build(
    models: Source,
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
    """Build a report of one model or several on the same rows, or of an accumulator.

    Calibrators are fitted on `fit_on` (one for each model, by name); without it they are cross-fitted, and the report
    says so. The one to use is chosen by the rule of `choose`; `keep_argmax` lets only those win that cannot change a
    prediction. `groups` are the segments to look at (default: the groups of the predictions, "none" for none).
    """
    if isinstance(models, Accumulator | Accumulators):
        needs_rows = {"fit_on": fit_on, "groups": groups, "cost": cost, "class_names": class_names, "with": calibrators}
        refuse_options([name for name, value in needs_rows.items() if value is not None])
        return report_of_sums(models, title=title, seed=seed, sources=sources, command=command)
    check_numbers(bins, resamples)
    named, left_out = check_models(models)
    fits = check_fit_on(fit_on, named)
    used = sources or _sources(named, fits)
    first = next(iter(named.values()))
    segments = None if isinstance(groups, str) else first.groups if groups is None else groups
    grouped = None if segments is None else check_groups(segments, first.n, group_name)
    few, all_rows = sample_rows(first, seed), first.n
    if few is not None:
        named = {name: p.take(few) for name, p in named.items()}
        grouped = None if grouped is None else grouped[few]
        first = next(iter(named.values()))
    fits = {name: p if (rows := sample_rows(p, seed)) is None else p.take(rows) for name, p in fits.items()}
    not_tried: tuple[str, ...] = ()
    if calibrators is None:
        fitting = next(iter(fits.values()), None)
        calibrators = calibrators_for(first, fitting, len(named))
        not_tried = tuple(name for name in candidates(first, fitting) if name not in calibrators)
    check_calibrators(calibrators, first)
    options = Options(
        calibrators=calibrators,
        not_tried=not_tried,
        class_names=check_class_names(class_names, first),
        bins=bins,
        keep_argmax=keep_argmax,
        seed=seed,
        resamples=resamples,
        rule=None if cost is None else check_rule(cost_rule(cost), first),
        groups=None if grouped is None else (grouped, group_name),
        on_step=on_step or (lambda what: None),
    )
    with one_blas_thread(), warnings.catch_warnings():  # products are short: a second thread would mostly wait, busily
        warnings.simplefilter("ignore", LeakWarning)  # said on the page instead, once
        results = {name: _look(name, p, fits.get(name), options) for name, p in named.items()}
        looked_at = [model for model, _ in results.values()]
        ranking = None
        if len(named) > 1:
            repaired = {name: trials.after for name, (_, trials) in results.items()}
            size = resamples or _affordable(first, RESAMPLES)
            ranking = rank(named, repaired, ece=options.ece, resamples=size, seed=seed, on_step=options.on_step)
            looked_at = [results[name][0] for name in ranking.order]
            ranking = replace(ranking, cost_words=cheapest(looked_at))
            in_figures = {m.name: named[m.name] for m in looked_at[: pictures.MOST_MODELS]}
        else:
            (model, trials), name = *results.values(), next(iter(named))
            in_figures = {name: first} if model.repair is None else {"uncalibrated": first, model.repair: trials.after}
    costs = options.rule is not None and options.rule.fn is not None
    few_words = "" if few is None else sampled_words(first.n, all_rows, seed)
    if notes := tuple(note for note in (left_out, few_words) if note):
        looked_at = [replace(model, cautions=(*notes, *model.cautions)) for model in looked_at]
    return Report(
        title=visible(title or _title(list(named))),
        bins=bins,
        models=tuple(looked_at),
        ranking=ranking,
        provenance=provenance(used, command, seed, resamples),
        find_figures=partial(pictures.compute, in_figures, costs=costs),
    )


def report(
    models: Source,
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
    """Report on one model, or on several by name: `.save("report.html")`, or look at it in a notebook.

    Calibrators are fitted on `fit_on`; without it they are cross-fitted, and the report says so. `keep_argmax` lets
    only calibrators win that cannot change a prediction. An accumulator keeps no rows: of it, the report has what sums
    can answer, and no calibrators.
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


def _look(name: str, p: Predictions, fit_on: Predictions | None, options: Options) -> tuple[Model, Trials]:
    """Build the part of the report on one model."""
    ece, seed = options.ece, options.seed
    costs = None if options.rule is None else CostTable(options.rule)
    options.on_step(name)
    numbers = tuple(_number(p, spec, options) for spec in contents_by_task.specs(p.task, options.bins))
    trials = try_all(
        p,
        fit_on,
        options.calibrators,
        bins=options.bins,
        keep_argmax=options.keep_argmax,
        resamples=options.resamples or _affordable(p, RESAMPLES),
        seed=seed,
        on_step=options.on_step,
        look=None if costs is None else costs.add,
    )
    of_refinement = next(n for n in numbers if n.measure == contents_by_task.refinement(p.task))
    resamples = _resamples(p, ece, options)
    now = assess(p, ece=ece, bins=options.bins, resamples=resamples, seed=seed, refinement=of_refinement)
    if verdict.stops(now, trials.rows, trials.ruling):
        trials = replace(trials, best=UNCALIBRATED, after=p)
    gap = next(number for number in numbers if number.measure == "gap")
    after, repaired = None, None
    if trials.best != UNCALIBRATED:
        after = trials.after
        repaired = assess_error(after, ece=ece, bins=options.bins, resamples=resamples, seed=seed)
    classes = by_prediction(p, after, options.class_names) if p.task == "multiclass" else None
    groups = None if options.groups is None else by_group(p, after, *options.groups)
    cost = None if costs is None else costs.summary(trials.best)
    unlike = verdict.compare_rows(p, fit_on)
    found = verdict.judge(
        now,
        trials=trials.rows,
        ruling=trials.ruling,
        judged_on=trials.judged_on,
        after=repaired,
        groups=groups,
        classes=classes,
        unlike=unlike,
        cost=cost,
    )
    cautions = (
        sentences.describe_unlike(unlike, p.task),
        _seen_words(p),
        trials.caution,
        _absence_words(trials.ruling, options),
    )
    model = Model(
        name=name,
        task=p.task,
        n=p.n,
        k=p.k,
        says=now.says,
        right=now.right,
        verdict=sentences.write(found, trials.rows, trials.ruling, trials.judged_on, cost),
        numbers=numbers,
        noise=now.noise,
        bins=now.bins,
        cautions=tuple(caution for caution in cautions if caution),
        notes=(*contents_by_task.notes(p), *base_rate_notes(p, fit_on, seed)),
        judged_on=trials.judged_on,
        trials=trials.rows,
        best=trials.best,
        ruling=trials.ruling,
        not_tried=options.not_tried,
        classes=classes,
        groups=groups,
        cost=cost,
        certainty=certainty(p.n, gap, now.noise, now.state, trials.ruling),
    )
    return model, trials


def _number(p: Predictions, spec: str, options: Options) -> Measurement:
    chosen = make(spec)
    rows = replace(Sampling.of(p, seed=options.seed), resamples=_resamples(p, spec, options))
    e = estimate(chosen, p, rows)
    return Measurement.from_estimate(spec, e, n=p.n, k=p.k, definition=chosen.definition_for(p))


def _resamples(p: Predictions, spec: str, options: Options) -> int:
    if options.resamples is not None:
        return options.resamples
    default = affordable(make(spec).resamples, p.n)
    return default if p.n <= MANY_ROWS else _affordable(p, min(default, FEWER))


def _affordable(p: Predictions, resamples: int) -> int:
    """The number of resamples: fewer of very many rows, whose intervals are short."""
    return min(resamples, max(FEWEST, RESAMPLED_ROWS // p.n))


def _seen_words(p: Predictions) -> str:
    if not p.row_data.seen:
        return ""
    return (
        f"The map that calibrated these predictions was fitted on about {fmt.whole_percent(p.row_data.seen)} of these "
        "rows, so all numbers here are optimistic. Measure on held-out rows."
    )


def _absence_words(ruling: Ruling, options: Options) -> str:
    """A sentence on the classes without rows in the fit."""
    if not ruling.absent:
        return ""
    names = fmt.list_words([options.class_names[c] for c in ruling.absent])
    return f"No row to fit calibrators on is of {names}: nothing is learned about {names}."


def _title(names: list[str]) -> str:
    return "Calibration report" if names == ["model"] else f"Calibration of {fmt.list_words(names)}"


def _sources(models: Mapping[str, Predictions], fits: Mapping[str, Predictions]) -> list[SourceFile]:
    return [source_of(p, name, "judged on") for name, p in models.items()] + [
        source_of(p, name, "fitted on") for name, p in fits.items()
    ]
