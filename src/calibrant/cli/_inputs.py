"""The options that say how predictions are read: defined once, shared by every command that reads some."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.core.naming import AS_NAMED, Columns

if TYPE_CHECKING:
    from calibrant.core.missing import Missing
    from calibrant.core.predictions import Predictions

Name = str | None
OPTIONS: dict[str, Any] = {  # name of the parameter -> its option
    "score": Annotated[Name, typer.Option("--score-column", help="column of P(positive)")],
    "label": Annotated[Name, typer.Option("--label-column", help="column of true labels")],
    "confidence_column": Annotated[Name, typer.Option("--confidence-column", help="column of confidences")],
    "correct": Annotated[Name, typer.Option("--correct-column", help="column that says whether it was right")],
    "logit_score": Annotated[bool, typer.Option("--logit-score", help="the score or confidence is a logit")],
    "positive": Annotated[Name, typer.Option("--positive", help="the positive label, e.g. yes")],
    "classes": Annotated[Name, typer.Option("--classes", help="names of the classes, in order: cat,dog")],
    "weight": Annotated[Name, typer.Option("--weight-column", help="column of weights, or none")],
    "cluster": Annotated[Name, typer.Option("--cluster-column", help="column of clusters, or none")],
    "group": Annotated[Name, typer.Option("--group-column", help="column of groups, or none")],
    "id_column": Annotated[Name, typer.Option("--id-column", help="column of row ids, or none")],
    "missing": Annotated[str, typer.Option("--missing", help="rows without a score: refuse, drop or wrong")],
    "per_character": Annotated[
        bool, typer.Option("--per-character", help="lm-evaluation-harness: log-likelihoods by length, as acc_norm")
    ],
    "few_rows": Annotated[bool, typer.Option("--few-rows", help="allow fewer rows than classes")],
}
DEFAULTS: dict[str, Any] = {"logit_score": False, "missing": "refuse", "per_character": False, "few_rows": False}


@dataclass(frozen=True)
class Inputs:
    """How the files of a command are read."""

    columns: Columns = AS_NAMED
    few_rows: bool = False

    def load(self, path: str | Path, *, labelled: bool = True) -> "Predictions":
        from calibrant.core.files import load_predictions

        return load_predictions(path, few_rows=self.few_rows, labelled=labelled, columns=self.columns)

    def batches(
        self, path: Path, rows: int, on_missing: Callable[["Missing"], None] | None = None
    ) -> Iterator["Predictions"]:
        from calibrant.core.files import read_batches

        return read_batches(path, rows, columns=self.columns, on_missing=on_missing)

    def facts(self, *models: "Predictions", reference: "Predictions | None" = None) -> dict[str, Any]:
        """What the reading itself adds to a JSON document."""
        if reference is not None and (about := self.facts(reference)):
            return self.facts(*models) | {"reference": about}
        missing = next((p.missing for p in models if p.missing is not None), None)
        known = {} if missing is None else {"missing": missing.to_dict()}
        notes = list(dict.fromkeys(note for p in models for note in p.notes))
        return known | ({"notes": notes} if notes else {})

    def show_notes(self, *models: "Predictions", reference: "Predictions | None" = None) -> None:
        """What a reader of the numbers should know about how the files were read."""
        from calibrant.core.errors import visible
        from calibrant.reporting import tables

        if notes := self.facts(*models).get("notes"):
            tables.show("\n" + visible(" ".join(notes)))
        if reference is not None and reference.notes:
            tables.show("\nIn the reference: " + visible(" ".join(reference.notes)))

    def grouped(self, column: str) -> "Inputs":
        """The same, with the groups in another column."""
        return replace(self, columns=replace(self.columns, group=column))


def reads_predictions(command: Callable[..., None]) -> Callable[..., None]:
    """Add these options to a command, which gets them all as `inputs`."""
    signature = inspect.signature(command, eval_str=True)
    own = [p for name, p in signature.parameters.items() if name != "inputs"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=option)
        for name, option in OPTIONS.items()
    ]

    @wraps(command)
    def run(*args: Any, **typed: Any) -> None:
        command(*args, inputs=_inputs({name: typed.pop(name, DEFAULTS.get(name)) for name in OPTIONS}), **typed)

    del run.__wrapped__  # the options are those below, not those of the command alone
    parameters = [*own, *added]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return run


def _inputs(typed: dict[str, Any]) -> Inputs:
    names = {name: typed[name] for name in ("score", "label", "correct", "positive", "weight", "cluster", "group")}
    classes = typed["classes"]
    columns = Columns(
        **names,
        confidence=typed["confidence_column"],
        id=typed["id_column"],
        logits=typed["logit_score"],
        classes=() if classes is None else tuple(name.strip() for name in classes.split(",")),
        missing=typed["missing"],
        per_character=typed["per_character"],
    )
    return Inputs(columns, typed["few_rows"])
