"""Roles of columns of a table and arrays of an npz file: by standard name, or as the user says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.io.missing import MissingPolicy, check_policy

ScoreContent = Literal["logits", "probs", "score", "margin", "confidence", "confidence_logit"]

LabelRule = Literal["required", "optional"]  # whether a file must have labels

STEMS = ("logit", "prob")  # of columns numbered by class
ONE_SCORE: dict[ScoreContent, tuple[str, ...]] = {  # one number per row -> its names
    "score": ("score", "scores"),
    "margin": ("margin", "margins"),
    "confidence": ("confidence",),
    "confidence_logit": ("confidence_logit",),
}
NAMED = {  # array -> its names
    "ids": ("id", "ids"),
    "groups": ("group", "groups"),
    "weights": ("weight", "weights"),
    "clusters": ("cluster", "clusters"),
    "predicted": ("predicted",),
    "seen": ("seen",),
    "classes": ("classes",),
    "task": ("task",),  # "choice", where every row has every option
    "about": ("about",),  # notes of the file about itself
}
LABELS, CORRECT = ("label", "labels"), ("correct",)
MOST_NAMES = 200  # of the columns, searched for a similar name


class ColumnOptions(TypedDict, total=False):
    """Keyword arguments of `Predictions.load` and `Predictions.from_frame`: the fields of `Columns` of that name."""

    score: str | None
    label: str | None
    confidence: str | None
    correct: str | None
    logits: bool
    positive: Any
    classes: Sequence[str]
    weight: str | None
    cluster: str | None
    group: str | None
    id: str | None
    missing: MissingPolicy


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Names of columns and how to read them, as the user says; None stands for the standard name."""

    score: str | None = None  # P(positive) of two classes
    label: str | None = None
    confidence: str | None = None  # in the prediction, whatever its class
    correct: str | None = None
    logits: bool = False  # the score or the confidence is a margin (log-odds)
    positive: Any = None  # the label that scores are about
    classes: Sequence[str] = ()  # names of the classes, in order
    weight: str | None = None
    cluster: str | None = None
    group: str | None = None
    id: str | None = None
    missing: MissingPolicy = "error"  # of rows without a score
    per_character: bool = False  # of lm-evaluation-harness: log-likelihoods divided by the length of the option

    def __post_init__(self) -> None:
        check_policy(self.missing)
        if self.score is not None and self.confidence is not None:
            raise InputError(
                "columns",
                expected="predictions of one task",
                got="a score column and a confidence column",
                fix="name one of them",
            )

    def wants(self, name: str) -> bool:
        """Whether a column may be needed."""
        standard = (*LABELS, *CORRECT, "logits", "probs", "features")
        others = (name for names in (*ONE_SCORE.values(), *NAMED.values()) for name in names)
        return (
            name in standard
            or name in others
            or any(is_numbered(name, stem) for stem in (*STEMS, "feature"))
            or name in self.chosen
            or name in self.by_name
        )

    @property
    def by_name(self) -> dict[str, str]:
        """Columns named after a class, such as prob_cat, and the same column named by the number of the class.

        >>> Columns(classes=("cat", "dog")).by_name["prob_dog"]
        'prob_1'
        """
        return {f"{stem}_{name}": f"{stem}_{i}" for stem in STEMS for i, name in enumerate(self.classes)}

    @property
    def chosen(self) -> tuple[str | None, ...]:
        """The columns that the user names."""
        truth = (self.score, self.label, self.confidence, self.correct)
        return (*truth, self.weight, self.cluster, self.group, self.id)


STANDARD_NAMES = Columns()


@dataclass(frozen=True)
class ColumnRoles:
    """Roles of columns: which hold the scores, what these are, and which column each other array comes from."""

    content: ScoreContent
    score: str  # a column; for "logits" and "probs" it may be the stem of numbered ones
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def per_class(self) -> bool:
        return self.content in ("logits", "probs")

    @property
    def noun(self) -> str:
        return {"confidence": "confidence", "confidence_logit": "logit of the confidence"}.get(self.content, "score")


