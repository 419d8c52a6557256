"""Scores and labels as a file or a frame holds them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from calibrant.core.io.column_names import ColumnRoles, Columns, ScoreContent
from calibrant.core.io.file_notes import read_notes
from calibrant.core.io.missing import MissingCount

Values = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class ScoreTable:
    """The arrays of one file or frame, read but not validated, and what each of them is."""

    place: str  # the name of the file, for messages
    content: ScoreContent
    scores: Values
    labels: Values | None  # None where the file has none
    mask: Values | None = None  # the options that each row has
    all_options: bool = False  # a choice task in which every row happens to have every option
    features: Values | None = None
    ids: Values | None = None
    groups: Values | None = None
    weights: Values | None = None
    clusters: Values | None = None
    predicted: Values | None = None
    seen: Values | None = None
    classes: tuple[str, ...] = ()
    positive: Any = None
    missing: MissingCount | None = None
    notes: tuple[str, ...] = ()
    shared: bool = False  # arrays of the caller's frame, who may write to them, unlike those read from a file
    rows_known: bool = False  # the format says which axis holds the rows, so n < k is no sign of a transposed array

    @property
    def logits(self) -> bool:
        """Whether the scores are logits."""
        return self.content in ("logits", "margin", "confidence_logit")

    @property
    def score_name(self) -> str:
        """The name of the scores in messages on arrays."""
        return {"score": "scores", "margin": "scores", "confidence_logit": "confidence"}.get(self.content, self.content)


def build_table(
    place: str,
    arrays: dict[str, Any],
    roles: ColumnRoles,
    columns: Columns,
    *,
    missing: MissingCount | None = None,
    notes: tuple[str, ...] = (),
    rows_known: bool = False,
) -> ScoreTable:
    """The table of these arrays, each under the name of its role."""
    saved_missing, saved_notes = read_notes(arrays.get("about"))
    task = np.asarray(arrays.get("task", ""))
    return ScoreTable(
        place=place,
        content=roles.content,
        scores=arrays[roles.content],
        labels=arrays.get("labels"),
        mask=arrays.get("mask"),
        all_options=task.dtype.kind == "U" and bool(np.all(task == "choice")),
        features=arrays.get("features"),
        ids=arrays.get("ids"),
        groups=_names(arrays.get("groups"), chosen=columns.group is not None),
        weights=arrays.get("weights"),
        clusters=_names(arrays.get("clusters"), chosen=columns.cluster is not None),
        predicted=arrays.get("predicted"),
        seen=arrays.get("seen"),
        classes=tuple(columns.classes) or _class_names(arrays.get("classes")),
        positive=columns.positive,
        missing=missing or saved_missing,
        notes=tuple(dict.fromkeys((*saved_notes, *notes))),
        rows_known=rows_known,
    )


def _names(array: Values | None, *, chosen: bool) -> Values | None:
    """Names of groups or clusters; numbers and booleans of a column that the user chose become text."""
    if array is None or not chosen or np.asarray(array).dtype.kind not in "bf":
        return array
    return np.asarray(array).astype(str)


def _class_names(names: Any) -> tuple[str, ...]:
    """Names of classes; an array of anything else is ignored."""
    array = np.asarray(() if names is None else names)
    return tuple(map(str, array)) if array.ndim == 1 and array.dtype.kind == "U" else ()
