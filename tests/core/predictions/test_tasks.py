"""The four shapes of predictions: what each holds, and what is refused."""

import numpy as np
import pytest

from calibrant import Accumulator, InputError, Predictions, fit, measure
from calibrant.core.errors import ProbabilitiesAsLogitsWarning

S, Y = [0.95, 0.75, 0.35, 0.15, 0.55, 0.72], [1, 0, 0, 1, 1, 1]


def value(p, what):
    return measure(p, what, resamples=0).value


def test_binary_numbers_of_the_specification():
    p = Predictions.binary(S, Y)
    expected = {"gap": -0.08833333, "brier": 0.28181667, "nll": 0.78197194, "ece:bins=5": 0.36166667, "roc_auc": 0.5}
    assert {what: round(value(p, what), 8) for what in expected} == expected


def test_binary_logits_and_named_labels_are_the_same_predictions():
    s = np.array(S)
    p = Predictions.binary(S, Y)
    names = np.where(np.array(Y) == 1, "yes", "no")
    for q in (
        Predictions.binary(np.log(s / (1 - s)), Y, logits=True),
        Predictions.binary(S, names, positive="yes"),
        Predictions.binary(S, np.array(Y) + 1, positive=2),
        Predictions.binary(S, np.array(Y, dtype=bool)),
    ):
        assert q.task == "binary"
        for what in ("ece", "nll", "brier", "accuracy", "classwise", "smooth"):
            assert value(q, what) == pytest.approx(value(p, what), abs=1e-12)
    assert Predictions.binary(S, names, positive="yes").classes == ("no", "yes")


def test_scope_top_reads_confidence_and_correctness():
    p = Predictions.binary(S, Y)
    two = Predictions.from_probs(np.stack([1 - np.array(S), S], axis=1), Y)
    for what in ("ece", "mce", "smooth", "ks", "auroc_correct", "kde"):
        assert value(p, f"{what}:scope=top") == pytest.approx(value(two, what), abs=1e-12)
    assert "positive-class" in measure(p, "ece", resamples=0).definition
    assert "top-label" in measure(p, "ece:scope=top", resamples=0).definition


def test_one_score_a_row_is_all_that_is_kept():
    """Ten million confidences take no more memory than they are: both columns are made when asked for."""
    s, y = np.array(S), np.array(Y, dtype=bool)
    s.flags.writeable = False
    for p in (Predictions.binary(s, y), Predictions.from_confidence(s, y)):
        assert np.shares_memory(p.score, s)
        value(p, "ece"), value(p, "auroc_correct"), fit(p, "temperature")
        assert "values" not in p.__dict__
        assert "labels" not in p.__dict__
        assert (p.n, p.k, len(p.take([1, 2]))) == (6, 2, 2)
        assert np.array_equal(p.values, np.stack([1 - s, s], axis=1))
        assert np.array_equal(p.labels, Y)
        assert not p.values.flags.writeable


def test_a_small_probability_keeps_its_digits():
    p = Predictions.binary([-40.0, 40.0, 3.0], [0, 1, 1], logits=True)
    assert p.score[0] == pytest.approx(np.exp(-40.0), rel=1e-12)


def test_confidence_is_the_probability_of_being_right():
    p = Predictions.from_confidence([0.9, 0.4, 0.3], [True, True, False])
    assert p.confidence.tolist() == pytest.approx([0.9, 0.4, 0.3])
    assert p.correct.tolist() == [True, True, False]
    assert value(p, "accuracy") == pytest.approx(2 / 3)
    assert value(p, "brier") == pytest.approx((0.01 + 0.36 + 0.09) / 3)
    assert value(p, "nll") == pytest.approx(-(np.log(0.9) + np.log(0.4) + np.log(0.7)) / 3)
    assert p.take([2, 0]).confidence.tolist() == pytest.approx([0.3, 0.9])
    for what in ("classwise", "entropy", "ace_nixon", "tace"):
        with pytest.raises(InputError, match="nothing but right or wrong"):
            measure(p, what)


