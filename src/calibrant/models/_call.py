"""Networks made by any callable: `package.module:callable?arg=value&arg=value`, or `./file.py:callable`."""

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from torch import nn

from calibrant.core.catalogue import load_file
from calibrant.core.errors import InputError
from calibrant.models._base import Model, Network, Shape
from calibrant.models._external import first_line, wrap

CLASSES = ("num_classes", "n_classes", "num_labels", "classes")  # what callables name the number of classes
WORDS = {"true": True, "false": False, "none": None}


def call(spec: str, shape: Shape) -> Network:
    """The network of `package.module:callable?arg=value&arg=value`, where the module may be a file."""
    place, _, query = spec.partition("?")
    module, _, path = place.partition(":")
    options = read(query, spec)
    head = options.pop("head", None)
    maker = _find(_import(module), path, place)
    network = _call(maker, place, options, shape.classes)
    if isinstance(network, Model):
        network = network.build(shape)
    if not isinstance(network, nn.Module):
        got = type(network).__name__
        raise InputError(place, expected="a callable that returns a torch module", got=got, fix="name another callable")
    return wrap(network, shape, place, head)


def read(query: str, spec: str) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for part in filter(None, query.split("&")):
        name, equals, value = part.partition("=")
        if not equals or not name:
            raise InputError(spec, expected="?arg=value&arg=value", got=f"'{part}'", fix=f"write {name or 'arg'}=...")
        options[name] = value if name in ("head", "revision") else _value(value)
    return options


def _value(text: str) -> Any:
    """A number, a truth, a list, or else the text itself."""
    if text.lower() in WORDS:
        return WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _import(module: str) -> Any:
    if module.endswith(".py"):
        return load_file(Path(module), "network")
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):  # the module is there, its imports fail
            raise _cannot_import(module, error) from error
        parent, _, last = error.name.rpartition(".")
        inside = importlib.import_module(parent).__path__ if parent else None
        fix = _near(last, (info.name for info in pkgutil.iter_modules(inside)), "install it, or put it on PYTHONPATH")
        raise InputError("model", expected="a module to import", got=f"no module '{error.name}'", fix=fix) from error
    except Exception as error:
        raise _cannot_import(module, error) from error


def _cannot_import(module: str, error: Exception) -> InputError:
    return InputError(
        module, expected="a module to import", got=first_line(error), fix="make `import` of it work first"
    )


def _find(module: Any, path: str, place: str) -> Callable[..., Any]:
    target = module
    for part in path.split("."):
        if not hasattr(target, part):
            fix = _near(part, dir(target), "check the name")
            raise InputError(place, expected="a callable of that name", got=f"no '{part}'", fix=fix)
        target = getattr(target, part)
    if not callable(target):
        got = type(target).__name__
        raise InputError(place, expected="a callable", got=f"a {got}", fix="name a function or a class")
    maker: Callable[..., Any] = target
    return maker


def _call(maker: Callable[..., Any], place: str, options: dict[str, Any], classes: int) -> Any:
    named, is_open = _arguments(maker)
    for name in options:
        if name not in named and not is_open:
            listed = ", ".join(named) or "no arguments"
            fix = _near(name, named, "leave it out")
            raise InputError(f"argument of {place}", expected=listed, got=f"'{name}'", fix=fix)
    filled: dict[str, Any] = {}
    if not any(name in options for name in CLASSES):
        argument = next((name for name in CLASSES if name in named), None)
        # torchvision and timm hand num_classes on without naming it.
        filled = {argument: classes} if argument else {"num_classes": classes} if is_open else {}
    try:
        try:
            return maker(**filled, **options)
        except TypeError as error:
            if filled.keys() <= set(named) or "num_classes" not in str(error):
                raise
            return maker(**options)
    except InputError:
        raise
    except Exception as error:
        fix = f"check its arguments ({', '.join(named) or 'any'}), given as ?name=value"
        raise InputError(place, expected="a call that works", got=first_line(error), fix=fix) from error


def _arguments(maker: Callable[..., Any]) -> tuple[list[str], bool]:
    """The names a callable takes, and whether it takes any other."""
    try:
        parameters = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):  # some callables written in C
        return [], True
    named = [p.name for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    return named, any(p.kind is p.VAR_KEYWORD for p in parameters)


def _near(name: str, known: Iterable[str], otherwise: str) -> str:
    near = get_close_matches(name, [other for other in known if not other.startswith("_")], n=1)
    return f"did you mean '{near[0]}'?" if near else otherwise
