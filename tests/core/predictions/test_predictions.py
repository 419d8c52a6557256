"""Predictions: what is refused, what is kept, what is computed."""

import contextlib
import math
import pickle
import tracemalloc

import numpy as np
import polars as pl
import pytest
from slow_measures import softmax

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions, constants, parsing, validation

LOGITS = [[2.0, 0.0, -1.0], [0.0, 1.5, 0.2], [0.1, 0.0, -0.2], [3.0, -1.0, -2.0]]
PROBS = [[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.4, 0.35, 0.25], [1.0, 0.0, 0.0]]
LABELS = [0, 1, 2, 0]

BOTH = pytest.mark.parametrize(
    ("build", "good"), [(Predictions.from_logits, LOGITS), (Predictions.from_probs, PROBS)], ids=["logits", "probs"]
)


def changed(rows, value, at=(1, 1)):
    array = np.array(rows, dtype=float)
    array[at] = value
    return array


# -- refusals: expected, got, what to do ----------------------------------------------------------


@BOTH
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_values_that_are_not_finite_are_refused(build, good, value):
    with pytest.raises(InputError, match=r"finite numbers.*row 1"):
        build(changed(good, value), LABELS)
    with pytest.raises(InputError, match="finite numbers"):
        build(changed(good, value).astype(np.float32), LABELS)


@BOTH
@pytest.mark.parametrize(
    ("labels", "says"),
    [
        ([0, 1, 3, 0], r"0\.\.2.*3 in row 2"),
        ([0, -1, 2, 0], r"0\.\.2.*-1 in row 1"),
        ([0, 0.5, 2, 0], r"integers.*0\.5 in row 1"),
        ([0, np.nan, 2, 0], r"a label in every row, got none in row 1 \(1 of 4 rows\).*labels=None"),
        ([0, np.inf, 2, 0], "integers"),
        (["a", "b", "c", "a"], "integers"),
        ([None, 1, 2, 0], "a label in every row, got none in row 0"),
        ([1 + 0j, 0, 0, 0], "integers"),
        (np.eye(3)[[0, 1, 2, 0]], "not a one-hot row"),
        ([[0], [1], [2], [0]], "shape"),
        ([0, 1, 2], r"shape \(4,\), got shape \(3,\)"),
        ([0, 1, 2, 0, 1], "one label per row"),
        ([], "one label per row"),
        (2, "one label per row"),
        ([[0], [1, 2]], "different lengths"),
    ],
    ids=str,
)
def test_wrong_labels_are_refused(build, good, labels, says):
    with pytest.raises(InputError, match=says):
        build(good, labels)


def test_huge_labels_are_refused_without_a_warning():
    for labels in ([0.0, 1e300, 0.0, 0.0], np.array([0, 2**64 - 1, 0, 0], dtype=np.uint64)):
        with pytest.raises(InputError, match=r"0\.\.2"):
            Predictions.from_logits(LOGITS, labels)


@pytest.mark.parametrize("value", [-0.01, -1e-9, 1.01, 5.0])
def test_probabilities_outside_the_unit_interval_are_refused(value):
    with pytest.raises(InputError, match=r"inside \[0, 1\].*row 1.*from_logits"):
        Predictions.from_probs(changed(PROBS, value), LABELS)


def test_rows_that_do_not_sum_to_one_are_refused():
    with pytest.raises(InputError, match=r"sum to one, got 0\.9 in row 2 \(1 of 4 rows"):
        Predictions.from_probs(changed(PROBS, 0.15, at=(2, 2)), LABELS)
    with pytest.raises(InputError, match="sum to one"):
        Predictions.from_probs(np.zeros((4, 3)), LABELS)


def test_logits_given_as_probabilities_are_refused():
    with pytest.raises(InputError, match="from_logits"):
        Predictions.from_probs(LOGITS, LABELS)


