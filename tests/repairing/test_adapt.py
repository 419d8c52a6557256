"""Another base rate: the number of docs/methods/deciding.md, EM against a direct optimum, exports, and bad input."""

import json

import numpy as np
import polars as pl
import pytest
from commands import run
from scipy.optimize import minimize_scalar

import calibrant as cal
from calibrant import InputError, Map, Predictions
from calibrant.core.statistics.base_rates import ScoreOrder, estimate_rates, mixture


def draw(n, rate, seed, *, moved=0.0, labels=True):
    """Scores of two normal classes, as a model that is too sure gives them."""
    rng = np.random.default_rng(seed)
    y = rng.random(n) < rate
    x = rng.normal(size=n) + (1.8 + moved) * y
    return Predictions.binary(1 / (1 + np.exp(-2 * x + 2)), y.astype(int) if labels else None)


def draw_classes(n, rates, seed, labels=True):
    rng = np.random.default_rng(seed)
    y = rng.choice(len(rates), n, p=rates)
    z = rng.normal(size=(n, len(rates))) + 2 * np.eye(len(rates))[y]
    return Predictions.from_logits(3 * z, y if labels else None)


IDENTITY = Map(calibrator="identity", k=2, steps=(), task="binary", score_type="probs")


def test_the_number_of_the_methods_page():
    assert cal.adapt(IDENTITY, from_rates=0.2, to_rates=0.5)([0.3]) == pytest.approx([0.63157895], abs=1e-8)


def test_undersampled_data_are_undone():
    """A balanced sample of a population with 2 % positives: the rate of the sample is `from`."""
    s = np.linspace(0.01, 0.99, 50)
    odds = s / (1 - s) * 0.02 / 0.98
    assert cal.adapt(IDENTITY, from_rates=[0.5, 0.5], to_rates=[0.98, 0.02])(s) == pytest.approx(odds / (1 + odds))


def test_adapting_there_and_back_changes_nothing():
    m = cal.fit(draw_classes(500, [0.2, 0.3, 0.5], 0), "vector")
    there, p = cal.adapt(m, from_rates=[0.2, 0.3, 0.5], to_rates=[0.6, 0.3, 0.1]), draw_classes(50, [1 / 3] * 3, 1)
    back = cal.adapt(there, from_rates=[0.6, 0.3, 0.1], to_rates=[0.2, 0.3, 0.5])
    assert back(p).probs == pytest.approx(m(p).probs)
    raised = m(p).probs * np.array([3, 1, 0.2])
    assert there(p).probs == pytest.approx(raised / raised.sum(axis=1, keepdims=True))


def test_em_finds_the_likeliest_base_rate():
    probs = np.random.default_rng(0).beta(2, 3, 400)
    both, old = np.column_stack([1 - probs, probs]), np.array([0.7, 0.3])

    def loss(rate):
        return -np.log(both @ (np.array([1 - rate, rate]) / old)).sum()

    direct = minimize_scalar(loss, bounds=(1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}).x
    assert estimate_rates(both, old, np.full(400, 1 / 400))[1] == pytest.approx(direct, abs=1e-6)


def test_the_gap_is_that_of_two_distribution_functions():
    rng = np.random.default_rng(1)
    a, b = np.round(rng.random(80), 1), np.round(rng.random(50) ** 2, 1)
    at = np.linspace(0, 1, 11)[:, None]
    direct = np.abs((a <= at + 1e-9).mean(axis=1) - (b <= at + 1e-9).mean(axis=1)).max()
    order = ScoreOrder(np.column_stack([1 - a, a]), np.column_stack([1 - b, b]))
    assert order.gap(np.full(80, 1 / 80), np.full(50, 1 / 50)) == pytest.approx(direct)
    labels = (rng.random(80) < 0.4).astype(int)
    mixed = mixture(labels, np.full(80, 1 / 80), np.array([0.9, 0.1]))
    assert (mixed[labels == 1].sum(), mixed.sum()) == pytest.approx((0.1, 1.0))


def test_the_base_rate_of_today_is_estimated():
    val, today = draw(2000, 0.2, 1), draw(3000, 0.4, 2, labels=False)
    m = cal.fit(val, "platt")
    rates = cal.base_rates(m, val, today, resamples=60)
    assert rates.new[1] == pytest.approx(0.4, abs=0.05)
    assert 0.04 < rates.high[1] - rates.low[1] < 0.12  # its coverage is measured by `make slow`
    assert not rates.refuted
    assert "If nothing but the base rate has changed, it went from" in rates.words
    assert "so would a model that says everything higher or lower: only labels can tell" in rates.words
    adapted = cal.adapt(m, fit_on=val, unlabelled=today, resamples=60)
    assert adapted.parameters["base_rates"]["to"] == list(rates.new)
    truth = draw(20_000, 0.4, 3)
    assert adapted(truth).score.mean() == pytest.approx(truth.labels.mean(), abs=0.03)
    assert cal.measure(adapted(truth), "nll", resamples=0).value < cal.measure(m(truth), "nll", resamples=0).value


