"""What `code_trust.would_run` lets through is made by the catalogues alone."""

from contextlib import suppress
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")

from calibrant import losses, models
from calibrant.core.config.code_trust import would_run
from calibrant.core.errors import InputError

RUN_CODE = ("calibrant.core.catalogue.load_file", "calibrant.models._call.call", "calibrant.models._hub.load")


@given(
    st.sampled_from(["", "./", "a b/", "os:", "hf:", "resnet:", "a.py:"]),
    st.text(max_size=20),
    st.sampled_from(["", ".py"]),
)
def test_whatever_passes_never_reaches_code_of_others(start, text, end):
    spec = f"{start}{text}{end}"
    if would_run(spec, model=True):
        return
    with mock.patch(RUN_CODE[0]) as one, mock.patch(RUN_CODE[1]) as two, mock.patch(RUN_CODE[2]) as three:
        with suppress(InputError, AttributeError):
            models.build(spec, None)  # a network of no shape: names are looked at before
        assert [one.called, two.called, three.called] == [False] * 3


def test_these_are_the_places_that_run_code(tmp_path):
    """Where one of them is renamed, the test above says nothing."""
    for place, spec in zip(RUN_CODE, ("./mine.py", "os:system", "hf:somebody/something"), strict=True):
        assert would_run(spec, model=True)
        with mock.patch(place, side_effect=InputError("x", expected="y", got="z", fix="w")) as reached:
            with suppress(InputError):
                models.build(spec, models.Shape(3))
            assert reached.called


def test_names_of_the_catalogues_run_nothing():
    for name in [*models.names(), *losses.CATALOGUE.names()]:
        assert would_run(name, model=True) == ""
