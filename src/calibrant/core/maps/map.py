"""A fitted map: steps to apply, what was fitted and how well, a fingerprint of the rows, and JSON on disk."""

import json
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from calibrant.core.arrays import Array, Ints
from calibrant.core.config.convert import from_json, read_value
from calibrant.core.errors import InputError, LeakWarning, unknown_name
from calibrant.core.files import write_text
from calibrant.core.json import load_json, plain, read_typed, whole
from calibrant.core.maps.leak_check import Fingerprint
from calibrant.core.maps.steps import STEPS, Curves, Linear, Mix, Sigmoid, Step
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import ScoreType, Task
from calibrant.core.predictions.validation import SUM_TOLERANCE, SURE_ROWS, check_probs, float_array, row_sums
from calibrant.core.text.number_format import whole_percent
from calibrant.core.text.vocabulary import describe_task, vocabulary_of

VERSION = 1


@dataclass(frozen=True)
class Fit:
    """How the fit ended: converged with a gradient as proof, or stopped, and why in words."""

    converged: bool = True
    diagnosis: str = "converged"
    gradient: float | None = None  # largest entry of the gradient of the mean objective at the end
    steps: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Map:
    """Predictions in, calibrated predictions out. Made by `fit`; nothing in it can run code."""

    calibrator: str  # the spec that made it, for instance "temperature"
    k: int
    steps: tuple[Step, ...]
    parameters: dict[str, Any] = field(default_factory=dict)  # the numbers people ask for: T, T_low, T_high, ...
    keeps_argmax: bool = False
    fit: Fit = field(default_factory=Fit)
    fingerprint: Fingerprint | None = None
    groups: dict[str, "Map"] | None = None  # one map per group; rows of other groups take the steps
    task: Task = "multiclass"  # of the predictions it was fitted on, and of those it takes
    score_type: ScoreType = "logits"  # of the predictions it was fitted on, and of the arrays it takes

    def __post_init__(self) -> None:
        for step in self.steps:
            if not is_finite(step):
                raise InputError(
                    f"map of {self.calibrator}",
                    expected="finite numbers",
                    got=f"NaN or infinity in the step {step.name}",
                    fix="look at the scores it was fitted on: logits beyond 1e300 leave no room to scale them",
                )

    @overload
    def __call__(self, p: Predictions) -> Predictions: ...
    @overload
    def __call__(self, p: npt.ArrayLike, *, scores: ScoreType | None = None) -> Array: ...
    def __call__(self, p: Predictions | npt.ArrayLike, *, scores: ScoreType | None = None) -> Predictions | Array:
        """Calibrated predictions; warns when they are the rows that the map was fitted on.

        An array of scores (one column per class, or one score per row) gives an array of calibrated probabilities: no
        labels are needed. `scores` says what they are, "logits" or "probs"; by default what the map was fitted on,
        and then an array that looks like the other is refused. `transform` is another name for this.
        """
        if not isinstance(p, Predictions):
            q = self.apply(self.without_labels(p, scores))
            return q.score if self.one_score else q.probs
        q = self.apply(p)
        seen = self.fingerprint.share_seen(p) if self.fingerprint and p.labelled else 0.0
        if seen:
            warnings.warn(
                f"about {whole_percent(seen)} of these rows are among those this map was fitted on: numbers on them "
                "are optimistic. Measure on held-out rows, or cross-fit.",
                LeakWarning,
                stacklevel=2,
            )
        return q.with_values(q.values, q.score_type, replace(q.row_data, seen=max(seen, p.row_data.seen)))

    transform = __call__

    @property
    def one_score(self) -> bool:
        """Whether the map takes one number per row: P(positive), or a bare confidence."""
        return self.task in ("binary", "confidence")

    @property
    def T(self) -> float:  # noqa: N802 its name everywhere
        """The temperature of a map that has one."""
        if "T" not in self.parameters:
            names = ", ".join(self.parameters) or "none"
            raise AttributeError(f"the map of {self.calibrator} has no T; its parameters: {names}")
        return float(self.parameters["T"])

    def apply(self, p: Predictions) -> Predictions:
        """Calibrated predictions, without comparing the rows with the fingerprint."""
        if p.task != self.task:
            raise InputError(
                f"map of {self.calibrator}",
                expected=f"predictions of the task {self.task} ({describe_task(self.task)})",
                got=f"{p.task} ({describe_task(p.task)})",
                fix=f"make them by {vocabulary_of(self.task).built_by}, or fit a map on predictions like these",
            )
        if p.k != self.k and self.task != "choice":
            raise InputError(
                f"map of {self.calibrator}",
                expected=f"predictions of {self.k} classes",
                got=f"{p.k} classes",
                fix="fit the map on predictions of the same model",
            )
        if self.groups is not None:
            return self._by_group(p, self.groups)
        for step in self.steps:
            p = step(p)
        return p

    def without_labels(self, scores: npt.ArrayLike, score_type: ScoreType | None = None) -> Predictions:
        """Predictions of this map's task from bare scores: logits or probabilities, as it was fitted on if not said."""
        values = float_array("scores", scores).astype(np.float64, copy=False)
        if score_type not in (None, "logits", "probs"):
            raise unknown_name("scores", score_type, ("logits", "probs"))
        if values.ndim != (1 if self.one_score else 2):
            raise InputError(
                f"map of {self.calibrator}",
                expected="one score per row" if self.one_score else f"rows of {self.k} scores",
                got=f"shape {values.shape}",
                fix="give the scores of this task, or Predictions",
            )
        logits = (score_type or self._check_score_type(values)) == "logits"
        if values.ndim == 1 and len(gaps := np.flatnonzero(np.isnan(values))):
            got = f"NaN in row {gaps[0]} ({len(gaps):,} of {len(values):,} rows)"
            raise InputError("scores", expected="a score in every row", got=got, fix="leave these rows out")
        if self.task == "binary":
            return Predictions.binary(values, None, logits=logits)
        if self.task == "confidence":
            return Predictions.from_confidence(values, None, logits=logits)
        if self.task == "choice":
            with np.errstate(divide="ignore"):  # an option without a probability is none
                values = values if logits else np.log(check_probs(values))
            return Predictions.from_logits(values, None, mask=np.isfinite(values))
        create = Predictions.from_logits if logits else Predictions.from_probs
        return create(values, None)

    def _check_score_type(self, values: Array) -> ScoreType:
        """What the map was fitted on, unless bare scores look like the other."""
        inside = bool(values.size and values.min() >= 0 and values.max() <= 1)
        if self.score_type == "probs":
            if values.size == 0 or inside or np.isnan(values).any():
                return "probs"
            got, fix = f"scores from {values.min():g} to {values.max():g}", 'say scores="logits" if they are logits'
            if values.min() >= 0 and values.max() <= 100:
                fix = f"divide by 100 if they are percent; {fix}"
            raise InputError(f"map of {self.calibrator}", expected="probabilities", got=got, fix=fix)
        if values.ndim == 1:  # a few log-odds may all lie in [0, 1]
            alike, got = inside and len(values) >= SURE_ROWS and bool(np.ptp(values)), "numbers from 0 to 1"
        else:
            alike = inside and bool((np.abs(row_sums(values) - 1) <= SUM_TOLERANCE).all())
            got = "rows from 0 to 1 that sum to one"
        if alike:
            fix = 'say scores="probs" if they are probabilities, or scores="logits" if they are logits'
            raise InputError(
                f"map of {self.calibrator}", expected="logits", got=f"{got}, as probabilities are", fix=fix
            )
        return "logits"

    def _by_group(self, p: Predictions, maps: dict[str, "Map"]) -> Predictions:
        if p.groups is None:
            raise InputError(
                "groups", expected="a group for every row", got="none", fix="add a column group (in npz: groups)"
            )
        names = p.groups.astype(str)
        rest = replace(self, groups=None)
        rows = [np.flatnonzero(names == name) for name in np.unique(names)]
        return scatter_predictions(p, [(i, maps.get(names[i[0]], rest).apply(p.take(i))) for i in rows])

    # -- on disk --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        document: dict[str, Any] = {
            "calibrant_map": VERSION,
            "calibrator": self.calibrator,
            "k": self.k,
            "task": self.task,
            "score_type": self.score_type,
            "parameters": plain(self.parameters),
            "keeps_argmax": self.keeps_argmax,
            "fit": plain(self.fit),
            "steps": [{"step": s.name, **plain(vars(s))} for s in self.steps],
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
        }
        if self.groups is not None:
            document["groups"] = {name: group_map.to_dict() for name, group_map in self.groups.items()}
        return document

    @classmethod
    def from_dict(cls, state: Any) -> "Map":
        """Read what `to_dict` wrote, every field checked; anything else is an InputError."""
        if not isinstance(state, dict) or "calibrant_map" not in state:
            raise InputError("map", expected="JSON written by calibrant fit", got="something else", fix="fit it again")
        if type(state["calibrant_map"]) is not int or state["calibrant_map"] != VERSION:
            got = f"{state['calibrant_map']!r:.40}"
            raise InputError("map", expected=f"version {VERSION}", got=got, fix="update calibrant")
        with whole("map", fix="fit it again"):
            k, groups = read_typed(state, "k", int), state.get("groups")
            if k < 2:
                raise ValueError("k is below 2")
            loaded = cls(
                calibrator=read_typed(state, "calibrator", str),
                k=k,
                steps=tuple(step_of(step, k) for step in read_typed(state, "steps", list)),
                parameters=plain(read_typed(state, "parameters", dict)),
                keeps_argmax=read_typed(state, "keeps_argmax", bool),
                fit=from_json(Fit, {field.name: state["fit"][field.name] for field in fields(Fit)}),
                fingerprint=Fingerprint.from_dict(state["fingerprint"]),
                groups=None if groups is None else {name: cls.from_dict(document) for name, document in groups.items()},
                task=read_value(Task, state["task"], "task"),
                score_type=read_value(ScoreType, state["score_type"], "score_type"),
            )
            if loaded.one_score and k != 2:
                raise ValueError(f"task is {loaded.task} of {k} classes")
            for group_map in (loaded.groups or {}).values():
                if (group_map.k, group_map.task) != (k, loaded.task) or group_map.groups is not None:
                    raise ValueError("a group's map is for other classes")
            return loaded

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, path: str | Path) -> None:
        write_text(path, self.to_json())

    # -- elsewhere ------------------------------------------------------------------------------

    def to_torch(self, *, axis: int | None = None) -> Any:
        """A torch module: logits in, calibrated logits out, differentiable where the map is.

        The classes are in the last dimension, or of images and volumes in the second; `axis` (-1 or 1) says in which
        where both have their size.
        """
        from calibrant.core.torch.map_module import TorchMap  # loads torch, and reads a map

        return TorchMap(self, axis=axis)

    def _repr_html_(self) -> str:
        from html import escape

        rows = {k: f"{v:.4g}" for k, v in self.parameters.items() if isinstance(v, float)}
        rows["fit"] = self.fit.diagnosis
        rows["predictions"] = "kept" if self.keeps_argmax else "may change"
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        of = f"{self.k} classes" if self.task == "multiclass" else describe_task(self.task)
        return f"<table><caption>Map: {escape(self.calibrator)}, {of}</caption>{cells}</table>"

    def __repr__(self) -> str:
        numbers = ", ".join(f"{k}={v:.4g}" for k, v in self.parameters.items() if isinstance(v, float))
        of = f"k={self.k}" if self.task == "multiclass" else self.task
        return f"Map({self.calibrator}, {of}{', ' + numbers if numbers else ''}, {self.fit.diagnosis})"


