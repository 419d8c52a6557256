"""A fitted map: steps to apply, what was fitted and how well, a fingerprint of the rows, and JSON on disk."""

import dataclasses
import json
import warnings
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.calibrators._fingerprint import Fingerprint
from calibrant.calibrators._steps import STEPS, Curves, Linear, Mix, Sigmoid, Step
from calibrant.core.errors import InputError, LeakWarning
from calibrant.core.predictions import Predictions

VERSION = 1


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

    def __call__(self, p: Predictions) -> Predictions:
        """Calibrated predictions; warns when they are the rows that the map was fitted on."""
        q = self.apply(p)
        seen = self.fingerprint.seen(p) if self.fingerprint else 0.0
        if seen:
            warnings.warn(
                f"about {seen:.0%} of the rows this map was fitted on are among these: numbers on them flatter it. "
                "Measure on other rows, or cross-fit.",
                LeakWarning,
                stacklevel=2,
            )
        return Predictions(q.values, q.labels, q.kind, replace(q.extras, seen=max(seen, p.extras.seen)))

    def apply(self, p: Predictions) -> Predictions:
        """The same without the look at the fingerprint."""
        if p.k != self.k:
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
        probs, predicted = np.empty((p.n, p.k)), np.empty(p.n, dtype=np.int64)
        rest = replace(self, groups=None)
        for name in np.unique(names):
            rows = np.flatnonzero(names == name)
            q = maps.get(str(name), rest).apply(p.take(rows))
            probs[rows], predicted[rows] = q.probs, q.predicted
        return Predictions(probs, p.labels, "probs", replace(p.extras, predicted=predicted))

    # -- on disk --------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        made: dict[str, Any] = {
            "calibrant_map": VERSION,
            "calibrator": self.calibrator,
            "k": self.k,
            "parameters": _plain(self.parameters),
            "keeps_argmax": self.keeps_argmax,
            "fit": _plain(dataclasses.asdict(self.fit)),
            "steps": [{"step": s.name, **_plain(vars(s))} for s in self.steps],
            "fingerprint": None if self.fingerprint is None else self.fingerprint.to_dict(),
        }
        if self.groups is not None:
            made["groups"] = {name: one.to_dict() for name, one in self.groups.items()}
        return made

    @classmethod
    def from_dict(cls, state: Any) -> "Map":
        if not isinstance(state, dict) or "calibrant_map" not in state:
            raise InputError("map", expected="JSON written by calibrant fit", got="something else", fix="fit it again")
        if state["calibrant_map"] != VERSION:
            raise InputError(
                "map", expected=f"version {VERSION}", got=f"{state['calibrant_map']}", fix="update calibrant"
            )
        try:
            k = _typed(state, "k", int)
            if k < 2:
                raise ValueError("k is below 2")
            groups = state.get("groups")
            made = cls(
                _typed(state, "calibrator", str),
                k,
                tuple(_step(one, k) for one in _typed(state, "steps", list)),
                _typed(state, "parameters", dict),
                _typed(state, "keeps_argmax", bool),
                _fit_report(_typed(state, "fit", dict)),
                Fingerprint.from_dict(state["fingerprint"]),
                None if groups is None else {name: cls.from_dict(one) for name, one in groups.items()},
            )
            if any(one.k != k or one.groups is not None for one in (made.groups or {}).values()):
                raise ValueError("a group's map is for other classes")
            return made
        except KeyError as error:
            raise _damaged(f"{error} is missing or unknown") from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise _damaged(str(error)) from error

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    def save(self, path: str | Path) -> None:
        from calibrant.core.files import write_whole

        write_whole(path, lambda stream: stream.write(self.to_json().encode()))

    # -- elsewhere ------------------------------------------------------------------------------

    def to_torch(self) -> Any:
        """A torch module: logits in, calibrated logits out, differentiable where the map is."""
        from importlib import import_module  # a room above this one, and the only way to torch

        return import_module("calibrant.network.torch_map").TorchMap(self)

    def _repr_html_(self) -> str:
        from html import escape

        rows = {k: f"{v:.4g}" for k, v in self.parameters.items() if isinstance(v, float)}
        rows["fit"] = self.fit.diagnosis
        rows["predictions"] = "kept" if self.keeps_argmax else "may change"
        cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows.items())
        return f"<table><caption>Map: {escape(self.calibrator)}, {self.k} classes</caption>{cells}</table>"

    def __repr__(self) -> str:
        shown = ", ".join(f"{k}={v:.4g}" for k, v in self.parameters.items() if isinstance(v, float))
        return f"Map({self.calibrator}, k={self.k}{', ' + shown if shown else ''}, {self.fit.diagnosis})"


