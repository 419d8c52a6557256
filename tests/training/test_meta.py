"""Meta-regularisation: the gradient of the regulariser, the step, the run that learns one."""

import copy
import json
import warnings

import numpy as np
import polars as pl
import pytest

pytest.importorskip("torch")
import torch
from test_loop import TINY
from torch import nn
from torch.func import functional_call
from typer.testing import CliRunner

from calibrant import losses, models
from calibrant.cli import app
from calibrant.core.errors import InputError
from calibrant.core.torch.focal import focal_rows
from calibrant.losses import make
from calibrant.training.batches import Batches, Pixels
from calibrant.training.images import load_splits
from calibrant.training.learned_losses import GammaNet, Smoothing, UnitL2
from calibrant.training.log import LookAheadWarning, warn_of_look_ahead
from calibrant.training.loop import train
from calibrant.training.meta import MetaStep
from calibrant.training.recipe import change, find_recipe, read_recipe, recipe_names
from calibrant.training.run import open_run

SHAPE = models.Shape(classes=5, channels=3, size=12)
LEARNED = {
    "gamma": lambda network: GammaNet(network.head.in_features, 5),
    "l2": lambda network: UnitL2(network.head),
    "smoothing": lambda network: Smoothing(5),
    "class": lambda network: Smoothing(5, per="class"),
    "pair": lambda network: Smoothing(5, per="pair"),
}
CLIP = 0.05  # below the norm of every gradient here: it bites
META = {"loss": "focal", "meta.learn": "gamma", "data.split": "8:1:1"}


def batch(seed=0, n=12, kind=torch.float32):
    draw = torch.Generator().manual_seed(seed)
    return torch.randn(n, 3, 12, 12, generator=draw, dtype=kind), torch.randint(5, (n,), generator=draw)


def built(learn="gamma", kind=torch.float64, model="resnet_small:depth=8,width=4"):
    """A network with batch norm in training mode, and a regulariser away from its start."""
    torch.manual_seed(3)
    network = models.build(model, SHAPE).to(kind).train()
    learned = LEARNED[learn](network).to(kind)
    with torch.no_grad():
        for parameter in learned.parameters():
            parameter += (0.1 if learn == "gamma" else 0.2) * torch.rand_like(parameter)
            parameter *= 0.1 if learn == "gamma" and parameter.shape[1:] == (1,) else 1
    return network, learned


def slopes(learn, kind, *, rate=0.05, model="resnet_small:depth=8,width=4", **options):
    """The gradient of the regulariser in one step."""
    network, learned = built(learn, kind, model)
    step = MetaStep(network, learned, **options)
    torch.manual_seed(5)
    step(*batch(0, kind=kind), *batch(1, kind=kind), rate)
    return torch.cat([p.grad.flatten() for p in learned.parameters()])