def scatter_predictions(p: Predictions, parts: list[tuple[Ints, Predictions]]) -> Predictions:
    """Join parts of p, each given with its rows, into predictions like p; logits if all parts have logits."""
    kind: ScoreType = "logits" if all(q.score_type == "logits" for _, q in parts) else "probs"
    values, predicted = np.empty((p.n, p.k)), np.empty(p.n, dtype=np.int64)
    for rows, q in parts:
        values[rows], predicted[rows] = q.logits if kind == "logits" else q.probs, q.predicted
    return p.with_values(values, kind, replace(p.row_data, predicted=predicted))


def load_map(path: str | Path) -> Map:
    """A map from the JSON file that `Map.save` or `calibrant fit` wrote."""
    return load_json(path, Map.from_dict, expected="a map written by calibrant fit", fix="fit it again")


HIGHEST = 2.0  # no curve says more: values are probabilities, perhaps a little beyond one


def is_finite(step: Step) -> bool:
    """Whether all numbers of a step are finite."""
    return all(np.isfinite(numbers).all() for numbers in _numbers(step))


def step_of(state: Any, k: int) -> Step:
    """A step from its JSON: finite numbers, known words, and shapes that suit k classes."""
    name = read_typed(state, "step", str)
    if name not in STEPS:
        raise ValueError(f"there is no step {name!r:.40}")
    step = from_json(STEPS[name], {field: value for field, value in state.items() if field != "step"})
    if not is_finite(step):
        raise ValueError(f"numbers of the step {name} are not finite")
    if not _fits(step, k):
        raise ValueError(f"numbers of the step {name} do not suit {k} classes")
    return step


