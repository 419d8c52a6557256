"""ConfidNet: what it learns, what it leaves alone, the cached path against the slow one, resuming, files, bad input."""

import copy
import json

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from torch import nn

import calibrant as cal
from calibrant.core.errors import InputError
from calibrant.core.predictions import Predictions
from calibrant.models import Shape, build, count
from calibrant.rescorers.confidnet import ConfidenceHead, ConfidNet, FittedConfidNet, Fitting, fingerprint

SMALL = {"width": 16, "depth": 2, "lr": 5e-3, "batch": 32}


class Classifier(nn.Module):
    """Ten inputs, batch norm, dropout if wanted, three classes; trained a little on noisy data."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(10, 12), nn.BatchNorm1d(12), nn.ReLU(), nn.Dropout(dropout))
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.body(x))


def data(n, seed):
    """Inputs whose labels are clear for some and a coin for others."""
    g = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 10, generator=g)
    clear = x[:, 3] > 0
    labels = torch.where(clear, x[:, :3].argmax(1), torch.randint(3, (n,), generator=g))
    return x, labels


def batches(n=256, seed=0, size=64):
    x, labels = data(n, seed)
    return list(zip(x.split(size), labels.split(size), strict=True))


@pytest.fixture(scope="module")
def trained():
    """Classifiers by their share of dropout."""

    def train(dropout):
        torch.manual_seed(0)
        network = Classifier(dropout)
        optimizer = torch.optim.Adam(network.parameters(), 0.01)
        for _ in range(30):
            for x, labels in batches(512, 1):
                optimizer.zero_grad()
                nn.functional.cross_entropy(network(x), labels).backward()
                optimizer.step()
        return network.eval()

    return {0.0: train(0.0), 0.5: train(0.5)}


def snapshot(network):
    return {name: tensor.clone() for name, tensor in network.state_dict().items()}


def same(one, other):
    assert one.keys() == other.keys()
    for name in one:
        assert torch.equal(one[name], other[name]), name


def tensors(fitted):
    return {**fitted.head.state_dict(), **({} if fitted.clone is None else fitted.clone.state_dict())}


# -- what it is -------------------------------------------------------------------------------------


def test_the_head_has_the_published_size():
    head = ConfidenceHead(512)
    assert count(head) == 686_801
    assert [m.out_features for m in head.layers if isinstance(m, nn.Linear)] == [400, 400, 400, 400, 1]
    assert head(torch.zeros(7, 512)).shape == (7,)


def test_it_learns_the_probability_of_the_true_class(trained):
    fitted = ConfidNet(epochs=20, **SMALL).fit(trained[0.0], batches(1000, 2), batches(400, 3))
    test = batches(1000, 4)
    p = fitted.predict(test)
    x, labels = data(1000, 4)
    with torch.no_grad():
        truth = trained[0.0](x).softmax(1).gather(1, labels[:, None]).squeeze(1).numpy()
    error = np.mean((p.confidence - truth) ** 2)
    assert error < 0.9 * np.var(truth)  # better than the best constant
    assert fitted.facts["chosen"]["by"] == "aupr_error"


def test_the_target_and_the_loss_by_hand(trained):
    """One step of Adam from the same start, written out."""
    network, loader = trained[0.0], batches(32, 2, size=32)
    options = ConfidNet(epochs=1, width=8, depth=2, batch=32, error_weight=3.0)
    fitting = Fitting(options, network, loader, batches(100, 3), False, None, None)
    head = copy.deepcopy(fitting.head)
    fitted = fitting.run()
    (x, labels), order = loader[0], np.random.default_rng([0, 0]).permutation(32)
    with torch.no_grad():
        logits, features = network(x), network.body(x)
    p_y = torch.stack([row.softmax(0)[label] for row, label in zip(logits, labels, strict=True)])
    weight = torch.tensor([1.0 if row.argmax() == label else 3.0 for row, label in zip(logits, labels, strict=True)])
    optimizer = torch.optim.Adam(head.parameters(), lr=1e-4)
    (weight * (torch.sigmoid(head(features)) - p_y) ** 2)[order].mean().backward()
    optimizer.step()
    for mine, theirs in zip(head.parameters(), fitted.head.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-7)


def test_confidences_flow_into_measures_and_the_report(trained):
    fitted = ConfidNet(epochs=3, **SMALL).fit(trained[0.0], batches(256, 2), batches(200, 3))
    p = fitted.predict(batches(300, 4))
    assert isinstance(p, Predictions)
    assert p.features.shape == (300, 12)
    for name in ("auroc_correct", "aupr_error", "aupr_success", "ece", "nll"):
        assert np.isfinite(cal.measure(p, name, resamples=0).value)
    assert cal.report(p, resamples=40, calibrators=["temperature"]).to_dict()
    np.testing.assert_allclose(p.confidence, fitted(data(300, 4)[0]).numpy(), atol=1e-6)
    np.testing.assert_allclose(p.confidence, fitted.confidence(batches(300, 4)), atol=1e-12)


# -- what it leaves alone ---------------------------------------------------------------------------


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("training", [False, True])
def test_the_classifier_is_untouched_bit_for_bit(trained, dropout, training):
    network = copy.deepcopy(trained[dropout]).train(training)
    before, x = snapshot(network), data(50, 5)[0]
    with torch.no_grad():
        logits = copy.deepcopy(network).eval()(x)
    random = torch.get_rng_state()
    fitted = ConfidNet(epochs=2, stages=2, clone_epochs=2, clone_lr=1e-2, **SMALL).fit(
        network, batches(128, 2), batches(100, 3)
    )
    p = fitted.predict(batches(50, 5))
    same(snapshot(network), before)
    assert all(m.training is training for m in network.modules())
    assert all(parameter.requires_grad for parameter in network.parameters())
    assert torch.equal(torch.get_rng_state(), random)
    np.testing.assert_array_equal(p.predicted, logits.argmax(1).numpy())


def test_stage_two_trains_a_clone(trained):
    network = trained[0.0]
    options = {**SMALL, "epochs": 3, "patience": 0}
    one = ConfidNet(**options).fit(network, batches(256, 2), batches(400, 3))
    two = ConfidNet(**options, stages=2, clone_epochs=20, clone_lr=1e-2).fit(network, batches(256, 2), batches(400, 3))
    assert one.clone is None
    assert [row["stage"] for row in two.facts["log"]] == [1] * 3 + [2] * 20
    assert two.facts["chosen"]["stage"] == 2
    assert not torch.equal(two.clone.body[0].weight, network.body[0].weight)
    assert torch.equal(two.clone.head.weight, network.head.weight)  # the clone answers nothing, so it is not trained
    assert torch.equal(two.clone.body[1].running_mean, network.body[1].running_mean)
    losses = [row["loss"] for row in two.facts["log"]]
    assert losses[-1] < losses[3]


def test_a_second_stage_that_does_not_help_changes_nothing(trained):
    options = {**SMALL, "epochs": 15, "patience": 0}
    one = ConfidNet(**options).fit(trained[0.0], batches(256, 2), batches(400, 3))
    two = ConfidNet(**options, stages=2, clone_epochs=1, clone_lr=10.0).fit(
        trained[0.0], batches(256, 2), batches(400, 3)
    )
    assert two.facts["chosen"] == one.facts["chosen"]
    np.testing.assert_array_equal(two.confidence(batches(50, 5)), one.confidence(batches(50, 5)))


# -- features once, or anew -------------------------------------------------------------------------


def test_kept_features_give_the_numbers_of_features_made_anew(trained):
    options = ConfidNet(epochs=5, **SMALL)
    fast = options.fit(trained[0.0], batches(256, 2), batches(200, 3))
    slow = options.fit(trained[0.0], batches(256, 2), batches(200, 3), augmented=True)
    same(tensors(fast), tensors(slow))
    assert fast.facts["log"] == slow.facts["log"]


class Counting(list):
    """A loader that counts how often it is gone through, and is told the epoch."""

    def __init__(self, items):
        super().__init__(items)
        self.passes, self.epochs = 0, []

    def __iter__(self):
        self.passes += 1
        return super().__iter__()

    def set_epoch(self, epoch):
        self.epochs.append(epoch)


@pytest.mark.parametrize(("dropout", "augmented", "passes"), [(0.0, False, 1), (0.0, True, 4), (0.5, False, 4)])
def test_features_are_computed_once_only_where_they_stay_the_same(trained, dropout, augmented, passes):
    loader = Counting(batches(128, 2))
    ConfidNet(epochs=4, **SMALL).fit(trained[dropout], loader, batches(100, 3), augmented=augmented)
    assert loader.passes == passes
    assert loader.epochs == list(range(passes))


def test_dropout_is_on_while_learning_and_off_while_judging(trained):
    network = trained[0.5]
    modes = []
    hook = network.body[3].register_forward_hook(lambda m, *_: modes.append(m.training))
    bn = network.body[1].register_forward_hook(lambda m, *_: modes.append("bn" if m.training else "still"))
    try:
        fitted = ConfidNet(epochs=1, **SMALL).fit(network, batches(64, 2), batches(64, 3))
        assert modes == ["still", False, "still", True]
        fitted.predict(batches(64, 4))
        assert modes[4:] == ["still", False]
    finally:
        hook.remove()
        bn.remove()


# -- choosing and stopping --------------------------------------------------------------------------


def test_without_errors_the_loss_selects(trained):
    network = trained[0.0]
    x, _ = data(100, 3)
    with torch.no_grad():
        right = [(x, network(x).argmax(1))]
    fitted = ConfidNet(epochs=4, **SMALL).fit(network, batches(256, 2), right)
    log, chosen = fitted.facts["log"], fitted.facts["chosen"]
    assert chosen["by"] == "loss"
    assert chosen["epoch"] == 1 + int(np.argmin([row["val_loss"] for row in log]))
    assert all(row["val_aupr_error"] is None for row in log)


def test_the_best_epoch_counts_and_patience_ends_the_rest(trained):
    rows = []
    options = ConfidNet(epochs=100, patience=3, **SMALL)
    fitted = options.fit(trained[0.0], batches(128, 2), batches(300, 3), on_epoch=rows.append)
    assert rows == fitted.facts["log"]
    values = [row["val_aupr_error"] for row in rows]
    best = int(np.argmax(values))
    assert fitted.facts["chosen"]["epoch"] == best + 1
    assert len(rows) == best + 1 + 3 < 100
    p = fitted.predict(batches(300, 3))
    assert cal.measures.make("aupr_error")(p) == pytest.approx(values[best], abs=1e-9)


def test_the_same_seed_gives_the_same_numbers(trained):
    fits = [
        ConfidNet(epochs=3, seed=seed, **SMALL).fit(trained[0.5], batches(128, 2), batches(100, 3))
        for seed in (1, 1, 2)
    ]
    same(tensors(fits[0]), tensors(fits[1]))
    assert not torch.equal(fits[0].head.layers[0].weight, fits[2].head.layers[0].weight)


# -- resuming and files -----------------------------------------------------------------------------


@pytest.mark.parametrize("after", [1, 3, 4, 6])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_an_interrupted_fit_goes_on_as_if_nothing_had_happened(trained, tmp_path, after, dropout):
    options = ConfidNet(epochs=4, stages=2, clone_epochs=3, clone_lr=1e-3, **SMALL)
    loaders = batches(128, 2), batches(200, 3)
    whole = options.fit(trained[dropout], *loaders)
    seen = []

    def stop(row):
        seen.append(row)
        if len(seen) == after:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        options.fit(trained[dropout], *loaders, state=tmp_path / "state.safetensors", on_epoch=stop)
    again = options.fit(trained[dropout], *loaders, state=tmp_path / "state.safetensors", on_epoch=seen.append)
    assert seen == whole.facts["log"]
    assert again.facts == whole.facts
    same(tensors(again), tensors(whole))


def test_a_finished_state_is_not_repeated(trained, tmp_path):
    options, loaders = ConfidNet(epochs=3, **SMALL), (batches(128, 2), batches(100, 3))
    first = options.fit(trained[0.0], *loaders, state=tmp_path / "state.safetensors")
    again = options.fit(trained[0.0], *loaders, state=tmp_path / "state.safetensors", on_epoch=pytest.fail)
    same(tensors(first), tensors(again))


def test_a_finished_stage_goes_on_with_the_next(trained, tmp_path):
    options, loaders = {"epochs": 3, "clone_lr": 1e-3, **SMALL}, (batches(128, 2), batches(200, 3))
    whole = ConfidNet(stages=2, clone_epochs=2, **options).fit(trained[0.0], *loaders)
    for epochs in (1, 3):
        shorter = ConfidNet(**{**options, "epochs": epochs})
        shorter.fit(trained[0.0], *loaders, state=tmp_path / "state.safetensors")
    again = ConfidNet(stages=2, clone_epochs=2, **options).fit(
        trained[0.0], *loaders, state=tmp_path / "state.safetensors"
    )
    assert again.facts == whole.facts
    same(tensors(again), tensors(whole))
    with pytest.raises(InputError, match="stages = 2 then, 1 now"):
        ConfidNet(**options).fit(trained[0.0], *loaders, state=tmp_path / "state.safetensors")


def test_a_state_of_another_fit_is_refused(trained, tmp_path):
    file, loaders = tmp_path / "state.safetensors", (batches(64, 2), batches(100, 3))
    ConfidNet(epochs=1, **SMALL).fit(trained[0.0], *loaders, state=file)
    with pytest.raises(InputError, match=r"lr = 0.005 then, 0.1 now"):
        ConfidNet(epochs=1, **{**SMALL, "lr": 0.1}).fit(trained[0.0], *loaders, state=file)
    with pytest.raises(InputError, match="another network"):
        ConfidNet(epochs=1, **SMALL).fit(trained[0.5], *loaders, state=file)
    with pytest.raises(InputError, match="other images"):
        ConfidNet(epochs=1, **SMALL).fit(trained[0.0], loaders[0], batches(100, 4), state=file)
    with pytest.raises(InputError, match="other images"):
        ConfidNet(epochs=1, **SMALL).fit(trained[0.0], *loaders, state=file, augmented=True)
    file.write_bytes(b"nonsense")
    with pytest.raises(InputError, match="expected a safetensors file"):
        ConfidNet(epochs=1, **SMALL).fit(trained[0.0], *loaders, state=file)


@pytest.mark.parametrize("stages", [1, 2])
def test_save_and_load(trained, tmp_path, stages):
    network = trained[0.0]
    fitted = ConfidNet(epochs=2, stages=stages, clone_epochs=2, **SMALL).fit(network, batches(64, 2), batches(100, 3))
    fitted.save(tmp_path)
    assert json.loads((tmp_path / "confidnet.json").read_text())["chosen"] == fitted.facts["chosen"]
    again = FittedConfidNet.load(tmp_path, network)
    assert again.facts == fitted.facts
    np.testing.assert_array_equal(again.confidence(batches(50, 4)), fitted.confidence(batches(50, 4)))
    with pytest.raises(InputError, match="other weights"):
        FittedConfidNet.load(tmp_path, trained[0.5])
    with pytest.raises(InputError, match="no such file"):
        FittedConfidNet.load(tmp_path / "none", network)


# -- other networks, other numbers ------------------------------------------------------------------


def test_a_network_of_ours_with_images():
    torch.manual_seed(0)
    network = build("resnet8", Shape(classes=10, channels=1, size=16))
    images = [(torch.randn(20, 1, 16, 16), torch.arange(20) % 10, torch.arange(20)) for _ in range(2)]
    fitted = ConfidNet(epochs=1, stages=2, clone_epochs=1).fit(network, images, images)
    assert fitted.facts["features"] == 64
    assert fitted.predict(images).n == 40


def test_a_network_of_others_names_its_last_layer(trained):
    theirs = nn.Sequential(copy.deepcopy(trained[0.0].body), copy.deepcopy(trained[0.0].head))
    loaders = batches(128, 2), batches(100, 3)
    with pytest.raises(InputError, match=r"a last layer named head.*linear layers are 0.0, 1.*head='1'"):
        ConfidNet(epochs=1).fit(theirs, *loaders)
    fitted = ConfidNet(epochs=2, head="1", **SMALL).fit(theirs, *loaders)
    ours = ConfidNet(epochs=2, **SMALL).fit(trained[0.0], *loaders)
    same(tensors(fitted), tensors(ours))


def test_a_network_in_float64(trained):
    network = copy.deepcopy(trained[0.0]).double()
    fitted = ConfidNet(epochs=1, **SMALL).fit(network, batches(64, 2), batches(100, 3))
    assert fitted(data(5, 1)[0].double()).dtype == torch.float64


def test_the_fingerprint_sees_every_number(trained):
    other = copy.deepcopy(trained[0.0])
    assert fingerprint(other) == fingerprint(trained[0.0])
    other.body[1].num_batches_tracked += 1
    assert fingerprint(other) != fingerprint(trained[0.0])


def test_bad_inputs_say_what_to_do(trained):
    network = trained[0.0]
    with pytest.raises(InputError, match="images that select, got an empty loader"):
        ConfidNet().fit(network, batches(64), [])
    with pytest.raises(InputError, match="images to learn from, got an empty loader"):
        ConfidNet().fit(network, [], batches(64))
    with pytest.raises(InputError, match="labels: expected 0 to 2, got 0 to 3"):
        ConfidNet().fit(network, batches(64), [(torch.zeros(4, 10), torch.arange(4))])
    with pytest.raises(InputError, match="finite features"):
        ConfidNet().fit(network, batches(64), [(torch.full((4, 10), torch.nan), torch.arange(4) % 3)])
    with pytest.raises(InputError, match="epochs"):
        ConfidNet(epochs=0)
    with pytest.raises(InputError, match="lr"):
        ConfidNet(lr=-1.0)
    with pytest.raises(InputError, match="stages"):
        ConfidNet(stages=3)
