"""The verdict: one line and one paragraph that somebody who never heard of calibration understands.

Every sentence about repairs that a page, a terminal or a command prints is written here; what was found about the
predictions in `headline.py`, and why a calibrator was chosen by the rule itself (`repairing/rule.py`).
"""

from calibrant.core import wording
from calibrant.measuring.compare import Comparison
from calibrant.repairing.rule import UNCALIBRATED, Ruling
from calibrant.reporting.finding import Finding
from calibrant.reporting.headline import finding_words, headline
from calibrant.reporting.report import CalibrationState, Model, Outcome, Tried, Verdict

HELPED: Outcome = "helped"
WORSE: Outcome = "made it worse"
CROSS_FITTED = "cross-fitted rows"
TITLES = {  # what people call them, where the name alone says little
    "ets": "an ensemble of temperatures (ets)",
    "svs": "structured vector scaling (svs)",
    "sms": "structured matrix scaling (sms)",
    "isotonic": "isotonic regression",
    "beta": "beta calibration",
    "histogram": "histogram binning",
    "platt": "Platt scaling",
    "platt:of=score": "a sigmoid of the score (platt:of=score)",
    "vector": "vector scaling",
    "matrix": "matrix scaling",
}


def of_predictions(found: Finding) -> Verdict:
    """Without a word about repairs: what `calibrant measure` says."""
    return Verdict(found.state, headline(found), finding_words(found))


def write(found: Finding, tried: tuple[Tried, ...], ruling: Ruling, judged_on: str) -> Verdict:
    """With what the calibrators tried did, and which to use."""
    parts = [
        finding_words(found),
        _repair(found, tried, ruling, judged_on),
        _other_option(tried, ruling),
        _harm(tried, ruling),
    ]
    said = " ".join(part for part in parts if part)
    return Verdict(found.state, headline(found), said, _action(found, tried, ruling, _where_chosen(judged_on)))


def _where_chosen(judged_on: str) -> str:
    return "" if judged_on == CROSS_FITTED else " on the fitting set"


def _action(found: Finding, tried: tuple[Tried, ...], ruling: Ruling, where: str) -> str:
    """What to do, in one line."""
    if ruling.chosen == UNCALIBRATED:
        if found.state in ("honest", "close"):
            return "Use it uncalibrated: no calibration needed."
        if not [t for t in tried[1:] if t.outcome != "failed"]:
            return "No calibrator was tried."
        few = found.state == "unsure" or found.state.startswith("leaning")
        do = "Collect more rows first" if few else "Use it uncalibrated"
        return f"{do}: no calibrator tried is shown to help{where}."
    t = _find(tried, ruling.chosen)
    if t.outcome == WORSE:
        return f"Use it uncalibrated: {t.calibrator}, chosen on the fitting set, makes these rows worse."
    changes = _changes(t)
    name = f"temperature T = {t.parameters['T']:.3g}" if t.calibrator == "temperature" else t.calibrator
    ece, nll = changes["ece"], changes["nll"]
    said = f"ECE {wording.percent_from_to(ece.a, ece.b)}"
    if ece.better != "b":
        said = f"loss (NLL) {wording.from_to(nll.a, nll.b)}"
    if t.outcome != HELPED:
        said = f"chosen on the fitting set, in doubt on these rows ({said})" if where else f"{said} (in doubt)"
    if found.shape == "confidence":  # it belongs to predictions that nobody touches
        return f"Use {name}: {said}."
    changed = t.predictions_changed
    kept = (
        "no prediction changes" if not changed else wording.count(changed, "prediction changes", "predictions change")
    )
    return f"Use {name}: {said}, {kept}."


def choice(m: Model) -> str:
    """Which calibrator was chosen and why; and that it is not used where these rows speak against it."""
    if m.best != m.ruling.chosen:
        return f"{wording.sentence(m.ruling.chosen)} was chosen on the fitting set, but makes these rows worse."
    return f"{m.ruling.choice_words} {m.ruling.option_words}".rstrip()


def to_do(best: str) -> str:
    """The recommendation in one line."""
    return "no calibration needed" if best == UNCALIBRATED else f"use {best}"


def judged(judged_on: str, not_tried: tuple[str, ...] = ()) -> str:
    """How the calibrators were fitted and judged."""
    how = {
        "other rows": "Each calibrator was fitted on other rows and judged on these.",
        CROSS_FITTED: "No other rows were given, so each row is calibrated by a map fitted on the other four "
        "fifths of the rows (cross-fitting); the parameters shown are of a fit on all rows.",
    }
    flattering = "The calibrators were fitted on rows they are judged on: these numbers flatter them."
    words = how.get(judged_on, flattering)
    if not_tried:
        words += f" Not tried, because it takes long on so many rows and classes: {wording.listed(not_tried)}."
    return words