def _numbers(step: Step) -> Iterator[Any]:
    for value in vars(step).values():
        if not isinstance(value, str):
            yield from value if isinstance(value, list) else [value]


def _fits(step: Step, k: int) -> bool:
    """Whether the arrays of a step have the shapes, and the values, that its kind allows."""
    match step:
        case Linear(weight=weight, bias=bias):
            return weight.shape in ((), (1,), (k,), (k, k)) and bias.shape in ((), (1,), (k,))
        case Mix(T=T, weights=weights):
            return T > 0 and weights.shape == (3,) and bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-9
        case Sigmoid(coefficients=table, scope=scope):
            return table.shape == (k if scope == "classes" else 1, 4)
        case Curves(x=xs, y=ys, form=form, scope=scope, on=on):
            more = 1 if form == "stair" else 0
            return (
                (on == "probs" or (scope, k) == ("top", 2))
                and len(xs) == len(ys) == (k if scope == "classes" else 1)
                and all(
                    x.ndim == y.ndim == 1
                    and len(y) == len(x) + more > 0
                    and bool((np.diff(x) >= 0).all())
                    and bool((np.abs(y) <= HIGHEST).all())
                    and (scope == "top" or bool((y >= 0).all()))
                    for x, y in zip(xs, ys, strict=True)
                )
            )
    return True
