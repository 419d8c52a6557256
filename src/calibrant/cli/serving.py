"""The command that opens the page in a browser: app."""

from pathlib import Path
from typing import Annotated

import typer

from calibrant.cli._app import AllowCode, app, needs_train
from calibrant.core.errors import InputError
from calibrant.reporting import tables


@app.command("app")
def open_app(
    run: Annotated[Path | None, typer.Argument(help="folder of a training, with a network to clamp")] = None,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free")] = 7860,
    host: Annotated[str, typer.Option(help="another address than this machine's own asks for a token")] = "127.0.0.1",
    browser: Annotated[bool, typer.Option("--browser/--no-browser", help="open the page")] = True,
    max_upload: Annotated[int, typer.Option(help="largest upload, in MB")] = 500,
    allow_code: AllowCode = False,
) -> None:
    """Open a page to look into predictions and to clamp a network. Nothing leaves this machine."""
    import webbrowser

    from calibrant.app.serve import Settings, serve

    _needs_gradio()

    def ready(address: str) -> None:
        tables.show(f"calibrant is at {address} (stop it with Ctrl-C)")
        if browser:
            webbrowser.open(address)

    settings = Settings(run=run, host=host, port=port, max_upload=max_upload)
    with needs_train():
        serve(settings, ready)


def _needs_gradio() -> None:
    from importlib.util import find_spec

    try:
        missing = find_spec("gradio") is None
    except ModuleNotFoundError:
        missing = True
    if missing:
        fix = "pip install 'calibrant[app]'"
        raise InputError("app", expected="the package gradio", got="none", fix=fix)
