"""From named arrays to predictions: the last step of every reader."""

from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.core import about
from calibrant.core.errors import InputError
from calibrant.core.missing import Missing
from calibrant.core.naming import Columns, Roles
from calibrant.core.predictions import Predictions
from calibrant.core.validate import check_labels
from calibrant.core.validate_extras import check_seen

ROWS = ("features", "ids", "groups", "weights", "clusters")


def assemble(
    place: str,
    arrays: dict[str, Any],
    roles: Roles,
    asked: Columns,
    *,
    few_rows: bool = False,
    missing: Missing | None = None,
    notes: tuple[str, ...] = (),
) -> Predictions:
    """Predictions, or an error that names the file."""
    arrays.setdefault("labels", np.zeros(len(np.atleast_1d(arrays[roles.what])), dtype=np.int64))
    try:
        p = _shaped(arrays, roles, asked, few_rows)
        before, said = about.read(arrays.get("about"))
        carried: dict[str, Any] = {"missing": missing or before, "notes": tuple(dict.fromkeys((*said, *notes)))}
        if "predicted" in arrays and p.shape != "confidence":
            carried["predicted"] = check_labels(arrays["predicted"], p.n, p.k, "predicted")
        if "seen" in arrays:
            carried["seen"] = check_seen(arrays["seen"])
        return Predictions(p.values, p.labels, p.kind, replace(p.extras, **carried))
    except InputError as error:
        raise InputError.inside(place, error) from None


def _shaped(arrays: dict[str, Any], roles: Roles, asked: Columns, few_rows: bool) -> Predictions:
    known: dict[str, Any] = {name: arrays.get(name) for name in ROWS}
    for name, told in (("groups", asked.group), ("clusters", asked.cluster)):  # values of any column will do as names
        if told is not None and known[name] is not None and np.asarray(known[name]).dtype.kind in "bf":
            known[name] = np.asarray(known[name]).astype(str)
    names = asked.classes or _names(arrays.get("classes"))
    scores, labels, margin = arrays[roles.what], arrays["labels"], roles.what in ("margin", "confidence_logit")
    if roles.per_class:
        make = Predictions.from_logits if roles.what == "logits" else Predictions.from_probs
        mask = arrays.get("mask")
        shape = np.asarray(arrays.get("shape", ""))
        if mask is None and shape.dtype.kind == "U" and np.all(shape == "choices"):
            mask = np.ones(np.shape(scores), dtype=bool)
        return make(scores, labels, mask=mask, classes=names or None, few_rows=few_rows, **known)
    if roles.what.startswith("confidence"):
        if asked.positive is not None or names:
            got = "a positive label" if asked.positive is not None else "names of classes"
            fix = "leave them out: a confidence is right or wrong"
            raise InputError("confidence", expected="whether it was right, 0 or 1", got=got, fix=fix)
        return Predictions.from_confidence(scores, labels, logits=margin, **known)
    return _binary(scores, labels, names, asked.positive, margin, known)


def _binary(
    scores: Any, labels: Any, names: tuple[str, ...], positive: Any, margin: bool, known: dict[str, Any]
) -> Predictions:
    """Of two named classes the second is the positive one, unless another is named."""
    array = np.asarray(labels)
    if names and len(names) != 2:
        got = f"{len(names)} names"
        raise InputError("classes", expected="two, the positive one last", got=got, fix="name both, or neither")
    text = array.dtype.kind in "USO"
    if positive is None and names and text:
        positive = names[1]
    p = Predictions.binary(scores, labels, positive=positive_like(positive, array), logits=margin, **known)
    return Predictions(p.values, p.labels, p.kind, replace(p.extras, classes=names)) if names else p


def positive_like(positive: Any, labels: Any) -> Any:
    """The positive label in the type of the labels: on a command line everything is text.

    >>> positive_like("1", np.array([0, 1])), positive_like("true", np.array([True])), positive_like("a", np.array([2]))
    (1.0, True, 'a')
    """
    if not isinstance(positive, str) or labels.dtype.kind not in "iufb":
        return positive
    if labels.dtype.kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(positive.lower(), positive)
    try:
        return float(positive)
    except ValueError:
        return positive


def _names(given: Any) -> tuple[str, ...]:
    """Names of classes, where it is that; an array of anything else is left alone."""
    array = np.asarray(() if given is None else given)
    return tuple(map(str, array)) if array.ndim == 1 and array.dtype.kind == "U" else ()
