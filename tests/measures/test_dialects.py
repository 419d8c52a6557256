"""Every dialect against the peer itself, and our plain measures against peers that define them alike.

Tolerances. Peers that work in float64 agree to 1e-12. Peers that add up float32 one by one carry about 1e-5 at
10,000 rows and 1e-6 at 1,000; one sample in a wrong bin would show as 1e-4 and 1e-3. probmetrics also clamps
every probability at 1e-7, which moves a confidence near 1 by up to k * 1e-7.
"""

import runpy
import warnings
from pathlib import Path
from typing import get_args

import numpy as np
import pytest

from calibrant.core.predictions import Predictions
from calibrant.measures import make
from calibrant.measures._dialects import DIALECTS, Dialect

EXAMPLE = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "dialect_table.py"))
PEERS = {spec: peer for spec, peer in EXAMPLE["PEERS"].items() if peer}
MODULES = {
    "torchmetrics": "torchmetrics",
    "torch_uncertainty": "torch_uncertainty.metrics.classification",
    "probmetrics": "probmetrics.metrics",
    "netcal": "netcal.metrics",
    "uncertainty_calibration": "calibration",
    "relplot": "relplot",
    "focal_calibration": "torch",  # no packages: the example has their rules in torch
    "onmixup": "torch",
}
FLOAT32 = {name for name, rule in DIALECTS.items() if rule.precision == "float32"}


def peer_module(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some peers warn while they are imported
        return pytest.importorskip(name)


def tolerance(dialect, p):
    if dialect not in FLOAT32:
        return 1e-12
    return (1e-5 if p.n > 2000 else 1e-6) + (p.k * 1e-7 if dialect == "probmetrics" else 0)


def agree(spec, p, bins):
    dialect = spec.partition("=")[2]
    peer_module(MODULES[dialect])
    ours = make(spec if spec.startswith("smooth") else f"{spec},bins={bins}")(p)
    assert ours == pytest.approx(PEERS[spec](p, bins), abs=tolerance(dialect, p))


def draw_rows(n, k, *, seed, sharpness=1.5):
    """Overconfident logits: labels drawn from the softmax before it was sharpened. Every class occurs."""
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, k))
    labels = (logits + rng.gumbel(size=(n, k))).argmax(axis=1)
    labels[:k] = np.arange(k)
    return Predictions.from_logits(sharpness * logits, labels)


def on_edges(bins, k=120):
    """Confidences exactly on edges as numpy, torch and plain division make them, one step beside, and at 1."""
    division, linspace = np.arange(1, bins + 1) / bins, np.linspace(0, 1, bins + 1)[1:]
    edges = np.concatenate([division, linspace, np.float64(division.astype(np.float32))])
    narrow = edges.astype(np.float32)
    beside = [np.nextafter(edges, 0), np.nextafter(edges, 2), np.nextafter(narrow, 0), np.nextafter(narrow, 2)]
    confidence = np.concatenate([edges, *beside, np.ones(25)]).astype(np.float64)
    confidence = np.repeat(np.minimum(confidence, 1.0), 3)  # ties
    n = len(confidence)
    confidence = np.random.default_rng(bins).permutation(confidence)
    top = np.arange(n) % k
    probs = np.repeat((1 - confidence)[:, None] / (k - 1), k, axis=1)  # (n, k)
    probs[np.arange(n), top] = confidence
    hit = np.arange(n) // k % 3 != 1
    return Predictions.from_probs(probs, np.where(hit, top, (top + 7) % k))


# -- every dialect is its peer --------------------------------------------------------------------


def test_every_name_has_a_rule_and_a_peer():
    assert set(get_args(Dialect)) == set(DIALECTS) == {spec.partition("=")[2] for spec in PEERS}
    assert all(rule.words for rule in DIALECTS.values())


@pytest.mark.parametrize("spec", PEERS)
@pytest.mark.parametrize("bins", [1, 7, 10, 15, 100])
def test_random_predictions(spec, bins):
    agree(spec, draw_rows(1000, 10, seed=bins), bins)


