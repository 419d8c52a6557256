"""Words for a score and its outcome, by the task of the predictions."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words for one task."""

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


CLASS_VOCABULARY = Vocabulary()
POSITIVE_VOCABULARY = Vocabulary(
    says="expects",
    right="are positive",
    over="too high",
    under="too low",
    score="P(positive)",
    score_axis="score, P(positive)",
    rate_axis="share of positives",
    says_on_average="Mean score",
    rate_on_average="Share of positives",
    misses="the negative ones",
    refinement="ROC AUC",
    title="Scores against the share of positives",
)


def vocabulary_of(task: str) -> Vocabulary:
    """
    >>> vocabulary_of("binary").right, vocabulary_of("confidence").right
    ('are positive', 'is right')
    """
    return POSITIVE_VOCABULARY if task == "binary" else CLASS_VOCABULARY
