"""Options for reading predictions, shared by every command that reads some."""

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli._app import override_help, read_settings
from calibrant.core.errors import InputError
from calibrant.core.io.batch_rules import STRICT, BatchLog, BatchRules
from calibrant.core.io.column_names import STANDARD_NAMES, Columns, LabelRule

if TYPE_CHECKING:
    from calibrant.core.io.missing import MissingCount
    from calibrant.core.predictions import Predictions

Name = str | None
OPTIONS: dict[str, Any] = {  # name of the parameter -> its option
    "score": Annotated[Name, typer.Option("--score-column", help="column of P(positive)")],
    "label": Annotated[Name, typer.Option("--label-column", help="column of true labels")],
    "confidence_column": Annotated[Name, typer.Option("--confidence-column", help="column of confidences")],
    "correct": Annotated[Name, typer.Option("--correct-column", help="column that says whether it was right")],
    "positive": Annotated[Name, typer.Option("--positive", help="the positive label, e.g. yes")],
    "classes": Annotated[Name, typer.Option("--classes", help="names of the classes, in order: cat,dog")],
    "weight": Annotated[Name, typer.Option("--weight-column", help="column of weights, or none")],
    "cluster": Annotated[Name, typer.Option("--cluster-column", help="column of clusters, or none")],
    "group": Annotated[Name, typer.Option("--group-column", help="column of groups, or none")],
    "id_column": Annotated[Name, typer.Option("--id-column", help="column of row ids, or none")],
    "missing": Annotated[str, typer.Option("--missing", help="rows without a score: error, drop or count_as_wrong")],
}
DEFAULTS: dict[str, Any] = {"missing": "error"}


@dataclass(frozen=True)
class ReadSettings:
    """Keys of `--override` in every command that reads predictions; a command adds its own in a subclass."""

    logit_score: bool = False  # the score or confidence is a logit
    per_character: bool = False  # lm-evaluation-harness: log-likelihoods by length, as acc_norm
    allow_few_rows: bool = False  # allow a single row, or fewer rows than classes


@dataclass(frozen=True)
class Inputs:
    """Options for reading the files of a command."""

    columns: Columns = STANDARD_NAMES
    allow_few_rows: bool = False

    def load(self, path: str | Path, *, labels: LabelRule = "required") -> "Predictions":
        from calibrant.core.predictions.load import load_predictions

        return load_predictions(path, self.columns, labels=labels, allow_few_rows=self.allow_few_rows)

    def batches(
        self,
        path: Path,
        rows: int,
        on_missing: Callable[["MissingCount"], None] | None = None,
        rules: BatchRules = STRICT,
        log: BatchLog | None = None,
    ) -> Iterator["Predictions"]:
        from calibrant.core.predictions.load import read_batches

        return read_batches(path, rows, self.columns, on_missing=on_missing, rules=rules, log=log)

    def facts(self, *models: "Predictions", reference: "Predictions | None" = None) -> dict[str, Any]:
        """Rows without a score and notes of the files, for a JSON document."""
        if reference is not None and (about := self.facts(reference)):
            return self.facts(*models) | {"reference": about}
        missing = next((p.missing for p in models if p.missing is not None), None)
        known = {} if missing is None else {"missing": missing.to_dict()}
        notes = list(dict.fromkeys(note for p in models for note in p.notes))
        return known | ({"notes": notes} if notes else {})

    def show_notes(self, *models: "Predictions", reference: "Predictions | None" = None) -> None:
        """Print the notes on how the files were read."""
        from calibrant.core.errors import visible
        from calibrant.reporting import tables

        if notes := self.facts(*models).get("notes"):
            tables.show("\n" + visible(" ".join(notes)))
        if reference is not None and reference.notes:
            tables.show("\nIn the reference: " + visible(" ".join(reference.notes)))

    @property
    def group_column(self) -> str | None:
        """The column of groups that the user named, if any."""
        return None if self.columns.group == "none" else self.columns.group

    def with_group_column(self, column: str) -> "Inputs":
        """A copy of the inputs with the groups in another column."""
        return replace(self, columns=replace(self.columns, group=column))


def reads_predictions(*, ignores: Sequence[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add these options to a command, which receives them as `inputs`, and keys of its own as `settings`.

    Of the options in `ignores` the command makes no use: it refuses a column, and takes "none", which leaves out the
    column of a standard name.
    """
    return lambda command: _add_options(command, ignores)


def _add_options(command: Callable[..., None], ignores: Sequence[str]) -> Callable[..., None]:
    signature = inspect.signature(command, eval_str=True)
    own = [p for name, p in signature.parameters.items() if name not in ("inputs", "settings")]
    has_settings = "settings" in signature.parameters
    keys: type[ReadSettings] = signature.parameters["settings"].annotation if has_settings else ReadSettings
    override = Annotated[list[str] | None, typer.Option("--override", help=override_help(keys))]
    options = OPTIONS | {"override": override}
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=option)
        for name, option in options.items()
    ]

    @wraps(command)
    def run(*args: Any, **typed: Any) -> None:
        settings = read_settings(keys, typed.pop("override", None))
        for name in ignores:
            _refuse_unused(name, typed.get(name))
        inputs = _inputs({name: typed.pop(name, DEFAULTS.get(name)) for name in OPTIONS}, settings)
        command(*args, inputs=inputs, **typed, **({"settings": settings} if has_settings else {}))

    del run.__wrapped__  # the options are those below, not those of the command alone
    parameters = [*own, *added]
    run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return run


def _refuse_unused(name: str, column: str | None) -> None:
    if column not in (None, "none"):
        flag = f"--{name.removesuffix('_column')}-column"
        raise InputError(flag, expected="none: this command makes no use of it", got=f"'{column}'", fix="leave it out")


def _inputs(typed: dict[str, Any], settings: ReadSettings) -> Inputs:
    names = {name: typed[name] for name in ("score", "label", "correct", "positive", "weight", "cluster", "group")}
    classes = typed["classes"]
    columns = Columns(
        **names,
        confidence=typed["confidence_column"],
        id=typed["id_column"],
        logits=settings.logit_score,
        classes=() if classes is None else tuple(name.strip() for name in classes.split(",")),
        missing=typed["missing"],
        per_character=settings.per_character,
    )
    return Inputs(columns, settings.allow_few_rows)
