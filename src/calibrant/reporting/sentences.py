"""Sentences of a verdict, for readers who never heard of calibration: made last, from the state and its numbers.

Every sentence on the predictions and on repairs that a page, a terminal or a command prints is written here; why a
calibrator was chosen is said by the rule itself (`repairing/rule.py`).
"""

from calibrant import calibrators
from calibrant.core.catalogue import name_of
from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.measures import make
from calibrant.measuring.compare import Comparison
from calibrant.measuring.measure import REVERSED
from calibrant.repairing.judge import JudgedOn
from calibrant.repairing.rule import UNCALIBRATED, Ruling
from calibrant.reporting.calibration_state import NOISY
from calibrant.reporting.excerpts import SHORT
from calibrant.reporting.parts import (
    Assessment,
    Bin,
    CalibratorTrial,
    Colour,
    Cost,
    CostRow,
    Finding,
    Model,
    Outcome,
    RefinementLevel,
    Segment,
    UnlikeRows,
    Verdict,
)

RARE = 0.1  # below this share of positives, counts and relative errors say more than points
PER = 1000  # rows that costs are given for
HELPED: Outcome = "better"
WORSE: Outcome = "worse"
TELLS: dict[RefinementLevel, str] = {
    "none": "does not tell {} from {}",
    "barely": "barely tells {} from {}",
    "unclear": "may or may not tell {} from {}",
}
COLOURS: dict[Colour, str] = {  # said as well, for readers who do not see them
    "green": "Can be relied on",
    "amber": "With care",
    "red": "Not to be relied on",
    "grey": "Too early to tell",
}


def write(
    f: Finding,
    trials: tuple[CalibratorTrial, ...] = (),
    ruling: Ruling | None = None,
    judged_on: JudgedOn = "cross_fitted",
    cost: Cost | None = None,
) -> Verdict:
    """The verdict in words; without trials, not a word about repairs."""
    now = f.now
    first = headline(now, "uncalibrated" if ruling is None else _find(trials, ruling.chosen).outcome)
    action = "" if ruling is None else _action(f, trials, ruling, judged_on, cost)
    exception = _exception(f)
    parts = [error_words(now), _refinement_words(now)]
    if ruling is None and now.level == "reversed":
        parts.insert(0, _turn(now))
    if ruling is not None and f.repair != "stopped":
        money_row = None if cost is None or f.money is None else cost.row(f.calibrator)
        parts += [] if f.repair == "hopeless" else [_repair(now, trials, ruling, judged_on, money_row)]
        if money_row is None:  # what keeps every prediction at one half may change decisions at another threshold
            parts.append(_other_option(trials, ruling))
        parts.append(_harm(trials, ruling))
    if money := "" if cost is None or f.money is None else _money(cost):
        parts.insert(0, first)
    lines = tuple(line for line in (money or first, action, exception) if line)
    text = " ".join(part for part in parts if part)
    return Verdict(
        state=now.state,
        colour=f.colour,
        headline=first,
        text=text,
        action=action,
        exception=exception,
        lines=lines,
        finding=f,
    )


def headline(a: Assessment, chosen: Outcome = "uncalibrated") -> str:
    """One line for readers who never heard of calibration; `chosen` is what the recommended calibrator did."""
    if a.level == "reversed" and a.refinement is not None:
        auroc = f"{a.refinement.value:.2f}"
        if a.task == "binary":
            return f"Positives have lower scores than negatives (ROC AUC {auroc}): probably P(negative)."
        return f"Scores are reversed: it is more confident where it is wrong (AUROC {auroc})."
    words, rare = vocabulary_of(a.task), a.task == "binary" and 0 < a.right < RARE and a.says < RARE
    size = fmt.relative(a.says, a.right) if rare else fmt.points(abs(a.gap))
    ending = {
        "calibrated": _seen(a),
        "close": f"close to calibrated, off by {size}",
        "inconclusive": _too_few(a),
        "perhaps_over": f"perhaps {words.over}, by {size}",
        "perhaps_under": f"perhaps {words.under}, by {size}",
        "over": f"{words.over} by {size}",
        "under": f"{words.under} by {size}",
        "mixed": "calibrated on average, not in detail",
        "untested": "no significant gap on average",
    }[a.state]
    ending = _ending_beside(a, chosen, ending)
    if a.task != "binary":
        return f"Says {fmt.percent(a.says)}, is right {fmt.percent(a.right)}: {ending}."
    if rare and a.total is not None:
        expected, positives = f"{a.total * a.says:,.0f}", f"{a.total * a.right:,.0f}"
        return f"Expects {expected} positives in {fmt.count(a.n, 'row')}, there are {positives}: {ending}."
    says, right = fmt.apart([100 * a.says, 100 * a.right], 1)
    return f"Expects {says} % positive, {right} % are: {ending}."