def test_choices_are_softmaxed_over_the_options_that_exist():
    z = np.array([[1.0, 2.0, 0.5, -np.inf], [0.3, 0.1, -np.inf, -np.inf], [2.0, 1.0, 0.0, -1.0]])
    y = [1, 0, 3]
    p = Predictions.from_logits(z, y)
    masked = Predictions.from_logits(np.where(np.isfinite(z), z, 7.0), y, mask=np.isfinite(z))
    e = np.where(np.isfinite(z), np.exp(z), 0.0)
    for q in (p, masked):
        assert q.task == "choice"
        np.testing.assert_allclose(q.probs, e / e.sum(axis=1, keepdims=True), atol=1e-15)
        assert value(q, "nll") == pytest.approx(np.mean(-np.log((e / e.sum(axis=1, keepdims=True))[range(3), y])))
        hot = q.with_temperature(2.5).probs
        assert (hot[~np.isfinite(z)] == 0).all()
    from_probs = Predictions.from_probs(p.probs, y, mask=np.isfinite(z))
    np.testing.assert_allclose(from_probs.probs, p.probs, atol=1e-12)
    with pytest.raises(InputError, match="differ from row to row"):
        measure(p, "classwise")


def test_axis_and_ignore_flatten_what_networks_give():
    rng = np.random.default_rng(3)
    z, y = rng.normal(size=(4, 3, 2, 5)), rng.integers(0, 3, (4, 2, 5))
    y[0, 0, 0], y[3, 1, 4] = 255, -100
    w = rng.random((4, 2, 5))
    p = Predictions.from_logits(z, y, axis=1, ignore=(255, -100), weights=w)
    flat, labels = np.moveaxis(z, 1, -1).reshape(-1, 3), y.ravel()
    kept = np.isin(labels, (0, 1, 2))
    np.testing.assert_array_equal(p.values, flat[kept])
    np.testing.assert_array_equal(p.labels, labels[kept])
    np.testing.assert_allclose(p.weights, w.ravel()[kept] / w.ravel()[kept].mean())
    np.testing.assert_array_equal(p.clusters, np.repeat(np.arange(4), 10)[kept])  # pixels of one image come together
    own = Predictions.from_logits(z, y, axis=1, ignore=(255, -100), clusters=np.array(["a", "b", "a", "b"]))
    np.testing.assert_array_equal(own.clusters, np.repeat([0, 1, 0, 1], 10)[kept])
    tokens = Predictions.from_logits(
        np.moveaxis(z, 1, -1).reshape(4, 10, 3), y.reshape(4, 10), axis=-1, ignore=(255, -100)
    )
    np.testing.assert_array_equal(tokens.values, flat[kept])


def test_class_names_number_text_labels():
    p = Predictions.from_probs([[0.9, 0.1], [0.2, 0.8]], ["cat", "dog"], classes=["cat", "dog"])
    assert p.labels.tolist() == [0, 1]
    assert p.classes == ("cat", "dog")


def test_one_row_per_cluster_is_the_ordinary_bootstrap(tmp_path):
    rng = np.random.default_rng(0)
    s, names = rng.random(300), rng.permutation(300)
    y = rng.random(300) < s
    p, q = Predictions.from_confidence(s, y), Predictions.from_confidence(s, y, clusters=names)
    for what in ("ece", "brier", "auroc_correct", "ks"):
        assert measure(p, what, resamples=100) == measure(q, what, resamples=100), what
    assert q.clusters is None
    q.save(tmp_path / "q.csv")
    assert (tmp_path / "q.csv").read_text().startswith("cluster,")  # it is not forgotten
    sums = Accumulator(["ece"])
    for rows in (slice(0, 2), slice(2, 4)):  # rows of one cluster may come in different batches
        sums.update(Predictions.from_confidence(s[rows], y[rows], clusters=["a", "b"]))
    assert sums.measure("ece").low is None


