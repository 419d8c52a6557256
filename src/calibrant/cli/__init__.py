"""The command line: one short function per command. Parse, call, print."""

import io
import os
import sys
import warnings
from typing import Annotated

import typer

from calibrant.cli import (  # noqa: F401  each adds its commands
    boards,
    deciding,
    demo,
    example,
    listing,
    measuring,
    nas,
    nas_questions,
    plotting,
    rating,
    repairing,
    reporting,
    rescoring,
    serving,
    studying,
    tabling,
    training,
    watching,
)
from calibrant.cli._app import app, drop_output
from calibrant.core.errors import InputError, visible


@app.callback(invoke_without_command=True)
def version(show: Annotated[bool, typer.Option("--version", help="print the version")] = False) -> None:
    if show:
        import calibrant
        from calibrant.core.curves.native import backend

        typer.echo(f"calibrant {calibrant.__version__} ({backend()} passes)")
        raise typer.Exit


def main() -> None:
    """Run the command line; bad input ends with one clear line and exit code 2, Ctrl-C with 130."""
    _open_closed_streams()
    # Threads of torch that wait must sleep: on a busy machine, spinning ones make a step ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names of files need not be UTF-8; a log shows a line when it is said
            stream.reconfigure(errors="backslashreplace", line_buffering=True)
    warnings.showwarning = lambda message, *_: typer.echo(f"warning: {visible(str(message))}", err=True)
    try:
        app()
    except InputError as error:
        _fail(str(error))
    except OSError as error:
        drop_output()
        what = error.strerror or str(error)
        _fail(f"{error.filename}: {what}" if error.filename else what)
    except MemoryError as error:
        _fail(f"memory: {error or 'there is not enough for this'}")
    except KeyboardInterrupt:
        sys.exit(130)


def _open_closed_streams() -> None:
    """Open standard streams that are closed to nowhere: the next file would get their number, and what is printed."""
    while (handle := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(handle, True)
    os.close(handle)
    sys.stdin, sys.stdout, sys.stderr = (
        stream or open(os.devnull, mode)  # noqa: SIM115  until the process ends
        for stream, mode in ((sys.stdin, "r"), (sys.stdout, "w"), (sys.stderr, "w"))
    )


def _fail(message: str) -> None:
    typer.echo(f"error: {visible(message)}", err=True)
    sys.exit(2)