def _repair(found: Finding, tried: tuple[Tried, ...], ruling: Ruling, judged_on: str) -> str:
    state: CalibrationState = found.state
    others = [t.calibrator for t in tried[1:] if t.outcome != "failed"]
    if not others:
        return ""
    if ruling.chosen == UNCALIBRATED:
        which = "keeps every prediction and is shown" if ruling.keep_argmax else "is shown"
        listed, where = wording.listed(others, most=8), _where_chosen(judged_on)
        none = f"none of the calibrators tried ({listed}) {which} to lower the loss{where}"
        said = f"No calibration needed: {none}." if state in ("honest", "close") else f"{wording.sentence(none)}."
        here = [TITLES.get(t.calibrator, t.calibrator) for t in tried if t.outcome == HELPED]
        return f"{said} On these rows {wording.listed(here, most=8)} would have." if here else said
    t = _find(tried, ruling.chosen)
    changes = _changes(t)
    rows = {"other rows": "fitted on other rows,", CROSS_FITTED: "cross-fitted,"}
    name = f"{_name(t)}, {rows.get(judged_on, 'fitted on these very rows (which flatters it),')}"
    numbers = f"(NLL {wording.from_to(changes['nll'].a, changes['nll'].b)})"
    if t.outcome == WORSE:
        return f"{name} was the choice by the fitting set, but raises the loss of these rows {numbers}."
    loss = f"lowers the loss {numbers}" if t.outcome == HELPED else f"has no shown effect on the loss {numbers}"
    if state in ("over", "under", "mixed", "close"):
        loss += f" and {_how_much(changes['ece'])}"
    refinement = _refinement(changes.get("roc_auc") or changes["auroc_correct"])
    if found.shape == "confidence":
        return f"{name} {loss}; {refinement}."
    return f"{name} {loss}. {_predictions(t, changes['accuracy'])}; {refinement}."


def _other_option(tried: tuple[Tried, ...], ruling: Ruling) -> str:
    """What would be chosen if predictions might not change, or might."""
    if ruling.otherwise == ruling.chosen:
        return ""
    if ruling.otherwise == UNCALIBRATED:
        return "Among calibrators that keep every prediction, none is shown to lower the loss."
    t = _find(tried, ruling.otherwise)
    if t.outcome == WORSE:
        return ""
    changes = _changes(t)
    condition = "If predictions may change" if ruling.keep_argmax else "To keep every prediction"
    name, loss = _name(t), wording.from_to(changes["nll"].a, changes["nll"].b)
    said = f"{condition}, use {name[0].lower()}{name[1:]} (NLL {loss})."
    return f"{said} {_predictions(t, changes['accuracy'])}." if ruling.keep_argmax else said


def _find(tried: tuple[Tried, ...], calibrator: str) -> Tried:
    return next(t for t in tried if t.calibrator == calibrator)


def _changes(t: Tried) -> dict[str, Comparison]:
    return {c.measure.partition(":")[0]: c for c in t.changes}


def _name(t: Tried) -> str:
    if t.calibrator == "temperature" and "T" in t.parameters:
        end = "" if "T_high" in t.parameters else " (the end of its range)"
        return f"A temperature of {t.parameters['T']:.3g}{end}"
    return wording.sentence(TITLES.get(t.calibrator, t.calibrator))


def _how_much(ece: Comparison) -> str:
    numbers = f"(ECE {wording.percent_from_to(ece.a, ece.b)})"
    if ece.better == "a":
        return f"raises the calibration error {numbers}"
    if ece.better == "neither":
        return f"has no shown effect on the calibration error {numbers}"
    share = 1 - ece.b / ece.a
    amount = "nearly all" if share >= 0.8 else "most" if share >= 0.5 else "part" if share >= 0.2 else "a little"
    return f"removes {amount} of the calibration error {numbers}"


def _predictions(t: Tried, accuracy: Comparison) -> str:
    if t.keeps_argmax or not t.predictions_changed:
        return "It changes no prediction"
    rates = f"accuracy ({wording.percent_from_to(accuracy.a, accuracy.b)})"
    word = {"a": "which lowers", "b": "which raises"}.get(accuracy.better, "with no shown effect on")
    return f"It changes {wording.count(t.predictions_changed, 'prediction')}, {word} {rates}"


def _refinement(auroc: Comparison) -> str:
    name = "refinement (ROC AUC)" if auroc.measure == "roc_auc" else "refinement (AUROC)"
    if auroc.a != auroc.a or auroc.b != auroc.b:
        return f"{name} is undefined here"
    if auroc.better == "neither":
        same = abs(auroc.difference) < 0.005
        return f"{name} is unchanged{'' if same else ' as far as these rows tell'}"
    slightly = "slightly " if abs(auroc.difference) < 0.005 else ""
    word = f"gets {slightly}worse" if auroc.better == "a" else f"improves{' slightly' if slightly else ''}"
    return f"{name} {word}, {wording.from_to(auroc.a, auroc.b)}"


def _harm(tried: tuple[Tried, ...], ruling: Ruling) -> str:
    """Those that nobody chose: of the chosen one it has been said."""
    worse = [t.calibrator for t in tried if t.outcome == WORSE and t.calibrator != ruling.chosen]
    return (
        f"The loss is raised by {wording.listed([TITLES.get(name, name) for name in worse], most=8)}." if worse else ""
    )
