"""Keywords of a TypedDict are listed by `help` and completion, with their defaults."""

import inspect

import pytest

from calibrant.core.io.column_names import ColumnOptions, Columns
from calibrant.core.predictions import Predictions
from calibrant.core.predictions.row_data import Rows

BUILD = [Predictions.from_logits, Predictions.from_probs, Predictions.binary, Predictions.from_confidence]
READ = [Predictions.load, Predictions.from_frame]


@pytest.mark.parametrize("build", BUILD)
def test_constructors_list_the_arrays_of_rows(build):
    parameters = inspect.signature(build).parameters
    for name in Rows.__annotations__:
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is None
    assert list(Rows.__annotations__) == ["features", "ids", "groups", "weights", "clusters"]


@pytest.mark.parametrize("read", READ)
def test_readers_list_the_columns_with_their_defaults(read):
    parameters = inspect.signature(read).parameters
    for name in ColumnOptions.__annotations__:
        assert parameters[name].default == getattr(Columns(), name)
    assert inspect.signature(Columns).parameters.keys() - ColumnOptions.__annotations__.keys() == {"per_character"}


@pytest.mark.parametrize("build", BUILD)
def test_an_unknown_array_is_an_error(build):
    scores = [0.9, 0.4] if build in (Predictions.binary, Predictions.from_confidence) else [[0.9, 0.1], [0.4, 0.6]]
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieghts'"):
        build(scores, [0, 1], wieghts=[1, 2])


@pytest.mark.parametrize("read", READ)
def test_an_unknown_column_is_an_error(read):
    with pytest.raises(TypeError, match="unexpected keyword argument 'wieght'"):
        read("rows.csv", wieght="w")