def test_rounding_of_narrow_floats_is_accepted():
    for dtype in (np.float16, np.float32):
        p = Predictions.from_probs(np.array(PROBS, dtype=dtype), LABELS)
        assert p.confidence == pytest.approx([0.7, 0.8, 0.4, 1.0], abs=1e-3)
    over = np.array([[1 + 1e-7, 0.0], [0.5, 0.5]])
    assert Predictions.from_probs(over, [0, 1]).confidence.max() == 1.0


@BOTH
def test_wrong_shapes_are_refused(build, good):
    for values, says in [
        (np.zeros(4), "Predictions.binary"),
        (np.zeros((2, 2, 2)), "axis=1"),
        (np.zeros((0, 3)), "n = 0"),
        (np.zeros((4, 0)), "k = 0"),
        (np.ones((4, 1)), "Predictions.binary"),
        (np.array(good)[:1], r"labels: expected shape \(1,\)"),
        (3.0, "2-D"),
        ([], "an empty array"),
    ]:
        with pytest.raises(InputError, match=says):
            build(values, LABELS)


@BOTH
def test_labels_tell_which_axis_holds_the_rows(build, good):
    for n in (1, 2):
        assert build(good[:n], LABELS[:n]).n == n
    with pytest.raises(
        InputError, match=r"got shape \(4,\). To fix it: transpose the scores, which look like \(k, n\)"
    ):
        build(np.array([*good]).T if build == Predictions.from_logits else np.eye(4)[:3], LABELS)


@BOTH
@pytest.mark.parametrize(
    "values", [[[0.1, 0.9], [0.5]], [["a", "b"]] * 4, [[None, 1.0]] * 4, [[True, False]] * 4, [[1j, 0]] * 4, "text"]
)
def test_values_that_are_not_numbers_are_refused(build, good, values):
    with pytest.raises(InputError, match=r"numbers|rows of one length|2-D"):
        build(values, LABELS)


@BOTH
def test_wrong_features_and_ids_are_refused(build, good):
    for features in (np.zeros(4), np.zeros((3, 2)), [["a"]] * 4, changed(np.zeros((4, 2)), np.nan)):
        with pytest.raises(InputError, match="features"):
            build(good, LABELS, features=features)
    for ids in ([1, 2, 3], [1.5, 2.5, 3.5, 4.5], [[1], [2], [3], [4]], [None, 1, 2, 3]):
        with pytest.raises(InputError, match="ids"):
            build(good, LABELS, ids=ids)


# -- what is accepted -----------------------------------------------------------------------------


def test_lists_arrays_and_frames_are_the_same():
    wanted = Predictions.from_logits(LOGITS, LABELS)
    frame = pl.DataFrame(LOGITS, orient="row")
    for values in (np.array(LOGITS), tuple(map(tuple, LOGITS)), np.asfortranarray(LOGITS), frame):
        assert np.array_equal(Predictions.from_logits(values, pl.Series(LABELS)).probs, wanted.probs)


def test_pandas_frames_are_accepted():
    pandas = pytest.importorskip("pandas")
    p = Predictions.from_logits(pandas.DataFrame(LOGITS), pandas.Series(LABELS))
    assert np.array_equal(p.values, LOGITS)


def test_integer_logits_and_whole_float_labels_are_accepted():
    p = Predictions.from_logits(np.array([[2, 0], [0, 1]]), [0.0, 1.0])
    assert p.values.dtype == np.float64
    assert p.labels.tolist() == [0, 1]
    assert p.labels.dtype == np.int64
    assert Predictions.from_logits([[2, 0], [0, 1]], [False, True]).labels.tolist() == [0, 1]


def test_torch_tensors_are_accepted():
    torch = pytest.importorskip("torch")
    labels = torch.tensor(LABELS)
    for dtype in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        tensor = torch.tensor(LOGITS, dtype=dtype)
        p = Predictions.from_logits(tensor, labels)
        assert p.probs == pytest.approx(np.array(softmax(tensor.double().numpy())), abs=1e-6)
    p = Predictions.from_logits(torch.tensor(LOGITS, requires_grad=True), labels)
    assert p.n == 4
    assert Predictions.from_probs(torch.tensor(LOGITS, requires_grad=True).softmax(1), labels).k == 3


