"""Which column of a table, or array of an npz file, is what: by its standard name, or as told."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from calibrant.core.errors import InputError, unknown_name
from calibrant.core.missing import How, check_how

What = Literal["logits", "probs", "score", "margin", "confidence", "confidence_logit"]

STEMS = ("logit", "prob")  # of columns numbered by class
ONE_SCORE: dict[What, tuple[str, ...]] = {  # one number per row -> its names
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
    "shape": ("shape",),  # "choices", where every row has every option
    "about": ("about",),  # what the file says about itself
}
LABELS, CORRECT = ("label", "labels"), ("correct",)
MOST_NAMES = 200  # of those that are there, looked through for a similar one


@dataclass(frozen=True)
class Columns:
    """What a user says of the columns; those that are None go by their standard names."""

    score: str | None = None  # P(positive) of two classes
    label: str | None = None
    confidence: str | None = None  # in the prediction, whatever it was
    correct: str | None = None
    logits: bool = False  # the score or the confidence is a margin (log-odds)
    positive: Any = None  # the label that scores are about
    classes: tuple[str, ...] = ()  # names of the classes, in order
    weight: str | None = None
    cluster: str | None = None
    group: str | None = None
    id: str | None = None
    missing: How = "refuse"  # rows without a score
    per_character: bool = False  # of lm-evaluation-harness: log-likelihoods divided by the length of the option

    def __post_init__(self) -> None:
        check_how(self.missing)
        if self.score is not None and self.confidence is not None:
            raise _mixed("a score column and a confidence column", "name one of them")

    def wants(self, name: str) -> bool:
        """Whether a column may be needed."""
        standard = (*LABELS, *CORRECT, "logits", "probs", "features")
        others = (one for names in (*ONE_SCORE.values(), *NAMED.values()) for one in names)
        return (
            name in standard
            or name in others
            or any(is_numbered(name, stem) for stem in (*STEMS, "feature"))
            or name in self.told
            or name in self.by_name
        )

    @property
    def by_name(self) -> dict[str, str]:
        """Columns that are called after a class, prob_cat, and what they would be called by its number.

        >>> Columns(classes=("cat", "dog")).by_name["prob_dog"]
        'prob_1'
        """
        return {f"{stem}_{name}": f"{stem}_{i}" for stem in STEMS for i, name in enumerate(self.classes)}

    @property
    def told(self) -> tuple[str | None, ...]:
        """The columns that were named."""
        truth = (self.score, self.label, self.confidence, self.correct)
        return (*truth, self.weight, self.cluster, self.group, self.id)


AS_NAMED = Columns()


@dataclass(frozen=True)
class Roles:
    """What the scores are, where they are, and which array comes from which column."""

    what: What
    score: str  # a column; of "logits" and "probs" it may be the stem of numbered ones
    named: Mapping[str, str] = field(default_factory=dict)

    @property
    def per_class(self) -> bool:
        return self.what in ("logits", "probs")

    @property
    def noun(self) -> str:
        return {"confidence": "confidence", "confidence_logit": "logit of the confidence"}.get(self.what, "score")


def roles_of(names: Sequence[str], asked: Columns, where: str, *, labelled: bool = True) -> Roles:
    """Who is who among these names; an error where the answer is none, or two."""
    there = set(names)
    what, score = _score(names, there, asked, where)
    confident = what.startswith("confidence")
    told = (asked.correct or asked.label) if confident else asked.label
    truth = _column(names, there, told, CORRECT if confident else LABELS, "correct" if confident else "label", where)
    if truth is None and labelled:
        table = not where.endswith(".npz")
        standard = CORRECT[0] if confident else LABELS[0] if table else LABELS[1]
        raise missing_from(where, f"{'a column' if table else 'an array'} named {standard}", names)
    named = {} if truth is None else {"labels": truth}
    explicit = {"ids": asked.id, "groups": asked.group, "weights": asked.weight, "clusters": asked.cluster}
    for array, standard_names in NAMED.items():
        column = _column(names, there, explicit.get(array), standard_names, array.removesuffix("s"), where)
        if column is not None:
            named[array] = column
    if "features" in there or "feature_0" in there:
        named["features"] = "features" if "features" in there else "feature"
    return Roles(what, score, named)


def _score(names: Sequence[str], there: set[str], asked: Columns, where: str) -> tuple[What, str]:
    for told, what, margin in (
        (asked.score, "score", "margin"),
        (asked.confidence, "confidence", "confidence_logit"),
    ):
        if told is not None:
            found: Any = margin if asked.logits else what
            return found, str(_column(names, there, told, (), what, where))
    classes = [stem for stem in STEMS if {f"{stem}s", f"{stem}_0"} & there]
    if len(classes) == 2:
        raise InputError(where, expected="logits or probs", got="both", fix="keep one: calibrant never guesses which")
    if classes and asked.correct is None:
        _only_one_score(asked, where)
        stem, kind = classes[0], {"logit": "logits", "prob": "probs"}[classes[0]]
        return ("logits" if stem == "logit" else "probs"), kind if kind in there else stem
    return _one_score(names, there, asked, where)


def _one_score(names: Sequence[str], there: set[str], asked: Columns, where: str) -> tuple[What, str]:
    known = {what: one for what, some in ONE_SCORE.items() for one in some if one in there}
    sides = {"label": asked.label is not None, "correct": asked.correct is not None}
    if sum(sides.values()) == 1:  # whoever names what was true has said which of the two it is
        known = {what: one for what, one in known.items() if what.startswith("confidence") == sides["correct"]}
    if len(known) > 1:
        got = " and ".join(known.values())
        fix = "say which: score='...' (--score-column) or confidence='...' (--confidence-column)"
        raise InputError(where, expected="one score", got=got, fix=fix)
    if not known:
        raise missing_from(
            where, "logits or probs (in tables logit_0, logit_1, ... or prob_0, ...), a score or a confidence", names
        )
    what, column = next(iter(known.items()))
    if asked.logits:
        what = {"score": "margin", "confidence": "confidence_logit"}.get(what, what)  # type: ignore[assignment]
    return what, column


def _only_one_score(asked: Columns, where: str) -> None:
    """Refuse what is said of one score where there is one for each class."""
    for said, option in (
        (asked.positive is not None, "positive"),
        (asked.logits, "logits (--logit-score)"),
        (asked.missing == "wrong", "missing='wrong'"),
    ):
        if said:
            fix = "leave it out, or name the score with score='...' (--score-column)"
            raise InputError(where, expected=f"one score per row for {option}", got="one for each class", fix=fix)


def _column(
    names: Sequence[str], there: set[str], told: str | None, standard: tuple[str, ...], role: str, where: str
) -> str | None:
    if told is None:
        return next((one for one in standard if one in there), None)
    if told in there:
        return told
    if told == "none" and standard:
        return None
    some = [name[:80] for name in names[:MOST_NAMES]]
    raise unknown_name(f"{where}, {role} column", told[:80], some)


def missing_from(name: str, what: str, names: Sequence[str]) -> InputError:
    """The error for an array or a column that is not there, beside those that are."""
    shown = ", ".join(name[:40] for name in names[:8]) + (", ..." if len(names) > 8 else "")
    return InputError(name, expected=what, got=f"only {shown or 'nothing'}", fix="rename or add it, or say which it is")


def is_numbered(column: str, stem: str) -> bool:
    number = column.removeprefix(f"{stem}_")
    return number != column and number.isdigit()


def _mixed(got: str, fix: str) -> InputError:
    return InputError("columns", expected="predictions of one shape", got=got, fix=fix)
