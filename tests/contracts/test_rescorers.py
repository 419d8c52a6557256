"""Every rescorer of the catalogue: options that can be written down, words about it, and `rescore` that knows it."""

import dataclasses
import inspect

import pytest

pytest.importorskip("torch")
from calibrant.core.catalogue import spec_of
from calibrant.rescorers import CATALOGUE, Rescorer

pytestmark = pytest.mark.parametrize("name", CATALOGUE.names())


def test_options_can_be_written_down(name):
    entry = CATALOGUE.make(name)
    assert isinstance(entry, Rescorer)
    assert spec_of(entry) == name
    assert CATALOGUE.make(spec_of(entry)) == entry
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.title = "another"


def test_it_says_what_it_is(name):
    entry = CATALOGUE.make(name)
    assert entry.title
    assert entry.reference
    assert ">>>" in inspect.getsource(inspect.getmodule(type(entry)))
    assert "fit" in vars(type(entry))
