"""From predictions to a report: numbers and sentences only. Nothing is drawn or written here."""

import warnings
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from calibrant.core.curve import Curve, equal_width_edges
from calibrant.core.errors import LeakWarning
from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measures._consistency import consistency
from calibrant.report import drawings, inputs, shown, verdict
from calibrant.report.cost import CostRule, check_rule, cost_of, cost_row, read_rule
from calibrant.report.draws import CONFIDENCE, Draws
from calibrant.report.inputs import Options, Step
from calibrant.report.made import how_made, source_of
from calibrant.report.ranking import rank
from calibrant.report.segments import by_answer, by_group, chance_of_gap, check_groups
from calibrant.report.sure import certainty
from calibrant.report.tried import RESAMPLES, Trial, bolder, calibrators_for, try_all
from calibrant.report.values import Bin, CostRow, Model, Noise, Number, Report, Source

MANY_ROWS, FEWER = 5000, 400  # above, a measure takes at most this many resamples: seconds count too
CLASSWISE_ELEMENTS = 400_000  # rows x classes; above, the interval of the class-wise error would take too long
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
    bins: int = 15,
    title: str | None = None,
    seed: int = 0,
    resamples: int | None = None,
    sources: Sequence[Source] | None = None,
    command: str | None = None,
    on_step: Step | None = None,
) -> Report:
    """A report of one model or several on the same rows.

    Calibrators are fitted on `fit_on` (one for each model, by name); without it they are cross-fitted, and the report
    says so. `groups` are the segments to look at (default: the groups of the predictions, "none" for none).
    """
    inputs.check_numbers(bins, resamples)
    named = inputs.check_models(models)
    fits = inputs.check_fit_on(fit_on, named)
    first = next(iter(named.values()))
    segments = None if isinstance(groups, str) else first.groups if groups is None else groups
    if calibrators is None:
        calibrators = calibrators_for(first, next(iter(fits.values()), None), len(named))
    inputs.check_calibrators(calibrators, first.k)
    options = Options(
        calibrators,
        inputs.check_class_names(class_names, first.k),
        bins,
        seed,
        resamples,
        check_rule(read_rule(cost) if isinstance(cost, str) else cost, first.k),
        None if segments is None else (check_groups(segments, first.n, group_name), group_name),
        on_step or (lambda what: None),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LeakWarning)  # said on the page instead, once
        looked = {name: _look(name, p, fits.get(name), options) for name, p in named.items()}
        made = [model for model, _ in looked.values()]
        ranking = None
        if len(named) > 1:
            ranking = rank(named, ece=options.ece, resamples=resamples or RESAMPLES, seed=seed, on_step=options.on_step)
            made = [looked[name][0] for name in ranking.order]
            drawn = {m.name: named[m.name] for m in made[: drawings.MOST_MODELS]}
        else:
            (model, trial), name = *looked.values(), next(iter(named))
            drawn = {name: first} if model.best == "identity" else {"raw": first, model.best: trial.after}
        options.on_step("figures")
        figures = drawings.compute(drawn)
    how = how_made(sources or _sources(named, fits), command, seed, resamples)
    return Report(title or _title(list(named)), bins, tuple(made), ranking, figures, how)


def _look(name: str, p: Predictions, fit_on: Predictions | None, options: Options) -> tuple[Model, Trial]:
    """Everything about one model."""
    ece, seed, rule, costs = options.ece, options.seed, options.rule, list[CostRow]()
    options.on_step(name)
    drawn = Draws.of(p, {spec: _resamples(p, spec, options) for spec in _specs(ece)}, seed)
    numbers = _numbers(p, drawn, seed)
    trial = try_all(
        p,
        fit_on,
        options.calibrators,
        ece=ece,
        before=drawn,
        resamples=options.resamples or RESAMPLES,
        seed=seed,
        on_step=options.on_step,
        look=None if rule is None else lambda calibrator, q: costs.append(cost_row(q, rule, calibrator)),
    )
    found = consistency(p, ece, resamples=_resamples(p, ece, options), seed=seed)
    chance = chance_of_gap(p.confidence, p.correct.astype(np.float64))
    noise = Noise(found.observed, found.expected, found.upper, found.p_value, chance)
    gap = next(number for number in numbers if number.measure == "gap")
    state = verdict.state_of(p.n, gap.value, noise)
    bins = bins_of(p.top_label, options.bins)
    after = None if trial.best == "identity" else trial.after
    average = {"says": float(p.confidence.mean()), "right": float(p.correct.mean()), "gap": gap.value}
    model = Model(
        name,
        p.n,
        p.k,
        average["says"],
        average["right"],
        verdict.write(state, p.n, average, noise, bins, trial.rows, trial.best, trial.judged_on, bolder(trial)),
        numbers,
        noise,
        trial.judged_on,
        trial.rows,
        trial.best,
        bins,
        by_answer(p, after, options.class_names),
        None if options.groups is None else by_group(p, after, *options.groups),
        None if rule is None else cost_of(rule, costs, trial.best),
        certainty(p.n, gap, noise, state, trial),
        tuple(caution for caution in (_seen(p), trial.caution) if caution),
    )
    return model, trial


def _specs(ece: str) -> tuple[str, ...]:
    mass = f"{ece}{',' if ':' in ece else ':'}scheme=mass"
    mce = ece.replace("ece", "mce")
    return ("accuracy", "gap", ece, mass, mce, "smooth", "classwise", "nll", "brier", "auroc", "aurc")


def _numbers(p: Predictions, drawn: Draws, seed: int) -> tuple[Number, ...]:
    """As `measure` finds them, and what they mean."""
    made, each = [], (1 + CONFIDENCE) / 2
    for spec, value in drawn.values.items():
        chosen, draws = make(spec), drawn.draws[spec]
        low = high = None
        if len(draws):
            low, high = chosen.lower_bound(p, draws, each, seed), chosen.upper_bound(p, draws, each)
        mass = spec.endswith("scheme=mass")
        meaning = verdict.MEANINGS["ece:scheme=mass" if mass else spec.partition(":")[0]]
        title = f"{chosen.title}{', equal mass' if mass else ''}"
        made.append(Number(spec, title, value, low, high, BETTER[chosen.direction], chosen.definition, meaning))
    return tuple(made)


def bins_of(curve: Curve, bins: int) -> tuple[Bin, ...]:
    """The bars of the reliability diagram, equal width, empty ones included."""
    b, edges = curve.bins(bins), equal_width_edges(bins)
    return tuple(
        Bin(float(edges[i]), float(edges[i + 1]), int(b.count[i]), float(b.confidence[i]), float(b.accuracy[i]))
        for i in range(bins)
    )


def _resamples(p: Predictions, spec: str, options: Options) -> int:
    if spec == "classwise" and p.n * p.k > CLASSWISE_ELEMENTS:
        return 0
    if options.resamples is not None:
        return options.resamples
    default = make(spec).resamples
    return default if p.n <= MANY_ROWS else min(default, FEWER)


def _seen(p: Predictions) -> str:
    if not p.extras.seen:
        return ""
    return (
        f"The map that made these predictions was fitted on about {p.extras.seen:.0%} of these rows, so all numbers "
        "here flatter it. Measure on other rows."
    )


def _title(names: list[str]) -> str:
    return "Calibration report" if names == ["model"] else f"Calibration of {shown.listed(names)}"


def _sources(models: Mapping[str, Predictions], fits: Mapping[str, Predictions]) -> list[Source]:
    return [source_of(p, name, "judged on") for name, p in models.items()] + [
        source_of(p, name, "fitted on") for name, p in fits.items()
    ]
