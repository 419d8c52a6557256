"""Whatever a file of predictions holds, opening it gives right predictions or one sentence."""

from functools import partial

import pytest
from fuzz_counts import FEW, MANY, count, record
from hostile_predictions import SUFFIXES, hostile_file, is_valid, same

from calibrant.core.errors import InputError
from calibrant.core.predictions.load import load_predictions, read_batches


def tried(read):
    """What was read, or None and what was said."""
    try:
        return read(), ""
    except InputError as error:
        return None, str(error)


def open_one(rng, folder, *, suffix):
    """Whole, and where the format allows it in batches: both end the same way."""
    file, expected = hostile_file(suffix, rng, folder)
    p, message = tried(lambda: load_predictions(file, allow_few_rows=True))
    assert "\n" not in message
    if suffix != ".npz":
        batches, _ = tried(lambda: list(read_batches(file, 7)))
        assert None in (p, batches) or sum(b.n for b in batches) == p.n
    if p is None:
        assert expected is None, message
        return "refused"
    assert is_valid(p)
    assert expected is None or same(expected, p)
    return "right"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_files_are_refused_in_words_or_right(tmp_path, suffix):
    case = partial(open_one, suffix=suffix)
    case.__name__ = f"open_one {suffix}"
    counts = count(case, FEW, tmp_path)
    assert counts["other"] == 0
    assert counts["refused"] > FEW / 4
    assert counts["right"] > FEW / 6


@pytest.mark.slow
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_many_files_are_refused_in_words_or_right(tmp_path, suffix):
    case = partial(open_one, suffix=suffix)
    case.__name__ = f"open_one {suffix}"
    record(f"predictions, {suffix}", count(case, MANY, tmp_path, first=FEW))