def test_a_change_of_the_scores_within_a_class_is_refuted():
    val, today = draw(2000, 0.2, 1), draw(2000, 0.4, 2, moved=-1.2, labels=False)
    rates = cal.base_rates(cal.fit(val, "platt"), val, today, resamples=60)
    assert rates.refuted
    assert "not enough" in rates.words


def test_no_change_is_not_called_a_change():
    val, today = draw(1000, 0.3, 1), draw(800, 0.3, 2, labels=False)
    rates = cal.base_rates(cal.fit(val, "platt"), val, today, resamples=60)
    assert rates.low[1] <= rates.old[1] <= rates.high[1]
    assert rates.words.startswith("No change of the base rate can be told")


def test_verdicts_tell_no_base_rate():
    """A judge that hardly tells the classes apart says yes or no: the interval was 0 to 100 %, and the rate 15.7 %."""
    rng = np.random.default_rng(0)
    labels = (rng.random(300) < 0.45).astype(int)
    verdicts = (rng.random(300) < np.where(labels == 1, 0.72, 0.69)).astype(float)
    val, today = Predictions.binary(verdicts, labels), Predictions.binary((rng.random(5000) < 0.73).astype(float), None)
    rates = cal.base_rates(cal.fit(val, "platt"), val, today, resamples=60)
    assert rates.tells_nothing
    assert "do not tell the base rate" in rates.words
    assert "%" not in rates.words.replace("95 %", "")


def test_several_classes():
    old, new = [0.2, 0.3, 0.5], [0.5, 0.3, 0.2]
    val, today = draw_classes(1500, old, 1), draw_classes(1500, new, 2, labels=False)
    rates = cal.base_rates(cal.fit(val, "vector"), val, today, resamples=40)
    assert rates.new == pytest.approx(new, abs=0.05)
    assert not rates.refuted
    assert all(low < rate < high for low, rate, high in zip(rates.low, rates.new, rates.high, strict=True))


def test_weights_count_rows_and_clusters_are_not_tested():
    val, today = draw(600, 0.3, 1), draw(500, 0.5, 2, labels=False)
    m, w = cal.fit(val, "platt"), np.random.default_rng(0).integers(1, 4, 500)
    weighted = Predictions.binary(today.score, None, weights=w)
    repeated = Predictions.binary(np.repeat(today.score, w), None)
    one, other = (cal.base_rates(m, val, p, resamples=20) for p in (weighted, repeated))
    assert one.new == pytest.approx(other.new, abs=1e-8)
    assert one.gap == pytest.approx(other.gap)
    clustered = Predictions.binary(today.score, None, clusters=np.arange(500) // 5)
    rates = cal.base_rates(m, val, clustered, resamples=20)
    assert rates.p_value is None
    assert not rates.refuted
    assert "rows come in clusters" in rates.words


@pytest.mark.parametrize("calibrator", ["platt", "beta", "isotonic", "temperature"])
def test_an_adapted_map_is_a_map(tmp_path, calibrator):
    val, p = draw(400, 0.2, 1), draw(100, 0.4, 2)
    m = cal.adapt(cal.fit(val, calibrator), from_rates=0.2, to_rates=0.4)
    m.save(tmp_path / "m.json")
    again = cal.load_map(tmp_path / "m.json")
    assert again(p).score.tolist() == m(p).score.tolist()
    assert "class frequencies" in again.parameters["base_rates"]["assumed"]
    assert cal.export(again, "python", tmp_path / "m.py").rows > 50  # compared with the map before it is written


def test_an_adapted_map_runs_in_onnx_and_torch(tmp_path):
    pytest.importorskip("onnxruntime")
    torch = pytest.importorskip("torch")
    m = cal.adapt(cal.fit(draw(400, 0.2, 1), "beta"), from_rates=0.2, to_rates=0.4)
    assert cal.export(m, "onnx", tmp_path / "m.onnx").rows > 50
    z = torch.linspace(-3, 3, 7, dtype=torch.float64)
    expected = m.apply(Predictions.binary(z.numpy(), None, logits=True)).score
    assert torch.sigmoid(m.to_torch()(z)).detach().numpy() == pytest.approx(expected, abs=1e-6)


def test_maps_per_group_are_adapted_each():
    p = draw(600, 0.3, 0)
    grouped = Predictions.binary(p.score, p.labels, groups=np.arange(600) % 2)
    m = cal.fit(grouped, "platt", by_group=True)
    other = Predictions.binary([0.4, 0.4], None, groups=[0, 1])
    s = m(other).score
    odds = s / (1 - s) * (0.5 / 0.5) / (0.3 / 0.7)
    assert cal.adapt(m, from_rates=0.3, to_rates=0.5)(other).score == pytest.approx(odds / (1 + odds))


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ((0.0, 0.5), "strictly between 0 and 1, got 0"),
        ((0.2, 1.5), "got 1.5"),
        ((0.2, float("nan")), "strictly between"),
        (([0.2, 0.2], 0.5), "a sum of 0.4"),
        (([0.2, 0.3, 0.5], 0.5), "got 3 of them"),
        ((None, 0.5), "both base rates, or labelled and unlabelled rows"),
    ],
)
def test_bad_rates_are_refused(rates, words):
    with pytest.raises(InputError, match=words):
        cal.adapt(IDENTITY, from_rates=rates[0], to_rates=rates[1])


