"""Errors of a request as a message on the page."""

import html
from collections.abc import Callable
from functools import wraps
from typing import Any

import gradio as gr

from calibrant.core.errors import InputError


def tell(handler: Callable[..., Any]) -> Callable[..., Any]:
    """Show what is wrong with an input; other errors go to the log, and the page says only that there was one."""

    @wraps(handler)
    def run(*args: Any, **named: Any) -> Any:
        try:
            return handler(*args, **named)
        except InputError as error:
            raise gr.Error(html.escape(str(error)), duration=20, print_exception=False) from None

    return run