def test_huge_logits_give_probabilities_without_a_warning():
    for big in (1e4, 1e30, 1e300, 1e308):
        p = Predictions.from_logits([[big, -big, 0.0], [-big, -big, -big], [big, big, -big]], [0, 1, 2])
        assert p.confidence == pytest.approx([1, 1 / 3, 1 / 2])
        assert p.probs.sum(axis=1) == pytest.approx([1, 1, 1])
        assert p.true_prob == pytest.approx([1, 1 / 3, 0])


def test_few_words_say_what_it_is():
    assert repr(Predictions.from_probs(PROBS, LABELS)) == "Predictions(n=4, k=3, from probs)"
    assert len(Predictions.from_probs(PROBS, LABELS)) == 4


# -- views ----------------------------------------------------------------------------------------


def test_views_of_logits():
    p = Predictions.from_logits(LOGITS, LABELS)
    probs = np.array(softmax(LOGITS))
    assert p.probs == pytest.approx(probs, abs=1e-15)
    assert p.log_probs == pytest.approx(np.log(probs), abs=1e-14)
    assert p.confidence == pytest.approx(probs.max(axis=1), abs=1e-15)
    assert p.predicted.tolist() == [0, 1, 0, 0]
    assert p.correct.tolist() == [True, True, False, True]
    assert p.true_prob == pytest.approx(probs[range(4), LABELS], abs=1e-15)
    assert p.true_log_prob == pytest.approx(np.log(probs[range(4), LABELS]), abs=1e-14)


def test_views_of_probabilities():
    p = Predictions.from_probs(PROBS, LABELS)
    assert p.probs.tolist() == PROBS
    assert p.confidence.tolist() == [0.7, 0.8, 0.4, 1.0]
    assert p.true_prob.tolist() == [0.7, 0.8, 0.25, 1.0]
    assert p.logits == pytest.approx(np.log(np.maximum(PROBS, 1e-12)))


def test_the_lowest_class_wins_a_tie():
    assert Predictions.from_logits([[1.0, 1.0], [0.0, 0.0]], [0, 1]).predicted.tolist() == [0, 0]


def test_a_constant_added_to_a_row_changes_no_view():
    shift = np.array([[1024.0], [-4096.0], [0.0], [2.0**20]])
    coarse = np.round(np.array(LOGITS) * 16) / 16  # exact after the shift
    p, q = (Predictions.from_logits(values, LABELS) for values in (coarse, coarse + shift))
    assert np.array_equal(p.confidence, q.confidence)
    assert np.array_equal(p.probs, q.probs)
    assert q.true_log_prob == pytest.approx(p.true_log_prob, abs=1e-12)


def test_the_confidence_is_the_largest_probability(any_data):
    assert np.array_equal(any_data.probs.max(axis=1), any_data.confidence)


def test_chunks_of_rows_are_the_whole(p, monkeypatch):
    monkeypatch.setattr("calibrant.core.predictions.constants.CHUNK_ELEMENTS", 30)
    rows = list(p.prob_rows())
    assert len(rows) > 1
    assert np.array_equal(np.concatenate([block for _, block in rows]), p.probs)
    assert (rows[0][0].start, rows[-1][0].stop) == (0, p.n)


# -- it never changes -----------------------------------------------------------------------------


def test_stored_arrays_cannot_be_written():
    p = Predictions.from_logits(np.array(LOGITS), LABELS, features=np.zeros((4, 2)), ids=np.arange(4))
    for array in (p.values, p.logits, p.labels, p.features, p.ids):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


def test_kept_views_cannot_spoil_later_answers():
    """Writing into a view is refused, or touches a copy."""
    changed = []
    for view in ("probs", "log_probs", "confidence", "predicted", "correct", "true_prob", "true_log_prob"):
        p = Predictions.from_logits(np.array(LOGITS), LABELS)
        before = getattr(p, view).copy()
        with contextlib.suppress(ValueError):
            getattr(p, view)[:] = 0
        if not np.array_equal(getattr(p, view), before):
            changed.append(view)
    assert changed == []


