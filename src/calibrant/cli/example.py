"""The command that writes example files: example."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli._app import Json, app, print_json
from calibrant.reporting import tables


@app.command()
def example(
    name: Annotated[str | None, typer.Argument(help="fashion, sneakers or llm_stated; all of them if left out")] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="folder to write into")] = Path(),
    as_json: Json = False,
) -> None:
    """Write the files that the documentation uses, made from predictions that come with calibrant."""
    from calibrant.measuring.example import write_examples

    files = write_examples(out, name)
    if as_json:
        return print_json([{"file": str(out / file), "what": description} for file, description in files.items()])
    table = tables.table_of("file", "what it is")
    for file, description in files.items():
        table.add_row(str(out / file), description)
    tables.show(table)