def test_clusters_stay_together_in_a_split():
    rng = np.random.default_rng(0)
    clusters = rng.integers(0, 20, 200)
    p = Predictions.from_confidence(rng.random(200), rng.integers(0, 2, 200), clusters=clusters, ids=np.arange(200))
    a, b = p.split(0.4, seed=1)
    assert not set(clusters[a.ids]) & set(clusters[b.ids])
    assert 60 <= a.n <= 100


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Predictions.binary([0.1, 3.0], [0, 1]), "logits=True"),
        (lambda: Predictions.binary([0.1, np.nan], [0, 1]), "none in 1 of 2 rows .*missing='drop'"),
        (lambda: Predictions.binary([0.1, np.inf], [0, 1]), "finite"),
        (lambda: Predictions.binary([0.1, np.nan], [0, 1], missing="count_as_wrong"), "use missing='drop'"),
        (lambda: Predictions.from_confidence([np.nan], [0], missing="drop"), "none in any"),
        (lambda: Predictions.from_confidence([], []), "update\\(None\\) adds nothing"),
        (lambda: Predictions.from_logits(np.zeros((0, 3)), []), "leave the empty batch out"),
        (lambda: Predictions.from_logits(np.zeros((3, 2)), [0, 1, -100]), "ignore=-100 .*axis=-1"),
        (lambda: Predictions.from_probs([[0.5, 0.5]] * 2, ["cat", "dog"]), "--classes cat,dog"),
        (lambda: Predictions.binary([0.1, 0.2], ["a", "b"], positive="c"), "--positive b"),
        (lambda: Predictions.binary([0.1, 0.2, 0.3], [0, 1, 2]), "two different labels, got 3"),
        (
            lambda: Predictions.binary([0.1, 0.2], ["a", "b"]),
            "positive='a' .--positive a. or positive='b'",
        ),
        (lambda: Predictions.binary([0.1, 0.2], ["a", "b"], positive="c"), "which no row has"),
        (lambda: Predictions.binary([0.1, 0.2], [0, 1, 1]), "one label per score"),
        (lambda: Predictions.binary([[0.9, 0.1], [0.8, 0.2]], [0, 1]), r"scores\[:, 1\] of two columns"),
        (lambda: Predictions.binary([[0.1], [0.2]], [0, 1]), r"scores\[:, 0\]; for all classes"),
        (
            lambda: Predictions.from_confidence([0.1, 0.2], [0, 2]),
            "correct: expected 0 or 1, got 2 in row 1.* give 1 for right",
        ),
        (lambda: Predictions.from_logits([[1.0, -np.inf], [1.0, 0.0]], [0, 0]), "only one in row 0"),
        (lambda: Predictions.from_logits(np.full((2, 2), -np.inf), [0, 0]), "none in row 0"),
        (
            lambda: Predictions.from_logits([[1.0, 0, -np.inf]] * 3, [0, 2, 1]),
            "option 2 in row 1, which the row",
        ),
        (lambda: Predictions.from_probs([[0.5, 0.3, 0.2]] * 3, [0] * 3, mask=[[1, 1, 0]] * 3), "correct the mask"),
        (lambda: Predictions.from_logits(np.zeros((2, 3, 4)), np.zeros((2, 4))), "axis=1"),
        (lambda: Predictions.from_logits(np.zeros((2, 3, 4)), np.zeros((2, 3)), axis=1), r"shape \(2, 4\)"),
        (lambda: Predictions.from_logits(np.zeros((2, 2)), [7, 7], ignore=7), "not ignored"),
        (lambda: Predictions.binary(S, Y, weights=[1, 1, 1, 1, 1, -1]), "0 or more"),
        (lambda: Predictions.binary(S, Y, weights=[0] * 6), "all 0"),
        (lambda: Predictions.binary(S, Y, clusters=[0, 1]), "clusters: expected 6"),
        (
            lambda: Predictions.from_probs([[0.5, 0.5]] * 2, ["cat", "dgo"], classes=["cat", "dog"]),
            "did you mean 'dog'",
        ),
    ],
)
def test_what_no_shape_can_be_is_refused(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_rows_without_a_score():
    given, right = [0.9, None, 0.4, np.nan], [1, 1, 0, 1]
    p = Predictions.from_confidence(given, right, missing="drop", groups=["a", "b", "c", "d"])
    assert (p.score.tolist(), p.outcome.tolist(), p.groups.tolist()) == ([0.9, 0.4], [True, False], ["a", "c"])
    assert p.notes == ("2 of 4 rows (50.0 %) have no confidence and were left out.",)
    q = Predictions.from_confidence(given, right, missing="count_as_wrong")
    assert (q.score.tolist(), q.outcome.tolist(), q.missing.policy) == (
        [0.9, 0, 0.4, 0],
        [True, False, False, False],
        "count_as_wrong",
    )
    assert Predictions.binary(given, ["y", "n", "n", "y"], positive="y", missing="drop").labels.tolist() == [1, 0]
    assert Predictions.from_confidence([0.9, 0.4], [1, 0], missing="drop").missing is None


@pytest.mark.parametrize("suffix", ["npz", "parquet", "csv", "jsonl"])
def test_a_saved_file_still_says_what_was_missing(tmp_path, suffix):
    p = Predictions.from_confidence([0.9, None, 0.4], [1, 1, 0], missing="drop")
    p.save(tmp_path / f"p.{suffix}")
    assert Predictions.load(tmp_path / f"p.{suffix}").missing == p.missing


def test_a_column_of_that_name_with_something_else_is_left_alone(tmp_path):
    for i, cell in enumerate(("4", "[]", "{}", '{"missing": {"rows": -1}}', '{"missing": 3, "notes": "x"}', "nothing")):
        file = tmp_path / f"p{i}.csv"
        file.write_text(
            "confidence,correct,about\n0.9,1,\n0.4,0,'{}'\n".replace("'{}'", '"' + cell.replace('"', '""') + '"')
        )
        assert Predictions.load(file).notes == ()


def test_labels_of_a_pandas_column_need_a_positive_one():
    pd = pytest.importorskip("pandas")
    labels = pd.Series(["m", "b", "m"], dtype=object)
    with pytest.raises(
        InputError, match=r"expected 0 and 1, got b in 1 rows and m in 2 rows\. .*positive='m' \(--positive m\)"
    ):
        Predictions.binary([0.9, 0.2, 0.6], labels)
    assert Predictions.binary([0.9, 0.2, 0.6], labels, positive="m").labels.tolist() == [1, 0, 1]


def test_a_text_column_of_a_table_names_groups():
    groups = np.array(["a", "b", "a"], dtype=object)
    assert Predictions.from_confidence([0.5, 0.6, 0.7], [0, 1, 1], groups=groups).groups.tolist() == ["a", "b", "a"]
    with pytest.raises(InputError, match="groups: expected 3 integers or strings"):
        Predictions.from_confidence([0.5, 0.6, 0.7], [0, 1, 1], groups=np.array(["a", None, "a"], dtype=object))


def test_masks_of_images_are_binary_predictions():
    rng = np.random.default_rng(0)
    scores, labels = rng.random((5, 4, 3)), rng.integers(0, 2, (5, 4, 3))
    p = Predictions.binary(scores, labels, groups=["a", "b", "a", "b", "a"])
    assert p.n == 60
    np.testing.assert_array_equal(p.score, scores.ravel())
    np.testing.assert_array_equal(p.outcome, labels.ravel() == 1)
    np.testing.assert_array_equal(p.clusters, np.repeat(np.arange(5), 12))
    assert p.groups[12] == "b"
    with pytest.raises(InputError, match=r"got shape \(5, 4\) for scores of shape \(5, 4, 3\)"):
        Predictions.binary(scores, labels[:, :, 0])


def test_a_batch_may_have_one_row():
    """A loop over batches of 256 x 1000, and over the last batch, which may have any size."""
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(9, 20)), rng.integers(0, 20, 9)
    sums = Accumulator(["nll", "accuracy"])
    for rows in (slice(0, 8), slice(8, 9)):
        sums.update(Predictions.from_logits(z[rows], y[rows]))
    assert sums.measure("nll").value == pytest.approx(value(Predictions.from_logits(z, y), "nll"))
    for one in (Predictions.binary([0.5], [0]), Predictions.from_confidence([0.5], [0])):
        m = measure(one, "brier")
        assert (m.value, m.low) == (0.25, None)