@pytest.mark.parametrize("spec", PEERS)
@pytest.mark.parametrize("bins", [5, 10, 15, 49, 100])
def test_confidences_on_bin_edges(spec, bins):
    agree(spec, on_edges(bins), bins)


@pytest.mark.parametrize("spec", PEERS)
@pytest.mark.parametrize("bins", [15, 100])
def test_real_predictions(spec, bins, real_file):
    agree(spec, Predictions.load(real_file), bins)


@pytest.mark.parametrize("spec", PEERS)
def test_real_predictions_rounded_to_two_decimals(spec, real_file):
    agree(spec, EXAMPLE["rounded"](Predictions.load(real_file), 2), 10)


def test_torch_edges():
    torch = peer_module("torch")
    from calibrant.measures._dialects import _torch_edges

    for bins in [*range(1, 130), 200, 500, 1000]:
        assert np.array_equal(_torch_edges(bins), torch.linspace(0, 1, bins + 1).numpy()), bins


# -- the words say what differs -------------------------------------------------------------------


def sure(*confidence, hits):
    """Three classes, the first predicted with these confidences."""
    c = np.array(confidence)
    return Predictions.from_probs(np.stack([c, (1 - c) / 2, (1 - c) / 2], axis=1), 1 - np.array(hits))


def ece(p, bins, dialect=None):
    return make(f"ece:bins={bins}" + (f",dialect={dialect}" if dialect else ""))(p)


