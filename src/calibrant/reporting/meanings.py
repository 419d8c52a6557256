"""What the numbers of a report mean to somebody who never saw them."""

MEANINGS = {
    "accuracy": "How often the prediction is right.",
    "gap": "What it says on average minus how often it is right: above zero is overconfident.",
    "ece": "How far what it says is from how often it is right, on average over its levels of confidence.",
    "ece:scheme=mass": "The same with bins that hold equally many rows.",
    "mce": "The same in the worst bin; a bin with few rows can decide it.",
    "classwise": "The same for the probability of every class, not only of the predicted one.",
    "smooth": "The same without bins: it cannot depend on their number.",
    "nll": "How surprised it is by the truth; rewards being right and being calibrated at once.",
    "brier": "Squared distance of the probabilities from the truth; rewards the same two things.",
    "auroc_correct": (
        "Refinement: how often a right prediction has more confidence than a wrong one. Blind to calibration."
    ),
    "roc_auc": "Refinement: how often a positive row has a higher score than a negative one. Blind to calibration.",
    "average_precision": "Share of positives among the rows of high scores; by chance it is the share of all rows.",
    "aurc": "Error rate when the least confident predictions are left out one by one.",
}
MEANINGS_OF_POSITIVES = {
    "accuracy": "How often the likelier of the two classes is the true one.",
    "gap": "What it predicts on average minus the share of positives: above zero, it predicts too many.",
    "ece": "How far P(positive) is from the share of positives, on average over its levels.",
}


def meaning(spec: str, shape: str) -> str:
    """What a number means to somebody who never saw it."""
    name = "ece:scheme=mass" if spec.endswith("scheme=mass") else spec.partition(":")[0]
    return (MEANINGS | MEANINGS_OF_POSITIVES if shape == "binary" else MEANINGS)[name]