def _seen(a: Assessment) -> str:
    return f"calibrated within what can be seen (error below {fmt.points(max(a.noise.upper, a.noise.observed))})"


def _too_few(a: Assessment) -> str:
    low, high = (f"{_short(end)} points {_side(end, a.task)}" for end in (a.gap_low, a.gap_high))
    rows = f"{fmt.count(a.n, 'row')} are too few to tell"
    return rows if a.gap_low != a.gap_low else f"{rows}: anything between {low} and {high}"


def _ending_beside(a: Assessment, chosen: Outcome, ending: str) -> str:
    """The end of the headline, with what is to be said of refinement, or beside a calibrator that lowers the loss."""
    if a.state != "inconclusive" and a.level in TELLS:
        average = "calibrated on average" if a.state in ("calibrated", "close") else ending
        what = vocabulary_of(a.task)
        told = TELLS[a.level].format(*what.outcomes)
        return f"{average}, but its {what.score_word} {told}"
    if a.state != "calibrated" or chosen in ("uncalibrated", "worse"):
        return ending
    return f"no significant calibration error{', yet calibration lowers the loss' if chosen == 'better' else ''}"


def _refinement_words(a: Assessment) -> str:
    """A sentence on the level of refinement, where it is not plainly there."""
    if a.refinement is None or a.level not in TELLS or a.state == "inconclusive":
        return ""
    name, value = vocabulary_of(a.task).refinement, f"{a.refinement.value:.2f}"
    ends = "" if a.refinement.low is None else f" ({a.refinement.low:.2f} to {a.refinement.high:.2f})"
    return f"Its {name} is {value}{ends}, where 0.5 is what guessing has."


def error_words(a: Assessment) -> str:
    """A sentence or two on the error against chance."""
    noise, state = a.noise, a.state
    error, rows = fmt.percent(noise.observed), fmt.count(a.n, "row")
    if noise.p_value != noise.p_value:
        return f"Its calibration error (ECE) is {error}; how much of it is chance is not known for rows in clusters."
    chance = fmt.percent(noise.upper)
    if state == "calibrated":
        return f"Its calibration error (ECE) of {error} is no more than chance makes on {rows} ({chance})."
    if state == "inconclusive" and noise.upper <= NOISY:
        return f"Its calibration error (ECE) is {error}, but {rows} prove little either way."
    if state == "inconclusive":
        return (
            f"Its calibration error (ECE) is {error}, but on so few rows a perfectly calibrated model reaches up to "
            f"{chance} by chance. Nothing can be concluded either way."
        )
    if state in ("perhaps_over", "perhaps_under"):
        return (
            f"The average gap is more than chance explains; the error over all bins is not (ECE {error}, where "
            f"{chance} can be chance)."
        )
    if state == "close":
        return f"With {rows} the error is beyond doubt, and small: ECE {error}."
    if state == "mixed":
        words = vocabulary_of(a.task)
        return (
            f"{fmt.sentence(words.over)} in places and {words.under} in others, which cancels on average but not "
            f"in detail: ECE {error}, of which chance explains at most {chance}. "
            f"{_where(a.bins, (1, -1), a.task)}"
        )
    where = _where(a.bins, task=a.task)
    return f"{where} Its calibration error (ECE) is {error}, where chance alone stays below {chance}."


