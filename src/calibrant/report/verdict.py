"""The verdict: one line and one paragraph that somebody who never heard of calibration understands."""

from calibrant.measures._compare import Comparison
from calibrant.report import shown
from calibrant.report.values import Bin, Noise, State, Tried, Verdict

SURE = 0.05
CLOSE = 0.01  # an ECE below one point is small whatever the rows show
FEW_ROWS = 100  # below, even a perfect record proves little
NOISY = 0.05  # where chance alone can make an ECE of five points, rows are too few to tell

MEANINGS = {
    "accuracy": "How often the answer is right.",
    "gap": "What it says on average minus how often it is right: above zero is too sure.",
    "ece": "How far what it says is from how often it is right, on average over its levels of confidence.",
    "ece:scheme=mass": "The same with bins that hold equally many rows.",
    "mce": "The same in the worst bin; a bin with few rows can decide it.",
    "classwise": "The same for the probability of every class, not only of the answer.",
    "smooth": "The same without bins: it cannot depend on their number.",
    "nll": "How surprised it is by the truth; rewards being right and being honest at once.",
    "brier": "Squared distance of the probabilities from the truth; rewards the same two things.",
    "auroc": "Refinement: how often a right answer carries more confidence than a wrong one. Blind to calibration.",
    "aurc": "Error rate when the least confident answers are left out one by one.",
}
TITLES = {  # what people call them, where the name alone says little
    "ets": "an ensemble of temperatures (ets)",
    "svs": "structured vector scaling (svs)",
    "sms": "structured matrix scaling (sms)",
    "isotonic": "isotonic regression",
    "beta": "beta calibration",
    "histogram": "histogram binning",
    "platt": "Platt scaling",
    "vector": "vector scaling",
    "matrix": "matrix scaling",
}


def state_of(n: int, gap: float, noise: Noise) -> State:
    """What the rows show, and no more: the ECE against noise first, then the side of the gap."""
    side = "" if noise.gap_p_value > SURE else "over" if gap > 0 else "under"
    if noise.p_value > SURE:
        if side:
            return "leaning over" if side == "over" else "leaning under"
        return "unsure" if noise.upper > NOISY or n < FEW_ROWS else "honest"
    if noise.observed < CLOSE:
        return "close"
    return "over" if side == "over" else "under" if side == "under" else "mixed"


def write(
    state: State,
    n: int,
    numbers: dict[str, float],
    noise: Noise,
    bins: tuple[Bin, ...],
    tried: tuple[Tried, ...],
    best: str,
    judged_on: str,
    bolder: str | None = None,
) -> Verdict:
    """`numbers` has says, right and gap."""
    headline = _headline(state, n, numbers["says"], numbers["right"], numbers["gap"])
    parts = [
        _finding(state, n, noise, bins),
        _repair(state, tried, best, judged_on),
        _bolder(tried, best, bolder),
        _harm(tried),
    ]
    return Verdict(state, headline, " ".join(part for part in parts if part))


def _headline(state: State, n: int, says: float, right: float, gap: float) -> str:
    size = shown.points(abs(gap))
    ending = {
        "honest": "its confidence can be taken at its word",
        "close": f"close to honest, off by {size}",
        "unsure": f"{shown.count(n, 'row')} are too few to tell",
        "leaning over": f"it leans to being too sure, by {size}",
        "leaning under": f"it leans to being not sure enough, by {size}",
        "over": f"overconfident by {size}",
        "under": f"underconfident by {size}",
        "mixed": "honest on average, not in detail",
    }[state]
    return f"Says {shown.percent(says)}, is right {shown.percent(right)}: {ending}."


def _finding(state: State, n: int, noise: Noise, bins: tuple[Bin, ...]) -> str:
    error, chance, rows = shown.percent(noise.observed), shown.percent(noise.upper), shown.count(n, "row")
    if state == "honest":
        return f"Its calibration error (ECE) of {error} is no more than chance makes on {rows} ({chance})."
    if state == "unsure" and noise.upper <= NOISY:
        return f"Its calibration error (ECE) is {error}, but {rows} prove little either way."
    if state == "unsure":
        return (
            f"Its calibration error (ECE) is {error}, but on so few rows a perfectly honest model shows up to {chance} "
            "by chance. Nothing can be concluded either way."
        )
    if state.startswith("leaning"):
        return (
            f"The average gap is more than chance explains; the error over all bins is not (ECE {error}, where "
            f"{chance} can be chance)."
        )
    if state == "close":
        return f"With {rows} the error is beyond doubt, and small: ECE {error}."
    if state == "mixed":
        return (
            "Too sure in places and not sure enough in others, which cancels on average but not in detail: ECE "
            f"{error}, of which chance explains at most {chance}. {_where(bins, (1, -1))}"
        )
    return f"{_where(bins)} Its calibration error (ECE) is {error}, where chance alone stays below {chance}."


