"""A fitted map: steps to apply, what was fitted and how well, a fingerprint of the rows, and JSON on disk."""

import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.core.arrays import Ints
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.extras import Shape
from calibrant.core.fingerprint import Fingerprint
from calibrant.core.map_json import is_finite, step_of
from calibrant.core.plain import plain
from calibrant.core.predictions import Predictions
from calibrant.core.schema import read_json, typed, whole
from calibrant.core.shapes import shape_words
from calibrant.core.steps import Step
from calibrant.core.views import Kind
from calibrant.core.wording import whole_percent

VERSION = 1
MADE_BY: dict[Shape, str] = {
    "classes": "Predictions.from_logits or from_probs",
    "binary": "Predictions.binary",
    "confidence": "Predictions.from_confidence",
    "choices": "Predictions.from_logits(..., mask=...)",
}


@dataclass(frozen=True)
class Fit:
    """How the fit ended: converged with a gradient as proof, or stopped, and why in words."""

    converged: bool = True
    diagnosis: str = "converged"
    gradient: float | None = None  # largest entry of the gradient of the mean objective at the end
    steps: int | None = None


@dataclass(frozen=True, eq=False)
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
    shape: Shape = "classes"  # of the predictions it was fitted on, and of those it takes

    def __post_init__(self) -> None:
        for step in self.steps:
            if not is_finite(step):
                raise InputError(
                    f"map of {self.calibrator}",
                    expected="finite numbers",
                    got=f"NaN or infinity in the step {step.name}",
                    fix="look at the scores it was fitted on: logits beyond 1e300 leave no room to scale them",
                )

    def __call__(self, p: Predictions) -> Predictions:
        """Calibrated predictions; warns when they are the rows that the map was fitted on."""
        q = self.apply(p)
        seen = self.fingerprint.seen(p) if self.fingerprint else 0.0
        if seen:
            warnings.warn(
                f"about {whole_percent(seen)} of these rows are among those this map was fitted on: numbers on them "
                "flatter it. Measure on other rows, or cross-fit.",
                LeakWarning,
                stacklevel=2,
            )
        return Predictions(q.values, q.labels, q.kind, replace(q.extras, seen=max(seen, p.extras.seen)))

    def apply(self, p: Predictions) -> Predictions:
        """The same without the look at the fingerprint."""
        if p.shape != self.shape:
            raise InputError(
                f"map of {self.calibrator}",
                expected=f"predictions of the shape {self.shape} ({shape_words(self.shape)})",
                got=f"{p.shape} ({shape_words(p.shape)})",
                fix=f"make them by {MADE_BY[self.shape]}, or fit a map on predictions like these",
            )
        if p.k != self.k and self.shape != "choices":
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

    def _by_group(self, p: Predictions, maps: dict[str, "Map"]) -> Predictions:
        if p.groups is None:
            raise InputError(
                "groups", expected="a group for every row", got="none", fix="add a column group (in npz: groups)"
            )
        names = p.groups.astype(str)
        rest = replace(self, groups=None)
        rows = [np.flatnonzero(names == name) for name in np.unique(names)]
        return put_together(p, [(i, maps.get(names[i[0]], rest).apply(p.take(i))) for i in rows])

    # -- on disk --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "calibrant_map": VERSION,
            "calibrator": self.calibrator,
            "k": self.k,
            "shape": self.shape,
            "parameters": plain(self.parameters),
            "keeps_argmax": self.keeps_argmax,
            "fit": plain(self.fit),
            "steps": [{"step": s.name, **plain(vars(s))} for s in self.steps],
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
        }
        if self.groups is not None:
            made["groups"] = {name: one.to_dict() for name, one in self.groups.items()}
        return made

    @classmethod
    def from_dict(cls, state: Any) -> "Map":
        """What `to_dict` gave, every field checked; anything else is an InputError."""
        if not isinstance(state, dict) or "calibrant_map" not in state:
            raise InputError("map", expected="JSON written by calibrant fit", got="something else", fix="fit it again")
        if type(state["calibrant_map"]) is not int or state["calibrant_map"] != VERSION:
            got = f"{state['calibrant_map']!r:.40}"
            raise InputError("map", expected=f"version {VERSION}", got=got, fix="update calibrant")
        with whole("map", fix="fit it again"):
            k, groups = typed(state, "k", int), state.get("groups")
            if k < 2:
                raise ValueError("k is below 2")
            made = cls(
                typed(state, "calibrator", str),
                k,
                tuple(step_of(one, k) for one in typed(state, "steps", list)),
                plain(typed(state, "parameters", dict)),
                typed(state, "keeps_argmax", bool),
                _fit_of(typed(state, "fit", dict)),
                Fingerprint.from_dict(state["fingerprint"]),
                None if groups is None else {name: cls.from_dict(one) for name, one in groups.items()},
                _shape_of(state.get("shape", "classes"), k),
            )
            for one in (made.groups or {}).values():
                if (one.k, one.shape) != (k, made.shape) or one.groups is not None:
                    raise ValueError("a group's map is for other classes")
            return made

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, path: str | Path) -> None:
        from calibrant.core.disk import write_whole

        write_whole(path, lambda stream: stream.write(self.to_json().encode()))

    # -- elsewhere ------------------------------------------------------------------------------

    def to_torch(self) -> Any:
        """A torch module: logits in, calibrated logits out, differentiable where the map is."""
        from calibrant.core.torch.map import TorchMap

        return TorchMap(self)

    def _repr_html_(self) -> str:
        from html import escape

        rows = {k: f"{v:.4g}" for k, v in self.parameters.items() if isinstance(v, float)}
        rows["fit"] = self.fit.diagnosis
        rows["predictions"] = "kept" if self.keeps_argmax else "may change"
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        of = f"{self.k} classes" if self.shape == "classes" else shape_words(self.shape)
        return f"<table><caption>Map: {escape(self.calibrator)}, {of}</caption>{cells}</table>"

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v:.4g}" for k, v in self.parameters.items() if isinstance(v, float))
        of = f"k={self.k}" if self.shape == "classes" else self.shape
        return f"Map({self.calibrator}, {of}{', ' + shown if shown else ''}, {self.fit.diagnosis})"