def _where(bins: tuple[Bin, ...], sides: tuple[int, ...] = (0,), task: str = "multiclass") -> str:
    """Name the bins that add most to the error: one of any side, or one of each (1 is overconfident)."""
    clauses = []
    for side in sides:
        there = [b for b in bins if b.n and (not side or (b.says - b.right) * side > 0)]
        if there:
            worst = max(there, key=lambda b: b.n * abs(b.says - b.right))
            says, right = fmt.percents_beside(worst.says, worst.right)
            rows = fmt.count(worst.n, "row")
            if task == "binary":
                clauses.append(f"of rows scored about {says}, {right} are positive ({rows})")
            else:
                clauses.append(f"where it says about {says}, it is right {right} of the time ({rows})")
    return f"{fmt.sentence('; '.join(clauses))}."


def _where_chosen(judged_on: JudgedOn) -> str:
    return "" if judged_on == "cross_fitted" else " on the fitting set"


def _turn(now: Assessment) -> str:
    return REVERSED if now.task == "binary" else "Turn the confidence round before anything else."


def _action(
    f: Finding, trials: tuple[CalibratorTrial, ...], ruling: Ruling, judged_on: JudgedOn, cost: Cost | None
) -> str:
    """What to do and whether that is enough, in one line."""
    where = _where_chosen(judged_on)
    if f.repair == "stopped":
        few = "Collect more rows first: no calibrator is recommended on so few."
        return f"{_turn(f.now)} Until then nothing else helps." if f.now.level == "reversed" else few
    if f.repair in ("inconclusive", "better", "solved"):
        return _use(f, _find(trials, ruling.chosen), where, cost)
    do = "Collect more rows first" if f.now.state in ("perhaps_over", "perhaps_under") else "Use it uncalibrated"
    return {
        "hopeless": "No calibrator can help with that: it changes what is said, not what is known.",
        "nothing_to_fit": ruling.choice_words,
        "not_needed": "Use it uncalibrated: no calibration needed.",
        "none_helps": f"{do}: no calibrator tried significantly helps{where}.",
        "worsens": f"Use it uncalibrated: {ruling.chosen}, chosen on the fitting set, makes these rows worse.",
        "not_tried": "No calibrator was tried.",
    }[f.repair]


def _use(f: Finding, t: CalibratorTrial, where: str, cost: Cost | None) -> str:
    """The calibrator to use, with its effect judged against chance."""
    changes = _changes(t)
    name = f"temperature T = {t.parameters['T']:.3g}" if t.calibrator == "temperature" else t.calibrator
    ece, nll = changes["ece"], changes["nll"]
    effect = f"ECE {fmt.percent_from_to(ece.a, ece.b)}"
    if ece.better != "b":
        effect = f"loss (NLL) {fmt.from_to(nll.a, nll.b)}{f', but {effect}' if ece.better == 'a' else ''}"
    if t.outcome != HELPED:
        doubt = f"chosen on the fitting set, inconclusive on these rows ({effect})"
        effect = doubt if where else f"{effect} (inconclusive)"
    clauses = [f"{effect}, {_left(f.now, f.after)}" if f.after else effect]
    if f.unlike is not None:
        clauses.append(f"the rows to fit on {_unlike_word(f.unlike, f.now.task)}")
    if f.money is not None and cost is not None:
        clauses.insert(0, _repaired_money(cost, t.calibrator))
    elif f.now.task != "confidence":  # there, the predictions themselves are not known
        kept = "no prediction changes" if not t.predictions_changed else ""
        clauses.append(kept or fmt.count(t.predictions_changed, "prediction changes", "predictions change"))
    if f.now.level == "none":
        clauses.append(f"its {vocabulary_of(f.now.task).score_word} still tells nothing of the outcome")
    return f"Use {name}: {'; '.join(clauses)}."


def _left(now: Assessment, after: Assessment) -> str:
    """What is left after a repair, beside what chance makes."""
    still, noise = "still" if now.gap * after.gap > 0 else "now", after.noise
    side, chance = f"{_side(after.gap, after.task)} by {fmt.points(abs(after.gap))}", fmt.percent(noise.upper)
    if noise.p_value != noise.p_value:
        return "of rows in clusters, for which chance is not known"
    if after.state in ("calibrated", "inconclusive"):
        few = ", which on so few rows is wide" if after.state == "inconclusive" else ""
        return f"within chance (below {chance}{few})"
    if after.state == "close":
        return "which is small"
    if after.state in ("perhaps_over", "perhaps_under"):
        return f"perhaps {still} {side}"
    if after.state == "mixed":
        return f"still more than chance (below {chance})"
    return f"{still} {side}, more than chance (ECE below {chance})"


