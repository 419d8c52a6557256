"""The spaces of NATS-Bench: counts, order, copies, constants, neighbours, samples, and sizes against real files."""

import pytest
from real_data import FOLDER, needs_real_data

from calibrant.core.errors import InputError
from calibrant.core.nats import BEST, OPERATIONS, read_cell, write_cell
from calibrant.datasets._unpickle import read_pickled
from calibrant.nas import spaces

REAL = FOLDER / "nats"
ALL = "|{0}~0|+|{0}~0|{0}~1|+|{0}~0|{0}~1|{0}~2|"
TOPOLOGY, SIZE = spaces.make("topology"), spaces.make("size")
# docs/methods/networks.md#nats-bench-files
CHECKS = [  # params and flops in millions; 10 and 100 classes at 32 pixels, 120 at 16
    (TOPOLOGY, "0", (0.129306, 15.64737), (0.135156, 15.65322), (0.136456, 3.91948)),
    (TOPOLOGY, "11", (0.802426, 113.95137), (0.808276, 113.95722), (0.809576, 28.49548)),
    (SIZE, "8:8:8:8:8", (0.011714, 4.481114), (0.012524, 4.481924), (0.012704, 1.121336)),
    (SIZE, "8:8:8:16:32", (0.049202, 6.84065), (0.052172, 6.84362), (0.052832, 1.71404)),
]


@pytest.mark.parametrize(("space", "arch", "ten", "hundred", "imagenet"), CHECKS)
def test_parameters_and_flops_are_the_published_ones(space, arch, ten, hundred, imagenet):
    for (params, flops), classes, size in ((ten, 10, 32), (hundred, 100, 32), (imagenet, 120, 16)):
        assert space.params(arch, classes=classes) == round(params * 1e6)
        assert space.flops(arch, classes=classes, size=size) == pytest.approx(flops, abs=1e-12)


@pytest.mark.parametrize(
    ("space", "arch", "params"),
    [
        (TOPOLOGY, ALL.format("none"), 73_306),
        (TOPOLOGY, ALL.format("nor_conv_3x3"), 1_531_546),
        (TOPOLOGY, "284", 101_306),
        (SIZE, "8:8:40:32:40", 144_834),
        (SIZE, "64:64:64:64:64", 713_674),
    ],
)
def test_more_parameters(space, arch, params):
    assert space.params(arch) == params


@pytest.mark.parametrize(
    ("spec", "archs"),
    [("topology:width=8,cells=1", ("0", "11", "9930")), ("size:width=4", ("8:16:24:8:64", "64:8:8:8:8"))],
)
@pytest.mark.parametrize(("channels", "size"), [(3, 16), (1, 14)])
def test_counts_equal_those_of_the_built_network(spec, archs, channels, size):
    torch = pytest.importorskip("torch")
    from calibrant.models import Shape, build, count

    space = spaces.make(spec)
    for arch in archs:
        with torch.device("meta"):
            network = build(space.model(arch), Shape(7, channels, size))
        assert space.params(arch, classes=7, channels=channels) == count(network)
        flops = 0

        def add(module, _, output):
            nonlocal flops
            linear = isinstance(module, torch.nn.Linear)
            flops += module.weight.numel() * (1 if linear else output.shape[2] ** 2) + (7 if linear else 0)

        for module in network.modules():
            if isinstance(module, torch.nn.Conv2d | torch.nn.Linear):
                module.register_forward_hook(add)
        network.eval()(torch.zeros(1, channels, size, size, device="meta"))
        assert space.flops(arch, classes=7, channels=channels, size=size) == pytest.approx(flops / 1e6, abs=1e-12)


def test_every_architecture_by_index_and_text():
    for space, count in ((TOPOLOGY, 5**6), (SIZE, 8**5)):
        archs = space.archs()
        assert len(space) == len(set(archs)) == count
        for i in range(0, count, 997):
            assert space.find(str(i)) == space.find(archs[i]) == archs[i]
            assert space.index(archs[i]) == space.index(str(i)) == i


def test_reads_what_it_writes():
    for cell in TOPOLOGY.archs():
        assert write_cell(read_cell(cell)) == cell
        assert set(read_cell(cell)) <= set(OPERATIONS)


def test_copies_and_constants():
    """docs/methods/networks.md#topology-space: 6466 different cells, 341 that ignore the image."""
    assert len(TOPOLOGY.uniques()) == 6466
    assert sum(map(TOPOLOGY.is_constant, TOPOLOGY.archs())) == 341
    assert not TOPOLOGY.is_constant(BEST)
    assert TOPOLOGY.is_constant(ALL.format("none"))
    swapped = "|skip_connect~0|+|none~0|none~1|+|{}~0|{}~1|none~2|"
    one, other = (swapped.format(*pair) for pair in (("none", "avg_pool_3x3"), ("avg_pool_3x3", "none")))
    assert TOPOLOGY.unique(one) == TOPOLOGY.unique(other)
    assert TOPOLOGY.index(TOPOLOGY.unique(one)) <= min(TOPOLOGY.index(one), TOPOLOGY.index(other))
    assert len(SIZE.uniques()) == len(SIZE)
    assert not SIZE.is_constant("0")


@pytest.mark.parametrize(("space", "arch", "count"), [(TOPOLOGY, "7", 24), (SIZE, "7", 35)])
def test_neighbours_differ_in_one_place(space, arch, count):
    near = space.neighbours(arch)
    assert len(set(near)) == count
    assert space.find(arch) not in near
    assert [space.index(other) for other in near] == sorted(space.index(other) for other in near)
    parts = (lambda text: text.split(":")) if space is SIZE else read_cell
    for other in near:
        assert sum(a != b for a, b in zip(parts(space.find(arch)), parts(other), strict=True)) == 1
        assert space.find(arch) in space.neighbours(other)


@pytest.mark.parametrize("space", [TOPOLOGY, SIZE])
def test_samples_are_seeded_different_and_hold_the_extremes(space):
    one = space.sample(40, seed=3)
    assert one == space.sample(40, seed=3) != space.sample(40, seed=4)
    assert len({space.key(arch) for arch in one}) == 40
    assert {space.find(arch) for arch in space.extremes} <= set(one)
    assert space.sample(60, seed=3)[:40] == one  # a larger sample goes on from a smaller one
    assert len(space.sample(2)) == 2
    assert not set(space.sample(5, seed=1, extremes=False)) <= set(map(space.find, space.extremes))
    with pytest.raises(InputError, match="sample: expected 1 to"):
        space.sample(0)


def test_the_extremes_of_the_topology_space():
    """Cells of one operation each; those of none is a constant network."""
    first = TOPOLOGY.sample(7)
    assert {ALL.format(name) for name in OPERATIONS} <= set(first)
    assert len({TOPOLOGY.key(arch) for arch in first}) == 7
    assert sum(map(TOPOLOGY.is_constant, first)) == 1


def test_unknown_architectures():
    with pytest.raises(InputError, match="edge 0 to 1"):
        TOPOLOGY.index(ALL.format("none").replace("none", "conv", 1))
    with pytest.raises(InputError, match="number 3"):
        SIZE.index("8:8:9:8:8")


@needs_real_data("nats")
@pytest.mark.parametrize(("space", "folder"), [(TOPOLOGY, "tss"), (SIZE, "sss")])
def test_the_order_is_that_of_the_real_meta_file(space, folder):
    meta = read_pickled(REAL / folder / "meta.pickle.pbz2")
    assert tuple(meta["meta_archs"]) == space.archs()
