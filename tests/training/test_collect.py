"""Predictions collected from networks, loaders and trainers."""

import warnings
from collections import namedtuple
from types import SimpleNamespace

import numpy as np
import pytest

import calibrant as cal
from calibrant.core.errors import InputError, ProbabilitiesAsLogitsWarning

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402


@pytest.fixture
def rows():
    rng = torch.Generator().manual_seed(0)
    return torch.randn(10, 4, generator=rng), torch.randint(0, 3, (10,), generator=rng)


class Inner(nn.Module):
    """A linear layer behind a dropout that is on in training, and what it returns is wrapped."""

    def __init__(self, k, wrap=lambda logits: logits):
        super().__init__()
        torch.manual_seed(1)
        self.linear, self.off, self.wrap = nn.Linear(4, k), nn.Dropout(0.9), wrap

    def forward(self, x):
        return self.wrap(self.off(self.linear(x)))


WRAPS = {
    "tensor": lambda z: z,
    "dict": lambda z: {"loss": None, "logits": z},
    "object": lambda z: SimpleNamespace(logits=z),
    "tuple": lambda z: (z, None),
    "half": lambda z: z.half(),
}


@pytest.mark.parametrize("wrap", WRAPS)
def test_logits_of_any_network_in_the_order_of_the_loader(rows, wrap):
    network = Inner(3, WRAPS[wrap])
    network.off.eval()  # a part that was not in training before
    p = cal.collect(network, DataLoader(TensorDataset(*rows), batch_size=4))
    with torch.no_grad():
        expected = network.linear(rows[0]).numpy()
    np.testing.assert_allclose(p.values, expected, atol=2e-3 if wrap == "half" else 1e-6)
    np.testing.assert_array_equal(p.labels, rows[1].numpy())
    assert (network.training, network.linear.training, network.off.training) == (True, True, False)
    assert p.values.dtype == np.float32


def test_batches_that_are_dicts(rows):
    x, labels = rows
    p = cal.collect(Inner(3), [{"x": x[:6], "labels": labels[:6]}, {"x": x[6:], "labels": labels[6:]}], progress=True)
    assert p.n == 10
    with pytest.raises(InputError, match="or a dict with labels, got a dict with x"):
        cal.collect(Inner(3), [{"x": x}])


def test_one_logit_per_row_is_binary(rows):
    x, labels = rows
    for wrap in (lambda z: z, lambda z: z[:, 0]):
        p = cal.collect(Inner(1, wrap), [(x, (labels > 0).float())])
        assert (p.task, p.score_type, p.n) == ("binary", "logits", 10)


def test_probabilities_are_not_taken_for_logits(rows):
    x, labels = rows
    ends = (3, lambda z: z.softmax(-1), labels), (1, lambda z: z.sigmoid(), (labels > 0).long())
    for k, end, truth in ends:
        with pytest.raises(InputError, match=r"expected logits of the network, got .*probs=True .*logits=True"):
            cal.collect(Inner(k, end), [(x, truth)])
        p, raw = cal.collect(Inner(k, end), [(x, truth)], probs=True), cal.collect(Inner(k), [(x, truth)])
        assert p.score_type == "probs"
        np.testing.assert_allclose(p.probs, raw.probs, atol=1e-6)
        with warnings.catch_warnings():  # of scores that look like probabilities
            warnings.simplefilter("ignore", ProbabilitiesAsLogitsWarning)
            assert cal.collect(Inner(k, end), [(x, truth)], logits=True).score_type == "logits"
    cal.collect(Inner(3, lambda z: z.log_softmax(-1)), [(x, labels)])  # log-probabilities are logits
    with pytest.raises(InputError, match="both"):
        cal.collect(Inner(3), [(x, labels)], probs=True, logits=True)


def test_pixels_know_their_image():
    torch.manual_seed(0)
    images, labels = torch.randn(5, 4, 3, 2), torch.randint(0, 3, (5, 3, 2))
    labels[2, 0] = 255
    network = nn.Conv2d(4, 3, 1)
    p = cal.collect(network, [(images[:2], labels[:2]), (images[2:], labels[2:])], axis=1, ignore=255)
    with torch.no_grad():
        q = cal.Predictions.from_logits(network(images), labels, axis=1, ignore=255)
    np.testing.assert_allclose(p.values, q.values, atol=1e-6)
    np.testing.assert_array_equal(p.labels, q.labels)
    np.testing.assert_array_equal(p.clusters, q.clusters)
    with pytest.raises(InputError, match="say axis=1"):
        cal.collect(network, [(images, labels)])


def test_texts_of_any_length():
    batches = [(torch.randn(2, length, 4), torch.full((2, length), -100)) for length in (5, 3)]
    for _, labels in batches:
        labels[:, 1:] = 1
    p = cal.collect(nn.Linear(4, 6), batches, axis=-1, ignore=-100)
    assert p.n == 2 * 4 + 2 * 2
    assert p.clusters.tolist() == [0] * 4 + [1] * 4 + [2] * 2 + [3] * 2


def test_what_a_trainer_predicted():
    output = namedtuple("PredictionOutput", "predictions label_ids metrics")
    z, labels = np.float32([[1, 2, 0], [3, 0, 1], [0, 0, 5]]), np.array([1, 0, 2])
    for scores in (z, (z, np.zeros((3, 8)))):
        p = cal.collect(output(scores, labels, {}))
        np.testing.assert_array_equal(p.values, z)
    with pytest.raises(InputError, match="without label_ids"):
        cal.collect(output(z, None, {}))


def test_what_cannot_be_collected_is_refused(rows):
    x, labels = rows
    for network, loader, says in (
        (Inner(3), [], "at least one batch"),
        (Inner(3, lambda z: {"features": z}), [(x, labels)], "a dict with features"),
        (Inner(3), [(x, labels[:5])], r"expected shape \(10,\)"),
        (Inner(3), [x], "got Tensor"),
        (
            Inner(3),
            [{"x": x, "site": x, "labels": labels}],
            r"what the network takes \(\w+\), got .*To fix it: name the",
        ),
    ):
        with pytest.raises(InputError, match=says):
            cal.collect(network, loader)


def test_the_network_is_left_as_it_was_after_an_error(rows):
    network = Inner(3)
    with pytest.raises(RuntimeError):
        cal.collect(network, [(rows[0][:, :2], rows[1])])
    assert network.training


def test_features_and_clusters_come_with_the_rows():
    network = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    batches = [
        {"image": x[:3], "label": torch.tensor([0, 1, 0]), "patient": ["a", "a", "b"]},
        {"image": x[3:], "label": torch.tensor([1, 1]), "patient": ["c", "c"]},
    ]
    p = cal.collect(network, batches, clusters="patient", features="2")
    assert p.features == pytest.approx(network[1](network[0](x)).detach().numpy())
    assert len(set(p.clusters[:2])) == 1
    assert len(set(p.clusters)) == 3
    named = cal.collect(network, batches, inputs="image", labels="label", clusters="patient")
    assert named.logits.tolist() == p.logits.tolist()


def test_a_network_that_gives_nan_is_named():
    x = torch.tensor([[1.0, 0.0], [float("nan"), 0.0]])
    with pytest.raises(
        InputError, match="network: expected finite logits, got NaN or infinity in 1 of 2 rows, the first"
    ):
        cal.collect(torch.nn.Linear(2, 2), [(x, torch.tensor([0, 1]))])