def _unlike_word(u: UnlikeRows, task: str) -> str:
    rates = f"{fmt.percent(u.fitted_on)} against {fmt.percent(u.judged_on)}"
    if task == "binary":
        return f"have {'more' if u.z > 0 else 'fewer'} positives than these ({rates})"
    return f"are {'easier' if u.z > 0 else 'harder'} than these (accuracy {rates})"


def describe_unlike(u: UnlikeRows | None, task: str) -> str:
    """A caution on rows to fit on that are unlike these, with the temperature that either asks for."""
    if u is None:
        return ""
    words = f"The rows to fit on {_unlike_word(u, task)}, more than chance explains (z = {abs(u.z):.1f})"
    if u.T_fitted is None or u.T_judged is None:
        return f"{words}."
    return (
        f"{words}: a temperature fitted there is {u.T_fitted:.3g}, and these rows ask for {u.T_judged:.3g}. Losses of "
        "the two sets of rows differ for the same reason."
    )


def _exception(f: Finding) -> str:
    """For whom the rest does not hold: the segment that is off most, and the one that a repair harms."""
    if f.worst is None:
        return ""
    task, worst, harmed = f.now.task, f.worst, f.harmed

    def named(s: Segment) -> str:
        return s.name if f.of_groups else f"when it predicts {s.name}"

    def harm(s: Segment) -> str:
        return f"worse after {f.calibrator} ({_short(s.gap, sign=True)} to {_short(s.left, sign=True)} points)"

    line = f"{named(worst)}: {_side(worst.left, task)} by {_short(worst.left)} points"
    if f.after is not None:
        before = "" if worst.gap * worst.left > 0 else f" {_side(worst.gap, task)}"
        line += f" after, {_short(worst.gap)}{before} before"
    if harmed is not None:
        line = f"{named(worst)}: {harm(worst)}" if harmed is worst else f"{line}; {named(harmed)} is {harm(harmed)}"
    if not f.of_groups:
        return f"{fmt.sentence(line)}."
    return f"{line}: calibrate by group (calibrant fit --by-group){', or leave it' if harmed else ''}."


def _side(gap: float, task: str) -> str:
    return vocabulary_of(task).over if gap > 0 else vocabulary_of(task).under


def _short(gap: float, *, sign: bool = False) -> str:
    """A gap in points with two figures.

    >>> _short(0.2228), _short(-0.0474, sign=True), _short(0.0031)
    ('22', '-4.7', '0.31')
    """
    text = f"{abs(100 * gap):.2g}" if abs(gap) < 0.995 else "100"
    return f"{'-' if gap < 0 else '+'}{text}" if sign else text


def _money(cost: Cost) -> str:
    """What the rule costs now, against doing without the model."""
    row = cost.rows[0]
    if row.always is None or row.never is None:
        return ""
    rule, always, never = (_per_thousand(amount) for amount in (row.actual_cost, row.always, row.never))
    return (
        f"Acting at {fmt.significant_percent(cost.threshold or 0.0)} costs {rule} per {PER:,} rows; always acting "
        f"would cost {always}, never acting {never}."
    )


def _repaired_money(cost: Cost, calibrator: str) -> str:
    row = cost.row(calibrator)
    change = f"{_per_thousand(abs(row.change))} {'more' if row.change > 0 else 'less'}"
    if row.change_low <= 0 <= row.change_high:
        change = "no significant difference"
    at = fmt.significant_percent(cost.threshold or 0.0)
    decisions = fmt.count(row.decisions_changed, "decision changes", "decisions change")
    return f"{_per_thousand(row.actual_cost)} per {PER:,} rows ({change}), {decisions} at the threshold of {at}"


def _per_thousand(cost: float) -> str:
    """
    >>> _per_thousand(0.2203), _per_thousand(12.3456)
    ('220', '12,346')
    """
    return f"{PER * cost:.3g}" if PER * abs(cost) < 999.5 else f"{PER * cost:,.0f}"