def _where(bins: tuple[Bin, ...], sides: tuple[int, ...] = (0,)) -> str:
    """The bins that add most to the error, as examples: one of any side, or one of each (1 is too sure)."""
    found = []
    for side in sides:
        there = [b for b in bins if b.n and (not side or (b.says - b.right) * side > 0)]
        if there:
            worst = max(there, key=lambda b: b.n * abs(b.says - b.right))
            says, right = shown.percent(worst.says, 0), shown.percent(worst.right, 0)
            found.append(f"where it says about {says}, it is right {right} of the time ({shown.count(worst.n, 'row')})")
    words = "; ".join(found)
    return f"{words[0].upper()}{words[1:]}."


def _repair(state: State, tried: tuple[Tried, ...], best: str, judged_on: str) -> str:
    others = [t for t in tried[1:] if t.outcome != "failed"]
    if not others:
        return ""
    if best == "identity":
        listed = shown.listed([t.calibrator for t in others], most=6)
        if state in ("honest", "close"):
            return f"Leave it alone: nothing tried ({listed}) does better than that."
        return f"Nothing tried ({listed}) improves it beyond noise: leave it alone."
    t = next(t for t in tried if t.calibrator == best)
    changes = {c.measure.partition(":")[0]: c for c in t.changes}
    rows = {"other rows": "fitted on other rows,", "cross-fitted rows": "cross-fitted,"}
    name = f"{_name(t)}, {rows.get(judged_on, 'fitted on these very rows (which flatters it),')}"
    if state in ("honest", "unsure") or state.startswith("leaning"):
        what = f"still improves the loss (NLL {changes['nll'].a:.3f} to {changes['nll'].b:.3f})"
    else:
        what = _how_much(changes["ece"])
    return f"{name} {what} {_decisions(t, changes['accuracy'])}; {_refinement(changes['auroc'])}."


def _bolder(tried: tuple[Tried, ...], best: str, bolder: str | None) -> str:
    if bolder is None:
        return ""
    t = next(t for t in tried if t.calibrator == bolder)
    changes = {c.measure: c for c in t.changes}
    than = "doing nothing" if best == "identity" else best
    return (
        f"{_name(t)} has a lower loss than {than} (NLL {changes['nll'].b:.3f}), at the price of changing "
        f"{shown.count(t.decisions_changed, 'decision')} (accuracy {shown.percent(changes['accuracy'].a)} to "
        f"{shown.percent(changes['accuracy'].b)})."
    )


def _name(t: Tried) -> str:
    if t.calibrator == "temperature" and "T" in t.parameters:
        end = "" if "T_high" in t.parameters else " (the end of its range)"
        return f"A temperature of {t.parameters['T']:.3g}{end}"
    name = TITLES.get(t.calibrator, t.calibrator)
    return name[0].upper() + name[1:]


def _how_much(ece: Comparison) -> str:
    numbers = f"(ECE {shown.percent(ece.a)} to {shown.percent(ece.b)})"
    if ece.better == "a":
        return f"improves the loss but not the calibration error {numbers}"
    if ece.better == "neither":
        return f"improves the loss, with no shown effect on the calibration error {numbers},"
    share = 1 - ece.b / ece.a
    amount = "nearly all" if share >= 0.8 else "most" if share >= 0.5 else "part" if share >= 0.2 else "a little"
    return f"repairs {amount} of it {numbers}"


def _decisions(t: Tried, accuracy: Comparison) -> str:
    if t.keeps_argmax or not t.decisions_changed:
        return "and changes no decision"
    rates = f"accuracy {shown.percent(accuracy.a)} to {shown.percent(accuracy.b)}"
    word = {"a": "which costs", "b": "which improves"}.get(accuracy.better, "with no shown effect on")
    return f"and changes {shown.count(t.decisions_changed, 'decision')}, {word} {rates}"


def _refinement(auroc: Comparison) -> str:
    if auroc.a != auroc.a or auroc.b != auroc.b:
        return "refinement (AUROC) is undefined here"
    if auroc.better == "neither":
        same = abs(auroc.difference) < 0.005
        return f"refinement (AUROC) is unchanged{'' if same else ' as far as these rows tell'}"
    slightly = "slightly " if abs(auroc.difference) < 0.005 else ""
    word = f"got {slightly}worse" if auroc.better == "a" else f"improves{' slightly' if slightly else ''}"
    return f"refinement (AUROC) {word}, {auroc.a:.3f} to {auroc.b:.3f}"


def _harm(tried: tuple[Tried, ...]) -> str:
    worse = [t.calibrator for t in tried if t.outcome == "made it worse"]
    return f"Made worse by {shown.listed([TITLES.get(name, name) for name in worse], most=6)}." if worse else ""
