"""How reports speak of a score and of its event, by the shape of the predictions."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Spoken:
    """The words for one shape."""

    says: str = "says"
    right: str = "is right"
    over: str = "overconfident"
    under: str = "underconfident"
    score: str = "confidence"
    score_axis: str = "what it says (confidence)"
    rate_axis: str = "how often it is right"
    says_on_average: str = "Says, on average"
    rate_on_average: str = "Is right (accuracy)"
    misses: str = "those predicted wrongly"
    refinement: str = "AUROC"
    title: str = "What it says against how often it is right"


SPOKEN_OF_CLASSES = Spoken()
SPOKEN_OF_POSITIVES = Spoken(
    "predicts",
    "are positive",
    "too high",
    "too low",
    "P(positive)",
    "what it predicts, P(positive)",
    "how many are positive",
    "Predicts, on average",
    "Are positive",
    "the negative ones",
    "ROC AUC",
    "What it predicts against how many are positive",
)


def spoken(shape: str) -> Spoken:
    """
    >>> spoken("binary").right, spoken("confidence").right
    ('are positive', 'is right')
    """
    return SPOKEN_OF_POSITIVES if shape == "binary" else SPOKEN_OF_CLASSES
