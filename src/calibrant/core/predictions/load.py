"""Load predictions from files with the columns that a user names."""

from collections.abc import Callable, Iterator
from pathlib import Path

from calibrant.core.io.batch_rules import STRICT, BatchLog, BatchRules
from calibrant.core.io.column_names import STANDARD_NAMES, Columns, LabelRule
from calibrant.core.io.load import load_batches, load_scores
from calibrant.core.io.missing import MissingCount
from calibrant.core.predictions.predictions import Predictions


def load_predictions(
    path: str | Path,
    columns: Columns = STANDARD_NAMES,
    *,
    labels: LabelRule = "required",
    allow_few_rows: bool = False,
) -> Predictions:
    """The predictions of a file, as `Predictions.load` reads them."""
    return Predictions.from_table(load_scores(path, columns, labels=labels), allow_few_rows=allow_few_rows)


def read_batches(
    path: str | Path,
    rows: int,
    columns: Columns = STANDARD_NAMES,
    *,
    on_missing: Callable[[MissingCount], None] | None = None,
    rules: BatchRules = STRICT,
    log: BatchLog | None = None,
) -> Iterator[Predictions]:
    """The predictions of a table of any length, at most `rows` rows at a time, in constant memory.

    `on_missing` is called for every batch with the number of its rows that have no score. `rules` say what is done with
    rows that are incomplete, and `log` counts them.
    """
    for table in load_batches(path, rows, columns, on_missing=on_missing, rules=rules, log=log):
        yield Predictions.from_table(table, allow_few_rows=True)