def test_attributes_cannot_be_replaced():
    p = Predictions.from_logits(LOGITS, LABELS)
    with pytest.raises(AttributeError):
        p.labels = np.array([1, 1, 1, 1])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n", [40, 5000])  # one block, and several
def test_a_buffer_may_be_used_again(dtype, n):
    """A buffer that was filled anew gave a cached accuracy of 1 and a saved file with one of 0."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(n, 4)).astype(dtype), rng.integers(0, 4, n)
    s, names, features = rng.random(n).astype(dtype), np.arange(n), rng.normal(size=(n, 3))
    probs = np.array(softmax(z)).astype(dtype)
    image = np.moveaxis(z.reshape(2, n // 2, 4), -1, 1)
    given = [z, y, s, names, features, probs, image]
    rows = {"ids": names, "groups": names, "clusters": names, "weights": s, "features": features}
    every = [
        Predictions.from_logits(z, y, **rows),
        Predictions.from_logits(z[::-1], y),
        Predictions.from_logits(image, y.reshape(2, -1), axis=1),
        Predictions.from_probs(probs, y, **rows),
        Predictions.binary(s, y > 1, **rows),
        Predictions.binary(s, y > 1, logits=True),
        Predictions.from_confidence(s.reshape(2, -1), y.reshape(2, -1) > 1),
        Predictions.from_frame(pl.DataFrame({"confidence": s, "correct": y > 1, "id": names, "group": names})),
        Predictions.from_frame({"logit_0": z[:, 0], "logit_1": z[:, 1], "label": y > 1}),
        Predictions.from_logits(z.view(), y),
    ]
    kept = [array for p in every for array in (p.given_scores, p.labels, *p.row_data.arrays().values())]
    before = [array.copy() for array in kept]
    for array in given:
        assert array.flags.writeable
        array[:] = -1e15 if array.dtype.kind == "f" else 7
    for now, then in zip(kept, before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_a_reused_tensor_changes_nothing(tmp_path):
    torch = pytest.importorskip("torch")
    z = torch.tensor(LOGITS)
    p = Predictions.from_logits(z, LABELS)
    z.zero_()
    assert p.values.tolist() == np.array(LOGITS, dtype=np.float32).tolist()
    p.save(tmp_path / "p.npz")
    assert Predictions.load(tmp_path / "p.npz").correct.tolist() == p.correct.tolist()


def test_only_arrays_that_nothing_can_write_to_are_not_copied(tmp_path):
    logits = np.array(LOGITS)
    locked = logits.view()
    locked.flags.writeable = False
    assert not np.shares_memory(Predictions.from_logits(locked, LABELS).values, logits)  # its base is not
    logits.flags.writeable = False
    assert np.shares_memory(Predictions.from_logits(logits, LABELS).values, logits)
    p = Predictions.from_logits(LOGITS, LABELS)
    assert np.shares_memory(Predictions.from_logits(p.logits, p.labels).values, p.values)
    constant = np.frombuffer(np.array(LOGITS).tobytes()).reshape(4, 3)
    assert np.shares_memory(Predictions.from_logits(constant, LABELS).values, constant)
    changing = np.frombuffer(bytearray(np.array(LOGITS).tobytes())).reshape(4, 3)
    assert not np.shares_memory(Predictions.from_logits(changing, LABELS).values, changing)


@pytest.mark.parametrize("suffix", ["npz", "parquet"])
@pytest.mark.parametrize("k", [1, 50])
def test_files_cost_no_copy(k, suffix, tmp_path, monkeypatch):
    """Nobody else holds what was read: loading takes the memory that it takes without the copies of other arrays."""
    n, rng = 200_000 // k, np.random.default_rng(0)
    p = Predictions.binary(rng.random(n), rng.random(n) < 0.5) if k == 1 else of_many(n, k)
    p.save(file := tmp_path / f"p.{suffix}")

    def peak():
        tracemalloc.start()
        try:
            loaded = Predictions.load(file)
            return loaded, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    loaded, most = peak()
    monkeypatch.setattr(parsing, "own", lambda array, given: array)
    monkeypatch.setattr(validation, "own", lambda array, given: array)
    assert most <= peak()[1] + 0.05 * loaded.given_scores.nbytes
    np.testing.assert_array_equal(loaded.given_scores, p.given_scores)


def test_only_constructors_that_name_the_scores_build_them():
    with pytest.raises(InputError, match=r"says what the scores are.*use Predictions\.from_logits, from_probs, binary"):
        Predictions(LOGITS, LABELS)


# -- take, split, tempered ------------------------------------------------------------------------


def full():
    return Predictions.from_logits(LOGITS, LABELS, features=np.arange(8.0).reshape(4, 2), ids=["a", "b", "c", "d"])


def test_take_by_index_and_by_mask():
    p = full()
    for index in ([3, 1, 1], np.array([3, 1, 1])):
        q = p.take(index)
        assert q.labels.tolist() == [0, 1, 1]
        assert q.ids.tolist() == ["d", "b", "b"]
        assert q.features[0].tolist() == [6.0, 7.0]
        assert np.array_equal(q.confidence, p.confidence[index])
    assert p.take([True, False, True, False]).ids.tolist() == ["a", "c"]
    assert p.take(p.correct).n == 3
    assert p.take([-1]).ids.tolist() == ["d"]


@pytest.mark.parametrize("index", [[], [False] * 4, [True, False], [True] * 5, [4], [0.5], [[0, 1]], 0], ids=str)
def test_wrong_indices_are_refused(index):
    with pytest.raises((InputError, IndexError, TypeError)):
        full().take(index)


def test_split_is_a_partition_and_seeded(p):
    first, second = p.split(0.25, seed=3)
    assert (first.n, second.n) == (30, 90)
    together = np.concatenate([first.values, second.values])
    assert np.array_equal(np.sort(together, axis=0), np.sort(p.values, axis=0))
    again, other = p.split(0.25, seed=3)[0], p.split(0.25, seed=4)[0]
    assert np.array_equal(first.values, again.values)
    assert not np.array_equal(first.values, other.values)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 1.5, 0.001, math.nan])
def test_split_that_leaves_nothing_is_refused(p, fraction):
    with pytest.raises(ValueError, match=r"split|NaN"):
        p.split(fraction)


def test_tempered_divides_the_logits():
    p = full()
    assert p.with_temperature(2.0).probs == pytest.approx(np.array(softmax(np.array(LOGITS) / 2)), abs=1e-15)
    assert np.array_equal(p.with_temperature(7.0).predicted, p.predicted)
    assert p.with_temperature(1e9).confidence == pytest.approx([1 / 3] * 4, abs=1e-8)
    assert p.with_temperature(2.0).ids.tolist() == p.ids.tolist()
    assert np.array_equal(p.with_temperature(1.0).probs, p.probs)
    narrow = Predictions.from_logits(np.array(LOGITS, dtype=np.float32), LABELS)
    assert narrow.with_temperature(3.0).values.dtype == np.float64


def test_tempered_probabilities_start_from_their_logarithms():
    p = Predictions.from_probs([[0.8, 0.2], [0.5, 0.5]], [0, 1])
    assert p.with_temperature(0.5).probs[0] == pytest.approx([0.64 / 0.68, 0.04 / 0.68])
    assert p.with_temperature(1.0).probs == pytest.approx(p.probs)


@pytest.mark.parametrize("T", [0.0, -1.0, math.nan])
def test_temperatures_that_break_the_logits_are_refused(T):
    with pytest.raises(InputError):
        full().with_temperature(T)


# -- other confidences ----------------------------------------------------------------------------


def test_other_confidences_keep_the_answers() -> None:
    p = Predictions.from_probs([[0.7, 0.2, 0.1], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]], [0, 0, 2])
    q = p.with_confidence([0.1, 0.4, 0.5])
    assert q.confidence.tolist() == [0.1, 0.4, 0.5]
    assert q.predicted.tolist() == [0, 1, 2]
    np.testing.assert_allclose(q.probs, [[0.1, 0.6, 0.3], [0.6, 0.4, 0.0], [0.25, 0.25, 0.5]])


@pytest.mark.parametrize("q", [[0.5], [0.5, 1.5], [0.5, -0.1], [0.5, float("nan")]])
def test_other_confidences_are_probabilities(q: list[float]) -> None:
    with pytest.raises(InputError, match="2 numbers from 0 to 1"):
        Predictions.from_probs([[0.7, 0.3], [0.1, 0.9]], [0, 0]).with_confidence(q)


def test_large_predictions_keep_no_views_after_a_measure(monkeypatch):
    """20 million binary rows kept eight times their input."""
    monkeypatch.setattr("calibrant.measuring.measure.KEEP_ELEMENTS", 100)
    rng = np.random.default_rng(0)
    s = rng.random(500)
    p = Predictions.binary(s, rng.random(500) < s)
    values = [cal.measure(p, what, resamples=0).value for what in ("ece", "nll", "brier")]
    assert set(vars(p)) == {"given_scores", "given_labels", "score_type", "row_data"}
    assert values == [cal.measure(p, what, resamples=0).value for what in ("ece", "nll", "brier")]
    q = Predictions.from_logits(rng.normal(size=(500, 3)), rng.integers(0, 3, 500))
    cal.measure(q, "ece", resamples=0)
    assert set(vars(q)) == {"given_scores", "given_labels", "score_type", "row_data"}


# -- many rows --------------------------------------------------------------------------------------


def of_many(n=60, k=9, *, probs=False):
    rng = np.random.default_rng(0)
    z, y = 3 * rng.normal(size=(n, k)), rng.integers(0, k, size=n)
    return Predictions.from_probs(softmax(z), y) if probs else Predictions.from_logits(z, y)


@pytest.mark.parametrize("probs", [False, True])
def test_other_confidences_and_probabilities_are_the_same_in_blocks(monkeypatch, probs):
    small = of_many(probs=probs)
    q = np.linspace(0.0, 1.0, small.n)
    monkeypatch.setattr(constants, "KEEP_ELEMENTS", 0)
    monkeypatch.setattr(constants, "CHUNK_ELEMENTS", 7 * small.k)
    large = of_many(probs=probs)
    np.testing.assert_allclose(large.probs, small.probs, rtol=1e-15)
    np.testing.assert_allclose(large.with_confidence(q).values, small.with_confidence(q).values, rtol=1e-14)
    assert np.array_equal(large.with_confidence(q).predicted, small.predicted)


def test_other_confidences_of_many_rows_take_the_memory_of_the_result():
    p = of_many(5000, 1000)
    q = np.full(p.n, 0.5)
    _ = p.confidence
    tracemalloc.start()
    try:
        result = p.with_confidence(q)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 1.2 * result.values.nbytes


def test_predictions_go_to_another_process_after_use():
    """A measure leaves sorted curves, which hold functions."""
    rng = np.random.default_rng(0)
    rows = {"weights": rng.random(50) + 0.1, "groups": rng.choice(["a", "b"], 50), "ids": np.arange(50)}
    for p in (
        Predictions.from_logits(rng.normal(size=(50, 3)), rng.integers(0, 3, 50), **rows),
        Predictions.binary(rng.random(50), rng.integers(0, 2, 50)),
        Predictions.from_confidence(rng.random(50), rng.random(50) < 0.5),
    ):
        before = [m.value for m in cal.measure(p, ["ece", "ks"], resamples=0)]
        q = pickle.loads(pickle.dumps(p))
        assert [m.value for m in cal.measure(q, ["ece", "ks"], resamples=0)] == before
        assert (q.task, q.score_type, repr(q)) == (p.task, p.score_type, repr(p))
        for name, array in p.row_data.arrays().items():
            np.testing.assert_array_equal(q.row_data.arrays()[name], array)
        assert not q.values.flags.writeable
