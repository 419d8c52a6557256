"""Neural Clamping: never worse than temperature alone, exact where it can be, and the network untouched."""

import json
import math

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.core.statistics.temperature import find_temperature
from calibrant.measures import make
from calibrant.repairing.fit import fit as fit_map
from calibrant.rescorers._clamp_fit import Box, Objective, data_driven
from calibrant.rescorers._clamp_passes import Passes
from calibrant.rescorers._focal_temperature import best_temperature, focal_mean
from calibrant.rescorers.clamping import ClampedNetwork, NeuralClamping, load_clamped

K = 4


class Small(nn.Module):
    """Images, vectors or sequences to logits, with everything that has a mode."""

    def __init__(self, shape, k=K, sharp=4.0):
        super().__init__()
        self.norm = nn.BatchNorm1d(math.prod(shape))
        self.body = nn.Sequential(nn.Linear(math.prod(shape), 12), nn.Tanh(), nn.Dropout(0.5), nn.Linear(12, k))
        self.sharp = sharp

    def forward(self, x):
        return self.sharp * self.body(self.norm(x.flatten(1)))


def case(shape=(6,), seed=0, n=60, dtype=torch.float32, sharp=4.0, batch=25):
    """A random network and labels that it half knows."""
    generator = torch.Generator().manual_seed(seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Small(shape, sharp=sharp).to(dtype)
    for buffer in (network.norm.running_mean, network.norm.running_var):
        buffer.copy_(0.5 + torch.rand(buffer.shape, generator=generator))
    x = torch.randn((n, *shape), generator=generator).to(dtype)
    network.eval()
    with torch.no_grad():
        noise = -torch.empty(n, K).exponential_(generator=generator).log()
        labels = (network(x + 0.5) / sharp * 3 + noise).argmax(1)
    labels[:2] = torch.tensor([0, 1])
    return network, [(x[i : i + batch], labels[i : i + batch]) for i in range(0, n, batch)]


def slow_objective(network, loader, delta, T, gamma, lam, norm="squared"):
    """Row by row, as on paper."""
    total, n = 0.0, 0
    for x, labels in loader:
        for row, y in zip(x.double(), labels, strict=True):
            with torch.no_grad():
                z = (network((row + delta)[None].to(x.dtype)) / T)[0].double()
            p = math.exp(z[y] - torch.logsumexp(z, 0))
            total, n = total - (1 - p) ** gamma * math.log(p), n + 1
    length = math.sqrt(float((delta.double() ** 2).sum()))
    return total / n + lam * (length**2 if norm == "squared" else length)


def logits_of(network, loader):
    with torch.no_grad():
        z = torch.cat([network(x) for x, _ in loader]).double().numpy()
    return z, torch.cat([y for _, y in loader]).numpy()


# -- the temperature ------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.sampled_from([0.0, 0.3, 1.0, 3.0, 7.5]), st.sampled_from([0.2, 1.0, 6.0]))
def test_the_temperature_is_the_best_of_a_dense_grid(seed, gamma, sharp):
    rng = np.random.default_rng(seed)
    z, labels = sharp * rng.normal(size=(30, 3)), rng.integers(0, 3, 30)
    T = best_temperature(z, labels, gamma)
    grid = np.exp(np.linspace(np.log(0.01), np.log(100), 300))
    assert focal_mean(z, labels, gamma, T) <= min(focal_mean(z, labels, gamma, t) for t in grid) + 1e-12
    assert 0.01 <= T <= 100


def test_cross_entropy_gives_temperature_scaling(p):
    z = np.asarray(p.logits, dtype=np.float64)
    assert best_temperature(z, p.labels, 0.0) == pytest.approx(find_temperature(p).T, rel=1e-6)


def test_rows_that_are_all_right_keep_a_finite_temperature():
    z = 1e4 * np.eye(3)
    for gamma in (0.0, 1.0):
        assert best_temperature(z, np.arange(3), gamma) == 1.0
    assert 0.01 <= best_temperature(np.eye(3), np.arange(3), 0.0) < 0.03  # where the loss rounds to 0


def test_temperature_alone():
    network, loader = case()
    clamped = NeuralClamping(gamma=0.0, what="T").fit(network, loader)
    p = Predictions.from_logits(*logits_of(network, loader))
    assert pytest.approx(fit_map(p, "temperature").parameters["T"], rel=1e-6) == clamped.report.T
    assert (clamped.report.passes, clamped.report.delta_norm, clamped.report.helped) == (1, 0.0, None)
    assert clamped.report.diagnosis == "Temperature alone, as asked."


# -- the joint fit --------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([0.1, 4.0, 40.0]))
def test_never_worse_than_temperature_alone(seed, gamma, sharp):
    network, loader = case(seed=seed, n=20, sharp=sharp)
    for options in ({"init": "random", "init_scale": 1.0}, {"init": "zero"}, {"lam": 0.0}):
        report = NeuralClamping(gamma=gamma, passes=6, **options).fit(network, loader).report
        assert report.objective <= report.objective_temperature + 1e-12
        assert report.objective_temperature <= report.objective_before + 1e-12
        assert report.objective < report.objective_temperature or not report.delta_norm


@pytest.mark.parametrize("norm", ["squared", "plain"])
@pytest.mark.parametrize("gamma", [0.0, 1.0])
def test_the_objective_is_what_the_paper_says(gamma, norm):
    network, loader = case(dtype=torch.float64)
    clamped = NeuralClamping(gamma=gamma, norm=norm, lam=0.01).fit(network, loader)
    r = clamped.report
    zero = torch.zeros_like(clamped.delta)
    assert r.objective == pytest.approx(slow_objective(network, loader, clamped.delta, r.T, gamma, r.lam, norm))
    assert r.objective_before == pytest.approx(slow_objective(network, loader, zero, 1.0, gamma, 0))
    assert r.objective_temperature == pytest.approx(slow_objective(network, loader, zero, r.T_alone, gamma, 0))
    assert r.objective < r.objective_temperature
    assert "lowers the objective by" in r.diagnosis


def test_the_end_is_a_minimum_of_both():
    network, loader = case(dtype=torch.float64, n=120, sharp=2.0)
    r = (clamped := NeuralClamping(passes=300, tolerance=1e-12, lam=0.1).fit(network, loader)).report
    passes = Passes(network, loader)
    point = Objective(1.0, 0.1, "squared", True).at(passes.look(clamped.delta), r.T)
    assert float(Objective(1.0, 0.1, "squared", True).slope(passes, point).norm()) < 1e-4
    for by in (0.99, 1.01):
        assert slow_objective(network, loader, clamped.delta, r.T * by, 1.0, 0.1) > r.objective


def test_delta_alone():
    network, loader = case()
    r = NeuralClamping(what="delta", lam=0.001).fit(network, loader).report
    assert r.T == 1.0
    assert r.objective < r.objective_before


def test_nothing_to_gain_is_said():
    network, loader = case()
    r = NeuralClamping(lam=1e9).fit(network, loader).report
    assert r.delta_norm == 0.0
    assert "brings nothing: this is temperature alone" in r.diagnosis
    assert r.T_alone == r.T


# -- on rows that no fit has seen -----------------------------------------------------------------


def test_helped_is_about_held_out_rows_and_plain_temperature_scaling():
    """Rows moved by a constant: undoing it helps on others too. Rows of noise: what is learnt by heart does harm."""
    generator = torch.Generator().manual_seed(3)
    network = torch.nn.Linear(8, 3).double()
    with torch.no_grad():
        network.weight.copy_(4 * torch.randn(3, 8, generator=generator))
    x = torch.randn(900, 8, generator=generator, dtype=torch.float64)
    y = torch.distributions.Categorical(logits=network(x).detach() / 2).sample()
    moved = [(x[rows] + 1.5, y[rows]) for rows in (slice(0, 400), slice(400, 900))]
    clamped = NeuralClamping(gamma=0.0, lam=1e-4).fit(network, moved[:1], held_out=moved[1:])
    r = clamped.report
    assert r.helped
    assert r.judged.high < 0
    assert "it helped" in r.diagnosis
    z, labels = logits_of(network, moved[1:])
    T = best_temperature(*logits_of(network, moved[:1]), 0.0)
    with torch.no_grad():
        ours = clamped(moved[1][0]).numpy()
    change = _losses(ours, labels) - _losses(z / T, labels)
    assert r.judged.nll - r.judged.nll_temperature == pytest.approx(change.mean())
    assert (r.judged.low + r.judged.high) / 2 == pytest.approx(change.mean())
    assert (r.judged.high - r.judged.low) / 2 == pytest.approx(1.959964 * change.std(ddof=1) / np.sqrt(len(change)))
    without = NeuralClamping(gamma=0.0, lam=1e-4).fit(network, moved[:1]).report
    assert (r.judged.n, r.passes) == (500, without.passes)  # passes are those over the calibration rows

    few = [(x[:20], y[:20]), (x[400:], y[400:])]
    harm = NeuralClamping(gamma=0.0, lam=1e-6).fit(network, few[:1], held_out=few[1:]).report
    assert harm.objective < harm.objective_temperature
    assert not harm.helped
    assert "it did harm" in harm.diagnosis
    assert NeuralClamping().fit(network, few[:1]).report.helped is None


def _losses(logits, labels):
    shifted = logits - logits.max(1, keepdims=True)
    return np.log(np.exp(shifted).sum(1)) - shifted[np.arange(len(labels)), labels]


def test_images_are_looked_at_in_pieces_with_the_same_result():
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 3)).double()
    x, y = torch.randn(250, 3, 8, 8, dtype=torch.float64), torch.randint(3, (250,))
    passes = Passes(network, [(x, y)])
    assert (passes.count, passes.zero.logits.shape) == (1, (250, 3))
    np.testing.assert_allclose(passes.zero.logits, network(x).detach().numpy(), rtol=1e-10)
    delta = 0.1 * torch.randn(3, 8, 8, dtype=torch.float64)
    np.testing.assert_allclose(passes.look(delta).logits, network(x + delta).detach().numpy(), rtol=1e-10)
    moved = delta.clone().requires_grad_()
    (expected,) = torch.autograd.grad(network(x + moved).logsumexp(1).mean(), moved)
    torch.testing.assert_close(passes.gradient(delta, lambda z, _: z.logsumexp(1)), expected)