def test_probabilities_given_as_logits_are_warned_of():
    probs = [[0.2, 0.8], [0.5, 0.5], [0.9, 0.1]] * 4
    with pytest.warns(ProbabilitiesAsLogitsWarning, match="use from_probs"):
        Predictions.from_logits(probs, [0, 1, 0] * 4)
    assert Predictions.from_logits(np.array(probs) * 1.1, [0, 1, 0] * 4).n == 12
    assert Predictions.from_logits(probs[:3], [0, 1, 0]).n == 3  # too few to be sure


def test_percent_and_many_text_labels_are_named():
    with pytest.raises(InputError, match="divide by 100: these are percent"):
        Predictions.from_probs([[20.0, 80.0], [50.0, 50.0]], [0, 1])
    labels = [f"class {i:02}" for i in range(12)]
    with pytest.raises(InputError, match=r"name all 12 classes in the order of the columns.*'class 11'.*their order"):
        Predictions.from_probs(np.eye(12), labels)
    with pytest.raises(InputError, match=r"fraud in 1 rows and ok in 3 rows.*positive='fraud'.* or positive='ok'"):
        Predictions.binary([0.1, 0.2, 0.3, 0.4], ["ok", "fraud", "ok", "ok"])
    with pytest.raises(InputError, match=r"a label in every row, got none in row 1 \(1 of 3 rows\)"):
        Predictions.binary([0.1, 0.2, 0.3], [0, np.nan, 1])


