"""The words for scores, outcomes and predictions of each task: the one table of them."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace


@dataclass(frozen=True, kw_only=True)
class Vocabulary:
    """The words for one task."""

    description: str  # of predictions of this task, in messages
    built_by: str  # the constructor of such predictions

    # sentences and tables
    says: str = "says"
    right: str = "is right"
    over: str = "overconfident"
    under: str = "underconfident"
    score: str = "confidence"
    says_on_average: str = "Says, on average"
    rate_on_average: str = "Is right (accuracy)"
    misses: str = "those predicted wrongly"
    refinement: str = "AUROC"
    row: str = "prediction"  # what has an outcome
    row_outcomes: tuple[str, str] = ("wrong", "right")  # of one row, 0 and 1
    outcomes: tuple[str, str] = ("right", "wrong")  # of many, as scores tell them apart
    score_word: str = "confidence"

    # figures
    title: str = "What it says against how often it is right"
    score_axis: str = "what it says (confidence)"
    rate_axis: str = "how often it is right"
    rate: str = "accuracy"
    outcome: str = "correct"
    miss: str = "incorrect"
    side_over: str = "overconfident"  # of the diagonal
    side_under: str = "underconfident"

    # definitions of measures
    event: str | None = None  # whose probability the score is, where it is not a class
    in_definitions: Mapping[str, str] = field(default_factory=dict)  # words for a class -> words for this task


_MULTICLASS = Vocabulary(description="scores of all classes", built_by="Predictions.from_logits or from_probs")
VOCABULARIES: Mapping[str, Vocabulary] = {
    "multiclass": _MULTICLASS,
    "choice": replace(
        _MULTICLASS,
        description="options that differ from row to row",
        built_by="Predictions.from_logits(..., mask=...)",
    ),
    "confidence": replace(
        _MULTICLASS,
        description="confidences with nothing but right or wrong",
        built_by="Predictions.from_confidence",
        event="the prediction being right",
        in_definitions={"top-label": "confidence"},
    ),
    "binary": Vocabulary(
        description="scores of the positive class",
        built_by="Predictions.binary",
        says="expects",
        right="are positive",
        over="too high",
        under="too low",
        score="P(positive)",
        says_on_average="Mean score",
        rate_on_average="Share of positives",
        misses="the negative ones",
        refinement="ROC AUC",
        row="row",
        row_outcomes=("negative", "positive"),
        outcomes=("positives", "negatives"),
        score_word="score",
        title="Scores against the share of positives",
        score_axis="score, P(positive)",
        rate_axis="share of positives",
        rate="share of positives",
        outcome="positive",
        miss="negative",
        side_over="score too high",
        side_under="score too low",
        event="the row being positive",
        in_definitions={
            "top-label": "positive-class",
            "confidence": "P(positive)",
            "incorrect": "negative",
            "correct": "positive",
        },
    ),
}


def vocabulary_of(task: str) -> Vocabulary:
    """
    >>> vocabulary_of("binary").right, vocabulary_of("confidence").right
    ('are positive', 'is right')
    """
    return VOCABULARIES[task]


def describe_task(task: str) -> str:
    """A description of the predictions of this task, for messages."""
    return VOCABULARIES[task].description
