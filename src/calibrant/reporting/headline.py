"""Headline of a report: the test of calibration in a line and a sentence or two; nothing about repairs."""

from calibrant.core.text import number_format as fmt
from calibrant.core.text.vocabulary import vocabulary_of
from calibrant.reporting.calibration_state import NOISY, Assessment
from calibrant.reporting.parts import Bin, Outcome

RARE = 0.1  # below this share of positives, counts and relative errors say more than points


def headline(a: Assessment, chosen: Outcome = "uncalibrated") -> str:
    """One line for readers who never heard of calibration; `chosen` is what the recommended calibrator did."""
    if a.reversed_auc is not None:
        return f"Positives have lower scores than negatives (ROC AUC {a.reversed_auc:.2f}): probably P(negative)."
    if a.task == "binary":
        return _headline_of_positives(a, chosen)
    size = fmt.points(abs(a.gap))
    ending = {
        "calibrated": "its confidence can be taken at face value",
        "close": f"close to calibrated, off by {size}",
        "inconclusive": f"{fmt.count(a.n, 'row')} are too few to tell",
        "perhaps_over": f"perhaps overconfident, by {size}",
        "perhaps_under": f"perhaps underconfident, by {size}",
        "over": f"overconfident by {size}",
        "under": f"underconfident by {size}",
        "mixed": "calibrated on average, not in detail",
        "untested": "no significant gap on average",
    }[a.state]
    return f"Says {fmt.percent(a.says)}, is right {fmt.percent(a.right)}: {_ending_beside(a, chosen, ending)}."


def _headline_of_positives(a: Assessment, chosen: Outcome) -> str:
    rare = 0 < a.right < RARE and a.says < RARE
    size = f"{fmt.relative(a.says, a.right)}" if rare else fmt.points(abs(a.gap))
    ending = {
        "calibrated": "its scores can be taken at face value",
        "close": f"close to calibrated, off by {size}",
        "inconclusive": f"{fmt.count(a.n, 'row')} are too few to tell",
        "perhaps_over": f"perhaps too high, by {size}",
        "perhaps_under": f"perhaps too low, by {size}",
        "over": f"too high by {size}",
        "under": f"too low by {size}",
        "mixed": "right on average, not in detail",
        "untested": "no significant gap on average",
    }[a.state]
    ending = _ending_beside(a, chosen, ending)
    if rare and a.total is not None:
        expected, positives = f"{a.total * a.says:,.0f}", f"{a.total * a.right:,.0f}"
        return f"Expects {expected} positives in {fmt.count(a.n, 'row')}, there are {positives}: {ending}."
    says, right = fmt.apart([100 * a.says, 100 * a.right], 1)
    return f"Expects {says} % positive, {right} % are: {ending}."


def _ending_beside(a: Assessment, chosen: Outcome, ending: str) -> str:
    """The end of the headline where a calibrator is recommended: a loss may fall though the ECE is not significant."""
    if a.state != "calibrated" or chosen in ("uncalibrated", "worse"):
        return ending
    return f"no significant calibration error{', yet calibration lowers the loss' if chosen == 'better' else ''}"


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
            says, right = fmt.percent(worst.says, 0), fmt.percent(worst.right, 0)
            rows = fmt.count(worst.n, "row")
            if task == "binary":
                clauses.append(f"of rows scored about {says}, {right} are positive ({rows})")
            else:
                clauses.append(f"where it says about {says}, it is right {right} of the time ({rows})")
    return f"{fmt.sentence('; '.join(clauses))}."