def put_together(p: Predictions, parts: list[tuple[Ints, Predictions]]) -> Predictions:
    """p with the scores and predictions that its parts have, each given with its rows; logits if all have logits."""
    kind: Kind = "logits" if all(q.kind == "logits" for _, q in parts) else "probs"
    values, predicted = np.empty((p.n, p.k)), np.empty(p.n, dtype=np.int64)
    for rows, q in parts:
        values[rows], predicted[rows] = q.logits if kind == "logits" else q.probs, q.predicted
    return Predictions(values, p.labels, kind, replace(p.extras, predicted=predicted))


def load_map(path: str | Path) -> Map:
    """A map from the JSON file that `Map.save` or `calibrant fit` wrote."""
    state = read_json(path, expected="a map written by calibrant fit", fix="fit it again")
    try:
        return Map.from_dict(state)
    except InputError as error:
        raise InputError.inside(str(path), error) from None


def _shape_of(state: Any, k: int) -> Shape:
    """The shape that a map says it takes; older maps say nothing and take scores of all classes."""
    found = next((shape for shape in MADE_BY if shape == state), None)
    if found is None or (found in ("binary", "confidence") and k != 2):
        raise ValueError(f"shape is {state!r:.40}")
    return found


def _fit_of(state: dict[str, Any]) -> Fit:
    """The report of a fit from its JSON."""
    gradient, steps = state["gradient"], state["steps"]
    if not (gradient is None or (type(gradient) in (int, float) and np.isfinite(gradient))):
        raise ValueError(f"gradient is {gradient!r:.40}")
    if not (steps is None or type(steps) is int):
        raise ValueError(f"steps is {steps!r:.40}")
    return Fit(typed(state, "converged", bool), typed(state, "diagnosis", str), gradient, steps)
