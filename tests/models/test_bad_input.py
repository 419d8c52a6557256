"""Impossible options and images: the error says what is possible."""

import pytest

pytest.importorskip("torch")

from calibrant.core.errors import InputError
from calibrant.models import Shape, build, make
from calibrant.models.nats_topology import NATSTopology

CELL = "|{}~0|+|none~0|none~1|+|none~0|none~1|none~2|"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("resnet:depth=20", "expected one of 18, 34, 50, 101, 110, 152, got 20. To fix it: did you mean 18?"),
        ("resnet:stem=mnist", "expected one of cifar, imagenet, got 'mnist'"),
        ("resnet:pool=3x3", "expected one of 2x2, global"),
        ("resnet:dept=18", "did you mean 'depth'"),
        ("resnet_small:depth=18", "expected 6 m \\+ 2, for instance 8, 20, 32, 44, 56, 110, got 18.*did you mean 20"),
        ("resnet_small:depth=2", "did you mean 8"),
        ("resnet_small:width=0", "expected 1 to 1,024, got 0"),
        ("resnet_small:depth=6000002", "expected 1 to 2,000, got 6000002"),
        ("wide_resnet:width=1000000", "wide_resnet:width: expected 1 to 64, got 1000000"),
        ("wide_resnet:depth=6000004", "expected 1 to 1,000, got 6000004"),
        ("resnet8:width=1000000", "width: expected 1 to 1,024, got 1000000"),
        ("densenet:growth=1000000", "expected 1 to 256, got 1000000"),
        ("vit:width=1000000", "vit:width: expected 1 to 8,192, got 1000000"),
        ("mixer:mlp=1000000", "mixer:mlp: expected 1 to 32,768, got 1000000"),
        ("resnet8:width=0", "expected 1 to 1,024, got 0"),
        ("vgg:depth=17", "expected one of 11, 13, 16, 19, got 17.*did you mean 16"),
        ("vgg:head=big", "expected one of 4096, confidnet, linear"),
        ("densenet:depth=100", "expected one of 121, 161, 169, 201, got 100"),
        ("densenet:growth=0", "expected 1 to 256, got 0"),
        ("densenet:transition_relu=maybe", "expected true or false"),
        ("wide_resnet:depth=18", "expected 6 m \\+ 4, for instance 10, 16, 22, 28, 40, got 18.*did you mean 16"),
        ("wide_resnet:dropout=1", "expected 0 or more and below 1, got 1"),
        ("wide_resnet:dropout=-0.1", "0 or more"),
        ("vit:heads=5", "expected a divisor of the width 384, got 5"),
        ("vit:depth=0", "expected 1 to 100, got 0"),
        ("mixer:tokens=0", "expected 1 to 8,192, got 0"),
        ("nats_topology:cell=15625", "expected an index in 0..15624, got 15625"),
        ("nats_topology:cell=-1", "cell: expected three nodes joined by \\+"),
        ("nats_topology:cell=|none~0|", "three nodes joined by \\+, as in \\|a~0\\|.*got 1"),
        (f"nats_topology:cell={CELL.format('conv')}", "edge 0 to 1: expected one of .*none, .*got 'conv'"),
        (f"nats_topology:cell={CELL.format('none')}".replace("~2", "~1"), "edge 2 to 3: expected operation~2, got"),
        (f"nats_topology:cell={CELL.format('none')}".replace("+|none~0|none~1|+", "+|none~0|+"), "node 2: expected"),
        (f"nats_topology:cell={CELL.format('none')[1:]}", "node 1: expected \\|a~0\\|, got 'none~0\\|'"),
        ("nats_topology:width=0", "expected 1 to 512"),
        ("nats_topology:cells=0", "expected 1 to 100"),
        ("nats_size:channels=8-8-8-8", "expected five widths joined by : or -.*got '8-8-8-8'"),
        ("nats_size:channels=8-8-8-8-12", "number 5: expected one of 8, 16, 24, 32, 40, 48, 56, 64, got '12'"),
        ("nats_size:channels=8:a:8:8:8", "number 2: expected .* got 'a'"),
        ("nats_size:channels=32768", "expected an index in 0..32767"),
        ("nats_size:width=0", "expected 1 to 256"),
    ],
)
def test_options(spec, message):
    with pytest.raises(InputError, match=message):
        make(spec)


@pytest.mark.parametrize(
    ("spec", "size", "message"),
    [
        ("vit", 28, "expected a divisor of the image size 28 \\(1, 2, 4, 7, 14, 28\\), got 16"),
        ("mixer:patch=5", 32, "mixer:patch: expected a divisor of the image size 32"),
        ("vit:patch=64", 32, "got 64"),
        ("vgg", 16, "expected images of at least 17 x 17 pixels, got 16 x 16"),
        ("resnet", 7, "at least 8 x 8"),
        ("resnet:stem=imagenet", 28, "at least 32 x 32"),
        ("resnet:pool=2x2", 15, "at least 16 x 16"),
        ("resnet:pool=2x2,stem=imagenet", 63, "at least 64 x 64"),
        ("resnet8", 3, "at least 4 x 4"),
        ("wide_resnet", 3, "at least 4 x 4"),
        ("densenet", 7, "at least 8 x 8"),
        ("nats_topology", 3, "at least 4 x 4"),
        ("nats_size", 2, "at least 4 x 4"),
    ],
)
def test_images(spec, size, message):
    with pytest.raises(InputError, match=message):
        build(spec, Shape(10, size=size))


@pytest.mark.parametrize("wrong", [{"classes": 1}, {"classes": 3, "channels": 0}, {"classes": 3, "size": 0}])
def test_shapes(wrong):
    with pytest.raises(InputError, match="expected at least"):
        Shape(**wrong)


def test_options_from_python():
    with pytest.raises(InputError):
        NATSTopology(cell="")
