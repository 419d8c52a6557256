"""The two spaces of NATS-Bench: their order, their copies, their constant networks."""

import pytest
import torch

from calibrant.models import Shape, count, make
from calibrant.models._nats import BEST, OPERATIONS, read, write
from calibrant.models.nats_size import sizes
from calibrant.models.nats_topology import cells, find_cell, is_constant, key

ALL = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|"
PUBLISHED = {  # stated in the source of the benchmark
    0: "|avg_pool_3x3~0|+|nor_conv_1x1~0|skip_connect~1|+|nor_conv_1x1~0|skip_connect~1|skip_connect~2|",
    9: "|avg_pool_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|nor_conv_3x3~2|",
    123: "|avg_pool_3x3~0|+|avg_pool_3x3~0|nor_conv_1x1~1|+|none~0|avg_pool_3x3~1|nor_conv_3x3~2|",
    9930: BEST,
}


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    """Threads that wait for each other cost minutes on a busy machine."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


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


def test_copies_and_constants():
    """METHODS 8.1: 6466 different cells, 341 that ignore the image."""
    assert len({key(cell) for cell in cells()}) == 6466
    assert sum(map(is_constant, cells())) == 341
    assert not is_constant("9930")
    assert is_constant(ALL.format("none"))


def test_reads_what_it_writes():
    for cell in cells()[:200]:
        assert write(read(cell)) == cell
        assert set(read(cell)) <= set(OPERATIONS)


@pytest.mark.parametrize("cell", [ALL.format("none"), "|nor_conv_3x3~0|+|none~0|none~1|+|none~0|none~1|none~2|"])
def test_a_constant_cell_says_the_same_of_every_image_and_still_learns(cell):
    torch.manual_seed(0)
    network = built(cell, classes=3)
    logits = network(torch.randn(4, 3, 8, 8))
    assert torch.allclose(logits, logits[:1].expand_as(logits), atol=1e-6)
    torch.nn.functional.cross_entropy(logits, torch.tensor([0, 1, 2, 0])).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert network.head.bias.grad.abs().sum() > 0


def test_isomorphic_cells_compute_the_same():
    """Two ways from the image to the end, swapped; weights follow their operation."""
    cell = "|skip_connect~0|+|none~0|none~1|+|{}~0|{}~1|none~2|"
    one, other = cell.format("nor_conv_1x1", "avg_pool_3x3"), cell.format("avg_pool_3x3", "nor_conv_1x1")
    assert key(one) == key(other)
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
