"""The steps of a map in JSON, and back, with every number, word and shape checked."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from calibrant.core.arrays import Array
from calibrant.core.schema import typed
from calibrant.core.steps import STEPS, Curves, Linear, Mix, Sigmoid, Step

HIGHEST = 2.0  # no curve says more: values are probabilities, perhaps a little beyond one


def plain(values: dict[str, Any]) -> dict[str, Any]:
    """Arrays as lists, numpy numbers as numbers, undefined numbers as None."""

    def one(value: Any) -> Any:
        if isinstance(value, np.ndarray | np.generic):
            return one(value.tolist())
        if isinstance(value, list | tuple):
            return [one(inner) for inner in value]
        if isinstance(value, dict):
            return {key: one(inner) for key, inner in value.items()}
        return None if isinstance(value, float) and not np.isfinite(value) else value

    return {key: one(value) for key, value in values.items()}


def is_finite(step: Step) -> bool:
    """Whether all numbers of a step are."""
    return all(np.isfinite(one).all() for one in _numbers(step))


def step_of(state: Any, k: int) -> Step:
    """A step from its JSON: finite numbers, known words, and shapes that suit k classes."""
    name = typed(state, "step", str)
    if name not in STEPS:
        raise ValueError(f"there is no step {name!r:.40}")
    hints = {field: hint for field, hint in get_type_hints(STEPS[name]).items() if field != "name"}
    made = STEPS[name](**{field: _value(field, state[field], hint) for field, hint in hints.items()})
    if not is_finite(made):
        raise ValueError(f"numbers of the step {name} are not finite")
    if not _fits(made, k):
        raise ValueError(f"numbers of the step {name} do not suit {k} classes")
    return made


def _value(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        if not isinstance(value, str) or value not in get_args(hint):
            raise ValueError(f"{name} is {value!r:.40}")
        return value
    if get_origin(hint) is list:
        if type(value) is not list:
            raise ValueError(f"{name} is {value!r:.40}")
        return [_array(name, one) for one in value]
    array = _array(name, value)
    return float(array) if hint is float else array


def _array(name: str, value: Any) -> Array:
    """Numbers, and nothing that numpy would take for numbers."""
    made = np.array(value)
    if made.dtype.kind not in "if" and made.size:
        raise ValueError(f"{name} holds {value!r:.40}")
    return made.astype(np.float64)


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
        case Curves(x=xs, y=ys, form=form, scope=scope):
            more = 1 if form == "stair" else 0
            return len(xs) == len(ys) == (k if scope == "classes" else 1) and all(
                x.ndim == y.ndim == 1
                and len(y) == len(x) + more > 0
                and bool((np.diff(x) >= 0).all())
                and bool((np.abs(y) <= HIGHEST).all())
                and (scope == "top" or bool((y >= 0).all()))
                for x, y in zip(xs, ys, strict=True)
            )
    return True
