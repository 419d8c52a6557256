"""The catalogue of networks, and networks of other packages."""

from calibrant.core.catalogue import Catalogue
from calibrant.models._base import Model, Network, Shape

CATALOGUE = Catalogue("calibrant.models", Model, "model")


def build(spec: str, shape: Shape) -> Network:
    """A fresh network: `resnet:depth=18`, `./mine.py`, `package.module:callable?arg=value` or `hf:NAME_OR_PATH`."""
    return CATALOGUE.make(spec).build(shape)