THREE = np.array([[2.0, 0.0, 1.0], [0.0, 1.0, 3.0], [5.0, 1.0, 0.0], [0.0, 2.0, 1.0]])
IMAGES = np.random.default_rng(0).normal(size=(2, 3, 4, 5))
MANY = [0.1, 0.9, 0.3, 0.8] * 5


class Broken:
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("nothing here")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: Predictions.from_logits(THREE, [[0], [1], [2], [0]]), r"got shape \(4, 1\).*labels\.reshape\(4\)"),
        (lambda: Predictions.from_logits(THREE, np.eye(3)[[0, 2, 1, 0]]), r"one-hot row: labels\.argmax\(axis=1\)"),
        (
            lambda: Predictions.from_logits(THREE, [[1, 0, 1]] * 4),
            "several labels give each column to Predictions.binary",
        ),
        (lambda: Predictions.from_logits(THREE.T, [0, 1, 2, 0]), r"transpose the scores, which look like \(k, n\)"),
        (lambda: Predictions.binary(S, np.array(Y)[:, None]), r"got shape \(6, 1\) for scores.*labels\.reshape\(6\)"),
        (
            lambda: Predictions.from_logits(IMAGES, np.zeros((2, 1, 4, 5)), axis=1),
            r"got shape \(2, 1, 4, 5\).*labels\.reshape\(2, 4, 5\)",
        ),
        (
            lambda: Predictions.from_logits(IMAGES, np.moveaxis(np.eye(3)[np.zeros((2, 4, 5), int)], -1, 1), axis=1),
            r"labels\.argmax\(axis=1\)",
        ),
        (
            lambda: Predictions.from_logits(IMAGES, np.moveaxis(np.eye(3)[np.zeros((2, 4, 5), int)], -1, 1), axis=-3),
            r"labels\.argmax\(axis=1\)",
        ),
        (lambda: Predictions.from_logits(THREE, [0, 1, 255, 255]), "got 255 in row 2.*ignore=255"),
        (lambda: Predictions.from_logits(THREE, [0, 1, -1, 2]), "ignore=-1 if this marks rows to leave out"),
        (lambda: Predictions.from_logits(THREE, [1, 2, 3, 1]), "subtract 1 if the labels begin at 1"),
        (lambda: Predictions.binary(S, [0, 1, 255, 1, 0, 1]), "got 3 .*ignore=255 if this marks"),
        (lambda: Predictions.binary(S, [0, 1, 0.5, 1, 0, 1]), "a share or a tie is no label"),
        (lambda: Predictions.from_confidence(S, ["yes", "no"] * 3), "0 or 1, got words: no, yes.*correct == 'yes'"),
        (lambda: Predictions.from_confidence(S, np.array(["C", "I"] * 3, dtype=object)), "correct: expected 0 or 1"),
        (lambda: Predictions.from_confidence(S, [1, 0, 0.5, 1, 0, 1]), "0.5 in row 2.*correct >= 0.5"),
        (
            lambda: Predictions.from_confidence([95.0, 80.0, 7.0], [1, 1, 0]),
            "divide by 100 if they are percent; say logits",
        ),
        (
            lambda: Predictions.from_confidence([*MANY, 31.98], [1, 0] * 10 + [1]),
            "correct or drop these rows: all others",
        ),
        (
            lambda: Predictions.binary([-2.0, 0.5, 3.0], [0, 1, 1]),
            "logits=True .--override logit_score=true. if these are",
        ),
        (lambda: Predictions.binary(Y, S), "scores first, then labels.*swap the two arguments"),
        (lambda: Predictions.binary(["a", "b"], [0.2, 0.9]), "swap the two arguments"),
        (lambda: Predictions.from_confidence(np.array(Y, dtype=bool), S), "swap the two arguments"),
        (lambda: Predictions.from_logits([0, 1, 2, 0], THREE), r"then scores of shape \(4, 3\).*swap"),
        (lambda: Predictions.from_probs(np.zeros((2, 4, 5), int), IMAGES, axis=1), "swap the two arguments"),
        (lambda: Predictions.from_probs([[0.9, 0.8, 0.1]] * 3, [0, 1, 2]), "several labels|may have several labels"),
        (lambda: Predictions.from_logits(Broken(), [0]), r"type Broken that is none \(RuntimeError: nothing here\)"),
        (lambda: Predictions.binary(S, np.ma.masked_array(Y, mask=[1, 0, 0, 0, 0, 0])), "labels: .* 1 masked ones"),
        (lambda: Predictions.binary(S, Y, weights=np.ma.masked_equal(Y, 0)), "weights: .* 2 masked ones"),
        (lambda: Predictions.binary(S, Y, groups=["a", None, "b", "a", "b", "a"]), "groups: .* none in row 1"),
        (
            lambda: Predictions.binary([0.1, 0.2], ["yes", "yes"], positive="Yes"),
            "positive: expected yes, got Yes, which no",
        ),
        (
            lambda: Predictions.binary([0.1, 0.2], [0, 0], positive="yes"),
            "positive: expected 0, got yes, which no row has",
        ),
        (
            lambda: Predictions.binary([0.1, 0.2], [0, 1], positive=2),
            "positive: expected 0 or 1, got 2, which no row has",
        ),
    ],
)
def test_the_message_says_what_to_do(make, says):
    with pytest.raises(InputError, match=says):
        make()


