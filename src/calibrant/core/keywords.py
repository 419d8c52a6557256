"""Show the keywords of `**options: Unpack[Options]` one by one: in `help`, and where a notebook completes them."""

import inspect
from collections.abc import Callable
from typing import Any, TypeVar, get_args

F = TypeVar("F", bound=Callable[..., Any])


def spell_out_keywords(defaults: object = None) -> Callable[[F], F]:
    """Replace `**options` in a signature by its keywords: type checkers read the TypedDict, `inspect.signature` this.

    A default is the attribute of that name of `defaults`, else None.

    >>> from typing import TypedDict, Unpack
    >>> class Colours(TypedDict, total=False):
    ...     line: str
    >>> @spell_out_keywords()
    ... def draw(size: int, **colours: Unpack[Colours]) -> None: ...
    >>> inspect.signature(draw)
    <Signature (size: int, *, line: str = None) -> None>
    """

    def change(function: F) -> F:
        signature = inspect.signature(function)
        *named, keywords = signature.parameters.values()
        options = [
            inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=getattr(defaults, name, None), annotation=annotation
            )
            for name, annotation in get_args(keywords.annotation)[0].__annotations__.items()
        ]
        function.__dict__["__signature__"] = signature.replace(parameters=[*named, *options])
        return function

    return change