# -- the gradient ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "near"), [(torch.float64, 1e-12), (torch.float32, 1e-4)], ids=["64", "32"])
@pytest.mark.parametrize("lookahead", ["head", "full"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize(("objective", "ahead"), [("ce", "taken"), ("sece", "raw"), ("ce + 0.5*sece", "taken"),
                                                  ("ce + 0.5*sece", "raw"), ("ce + 0.5*dece", "taken")])  # fmt: skip
def test_one_forward_mode_pass_is_double_backward(kind, near, lookahead, reduction, objective, ahead):
    options = {"lookahead": lookahead, "reduction": reduction, "objective": objective, "lookahead_step": ahead}
    options |= {"rate": 0.05 if reduction == "mean" else 0.004, "clip_norm": CLIP}
    fast = slopes("gamma", kind, by="jvp", **options)
    slow = slopes("gamma", kind, by="double_backward", **options)
    assert slow.norm() > 1e-6
    assert (fast - slow).norm() <= near * slow.norm()


@pytest.mark.parametrize("learn", ["l2", "smoothing", "class", "pair"])
@pytest.mark.parametrize("lookahead", ["head", "full"])
@pytest.mark.parametrize(("reduction", "ahead"), [("mean", "raw"), ("sum", "taken")])
@pytest.mark.parametrize(("kind", "near"), [(torch.float64, 1e-12), (torch.float32, 1e-4)], ids=["64", "32"])
def test_so_it_is_for_every_regulariser(learn, lookahead, reduction, ahead, kind, near):
    options = {"lookahead": lookahead, "reduction": reduction, "lookahead_step": ahead, "clip_norm": CLIP}
    fast = slopes(learn, kind, by="jvp", **options)
    slow = slopes(learn, kind, by="double_backward", **options)
    assert slow.norm() > 1e-6
    assert (fast - slow).norm() <= near * slow.norm()


@pytest.mark.parametrize("lookahead", ["head", "full"])
def test_so_it_is_with_dropout_which_falls_on_the_same_units_twice(lookahead):
    model = "wide_resnet:depth=10,width=1,dropout=0.3"
    fast = slopes("gamma", torch.float64, lookahead=lookahead, model=model, by="jvp")
    slow = slopes("gamma", torch.float64, lookahead=lookahead, model=model, by="double_backward")
    assert (fast - slow).norm() <= 1e-11 * slow.norm()


@pytest.mark.parametrize("clip", [0.0, CLIP], ids=["raw", "taken"])
def test_it_is_the_difference_quotient(clip):
    """Against no derivative at all: the whole look-ahead, with one parameter a little more and a little less.

    What the clipping takes off is held as it is without the little more.
    """
    network, learned = built("gamma")
    x, labels = batch(0, kind=torch.float64)
    meta_x, meta_labels = batch(1, kind=torch.float64)
    objective, kept = losses.make("ce + 0.5*sece"), []

    def ahead() -> float:
        copied = copy.deepcopy(network)
        value = learned.loss(
            copied(x), labels, copied.features(x).detach(), dict(copied.head.named_parameters()), "mean"
        )
        moved = torch.autograd.grad(value, list(copied.parameters()))
        kept.append(min(1, clip / float(torch.cat([g.flatten() for g in moved]).norm())) if clip else 1)
        names = [name for name, _ in copied.named_parameters()]
        weights = {
            n: (w - 0.05 * kept[0] * g).detach() for n, w, g in zip(names, copied.parameters(), moved, strict=True)
        }
        return float(objective(functional_call(copied, weights, (meta_x,)), meta_labels))

    slope = slopes("gamma", torch.float64, lookahead="full", clip_norm=clip)
    now = ahead()
    assert (kept[0] < 0.9) == (clip > 0)
    step = MetaStep(*built("gamma"), lookahead="full", clip_norm=clip)
    torch.manual_seed(5)
    done = step(x, labels, meta_x, meta_labels, 0.05)
    assert float(done.objective) == pytest.approx(now, rel=1e-5)
    assert float(done.objective_before) == pytest.approx(objective(network(meta_x), meta_labels).item(), rel=1e-9)
    sizes = np.cumsum([0, *(p.numel() for p in learned.parameters())])
    for which, (parameter, index) in enumerate([(learned.A, (3, 2)), (learned.W, (4, 0))]):
        flat = sizes[which] + index[0] * parameter.shape[1] + index[1]
        values = []
        for shift in (1e-5, -2e-5):
            with torch.no_grad():
                parameter[index] += shift
            values.append(ahead())
        with torch.no_grad():
            parameter[index] += 1e-5
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(float(slope[flat]), rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("lookahead", ["head", "full"])
def test_the_step_ahead_is_clipped_as_torch_clips(lookahead):
    """The objective after it, against weights moved by torch's own clip_grad_norm_."""
    network, learned = built("gamma")
    data = batch(0, kind=torch.float64), batch(1, kind=torch.float64)
    own = copy.deepcopy(network)
    features = own.features(data[0][0])
    loss = learned.loss(own.head(features), data[0][1], features.detach(), {}, "sum")
    loss.backward()
    moving = list((own if lookahead == "full" else own.head).parameters())
    torch.nn.utils.clip_grad_norm_(moving, CLIP)
    with torch.no_grad():
        for weight in moving:
            weight -= 0.05 * weight.grad
        expected = losses.make("ce + 0.5*sece")(own(data[1][0]), data[1][1])
    step = MetaStep(network, learned, lookahead=lookahead, reduction="sum", clip_norm=CLIP)
    done = step(*data[0], *data[1], 0.05)
    torch.testing.assert_close(done.objective, expected, rtol=1e-12, atol=0)
    raw = MetaStep(*built("gamma"), lookahead=lookahead, reduction="sum", clip_norm=CLIP, lookahead_step="raw")
    assert abs(float(raw(*data[0], *data[1], 0.05).objective) - float(expected)) > 1e-3


def test_learned_l2_has_a_closed_form():
    """dV / d omega = -2 eta theta v, docs/methods/meta.md#the-hypergradient."""
    network, learned = built("l2")
    before = copy.deepcopy(network)
    slope = slopes("l2", torch.float64)
    x, labels = batch(0, kind=torch.float64)
    meta_x, meta_labels = batch(1, kind=torch.float64)
    features, head = before.features(x).detach(), dict(before.head.named_parameters())
    loss = learned.loss(functional_call(before.head, head, features), labels, features, head, "mean")
    ahead = {
        name: (w - 0.05 * g).detach().requires_grad_()
        for (name, w), g in zip(head.items(), torch.autograd.grad(loss, list(head.values())), strict=True)
    }
    # The network's statistics do not matter in training mode.
    value = make("ce + 0.5*sece")(functional_call(before.head, ahead, before.features(meta_x).detach()), meta_labels)
    v = dict(zip(ahead, torch.autograd.grad(value, list(ahead.values())), strict=True))
    closed = {name: -2 * 0.05 * w.detach() * v[name] for name, w in head.items()}
    expected = torch.cat([closed[name.replace("-", ".")].flatten() for name in learned.omega])
    torch.testing.assert_close(slope, expected, rtol=1e-10, atol=1e-14)


# -- the step ----------------------------------------------------------------------------------------


def test_a_step_moves_the_regulariser_and_hands_back_the_loss():
    network, learned = built("gamma", torch.float32)
    start = copy.deepcopy(learned)
    step = MetaStep(network, learned)
    x, labels = batch(0)
    done = step(x, labels, *batch(1), 0.05)
    moved = [float((a - b).detach().abs().max()) for a, b in zip(learned.parameters(), start.parameters(), strict=True)]
    assert max(moved) == pytest.approx(1e-3, rel=0.05)  # a first step of Adam
    assert all(p.grad is None for p in network.parameters())
    expected = focal_rows(done.logits, labels, learned(done.features).detach()).mean()
    torch.testing.assert_close(done.loss, expected)
    before = [p.grad.clone() for p in learned.parameters()]
    done.loss.backward()
    assert all(p.grad is not None for p in network.parameters())
    assert all(torch.equal(a, p.grad) for a, p in zip(before, learned.parameters(), strict=True))


@pytest.mark.parametrize("lookahead", ["head", "full"])
@pytest.mark.parametrize("by", ["jvp", "double_backward"])
def test_the_meta_batch_is_not_counted_in_batch_norm(lookahead, by):
    network, learned = built("gamma", torch.float32)
    MetaStep(network, learned, lookahead=lookahead, by=by)(*batch(0), *batch(1), 0.05)
    counted = dict(network.named_buffers())
    plain, _ = built("gamma", torch.float32)
    plain(batch(0)[0])
    for name, buffer in plain.named_buffers():
        torch.testing.assert_close(counted[name], buffer)
    assert {int(b) for n, b in counted.items() if "num_batches" in n} == {1}


def test_an_objective_is_what_is_written():
    step = MetaStep(*built(), objective="1*sece")
    x, labels = torch.randn(8, 5), torch.randint(5, (8,))
    assert float(step.objective(x, labels)) == pytest.approx(float(make("0*ce + 1*sece")(x, labels)))


def test_a_network_of_others_names_its_last_layer():
    network = nn.Sequential(nn.Flatten(), nn.Linear(3 * 144, 8), nn.ReLU(), nn.Linear(8, 5))
    with pytest.raises(InputError, match=r"meta-regularisation needs the features.*1, 3.*head='3'"):
        MetaStep(network, GammaNet(8, 5))
    step = MetaStep(network, GammaNet(8, 5), head="3", lookahead="full")
    step(*batch(0), *batch(1), 0.1).loss.backward()
    assert network[1].weight.grad is not None


@pytest.mark.parametrize(
    ("make_it", "says"),
    [
        (lambda n: MetaStep(n, GammaNet(16, 5), lookahead="all"), "did you mean|head"),
        (lambda n: MetaStep(n, GammaNet(16, 5), objective="ce + 0.5*secee"), "sece"),
        (lambda n: MetaStep(n, GammaNet(16, 5), lr=0.0), "more than 0"),
        (lambda n: MetaStep(n, GammaNet(16, 5), lookahead_step="clipped"), "raw, taken"),
        (lambda n: MetaStep(n, GammaNet(16, 5), clip_norm=-1.0), "clip_norm: expected 0 or more"),
        (lambda n: GammaNet(16, 5, tau=0.0), "GammaNet.tau"),
        (lambda n: GammaNet(0, 5), "GammaNet.features"),
        (lambda n: MetaStep(n, GammaNet(7, 5))(*batch(0), *batch(1), 0.1), r"features \(B, 7\)"),
    ],
)
def test_bad_steps(make_it, says):
    with pytest.raises(InputError, match=says):
        make_it(models.build("resnet_small:depth=8,width=4", SHAPE))


# -- what is learned -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("heads", "count"), [(10, 5632), (100, 51712)])
def test_gamma_net_has_the_parameters_of_the_paper(heads, count):
    assert sum(p.numel() for p in GammaNet(512, heads).parameters()) == count
    if heads == 100:
        assert count / 11_220_132 == pytest.approx(0.0046, abs=1e-4)


@pytest.mark.parametrize(("features", "heads"), [(512, 10), (512, 100), (64, 64), (8, 100)])
def test_gamma_is_one_for_every_input_at_the_start(features, heads):
    torch.manual_seed(heads)
    net = GammaNet(features, heads).double()
    h = 10 ** torch.linspace(-3, 2, 30, dtype=torch.float64)[:, None] * torch.randn(30, features, dtype=torch.float64)
    near = 1e-4 if features == heads else 1e-5  # W is kept in float32, and a square A is badly conditioned
    assert torch.allclose(net(h), torch.ones(30, dtype=torch.float64), atol=near)
    net(h).sum().backward()
    assert net.W.grad.abs().max() > 0


def test_gamma_by_the_formula():
    """Slow and obvious, docs/methods/meta.md#the-gamma-network."""
    net = GammaNet(6, 3).double()
    with torch.no_grad():
        net.A += torch.randn(6, 3)
        net.W += 0.05 * torch.randn(6, 1)
    A, W, h = net.A.detach().numpy(), net.W.detach().numpy(), np.random.default_rng(0).normal(size=(4, 6))
    for row, gamma in zip(h, net.free(torch.from_numpy(h)).detach().tolist(), strict=True):
        scores = [sum(row[i] * A[i, j] for i in range(6)) for j in range(3)]
        q = [np.exp(a) / sum(np.exp(b) for b in scores) for a in scores]
        mixed = [sum(A[i, j] * q[j] for j in range(3)) for i in range(6)]
        assert gamma == pytest.approx(abs(sum(mixed[i] * W[i, 0] for i in range(6))) / 0.01, rel=1e-9)


def test_a_diverging_gamma_is_capped_and_can_come_back():
    net = GammaNet(6, 3, cap=5.0)
    with torch.no_grad():
        net.W *= 1000
    h = torch.randn(4, 6)
    assert torch.equal(net(h), torch.full((4,), 5.0))
    assert float(net.values(h)["gamma_capped"]) == 1.0
    net(h).sum().backward()
    assert net.W.grad.abs().max() > 0


def test_smoothing_is_label_smoothing():
    logits, labels = torch.randn(6, 5, dtype=torch.float64), torch.tensor([0, 1, 2, 3, 4, 0])
    expected = float(make("label_smoothing:epsilon=0.2")(logits, labels))
    for per in ("all", "class", "pair"):
        learned = Smoothing(5, per=per).double()
        with torch.no_grad():
            learned.strength += 0.2
        loss = learned.loss(logits, labels, logits, {}, "mean").item()
        assert loss == pytest.approx(expected, rel=1e-12)
        with torch.no_grad():
            learned.strength[0] = -1
        learned.settle()
        assert learned.strength.min() == 0
        assert learned.strength.max() <= 0.5


# -- the run -----------------------------------------------------------------------------------------------


def test_a_run_learns_a_gamma(tmp_path, capsys):
    recipe = change(TINY, test_each_epoch=True, select="best", **META)
    run = train(recipe, tmp_path / "run")
    assert run.log["gamma_mean"].is_finite().all()
    assert run.log["gamma_mean"][-1] != 1
    assert (run.log["gamma_capped"] == 0).all()
    table = pl.read_parquet(run.folder / "gamma.parquet")
    assert table.columns == ["id", "label", "predicted", "correct", "confidence", "gamma"]
    best = open_run(run.folder)
    with torch.no_grad():
        gamma = best.load_learned()(torch.tensor(best.test.features))
    assert np.array_equal(table["gamma"].to_numpy(), gamma.numpy())
    assert table["gamma"].mean() == pytest.approx(run.log["gamma_mean"][int(json.loads(
        (run.folder / "run.json").read_text())["selected_epoch"]) - 1], rel=1e-5)  # fmt: skip

    done = CliRunner().invoke(app, ["gamma", str(run.folder), "--out", str(tmp_path / "g.csv"), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    assert document["gamma"]["all"]["n"] == 40
    assert document["meta_after"] == run.log["meta_after"].to_list()
    output = CliRunner().invoke(app, ["gamma", str(run.folder), "--out", str(tmp_path / "g.csv")]).stdout
    first, last = (f"{row['meta_before']:.3f} to {row['meta_after']:.3f} in epoch" for row in run.log.to_dicts())
    assert f"meta objective before and after the step ahead: {first} 1, {last} 2" in output
    assert pl.read_csv(tmp_path / "g.csv").height == 40
    with pytest.raises(InputError, match=r"\.parquet or \.csv"):
        CliRunner().invoke(app, ["gamma", str(run.folder), "--out", "x.txt"], catch_exceptions=False)


def test_the_step_as_it_is_taken_helps_and_a_raw_one_does_harm(tmp_path):
    """Sums that are clipped, as in the recipes of the paper: a look-ahead without the clipping is far too long."""
    recipe = change(
        TINY, **META, reduction="sum", **{"data.limit": 128, "optimizer.clip_norm": 2.0, "optimizer.lr": 0.1}
    )
    clipped = train(recipe, tmp_path / "taken")
    assert (clipped.log["meta_after"] < clipped.log["meta_before"]).all()
    assert clipped.log["gamma_mean"].min() > 0.5
    with pytest.warns(LookAheadWarning) as warned:
        raw = train(change(recipe, **{"meta.lookahead_step": "raw"}), tmp_path / "raw")
    before, after = raw.log["meta_before"][0], raw.log["meta_after"][0]
    assert after > 1.2 * before
    assert raw.log["gamma_mean"][0] < 0.1  # lowering gamma is all that it can do
    assert [str(one.message) for one in warned] == [
        f"in epoch 1 the step ahead raised the meta objective from {before:.3g} to {after:.3g} on average: it is too "
        'long, and what is learned can only limit the damage. To shorten it, set meta.lookahead_step = "taken".'
    ]


def test_the_warning_comes_once_and_not_for_nothing():
    rows = [{"epoch": e, "meta_before": 1.0, "meta_after": after} for e, after in ((1, 1.04), (2, 1.2), (3, 1.3))]
    with pytest.warns(LookAheadWarning, match=r"in epoch 2 .* from 1 to 1\.2 .* lower optimizer\.lr"):
        warn_of_look_ahead(rows[:2], "taken")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for log in (rows[:1], rows, [{"epoch": 1}]):
            warn_of_look_ahead(log, "taken")


def test_the_run_is_the_step_of_the_papers(tmp_path):
    """Against a bare loop with the slow gradient: the same weights and the same gamma-Net."""
    recipe = change(TINY, epochs=1, **META, **{"data.augment": "none", "data.limit": 32, "meta.batch": 16})
    run = train(recipe, tmp_path / "run")
    splits = load_splits(recipe)
    torch.manual_seed(recipe.seed)
    network = models.build(recipe.model, run.shape)
    learned = GammaNet(network.head.in_features, 10)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)
    adam = torch.optim.Adam(learned.parameters(), lr=1e-3)
    pixels = Pixels(run.mean, run.std, torch.device("cpu"))

    def rows_of(part, epoch, step, seed):
        rows = np.random.default_rng([seed, epoch]).permutation(len(part))[16 * step : 16 * step + 16]
        return pixels(torch.from_numpy(part.images[rows])), torch.from_numpy(part.labels[rows])

    for step in range(2):
        x, labels = rows_of(splits.train, 0, step, recipe.seed)
        meta_x, meta_labels = rows_of(splits.meta, 0, step, recipe.seed)
        features = network.features(x)
        logits = network.head(features)
        head = network.head
        closed = head(features.detach())
        inner = focal_rows(closed, labels, learned(features.detach())).mean()
        w, b = torch.autograd.grad(inner, [head.weight, head.bias], create_graph=True)
        with torch.no_grad():
            meta_features = copy.deepcopy(network).features(meta_x)
        ahead = meta_features @ (head.weight - 0.05 * w).T + head.bias - 0.05 * b
        adam.zero_grad()
        grads = torch.autograd.grad(make("ce + 0.5*sece")(ahead, meta_labels), list(learned.parameters()))
        for parameter, grad in zip(learned.parameters(), grads, strict=True):
            parameter.grad = grad
        adam.step()
        optimizer.zero_grad()
        focal_rows(logits, labels, learned(features.detach()).detach()).mean().backward()
        optimizer.step()
    for name, weight in run.network().state_dict().items():
        torch.testing.assert_close(weight, network.state_dict()[name], rtol=1e-4, atol=1e-5)
    for name, weight in run.load_learned().state_dict().items():
        torch.testing.assert_close(weight, learned.state_dict()[name], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {"meta.learn": "l2", "meta.objective": "ce + 0.5*dece"},
        {"meta.learn": "class_smoothing", "meta.lookahead": "full"},
        {"meta.learn": "pair_smoothing", "meta.by": "double_backward"},
        {"meta.learn": "gamma", "loss": "focal", "precision": "bf16-mixed", "meta.lookahead": "full"},
        {"meta.learn": "gamma", "loss": "focal", "precision": "64-true"},
    ],
    ids=["l2", "class", "pair", "bf16", "64"],
)
def test_every_way_runs(tmp_path, changes):
    run = train(change(TINY, epochs=1, **changes), tmp_path / "run")
    assert run.test.n == 40
    assert any(name.startswith(("gamma", "omega", "smoothing")) for name in run.log.columns)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"meta.learn": "gamma", "loss": "ce"}, "focal where meta.learn is gamma"),
        ({"meta.learn": "smoothing", "loss": "focal"}, "ce where meta.learn is smoothing"),
        ({**META, "mixup": 0.2}, "mixup"),
        ({**META, "optimizer.accumulate": 2}, "optimizer.accumulate"),
        ({**META, "precision": "16-mixed"}, "bf16-mixed"),
        ({**META, "meta.lr": 0.0}, "meta.lr"),
        ({**META, "meta.learn": "gama"}, "gamma"),
        ({**META, "meta.lookahead_step": "token"}, "did you mean 'taken'"),
    ],
)
def test_bad_recipes_of_meta(changes, says):
    with pytest.raises(InputError, match=says):
        change(TINY, **changes)