def test_tensors_that_numpy_does_not_have():
    torch = pytest.importorskip("torch")
    z = torch.tensor(THREE)
    with pytest.raises(InputError, match=r"logits: expected a dense tensor, got a sparse one.*to_dense"):
        Predictions.from_logits(z.to_sparse(), [0, 2, 0, 1])
    with pytest.raises(InputError, match=r"probs: expected a dense array, got a sparse one.*toarray"):
        Predictions.from_probs(pytest.importorskip("scipy.sparse").csr_matrix(np.eye(3)), [0, 1, 2])
    assert Predictions.from_logits(z.to(torch.float8_e4m3fn), [0, 2, 0, 1]).values.tolist() == THREE.tolist()


def test_masked_arrays_use_their_mask():
    """A masked column counted as an option: the loss of two equal options was ln 3."""
    z = np.ma.masked_array(np.zeros((50, 3)), mask=np.arange(150).reshape(50, 3) % 3 == 2)
    p = Predictions.from_logits(z, np.arange(50) % 2)
    assert p.task == "choice"
    assert value(p, "nll") == pytest.approx(np.log(2))
    few = Predictions.from_logits(z, np.arange(50) % 2, mask=~z.mask)
    assert value(few, "nll") == pytest.approx(np.log(2))
    probs = Predictions.from_probs(np.ma.masked_array([[0.5, 0.5, 7.0]] * 3, mask=[[0, 0, 1]] * 3), [0, 1, 0])
    assert value(probs, "nll") == pytest.approx(np.log(2))
    with pytest.raises(InputError, match="only one in row 0"):
        Predictions.from_logits(np.ma.masked_array(THREE, mask=[[0, 1, 1]] * 4), [0, 0, 0, 0])
    stated = np.ma.masked_array([0.9, 0.4, 0.5], mask=[0, 1, 0])
    assert Predictions.from_confidence(stated, [1, 0, 1], missing="drop").score.tolist() == [0.9, 0.5]
    with pytest.raises(InputError, match="none in 1 of 3 rows"):
        Predictions.from_confidence(stated, [1, 0, 1])
    whole = np.ma.masked_array(THREE, mask=False)
    assert Predictions.from_logits(whole, np.ma.masked_array([0, 2, 0, 1])).task == "multiclass"


def test_binary_rows_may_all_be_negative():
    for labels, positive in (([0, 0, 0], 1), ([0.0, 0.0, 0.0], 1), ([False] * 3, True), (["no"] * 3, "yes")):
        p = Predictions.binary([0.2, 0.1, 0.4], labels, positive=positive)
        assert p.labels.tolist() == [0, 0, 0]
    assert p.classes == ("no", "yes")


def test_binary_labels_may_be_ignored():
    p = Predictions.binary(np.linspace(0, 1, 8).reshape(2, 2, 2), [[[0, 1], [255, 1]]] * 2, ignore=255)
    assert (p.n, p.labels.tolist(), p.clusters.tolist()) == (6, [0, 1, 1] * 2, [0] * 3 + [1] * 3)