def assign_roles(names: Sequence[str], columns: Columns, where: str, *, labels: LabelRule = "required") -> ColumnRoles:
    """The role of each column; an error where a role has no column, or two."""
    there = set(names)
    content, score = _score(names, there, columns, where)
    confident = content.startswith("confidence")
    chosen = (columns.correct or columns.label) if confident else columns.label
    truth = _column(names, there, chosen, CORRECT if confident else LABELS, "correct" if confident else "label", where)
    if truth is None and labels == "required":
        table = not where.endswith(".npz")
        standard = CORRECT[0] if confident else LABELS[0] if table else LABELS[1]
        raise missing_from(where, f"{'a column' if table else 'an array'} named {standard}", names)
    named = {} if truth is None else {"labels": truth}
    explicit = {"ids": columns.id, "groups": columns.group, "weights": columns.weight, "clusters": columns.cluster}
    for array, standard_names in NAMED.items():
        column = _column(names, there, explicit.get(array), standard_names, array.removesuffix("s"), where)
        if column is not None:
            named[array] = column
    if "features" in there or "feature_0" in there:
        named["features"] = "features" if "features" in there else "feature"
    return ColumnRoles(content, score, named)


def _score(names: Sequence[str], there: set[str], columns: Columns, where: str) -> tuple[ScoreContent, str]:
    if columns.score is not None:
        return ("margin" if columns.logits else "score"), str(_column(names, there, columns.score, (), "score", where))
    if columns.confidence is not None:
        column = str(_column(names, there, columns.confidence, (), "confidence", where))
        return ("confidence_logit" if columns.logits else "confidence"), column
    classes = [stem for stem in STEMS if {f"{stem}s", f"{stem}_0"} & there]
    if len(classes) == 2:
        raise InputError(where, expected="logits or probs", got="both", fix="keep one: calibrant never guesses which")
    if classes and columns.correct is None:
        _refuse_one_score_options(columns, where)
        stem, kind = classes[0], {"logit": "logits", "prob": "probs"}[classes[0]]
        return ("logits" if stem == "logit" else "probs"), kind if kind in there else stem
    return _one_score(names, there, columns, where)


def _one_score(names: Sequence[str], there: set[str], columns: Columns, where: str) -> tuple[ScoreContent, str]:
    known = {content: name for content, standard_names in ONE_SCORE.items() for name in standard_names if name in there}
    if (columns.label is None) != (columns.correct is None):  # naming one of the two says what the score is
        confident = columns.correct is not None
        known = {content: name for content, name in known.items() if content.startswith("confidence") == confident}
    if len(known) > 1:
        got = " and ".join(known.values())
        fix = "say which: score='...' (--score-column) or confidence='...' (--confidence-column)"
        raise InputError(where, expected="one score", got=got, fix=fix)
    if not known:
        raise missing_from(
            where, "logits or probs (in tables logit_0, logit_1, ... or prob_0, ...), a score or a confidence", names
        )
    content, column = next(iter(known.items()))
    if columns.logits and content in ("score", "margin"):
        return "margin", column
    return ("confidence_logit" if columns.logits else content), column


def _refuse_one_score_options(columns: Columns, where: str) -> None:
    """Refuse options about one score per row where there is one for each class."""
    for used, option in (
        (columns.positive is not None, "positive"),
        (columns.logits, "logits (--override logit_score=true)"),
        (columns.missing == "count_as_wrong", "missing='count_as_wrong'"),
    ):
        if used:
            fix = "leave it out, or name the score with score='...' (--score-column)"
            raise InputError(where, expected=f"one score per row for {option}", got="one for each class", fix=fix)


def _column(
    names: Sequence[str], there: set[str], chosen: str | None, standard: tuple[str, ...], role: str, where: str
) -> str | None:
    """The column of a role: the chosen one, else the first standard name that is there."""
    if chosen is None:
        return next((name for name in standard if name in there), None)
    if chosen in there:
        return chosen
    if chosen == "none" and standard:
        return None
    shown = [name[:80] for name in names[:MOST_NAMES]]
    raise unknown_name(f"{where}, {role} column", chosen[:80], shown)


def missing_from(name: str, what: str, names: Sequence[str]) -> InputError:
    """The error for an array or a column that is missing, with the names of those present."""
    listed = ", ".join(name[:40] for name in names[:8]) + (", ..." if len(names) > 8 else "")
    return InputError(
        name, expected=what, got=f"only {listed or 'nothing'}", fix="rename or add it, or say which it is"
    )


def is_numbered(column: str, stem: str) -> bool:
    number = column.removeprefix(f"{stem}_")
    return number != column and number.isdigit()