def glossary(m: Model, ece: str) -> list[tuple[str, str]]:
    """The terms of the first screen and what they mean."""
    names = (ece, "nll", "roc_auc" if m.task == "binary" else "auroc_correct")
    terms = [(f"{SHORT[name_of(name)]}: {make(name).title}", make(name).explain(m.task)) for name in names]
    if any(t.calibrator == "temperature" for t in m.trials):
        terms.append(
            ("Temperature", "one number that all logits are divided by: above 1 makes every confidence lower.")
        )
    return terms


def choice(m: Model) -> str:
    """Which calibrator was chosen and why, or why it is not used where these rows speak against it."""
    if m.ruling is None:
        return ""
    if m.verdict.finding.repair == "stopped":
        return "Nothing is recommended, for the reason that the verdict gives."
    if m.best != m.ruling.chosen:
        return f"{fmt.sentence(m.ruling.chosen)} was chosen on the fitting set, but makes these rows worse."
    return f"{m.ruling.choice_words} {m.ruling.option_words}".rstrip()


def badge(m: Model) -> str:
    """A short label beside the calibrator to use, or beside no calibration."""
    if m.best != UNCALIBRATED:
        return "use this"
    if m.ruling is not None and m.ruling.outcomes != "differ":
        return "nothing to fit"
    if m.verdict.finding.repair == "stopped":
        return "nothing recommended"
    if m.verdict.state in ("calibrated", "close"):
        return "no calibration needed"
    if m.ruling is not None and m.ruling.chosen != UNCALIBRATED:
        return "use it uncalibrated"
    return "no calibrator significantly helps" if len(m.trials) > 1 else "no calibrator tried"


def describe_judging(judged_on: JudgedOn, not_tried: tuple[str, ...] = ()) -> str:
    """A sentence on how the calibrators were fitted and tested."""
    words = {
        "held_out": "Each calibrator was fitted on separate rows and judged on these, which are held out.",
        "cross_fitted": "No rows to fit on were given, so each row is calibrated by a map fitted on the other four "
        "fifths of the rows (cross-fitting); the parameters are of a fit on all rows.",
        "fitting_rows": "The calibrators were fitted on rows they are judged on: these numbers are optimistic.",
    }[judged_on]
    if not_tried:
        words += f" Not tried, because it takes long on so many rows and classes: {fmt.list_words(not_tried)}."
    return words


def _repair(
    assessment: Assessment,
    trials: tuple[CalibratorTrial, ...],
    ruling: Ruling,
    judged_on: JudgedOn,
    money: CostRow | None = None,
) -> str:
    state = assessment.state
    others = [t.calibrator for t in trials[1:] if t.outcome != "failed"]
    if not others or ruling.outcomes != "differ":
        return ""
    if ruling.chosen == UNCALIBRATED:
        which = "keeps every prediction and " if ruling.keep_argmax else ""
        listed, where = fmt.list_words(others, most=8), _where_chosen(judged_on)
        none = f"none of the calibrators tried ({listed}) {which}significantly lowers the loss{where}"
        words = f"No calibration needed: {none}." if state in ("calibrated", "close") else f"{fmt.sentence(none)}."
        here = [_in_text(t.calibrator) for t in trials if t.outcome == HELPED]
        return f"{words} On these rows {fmt.list_words(here, most=8)} would have." if here else words
    t = _find(trials, ruling.chosen)
    changes = _changes(t)
    fitted = {
        "held_out": "on held-out rows,",
        "cross_fitted": "cross-fitted,",
        "fitting_rows": "fitted on these very rows (which is optimistic),",
    }
    name = f"{_name(t)}, {fitted[judged_on]}"
    numbers = f"(NLL {fmt.from_to(changes['nll'].a, changes['nll'].b)})"
    if t.outcome == WORSE:
        return f"{name} was the choice by the fitting set, but raises the loss of these rows {numbers}."
    loss = f"lowers the loss {numbers}" if t.outcome == HELPED else f"has no significant effect on the loss {numbers}"
    if state in ("over", "under", "mixed", "close"):
        loss += f" and {_how_much(changes['ece'])}"
    refinement = _refinement(changes["roc_auc" if "roc_auc" in changes else "auroc_correct"])
    if assessment.task == "confidence":
        return f"{name} {loss}; {refinement}."
    changed = _predictions(t, changes["accuracy"])
    if money is not None:
        changed = f"It changes {fmt.count(money.decisions_changed, 'decision')} of the rule"
    return f"{name} {loss}. {changed}; {refinement}."


