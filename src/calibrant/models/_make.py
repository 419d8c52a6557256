"""The catalogue of networks, and networks of other packages."""

import re
from importlib.util import find_spec
from pathlib import Path

from calibrant.core.catalogue import Catalogue
from calibrant.core.errors import InputError
from calibrant.models._base import Model, Network, Shape

CATALOGUE = Catalogue("calibrant.models", Model, "model")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
CALL = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(\?.*)?")


def build(spec: str, shape: Shape) -> Network:
    """A fresh network from one line of text; what stands before the colon says which kind it is.

    - `resnet`, `resnet:depth=50`: a name of the catalogue. A name always means the catalogue.
    - `./mine.py`, `./mine.py:width=8`: a file that ends in .py, with one `Model` class.
    - `./mine.py:callable`, `./mine.py:callable?arg=value`: a file with a function or class that returns a network.
    - `hf:NAME_OR_PATH`: an image classifier of the Hugging Face hub or a folder, from safetensors only.
    - `package.module:callable?arg=value&arg=value`: anything that Python can import and call. The number of classes
      is filled in where the callable takes one; `head=NAME` names the last layer where it is not found.
    """
    name, colon, rest = spec.partition(":")
    if name == "hf" and colon:
        from calibrant.models._hub import load

        return load(rest, shape)
    if _is_call(name, rest):
        from calibrant.models._call import call

        return call(spec, shape)
    if "." in name and MODULE.fullmatch(name) and not name.endswith(".py"):
        module, _, last = name.rpartition(".")
        fix = f"write {module}:{last}"
        raise InputError("model", expected="package.module:callable", got=f"'{spec}'", fix=fix)
    if name not in CATALOGUE.names() and Path(f"{name}.py").is_file():
        fix = f"write {name}.py{colon}{rest}: a file is named with its ending"
        raise InputError("model", expected="a model of the catalogue, or a file", got=f"'{spec}'", fix=fix)
    return CATALOGUE.make(spec).build(shape)


def _is_call(name: str, rest: str) -> bool:
    """Whether the text after the colon is a callable: options of the catalogue hold a `=` before any `?`."""
    if not CALL.fullmatch(rest):
        return False
    if name.endswith(".py"):
        return True
    if not MODULE.fullmatch(name):
        return False
    return "." in name or (name not in CATALOGUE.names() and find_spec(name) is not None)
