"""Every rescorer of the catalogue: options that can be written down, words about it, and `rescore` that knows it."""

import dataclasses
import inspect

import pytest

pytest.importorskip("torch")
from calibrant.core.catalogue import spec_of
from calibrant.rescorers import CATALOGUE, Rescorer

pytestmark = pytest.mark.parametrize("name", CATALOGUE.names())


def test_options_can_be_written_down(name):
    made = CATALOGUE.make(name)
    assert isinstance(made, Rescorer)
    assert spec_of(made) == name
    assert CATALOGUE.make(spec_of(made)) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.title = "another"


def test_it_says_what_it_is(name):
    made = CATALOGUE.make(name)
    assert made.title
    assert made.reference
    assert made.looks_at in ("inputs", "features")
    assert ">>>" in inspect.getsource(inspect.getmodule(type(made)))
    assert "fit" in vars(type(made))