def test_bad_rows_are_refused():
    val, today = draw(200, 0.3, 0), draw(100, 0.5, 1, labels=False)
    m = cal.fit(val, "platt")
    with pytest.raises(InputError, match="none of 1"):
        cal.adapt(m, fit_on=Predictions.binary([0.1, 0.2], [0, 0]), unlabelled=today)
    with pytest.raises(InputError, match="expected predictions of the task binary"):
        cal.adapt(m, fit_on=val, unlabelled=draw_classes(50, [0.5, 0.5], 0))
    three = draw_classes(100, [0.3, 0.3, 0.4], 0)
    of_three = cal.fit(three, "temperature")
    with pytest.raises(InputError, match="predictions of 3 classes"):
        cal.adapt(of_three, fit_on=three, unlabelled=draw_classes(50, [0.5, 0.5], 0))
    of_confidence = cal.fit(Predictions.from_confidence([0.9, 0.6, 0.7], [1, 0, 1]), "platt")
    with pytest.raises(InputError, match="which have base rates"):
        cal.adapt(of_confidence, from_rates=0.2, to_rates=0.3)
    with pytest.raises(InputError, match="without labels"):
        cal.adapt(m, fit_on=today, unlabelled=today)


# -- the command ----------------------------------------------------------------------------------


def test_the_command(tmp_path):
    val, today = draw(800, 0.2, 1), draw(900, 0.4, 2, labels=False)
    pl.DataFrame({"score": val.score, "label": val.labels}).write_csv(tmp_path / "val.csv")
    pl.DataFrame({"score": today.score, "who": "x"}).write_csv(tmp_path / "today.csv")
    cal.fit(val, "platt").save(tmp_path / "m.json")
    known = run("adapt", "m.json", "--from", "0.02", "--to", "0.04", "--out", "a.json", cwd=tmp_path).stdout
    assert "only the class frequencies have changed" in " ".join(known.split())
    assert cal.load_map(tmp_path / "a.json").parameters["base_rates"]["to"] == pytest.approx([0.96, 0.04])
    args = ("adapt", "m.json", "--fit-on", "val.csv", "--unlabelled", "today.csv", "--resamples", "40")
    out = run(*args, "-o", "b.json", cwd=tmp_path).stdout
    assert "only labels can tell" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    facts = json.loads(run(*args, "--json", cwd=tmp_path).stdout)
    assert facts["to"] == cal.load_map(tmp_path / "b.json").parameters["base_rates"]["to"]
    assert facts["low"][1] < facts["to"][1] < facts["high"][1]
    run("apply", "b.json", "today.csv", "-o", "scored.csv", cwd=tmp_path)
    assert pl.read_csv(tmp_path / "scored.csv").columns == ["score", "who", "calibrated"]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ((), "both base rates"),
        (("--from", "0.2"), "both base rates"),
        (("--from", "x", "--to", "0.2"), "--from: expected numbers"),
        (("--from", "0.2", "--to", "2"), "strictly between 0 and 1"),
        (("--from", "0.2", "--to", "0.2,0.3,0.5"), "got 3 of them"),
    ],
)
def test_bad_options_end_with_2(tmp_path, args, words):
    IDENTITY.save(tmp_path / "m.json")
    error = run("adapt", "m.json", *args, "--out", "a.json", cwd=tmp_path, code=2).stderr
    assert words in error
    assert not (tmp_path / "a.json").exists()