def load_map(path: str | Path) -> Map:
    """A map from the JSON file that `Map.save` or `calibrant fit` wrote."""
    file = Path(path)
    if not file.is_file():
        raise InputError(str(path), expected="a map written by calibrant fit", got="no such file", fix="check the path")
    try:
        return Map.from_dict(json.loads(file.read_text(encoding="utf-8")))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(str(path), expected="a map in JSON", got="something else", fix="fit it again") from error
    except InputError as error:
        raise InputError.inside(str(path), error) from None


def _plain(values: dict[str, Any]) -> dict[str, Any]:
    """Arrays as lists, numpy numbers as numbers, undefined numbers as None."""

    def plain(value: Any) -> Any:
        if isinstance(value, list):
            return [plain(one) for one in value]
        if isinstance(value, np.ndarray):
            return value.tolist()
        if isinstance(value, np.generic):
            return plain(value.item())
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {key: plain(value) for key, value in values.items()}


def _damaged(why: str) -> InputError:
    return InputError("map", expected="a whole map", got=f"a damaged one ({why})", fix="fit it again")


def _typed(state: dict[str, Any], name: str, kind: type) -> Any:
    """A field of the JSON, which must be of this kind: true is no number here."""
    value = state[name]
    if type(value) is not kind:
        raise ValueError(f"{name} is {value!r:.40}")
    return value


def _fit_report(state: dict[str, Any]) -> Fit:
    numbers = [state[name] for name in ("gradient", "steps") if state[name] is not None]
    if not all(type(one) in (int, float) and np.isfinite(one) for one in numbers):
        raise ValueError("the report of the fit holds no numbers")
    return Fit(
        **(state | {"converged": _typed(state, "converged", bool), "diagnosis": _typed(state, "diagnosis", str)})
    )


def _step(state: dict[str, Any], k: int) -> Step:
    """A step from its JSON: finite numbers, known words, and shapes that suit k classes."""
    kind = STEPS[_typed(state, "step", str)]
    values: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        if name == "name":
            continue
        value = state[name]
        if get_origin(hint) is Literal:
            if value not in get_args(hint):
                raise ValueError(f"{name} is {value!r:.40}")
        else:
            several = get_origin(hint) is list
            arrays = [np.array(one, dtype=np.float64) for one in (value if several else [value])]
            if not all(np.isfinite(one).all() for one in arrays):
                raise ValueError(f"{name} is not finite")
            value = arrays if several else float(arrays[0]) if hint is float else arrays[0]
        values[name] = value
    made = kind(**values)
    if not _fits(made, k):
        raise ValueError(f"numbers of the step {made.name} do not suit {k} classes")
    return made


def _fits(step: Step, k: int) -> bool:
    """Whether the arrays of a step have the shapes, and the values, that its kind allows."""
    match step:
        case Linear(weight=weight, bias=bias):
            return weight.shape in ((), (1,), (k,), (k, k)) and bias.shape in ((), (1,), (k,))
        case Mix(T=T, weights=weights):
            return T > 0 and weights.shape == (3,) and bool((weights >= 0).all()) and abs(weights.sum() - 1) < 1e-9
        case Sigmoid(coefficients=table, scope=scope):
            return table.shape == (k if scope == "classes" else 1, 4)
        case Curves(x=xs, y=ys, form=form, scope=scope):
            more = 1 if form == "stair" else 0
            return len(xs) == len(ys) == (k if scope == "classes" else 1) and all(
                x.ndim == y.ndim == 1
                and len(y) == len(x) + more > 0
                and bool((np.diff(x) >= 0).all())
                and (scope == "top" or bool((y >= 0).all()))
                for x, y in zip(xs, ys, strict=True)
            )
    return True