LEFT_CLOSED = ["torchmetrics", "torch_uncertainty", "probmetrics", "netcal", "relplot", "onmixup"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_which_side_is_closed(dialect):
    p = sure(0.4, 0.5, 0.7, hits=[1, 1, 0])  # 0.5 is the edge: it joins 0.4, or it joins 0.7
    right, left = (0.6 + 0.5 + 0.7) / 3, (0.6 + (0.7 - 0.5)) / 3
    assert ece(p, 2) == pytest.approx(right)
    assert ece(p, 2, dialect) == pytest.approx(left if dialect in LEFT_CLOSED else right)
    assert ("left-closed" in DIALECTS[dialect].words) == (dialect in LEFT_CLOSED)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_confidence_of_exactly_one(dialect):
    p = sure(1.0, 0.9, 0.9, hits=[0, 1, 1])
    joined, apart, dropped = 0.8 / 3, 1.2 / 3, 0.2 / 3
    own_bin = {"torchmetrics": apart, "torch_uncertainty": apart, "relplot": apart, "onmixup": dropped}
    assert ece(p, 5) == pytest.approx(joined)
    assert ece(p, 5, dialect) == pytest.approx(own_bin.get(dialect, joined))


def test_float32_makes_a_confidence_one():
    p = sure(1 - 1e-9, 0.9, 0.9, hits=[0, 1, 1])
    assert ece(p, 5, "onmixup") == pytest.approx(0.2 / 3)  # a sure mistake vanishes from the error
    assert ece(p, 5, "relplot") == pytest.approx(ece(p, 5))


def test_edges_of_numpy_are_not_m_over_bins():
    p = sure(0.7, 0.75, 0.75, hits=[0, 1, 1])  # np.linspace puts the edge at 0.7000000000000001
    assert ece(p, 10) == pytest.approx(1.2 / 3)
    assert ece(p, 10, "netcal") == pytest.approx(1.2 / 3)
    assert ece(p, 10, "torchmetrics") == pytest.approx(0.2 / 3)


def test_definition_names_the_dialect_and_its_words():
    assert "as netcal computes it, 15 bins: left-closed" in make("ece:dialect=netcal").definition
    assert "weigh half" in make("smooth:dialect=relplot").definition


def test_relplot_loses_half_of_what_lies_at_one():
    """Half of the samples sure and right, half at 0.5 and wrong: the residual is 0.25 of all, 1/3 of what is left."""
    p = sure(*[1.0] * 50, *[0.5] * 50, hits=[1] * 50 + [0] * 50)
    assert make("smooth")(p) == pytest.approx(0.25, abs=1e-6)
    assert make("smooth:dialect=relplot")(p) == pytest.approx(1 / 3, abs=0.01)


def test_relplot_agrees_with_ours_away_from_the_ends():
    rng = np.random.default_rng(3)
    confidence = rng.uniform(0.45, 0.75, 4000)
    p = sure(*confidence, hits=(rng.random(4000) < confidence - 0.1).astype(int))
    assert make("smooth:dialect=relplot")(p) == pytest.approx(make("smooth")(p), abs=1e-3)


# -- torchmetrics guesses, we do not ----------------------------------------------------------------


def test_logits_inside_zero_and_one_are_taken_for_probabilities():
    torch, tm = peer_module("torch"), peer_module("torchmetrics.functional.classification")
    rng = np.random.default_rng(0)
    logits = rng.random((4000, 5))  # a calibrated, hesitant network
    labels = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    guessed = float(tm.multiclass_calibration_error(torch.tensor(logits), torch.tensor(labels), 5))
    assert guessed > 0.5
    p = Predictions.from_logits(logits, labels)
    assert make("ece")(p) < 0.02
    assert make("ece:dialect=torchmetrics")(p) < 0.02
    shifted = torch.tensor(logits) - 2.0  # the same softmax, and now it says so
    assert float(tm.multiclass_calibration_error(shifted, torch.tensor(labels), 5)) < 0.02


def test_one_rounding_over_one_turns_probabilities_into_logits():
    torch, tm = peer_module("torch"), peer_module("torchmetrics.functional.classification")
    p = draw_rows(1000, 10, seed=5)
    probs = p.probs.astype(np.float32)
    probs[0] = 0
    probs[0, p.predicted[0]] = np.nextafter(np.float32(1), np.float32(2))
    guessed = float(tm.multiclass_calibration_error(torch.tensor(probs), torch.tensor(p.labels), 10))
    same = Predictions.from_probs(probs, p.labels)
    assert make("ece")(same) == pytest.approx(make("ece")(p), abs=1e-3)
    assert guessed > 3 * make("ece")(same)


# -- plain measures against peers that define them alike ----------------------------------------------


@pytest.fixture
def real(real_file):
    return Predictions.load(real_file)


@pytest.fixture
def part(real):
    """2000 rows: some peers need n x n matrices or loop in Python."""
    return real.take(np.arange(2000))


def test_torchmetrics(real):
    """No real confidence lies on an edge, so sides do not matter: what is left is their float32 sums."""
    torch, tm = peer_module("torch"), peer_module("torchmetrics.functional.classification")
    peer = tm.multiclass_calibration_error(torch.tensor(real.values), torch.tensor(real.labels), real.k)
    assert make("ece")(real) == pytest.approx(float(peer), abs=1e-5)


def test_torchmetrics_root_mean_square_has_one_bin_more(real):
    """Confidences that float32 rounds to 1 have a bin of their own: L1 hardly sees it, L2 does."""
    torch, tm = peer_module("torch"), peer_module("torchmetrics.functional.classification")
    data = torch.tensor(real.values), torch.tensor(real.labels)
    peer = float(tm.multiclass_calibration_error(*data, real.k, norm="l2"))
    confidence = data[0].softmax(dim=1).max(dim=1).values.numpy()  # its float32 says 1 more often than ours
    index = np.where(confidence == 1, 15, np.floor(real.confidence * 15)).astype(int)
    count = np.bincount(index)
    residual = np.bincount(index, real.confidence - real.correct)
    assert peer == pytest.approx(np.sqrt((residual**2 / np.maximum(count, 1)).sum() / real.n), abs=2e-5)
    if len(count) == 15:
        assert make("rmsce")(real) == pytest.approx(peer, abs=2e-5)
    else:
        assert make("rmsce")(real) < peer


def test_netcal_averages_and_maxima(real):
    """netcal's ACE is our avgce, and its bins are left-closed."""
    netcal = peer_module("netcal.metrics")
    for spec, peer in {"ece": netcal.ECE, "avgce": netcal.ACE, "mce": netcal.MCE}.items():
        value = peer(bins=15).measure(real.probs, real.labels)
        assert make(f"{spec}:closed=left")(real) == pytest.approx(value, abs=1e-12)


def test_netcal_mmce(part):
    netcal = peer_module("netcal.metrics")
    assert make("mmce")(part) == pytest.approx(netcal.MMCE().measure(part.probs, part.labels), abs=1e-12)


@pytest.mark.parametrize("bins", [10, 15, 100])
def test_uncertainty_calibration_top_label(real, bins):
    uc = peer_module("calibration")

    def peer(norm, debias, scheme):
        return uc.lower_bound_scaling_ce(real.probs, real.labels, norm, debias, bins, scheme, mode="top-label")

    mass, width = uc.utils.get_equal_bins, uc.utils.get_equal_prob_bins
    for spec, value in {
        f"ece:bins={bins},scheme=mass,mass_rule=midpoint": peer(1, False, mass),
        f"rmsce:bins={bins}": peer(2, False, width),
        f"rmsce:bins={bins},scheme=mass,mass_rule=midpoint": peer(2, False, mass),
        f"debiased:bins={bins},mass_rule=midpoint": peer(2, True, mass),
        f"debiased:bins={bins},scheme=width": peer(2, True, width),
    }.items():
        assert make(spec)(real) == pytest.approx(value, abs=1e-12), spec


def test_uncertainty_calibration_marginal(part):
    uc = peer_module("calibration")
    part = Predictions.from_logits(part.values[:, :10], part.labels % 10)  # theirs loops over classes
    for scheme, options in {"get_equal_bins": "scheme=mass,mass_rule=midpoint", "get_equal_prob_bins": ""}.items():
        for norm in (1, 2):
            value = uc.lower_bound_scaling_ce(
                part.probs, part.labels, norm, False, 15, getattr(uc.utils, scheme), mode="marginal"
            )
            assert make(f"classwise:norm={norm},{options}")(part) == pytest.approx(value, abs=1e-12)


def test_uncertainty_calibration_ties():
    """Chunks that share a value: ours keeps an empty bin where theirs removes a double edge."""
    uc = peer_module("calibration")
    p = EXAMPLE["rounded"](draw_rows(500, 10, seed=2), 1)
    assert make("ece:scheme=mass,mass_rule=midpoint")(p) == pytest.approx(uc.get_ece_em(p.probs, p.labels), abs=1e-12)


def test_scikit_learn(real):
    """scikit-learn has no ECE; the mean gap of its calibration curve is our avgce."""
    metrics, curve = peer_module("sklearn.metrics"), peer_module("sklearn.calibration").calibration_curve
    accuracy, confidence = curve(real.correct, real.confidence, n_bins=15)
    for spec, value in {
        "brier": metrics.brier_score_loss(real.labels, real.probs, scale_by_half=False),
        "brier:form=half": metrics.brier_score_loss(real.labels, real.probs, scale_by_half=True),
        "nll:floor=0": metrics.log_loss(real.labels, real.probs),
        "auroc_correct": metrics.roc_auc_score(real.correct, real.confidence),
        "aupr_success": metrics.average_precision_score(real.correct, real.confidence),
        "aupr_error": metrics.average_precision_score(~real.correct, -real.confidence),
        "avgce": np.abs(accuracy - confidence).mean(),
    }.items():
        assert make(spec)(real) == pytest.approx(value, abs=1e-12), spec


def test_smooth_against_relplot(real):
    """Both smooth the same residual; relplot forgets half of what is near 1, where networks are mostly right."""
    relplot = peer_module("relplot")
    ours, theirs = make("smooth")(real), relplot.smECE(real.confidence, real.correct.astype(float))
    assert ours >= abs(make("gap")(real)) - 1e-9  # a kernel that keeps all mass cannot go below
    if (real.confidence > 0.99).mean() > 0.2:
        assert theirs > ours + 0.003
    else:
        assert theirs == pytest.approx(ours, abs=1e-3)
