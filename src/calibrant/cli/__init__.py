"""The command line: one short function a command. Parse, call, print."""

import os
import signal
import sys
import warnings
from typing import Annotated

import typer

from calibrant.cli import (  # noqa: F401  each adds its commands
    clamping,
    demonstrating,
    listing,
    measuring,
    plotting,
    repairing,
    replacing,
    reporting,
    training,
)
from calibrant.cli._app import app
from calibrant.core.errors import InputError


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    if show:
        import calibrant

        typer.echo(f"calibrant {calibrant.__version__}")
        raise typer.Exit


def main() -> None:
    """Run the command line; bad input ends with one clear line and exit code 2."""
    # Threads of torch that wait must sleep: on a busy machine, spinning ones make a step ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if hasattr(signal, "SIGPIPE"):  # end quietly when the reader of our output has gone, for instance `| head`
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    warnings.showwarning = lambda message, *_: typer.echo(f"warning: {message}", err=True)
    try:
        app()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        _fail(f"{error.filename or 'file'}: {error.strerror or error}")


def _fail(message: str) -> None:
    typer.echo(f"error: {message}", err=True)
    sys.exit(2)