def test_parts_of_a_joint_fit():
    network, loader = case()
    clamped = NeuralClamping(gamma=0.0).fit(network, loader)
    x = loader[0][0]
    torch.testing.assert_close(clamped.only("delta")(x), network(x + clamped.delta))
    torch.testing.assert_close(clamped.only("T")(x), network(x) / clamped.T)
    for part in ("delta", "T"):
        kept = NeuralClamping(gamma=0.0, keep=part).fit(network, loader)
        torch.testing.assert_close(kept(x), clamped.only(part)(x))
        assert (kept.report.T, kept.report.delta_norm) == (clamped.report.T, clamped.report.delta_norm)
    with pytest.raises(InputError, match="expected delta or T"):
        clamped.only("both")


@pytest.mark.parametrize("shape", [(5,), (1, 4, 4), (3, 5), (2, 2, 2, 2)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inputs_of_any_shape(shape, dtype):
    network, loader = case(shape, dtype=dtype)
    clamped = NeuralClamping(passes=8).fit(network, loader)
    assert clamped.delta.shape == shape
    assert clamped.delta.dtype == clamped.T.dtype == dtype
    p = clamped.predict(loader)
    assert focal_mean(np.asarray(p.logits, dtype=np.float64), p.labels, 1.0) == pytest.approx(
        clamped.report.objective - clamped.report.lam * clamped.report.delta_norm**2, rel=1e-5
    )
    assert make("ece")(p) == pytest.approx(clamped.report.ece, abs=2 / len(p))


def test_the_same_seed_gives_the_same_fit_and_batches_do_not_matter():
    network, loader = case(dtype=torch.float64)
    one, two, other = (NeuralClamping(seed=s).fit(network, loader) for s in (3, 3, 4))
    torch.testing.assert_close(one.delta, two.delta, rtol=0, atol=0)
    assert not torch.equal(one.delta, other.delta)
    whole = [(torch.cat([x for x, _ in loader]), torch.cat([y for _, y in loader]))]
    torch.testing.assert_close(NeuralClamping(seed=3, passes=9).fit(network, whole).delta, nine(network, loader).delta)


def nine(network, loader):
    return NeuralClamping(seed=3, passes=9).fit(network, loader)


def test_passes_are_counted_and_kept():
    network, loader = case()
    seen, times = [], 0

    class Counting:
        def __iter__(self):
            nonlocal times
            times += 1
            return iter(loader)

    for options in ({}, {"passes": 7}, {"init": "zero"}, {"init": "logit_grad"}, {"gamma_pool": (0.0, 0.5, 1.0)}):
        seen.clear()
        times, recipe = 0, NeuralClamping(**options)
        r = recipe.fit(network, Counting(), on_pass=seen.append).report
        assert r.passes == times == len(seen) == seen[-1] <= recipe.most_passes


# -- starts, ranges and weights -------------------------------------------------------------------


def hand_made():
    """Two inputs; entropy rises when the first falls (less sure) and when the second rises."""
    network = nn.Linear(3, 2, bias=False).double()
    network.load_state_dict({"weight": torch.tensor([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0]], dtype=torch.float64)})
    x = torch.tensor([[0.9, 0.2, 0.5], [0.7, 0.1, 0.4], [0.8, 0.3, 0.5]], dtype=torch.float64)
    return network, [(x, torch.tensor([0, 0, 1]))]


def test_theorem_3_2_by_hand():
    network, loader = hand_made()
    passes = Passes(network, loader)
    box = Box(-passes.low, 1 - passes.high)  # feasible: 0 to 1
    # Class 0 leads in every row, so entropy rises when x0 falls, by at most its smallest value 0.7, and when x1 rises,
    # by at most 1 - its largest value 0.3; x2 does nothing.
    point = data_driven(passes, box, 0.001)
    torch.testing.assert_close(point, torch.tensor([-0.7, 0.7, 0.0], dtype=torch.float64))
    full = Box(torch.zeros(3).double(), torch.zeros(3).double())  # data that fill the range leave no room
    for walls in (full, None):
        small = torch.tensor([-0.001, 0.001, 0.0], dtype=torch.float64)
        torch.testing.assert_close(data_driven(passes, walls, 0.001), small)


def test_the_data_driven_start_raises_the_entropy():
    network, loader = case(dtype=torch.float64, seed=5)
    passes = Passes(network, loader)
    step = 1e-4 * data_driven(passes, None, 1.0)
    T = best_temperature(passes.zero.logits, passes.zero.labels, 0.0)
    before, after = (
        make("entropy")(Predictions._from_valid(look.logits / T, look.labels, "logits"))
        for look in (passes.zero, passes.look(step))
    )
    assert after > before


def test_inputs_stay_inside_when_asked():
    network, loader = case((2, 3), dtype=torch.float64)
    x = torch.cat([x for x, _ in loader])
    low = tuple(float(x[:, channel].min()) - 0.02 for channel in (0, 1))
    high = tuple(float(x[:, channel].max()) + 0.03 for channel in (0, 1))
    asked = {"lam": 0.0, "low": low, "high": high}
    free = NeuralClamping(**asked).fit(network, loader)
    assert any(bool((x + free.delta)[:, c].min() < low[c] or (x + free.delta)[:, c].max() > high[c]) for c in (0, 1))
    for by in ("lbfgs", "sgd", "efficient"):
        rates = {"epochs": 5, "rate": 1.0} if by == "sgd" else {}
        kept = NeuralClamping(keep_inside=True, init="data", by=by, **asked, **rates).fit(network, loader)
        moved = x + kept.delta
        for channel in (0, 1):
            assert moved[:, channel].min() >= low[channel] - 1e-9
            assert moved[:, channel].max() <= high[channel] + 1e-9
    inside = NeuralClamping(keep_inside=True, **asked).fit(network, loader).report
    assert inside.objective < inside.objective_temperature


def test_weights_of_the_penalty():
    network, loader = case()
    z, labels = logits_of(network, loader)
    loss = focal_mean(z, labels, 1.0)
    assert NeuralClamping().fit(network, loader).report.lam == pytest.approx(0.1 * loss)
    assert NeuralClamping(lam=0.5).fit(network, loader).report.lam == 0.5
    start = 0.001 * torch.randn((6,), generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    term = NeuralClamping(lambda_rule="term").fit(network, loader).report.lam
    assert term * float(start.square().sum()) == pytest.approx(0.1 * loss)
    r = NeuralClamping(lambda_rule="ece").fit(network, loader).report
    assert [row.lam / loss for row in r.rows] == pytest.approx([0.01, 0.1, 1.0])
    assert r.ece == min(row.ece for row in r.rows)


def test_the_pool_takes_the_smallest_calibration_ece():
    network, loader = case(n=100)
    r = NeuralClamping(gamma_pool="paper", passes=8).fit(network, loader).report
    assert [row.gamma for row in r.rows] == pytest.approx(np.arange(21) / 20)
    best = min(r.rows, key=lambda row: row.ece)
    assert (r.gamma, r.ece, r.T) == (best.gamma, best.ece, best.T)
    for row in r.rows:
        assert row.objective <= row.objective_temperature
    assert NeuralClamping(gamma_pool="paper", what="T").fit(network, loader).report.passes == 1


# -- the other ways -------------------------------------------------------------------------------


@pytest.mark.parametrize("walls", [{}, {"low": -5.0, "high": 5.0}], ids=["no range", "a range"])
@pytest.mark.parametrize("what", ["both", "delta"])
def test_the_efficient_variant_fixes_delta_and_fits_t(what, walls):
    """Three passes: T by cross-entropy and the gradient of the entropy, then T again at x + delta. Delta stays."""
    network, loader = case(dtype=torch.float64)
    recipe = NeuralClamping(by="efficient", what=what, **walls)
    fitted = recipe.fit(network, loader)
    passes = Passes(network, loader)
    box = Box(-5.0 - passes.low, 5.0 - passes.high) if walls else None
    delta = data_driven(passes, box, recipe.init_scale)
    torch.testing.assert_close(fitted.delta, delta)
    z, labels = logits_of(lambda x: network(x + delta), loader)
    T = best_temperature(z, labels, 1.0) if what == "both" else 1.0
    assert pytest.approx(T) == fitted.report.T
    assert fitted.report.objective == pytest.approx(focal_mean(z, labels, 1.0, T))  # no penalty on what is fixed
    assert (fitted.report.passes, recipe.most_passes, fitted.report.lam) == (3, 3, 0.0)


def test_an_efficient_step_that_does_harm_is_kept_and_told():
    """Before, the temperature alone came back under the name of the efficient variant."""
    network, loader = case(dtype=torch.float64, seed=1)
    r = NeuralClamping(by="efficient", low=-20.0, high=20.0).fit(network, loader).report
    assert r.delta_norm > 1
    assert r.objective > r.objective_temperature
    assert "Temperature alone has a lower objective" in r.diagnosis


def test_sgd_is_the_recipe_of_the_paper():
    network, loader = case(dtype=torch.float64)
    options = {"epochs": 7, "rate": 0.05, "momentum": 0.8, "batch": 16, "seed": 5}
    clamped = NeuralClamping(by="sgd", gamma=2.0, lam=0.03, **options).fit(network, loader)
    inputs, labels = (torch.cat([batch[i] for batch in loader]) for i in (0, 1))
    generator = torch.Generator().manual_seed(5)
    delta = (0.001 * torch.randn(6, generator=generator, dtype=torch.float64)).requires_grad_()
    T = torch.ones((), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.SGD([delta, T], lr=0.05, momentum=0.8)
    for epoch in range(7):
        order = torch.from_numpy(np.random.default_rng([5, epoch]).permutation(60))
        for rows in order.split(16):  # 16, 16, 16 and 12 rows, shuffled anew in every epoch
            optimizer.zero_grad()
            p = (network(inputs[rows] + delta) / T).softmax(1)[torch.arange(len(rows)), labels[rows]]
            (-((1 - p) ** 2) * p.log()).mean().add(0.03 * (delta**2).sum()).backward()
            optimizer.step()
    torch.testing.assert_close(clamped.delta, delta.detach())
    torch.testing.assert_close(clamped.T, T.detach())
    assert clamped.report.passes == 9  # one before, one after
    again = NeuralClamping(by="sgd", gamma=2.0, lam=0.03, **options).fit(network, loader[::-1])
    assert not torch.allclose(again.delta, clamped.delta)  # other rows have these numbers
    other = NeuralClamping(by="sgd", gamma=2.0, lam=0.03, **options | {"seed": 6}).fit(network, loader)
    assert not torch.allclose(other.delta, clamped.delta)


def test_sgd_that_stops_short_is_told():
    network, loader = case()
    r = NeuralClamping(by="sgd", epochs=1, rate=1e-6).fit(network, loader).report
    assert r.objective > r.objective_temperature
    assert "Temperature alone has a lower objective" in r.diagnosis
    only = NeuralClamping(by="sgd", epochs=3, rate=0.1, what="T").fit(network, loader)
    assert not only.delta.any()
    assert only.report.T != 1
    assert NeuralClamping(by="sgd", epochs=3, rate=0.1, what="delta").fit(network, loader).report.T == 1


# -- the weight by rows left out ------------------------------------------------------------------


def by_heart(n, d, *, shift=0.0, seed=0):
    """A network and labels drawn from it at x + shift; without a shift there is only noise to learn."""
    generator = torch.Generator().manual_seed(seed)
    network = nn.Sequential(nn.Linear(d, 20, bias=False), nn.Tanh(), nn.Linear(20, 3, bias=False)).double()
    with torch.no_grad():
        for layer in (network[0], network[2]):
            layer.weight.copy_(torch.randn(layer.weight.shape, generator=generator) / layer.in_features**0.5)
        network[2].weight *= 4
        x = torch.randn(n, d, generator=generator, dtype=torch.float64)
        noise = -torch.empty(n, 3, dtype=torch.float64).exponential_(generator=generator).log()
        return network, x, (network(x + shift) + noise).argmax(1)


def test_losses_of_rows_left_out_are_those_of_a_slow_loop():
    network, x, labels = by_heart(60, 40)
    loader = [(x, labels)]
    r = NeuralClamping(lambda_rule="cv", folds=3, passes=6, seed=4, batch=7).fit(network, loader).report
    loss = focal_mean(*logits_of(network, loader), 1.0)
    assert [one.lam / loss for one in r.held_out[1:]] == pytest.approx([0.01, 0.1, 1, 10, 100])
    alone = best_temperature(*logits_of(network, loader), 1.0)
    assert (r.held_out[0].lam, r.held_out[0].T) == (None, pytest.approx(alone))
    # The first weight, fold by fold, with nothing shared.
    order = np.random.default_rng(4).permutation(60)
    z, y = [], []
    for left_out in np.array_split(order, 3):
        rest = np.setdiff1d(order, left_out)
        clamped = NeuralClamping(lam=0.01 * loss, passes=6, seed=4).fit(network, [(x[rest], labels[rest])])
        output = logits_of(
            lambda rows, clamped=clamped: network(rows + clamped.delta), [(x[left_out], labels[left_out])]
        )
        z, y = [*z, output[0]], [*y, output[1]]
    z, y = np.concatenate(z), np.concatenate(y)
    T = best_temperature(z, y, 1.0)
    assert pytest.approx(T, rel=1e-6) == r.held_out[1].T
    assert r.held_out[1].loss == pytest.approx(focal_mean(z, y, 1.0, T), rel=1e-6)


def test_noise_is_not_learnt():
    network, x, labels = by_heart(40, 30, seed=3)
    rules = {rule: NeuralClamping(lambda_rule=rule, gamma=0.0, folds=4, passes=15) for rule in ("loss", "cv")}
    fitted = {rule: options.fit(network, [(x, labels)]) for rule, options in rules.items()}
    r = fitted["cv"].report
    assert min(r.held_out, key=lambda one: one.loss).lam is None
    assert (r.lam, r.delta_norm, r.T) == (None, 0.0, pytest.approx(r.T_alone))
    assert "left out of its fit no perturbation beats temperature alone. This is temperature alone." in r.diagnosis
    _, fresh, truth = by_heart(5000, 30, seed=3)
    nll = {rule: focal_mean(*logits_of(clamped, [(fresh, truth)]), 0.0) for rule, clamped in fitted.items()}
    assert fitted["loss"].report.objective < r.objective  # it looks better
    assert nll["loss"] > nll["cv"]  # and is not
    assert NeuralClamping(lambda_rule="cv", what="T").fit(network, [(x, labels)]).report.held_out == ()


def test_a_perturbation_that_serves_all_rows_is_kept():
    network, x, labels = by_heart(200, 5, shift=0.7)
    r = NeuralClamping(lambda_rule="cv", gamma=0.0, folds=3, passes=15).fit(network, [(x, labels)]).report
    best = min(r.held_out, key=lambda one: one.loss)
    assert r.lam == best.lam is not None
    assert best.loss < r.held_out[0].loss - 0.02
    assert r.delta_norm > 0.5


@pytest.mark.parametrize("options", [{}, {"by": "sgd", "epochs": 3}, {"gamma_pool": (0.0, 1.0)}], ids=str)
def test_passes_of_the_folds_are_counted(options):
    network, loader = case()
    seen, recipe = [], NeuralClamping(lambda_rule="cv", folds=2, passes=5, **options)
    r = recipe.fit(network, loader, on_pass=seen.append).report
    assert seen == list(range(1, r.passes + 1))
    assert r.passes <= recipe.most_passes


def test_too_few_rows_for_folds():
    network, loader = case(n=8)
    with pytest.raises(InputError, match="expected at least 10 rows, got 8"):
        NeuralClamping(lambda_rule="cv").fit(network, loader)


# -- frozen ---------------------------------------------------------------------------------------


def states(network):
    modes = [module.training for module in network.modules()]
    wanted = [parameter.requires_grad for parameter in network.parameters()]
    return {name: t.clone() for name, t in network.state_dict().items()}, modes, wanted


def check_same(network, before):
    tensors, modes, wanted = states(network)
    assert all(torch.equal(t, before[0][name]) for name, t in tensors.items())
    assert (modes, wanted) == before[1:]
    assert all(parameter.grad is None for parameter in network.parameters())


@pytest.mark.parametrize("by", ["lbfgs", "sgd", "efficient"])
def test_the_network_is_frozen_bit_for_bit(by):
    network, loader = case()
    network.train()
    network.norm.eval()
    network.body[0].weight.requires_grad_(False)
    before = states(network)
    clamped = NeuralClamping(by=by, epochs=3).fit(network, loader)
    check_same(network, before)
    p = clamped.predict(loader)
    check_same(network, before)
    clamped.eval()
    network.eval()
    np.testing.assert_allclose(p.logits[:25], clamped(loader[0][0]).detach(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
@pytest.mark.parametrize("at", [1, 2, 4])
def test_the_network_is_frozen_when_it_breaks_off(error, at):
    network, loader = case()
    network.train()
    before = states(network)

    def stop(count):
        if count == at:
            raise error

    with pytest.raises(error):
        NeuralClamping().fit(network, loader, on_pass=stop)
    check_same(network, before)


def test_random_numbers_of_others_are_left_alone():
    network, loader = case()
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    NeuralClamping().fit(network, loader)
    assert torch.equal(torch.rand(3), expected)


def test_a_half_network():
    network, loader = case(dtype=torch.bfloat16)
    clamped = NeuralClamping(passes=8).fit(network, loader)
    assert (clamped.delta.dtype, clamped.T.dtype) == (torch.bfloat16, torch.float32)
    assert clamped.report.objective <= clamped.report.objective_temperature
    assert clamped.predict(loader).logits.dtype == np.float32


# -- files ----------------------------------------------------------------------------------------


def test_save_and_load(tmp_path):
    network, loader = case((1, 3, 3))
    clamped = NeuralClamping(gamma_pool=(0.0, 1.0), low=-9, high=9.0, passes=8).fit(network, loader)
    clamped.save(tmp_path / "deep")
    assert sorted(file.name for file in (tmp_path / "deep").iterdir()) == ["clamp.json", "clamp.safetensors"]
    again = load_clamped(tmp_path / "deep", network)
    assert torch.equal(again.delta, clamped.delta)
    assert torch.equal(again.T, clamped.T)
    assert again.report == clamped.report
    facts = json.loads((tmp_path / "deep" / "clamp.json").read_text())
    assert facts["input_shape"] == [1, 3, 3]
    assert facts["report"]["options"]["gamma_pool"] == [0.0, 1.0]
    clamped.only("T").save(tmp_path / "T")
    assert load_clamped(tmp_path / "T", network).report == clamped.report
    ClampedNetwork(network, clamped.delta, 2.0).save(tmp_path / "plain")
    assert load_clamped(tmp_path / "plain", network).report is None
    assert load_clamped(tmp_path / "T", network.double()).delta.dtype == torch.float64


def test_files_that_are_not_whole(tmp_path):
    network, _ = case()
    with pytest.raises(InputError, match=r"expected a clamp\.json"):
        load_clamped(tmp_path, network)
    ClampedNetwork(network, torch.zeros(6), 2.0).save(tmp_path)
    (tmp_path / "clamp.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="expected delta and T"):
        load_clamped(tmp_path, network)
    (tmp_path / "clamp.safetensors").unlink()
    with pytest.raises(InputError, match="no such file"):
        load_clamped(tmp_path, network)
    ClampedNetwork(network, torch.zeros(6), 2.0).save(tmp_path)
    ClampedNetwork(network, torch.zeros(5), 3.0).save(tmp_path / "other")
    (tmp_path / "other" / "clamp.json").rename(tmp_path / "clamp.json")
    with pytest.raises(InputError, match="expected two files of one fit"):
        load_clamped(tmp_path, network)
    for text, says in (("{", "in JSON"), ("{}", "is missing"), ('{"calibrant_clamp": 2}', "expected version 1")):
        (tmp_path / "clamp.json").write_text(text)
        with pytest.raises(InputError, match=says):
            load_clamped(tmp_path, network)


def test_inputs_of_another_shape_are_refused_by_the_clamped_network():
    clamped = ClampedNetwork(nn.Flatten(), torch.zeros(3, 2, 2), 1.0)
    with pytest.raises(InputError, match=r"expected inputs of the shape \(3, 2, 2\), got \(1, 2, 2\)"):
        clamped(torch.zeros(5, 1, 2, 2))
    with pytest.raises(InputError, match="as the perturbation has"):
        clamped.predict([(torch.zeros(5, 1, 2, 2), torch.zeros(5))])
    with pytest.raises(InputError, match="expected batches, got none"):
        clamped.predict([])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_onnx(tmp_path, dtype):
    runtime = pytest.importorskip("onnxruntime")
    network, loader = case((1, 3, 3), dtype=dtype)
    network.train()
    before = states(network)
    clamped = NeuralClamping(passes=8).fit(network, loader)
    done = clamped.export_onnx(tmp_path / "net.onnx")
    check_same(network, before)
    assert done.largest_difference < 1e-5
    session = runtime.InferenceSession(tmp_path / "net.onnx", providers=["CPUExecutionProvider"])
    for x, labels in loader:  # of 25 and of 10 rows
        logits = session.run(None, {"inputs": x.numpy()})[0]
        np.testing.assert_allclose(logits, clamped.predict([(x, labels)]).logits, rtol=1e-4, atol=1e-5)


def test_onnx_that_cannot_be_made_leaves_no_file(tmp_path, monkeypatch):
    class Branching(nn.Module):
        def forward(self, x):
            return torch.from_numpy(np.asarray(x.detach().numpy() > 0, dtype=np.float32))

    with pytest.raises(InputError, match="expected a network that ONNX can hold"):
        ClampedNetwork(Branching(), torch.zeros(2), 1.0).export_onnx(tmp_path / "net.onnx")
    monkeypatch.setattr("calibrant.rescorers._clamped_onnx._run", lambda data, x: np.zeros((len(x), 2)))
    with pytest.raises(InputError, match="within 1e-05, got a difference of"):
        ClampedNetwork(nn.Linear(2, 2), torch.zeros(2), 1.0).export_onnx(tmp_path / "net.onnx")
    monkeypatch.setattr("calibrant.rescorers._clamped_onnx.require_module", refuse)
    with pytest.raises(InputError, match="expected the package onnx"):
        ClampedNetwork(nn.Linear(2, 2), torch.zeros(2), 1.0).export_onnx(tmp_path / "net.onnx")
    assert not list(tmp_path.iterdir())


def refuse(module, install):
    raise InputError("export", expected=f"the package {module}", got="it is not installed", fix=install)


# -- bad input ------------------------------------------------------------------------------------

X, Y = torch.zeros(4, 3), torch.tensor([0, 1, 1, 0])
BAD = X.clone().index_fill_(0, torch.tensor([1]), torch.nan)


@pytest.mark.parametrize(
    ("network", "loader", "says"),
    [
        (nn.Linear(3, 2), [], "expected calibration batches, got none"),
        (nn.Linear(3, 2), iter([(X, Y)]), "not an iterator"),
        (nn.Linear(3, 2), [(X, Y), (torch.zeros(2, 4), Y[:2])], "expected inputs of the shape (3,)"),
        (nn.Linear(3, 2), [(X, torch.ones(4))], "expected at least two classes, got only class 1 in 4 rows"),
        (nn.Linear(3, 2), [(X, Y + 1)], "expected integers in 0..1, got 1 to 2"),
        (nn.Linear(3, 2), [(X, Y - 1)], "got -1 to 0"),
        (nn.Linear(3, 2), [(X, Y[:3])], "expected one class number a row"),
        (nn.Linear(3, 2), [(BAD, Y)], "inputs: expected finite numbers"),
        (nn.Linear(3, 2), [(X[:0], Y[:0])], "an empty batch"),
        (nn.Embedding(5, 2), [(X.long(), Y)], "embed tokens first"),
        (nn.Unflatten(1, (3, 1)), [(X, Y)], "expected logits (rows, classes), got shape (4, 3, 1)"),
        (nn.Linear(3, 1), [(X, Y)], "got shape (4, 1)"),
        (nn.LSTM(3, 2), [(X, Y)], "expected logits (rows, classes), got tuple"),
        (nn.Sequential(nn.Identity(), nn.LogSigmoid(), nn.Threshold(9, torch.inf)), [(X, Y)], "expected finite logits"),
    ],
)
def test_bad_data(network, loader, says):
    with pytest.raises(InputError) as error:
        NeuralClamping().fit(network, loader)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"gamma": -0.5}, "gamma: expected 0 or more, got -0.5"),
        ({"gamma": float("nan")}, "expected a finite number"),
        ({"gamma_pool": (0.0, -1.0)}, "got -1"),
        ({"gamma_pool": ()}, "got none"),
        ({"gamma_pool": "papers"}, "'paper' or values"),
        ({"init": "randon"}, "did you mean 'random'"),
        ({"by": "adam"}, "one of efficient, lbfgs, sgd"),
        ({"what": "t"}, "one of T, both, delta"),
        ({"lambda_rule": "term", "init": "zero"}, "expected a start other than 0"),
        ({"lam": -1.0}, "lam: expected 0 or more"),
        ({"init_scale": 0.0}, "init_scale: expected above 0"),
        ({"passes": 3}, "at least 4"),
        ({"epochs": 0}, "at least 1"),
        ({"batch": 0}, "batch: expected at least 1"),
        ({"folds": 1}, "folds: expected at least 2"),
        ({"by": "efficient", "lam": 0.1}, "expected none by 'efficient', which fixes delta"),
    ],
)
def test_bad_options(options, says):
    with pytest.raises(InputError) as error:
        NeuralClamping(**options)
    assert says in str(error.value)


def test_bad_ranges():
    network, loader = case((2, 3))
    for options, says in (
        ({"keep_inside": True}, "keep_inside: expected the feasible range"),
        ({"keep_inside": True, "low": 0.0}, "no low or no high"),
        ({"init": "data"}, "init='data': expected the feasible range"),
    ):
        with pytest.raises(InputError, match=says):
            NeuralClamping(**options).fit(network, loader)
    with pytest.raises(InputError, match="one number or 2, one a channel, got 3"):
        NeuralClamping(low=(0.0, 0.0, 0.0), high=9.0).fit(network, loader)
    with pytest.raises(InputError, match="a range that holds all calibration inputs, got inputs from"):
        NeuralClamping(low=0.0, high=1.0).fit(network, loader)
    walls = {"low": float("-9"), "high": 9.0, "keep_inside": True, "lambda_rule": "term"}
    x = torch.cat([x for x, _ in loader])
    full = [(torch.cat([x, torch.full((1, 2, 3), -9.0), torch.full((1, 2, 3), 9.0)]), torch.arange(len(x) + 2) % K)]
    with pytest.raises(InputError, match="got one at 0"):
        NeuralClamping(**walls).fit(network, full)