def _other_option(trials: tuple[CalibratorTrial, ...], ruling: Ruling) -> str:
    """A sentence on what would be chosen with the other setting of keep_argmax."""
    if ruling.otherwise == ruling.chosen:
        return ""
    if ruling.otherwise == UNCALIBRATED:
        return "Among calibrators that keep every prediction, none significantly lowers the loss."
    t = _find(trials, ruling.otherwise)
    if t.outcome == WORSE:
        return ""
    changes = _changes(t)
    condition = "If predictions may change" if ruling.keep_argmax else "To keep every prediction"
    name, loss = _name(t), fmt.from_to(changes["nll"].a, changes["nll"].b)
    words = f"{condition}, use {name[0].lower()}{name[1:]} (NLL {loss})."
    return f"{words} {_predictions(t, changes['accuracy'])}." if ruling.keep_argmax else words


def _find(trials: tuple[CalibratorTrial, ...], calibrator: str) -> CalibratorTrial:
    return next(t for t in trials if t.calibrator == calibrator)


def _changes(t: CalibratorTrial) -> dict[str, Comparison]:
    return {name_of(c.measure): c for c in t.changes}


def _in_text(calibrator: str) -> str:
    """The name of a calibrator in a sentence; chains and users' files keep their own names."""
    return calibrator if "+" in calibrator or ".py" in calibrator else calibrators.make(calibrator).name_in_text


def _name(t: CalibratorTrial) -> str:
    if t.calibrator == "temperature" and "T" in t.parameters:
        end = "" if "T_high" in t.parameters else " (the end of its range)"
        return f"A temperature of {t.parameters['T']:.3g}{end}"
    return fmt.sentence(_in_text(t.calibrator))


def _how_much(ece: Comparison) -> str:
    numbers = f"(ECE {fmt.percent_from_to(ece.a, ece.b)})"
    if ece.better == "a":
        return f"raises the calibration error {numbers}"
    if ece.better == "neither":
        return f"has no significant effect on the calibration error {numbers}"
    share = 1 - ece.b / ece.a
    amount = "nearly all" if share >= 0.8 else "most" if share >= 0.5 else "part" if share >= 0.2 else "a little"
    return f"removes {amount} of the calibration error {numbers}"


def _predictions(t: CalibratorTrial, accuracy: Comparison) -> str:
    if t.keeps_argmax or not t.predictions_changed:
        return "It changes no prediction"
    rates = f"accuracy ({fmt.percent_from_to(accuracy.a, accuracy.b)})"
    word = {"a": "which lowers", "b": "which raises"}.get(accuracy.better, "with no significant effect on")
    return f"It changes {fmt.count(t.predictions_changed, 'prediction')}, {word} {rates}"


def _refinement(auroc: Comparison) -> str:
    name = "refinement (ROC AUC)" if auroc.measure == "roc_auc" else "refinement (AUROC)"
    if auroc.a != auroc.a or auroc.b != auroc.b:
        return f"{name} is undefined here"
    if auroc.better == "neither":
        change = fmt.from_to(auroc.a, auroc.b)
        return f"{name} is unchanged" if auroc.a == auroc.b else f"{name} does not change significantly, {change}"
    slightly = "slightly " if abs(auroc.difference) < 0.005 else ""
    word = f"gets {slightly}worse" if auroc.better == "a" else f"improves{' slightly' if slightly else ''}"
    return f"{name} {word}, {fmt.from_to(auroc.a, auroc.b)}"


def _harm(trials: tuple[CalibratorTrial, ...], ruling: Ruling) -> str:
    """A sentence on the calibrators that raise the loss, other than the chosen one."""
    worse = [t.calibrator for t in trials if t.outcome == WORSE and t.calibrator != ruling.chosen]
    return f"The loss is raised by {fmt.list_words([_in_text(name) for name in worse], most=8)}." if worse else ""
