"""What was found about predictions, in a headline and a sentence or two; nothing about repairs."""

from calibrant.core import wording
from calibrant.core.spoken import spoken
from calibrant.reporting.finding import NOISY, Finding
from calibrant.reporting.report import Bin


def headline(found: Finding) -> str:
    size = wording.points(abs(found.gap))
    if found.shape == "binary":
        return _headline_of_positives(found, size)
    ending = {
        "honest": "its confidence can be taken at face value",
        "close": f"close to calibrated, off by {size}",
        "unsure": f"{wording.count(found.n, 'row')} are too few to tell",
        "leaning over": f"perhaps overconfident, by {size}",
        "leaning under": f"perhaps underconfident, by {size}",
        "over": f"overconfident by {size}",
        "under": f"underconfident by {size}",
        "mixed": "calibrated on average, not in detail",
    }[found.state]
    return f"Says {wording.percent(found.says)}, is right {wording.percent(found.right)}: {ending}."


def _headline_of_positives(found: Finding, size: str) -> str:
    ending = {
        "honest": "its scores can be taken at face value",
        "close": f"close to calibrated, off by {size}",
        "unsure": f"{wording.count(found.n, 'row')} are too few to tell",
        "leaning over": f"perhaps too high, by {size}",
        "leaning under": f"perhaps too low, by {size}",
        "over": f"too high by {size}",
        "under": f"too low by {size}",
        "mixed": "right on average, not in detail",
    }[found.state]
    says, right = wording.apart([100 * found.says, 100 * found.right], 1)
    return f"Predicts {says} % positive, {right} % are: {ending}."


def finding_words(found: Finding) -> str:
    noise, state = found.noise, found.state
    error, chance, rows = wording.percent(noise.observed), wording.percent(noise.upper), wording.count(found.n, "row")
    if state == "honest":
        return f"Its calibration error (ECE) of {error} is no more than chance makes on {rows} ({chance})."
    if state == "unsure" and noise.upper <= NOISY:
        return f"Its calibration error (ECE) is {error}, but {rows} prove little either way."
    if state == "unsure":
        return (
            f"Its calibration error (ECE) is {error}, but on so few rows a perfectly calibrated model shows up to "
            f"{chance} by chance. Nothing can be concluded either way."
        )
    if state.startswith("leaning"):
        return (
            f"The average gap is more than chance explains; the error over all bins is not (ECE {error}, where "
            f"{chance} can be chance)."
        )
    if state == "close":
        return f"With {rows} the error is beyond doubt, and small: ECE {error}."
    if state == "mixed":
        words = spoken(found.shape)
        return (
            f"{wording.sentence(words.over)} in places and {words.under} in others, which cancels on average but not "
            f"in detail: ECE {error}, of which chance explains at most {chance}. "
            f"{_where(found.bins, (1, -1), found.shape)}"
        )
    where = _where(found.bins, shape=found.shape)
    return f"{where} Its calibration error (ECE) is {error}, where chance alone stays below {chance}."


def _where(bins: tuple[Bin, ...], sides: tuple[int, ...] = (0,), shape: str = "classes") -> str:
    """The bins that add most to the error, as examples: one of any side, or one of each (1 is overconfident)."""
    found = []
    for side in sides:
        there = [b for b in bins if b.n and (not side or (b.says - b.right) * side > 0)]
        if there:
            worst = max(there, key=lambda b: b.n * abs(b.says - b.right))
            says, right = wording.percent(worst.says, 0), wording.percent(worst.right, 0)
            rows = wording.count(worst.n, "row")
            if shape == "binary":
                found.append(f"of rows scored about {says}, {right} are positive ({rows})")
            else:
                found.append(f"where it says about {says}, it is right {right} of the time ({rows})")
    return f"{wording.sentence('; '.join(found))}."
