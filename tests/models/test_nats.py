"""The networks of NATS-Bench: built by text or index, with the published names of weights."""

import pytest

pytest.importorskip("torch")
import torch

from calibrant.core.nats import BEST, cells, find_cell, sizes
from calibrant.models import Shape, count, make
from calibrant.nas import spaces

ALL = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|"
PUBLISHED = {  # stated in the source of the benchmark
    0: "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    9: "|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|",
    123: "|avg_pool_3x3~0|+|avg_pool_3x3~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|",
    9930: BEST,
}


pytestmark = pytest.mark.usefixtures("one_thread")


def built(cell, classes=10):
    return make(f"nats_topology:cell={cell}").build(Shape(classes))


def test_the_index_is_the_one_of_the_benchmark():
    assert len(set(cells())) == 5**6
    for index, cell in PUBLISHED.items():
        assert cells()[index] == cell
        assert find_cell(str(index)) == find_cell(f"{index:06d}") == find_cell(cell) == cell


@pytest.mark.parametrize("cell", [0, 11, 284])
def test_text_and_index_make_the_same_network(cell):
    assert count(built(cell)) == count(built(cells()[cell]))


@pytest.mark.parametrize(("operation", "numbers"), [("none", 73_306), ("nor_conv_3x3", 1_531_546)])
def test_cells_of_one_operation(operation, numbers):
    assert count(built(ALL.format(operation))) == numbers


@pytest.mark.parametrize("cell", [ALL.format("none"), "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|"])
def test_a_constant_cell_says_the_same_of_every_image_and_still_learns(cell):
    torch.manual_seed(0)
    network = built(cell, classes=3)
    logits = network(torch.randn(4, 3, 8, 8))
    assert torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-6)
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert network.classifier.bias.grad.abs().sum() > 0


def test_isomorphic_cells_compute_the_same():
    """Two ways from the image to the end, swapped; weights follow their operation."""
    cell = "|skip_connect~0|+|none~0|none~1|+|{}~0|{}~1|none~2|"
    one, other = cell.format("nor_conv_1x1", "avg_pool_3x3"), cell.format("avg_pool_3x3", "nor_conv_1x1")
    space = spaces.make("topology")
    assert space.key(one) == space.key(other)
    torch.manual_seed(0)
    first = built(one).eval()
    torch.manual_seed(0)
    second = built(other).eval()
    x = torch.randn(2, 3, 16, 16)
    assert torch.allclose(first(x), second(x), atol=1e-5)


def test_size_space_in_the_order_of_the_benchmark():
    assert len(set(sizes())) == 8**5
    assert sizes()[0] == "8:8:8:8:8"
    assert sizes()[8] == "8:8:8:16:8"
    assert sizes()[-1] == "64:64:64:64:64"
    one, other = (make(f"nats_size:channels={text}").build(Shape(10)) for text in ("8-16-8-24-32", "8:16:8:24:32"))
    assert [p.shape for p in one.parameters()] == [p.shape for p in other.parameters()]
    assert one.head.in_features == 32


@pytest.mark.parametrize("size", [15, 16, 28, 30, 33])
def test_branches_agree_on_any_size(size):
    for spec in ("nats_topology", "nats_size:channels=8-8-8-8-8"):
        assert make(spec).build(Shape(3)).eval()(torch.randn(1, 3, size, size)).shape == (1, 3)


def convolutions(place):
    norm = ("weight", "bias", "running_mean", "running_var", "num_batches_tracked")
    return {f"{place}.op.1.weight", *(f"{place}.op.2.{name}" for name in norm)}


def test_weights_have_the_names_of_the_published_files():
    """Cells and blocks counted together, a block at 5 and 11; edges in the order of the text.

    docs/methods/networks.md#nats-bench-files
    """
    names = set(built(PUBLISHED[0]).state_dict())
    outer = {f"{norm}.{name}" for norm in ("stem.1", "lastact.0") for name in ("weight", "bias", "running_mean")}
    assert outer | {"stem.0.weight", "classifier.weight", "classifier.bias"} <= names
    assert {name.split(".")[1] for name in names if name.startswith("cells")} == {str(i) for i in range(17)}
    for cell in (0, 4, 6, 16):
        results = {name for name in names if name.startswith(f"cells.{cell}.")}
        assert results == convolutions(f"cells.{cell}.layers.1") | convolutions(f"cells.{cell}.layers.3")
    for block in (5, 11):
        results = {name for name in names if name.startswith(f"cells.{block}.")}
        a, b = convolutions(f"cells.{block}.conv_a"), convolutions(f"cells.{block}.conv_b")
        assert results == a | b | {f"cells.{block}.downsample.1.weight"}


def test_names_in_the_size_space():
    names = set(make("nats_size:channels=8-16-24-8-8").build(Shape(10)).state_dict())
    assert {"cells.2.layers.3.conv.weight", "cells.2.layers.3.bn.running_var"} <= names  # a skip from 16 to 24
    assert not any(name.startswith("cells.0.layers.3") for name in names)  # a skip from 8 to 8
    assert {"cells.1.conv_a.op.1.weight", "cells.3.downsample.1.weight", "cells.4.layers.5.op.2.bias"} <= names


def test_smaller_versions():
    small = make("nats_topology:cell=9930,width=8,cells=1").build(Shape(10, channels=1, size=14))
    assert len(small.cells) == 5
    assert small.classifier.in_features == 32
    half = make("nats_size:channels=8-16-24-8-64,width=4").build(Shape(10))
    assert half.head.in_features == 32
    assert make("nats_size:channels=1").build(Shape(10)).head.in_features == 16