def test_without_a_part_to_learn_from(tmp_path):
    with pytest.raises(InputError, match=r'data.split = "8:1:1"'):
        train(change(TINY, **(META | {"data.split": "9:1"})), tmp_path / "run")
    plain = train(change(TINY, epochs=1), tmp_path / "plain")
    with pytest.raises(InputError, match="a run that learned a regulariser"):
        plain.load_learned()


def test_meta_batches_go_on_without_end_and_from_anywhere():
    splits = load_splits(TINY)
    batches = Batches(part=splits.meta.take(np.arange(40)), size=16, pixels=Pixels((0.5,), (0.5,), torch.device("cpu")))
    rows = [next_ids for _, (*_, next_ids) in zip(range(7), batches.endless(0), strict=False)]
    assert [len(r) for r in rows] == [16, 16, 8] * 2 + [16]
    assert sorted(torch.cat(rows[:3]).tolist()) == list(range(40))
    assert torch.cat(rows[:3]).tolist() != torch.cat(rows[3:6]).tolist()
    later = [ids for _, (*_, ids) in zip(range(3), batches.endless(4), strict=False)]
    assert [r.tolist() for r in later] == [r.tolist() for r in rows[4:7]]


def test_all_five_variants_are_recipes():
    names = [name for name in recipe_names() if name.startswith("meta/")]
    for data in ("cifar10", "cifar100", "tiny-imagenet"):
        for variant, learn, objective in (
            ("ce-dece", "l2", "ce + 0.5*dece"),
            ("ce-sece", "l2", "ce + 0.5*sece"),
            ("flgamma-dece", "gamma", "ce + 0.5*dece"),
            ("flgamma-sece", "gamma", "ce + 0.5*sece"),
            ("flgamma", "gamma", "ce"),
        ):
            assert f"meta/{data}-resnet18-{variant}" in names
            recipe = read_recipe(find_recipe(f"meta/{data}-resnet18-{variant}"))
            assert (recipe.meta.learn, recipe.meta.objective) == (learn, objective)
            assert (recipe.data.split, recipe.reduction, recipe.optimizer.clip_norm) == ("8:1:1", "sum", 2.0)
