"""Trainable numbers of every network, against docs/methods/networks.md#parameter-counts; nothing is allocated."""

import pytest

pytest.importorskip("torch")
import torch

from calibrant.models import Shape, count, make

COUNTS = [  # spec, classes, size, numbers
    ("resnet:depth=18", 10, 32, 11_173_962),
    ("resnet:depth=18", 100, 32, 11_220_132),
    ("resnet:depth=18", 200, 64, 11_271_432),
    ("resnet:depth=18,pool=2x2", 200, 64, 11_578_632),
    ("resnet:depth=50", 8, 28, 23_516_744),
    ("resnet:depth=50", 10, 32, 23_520_842),
    ("resnet:depth=50", 100, 32, 23_705_252),
    ("resnet:depth=50,pool=2x2", 200, 64, 25_138_952),
    ("resnet:depth=101", 10, 32, 42_512_970),
    ("resnet:depth=101", 100, 32, 42_697_380),
    ("resnet:depth=110", 10, 32, 45_864_522),
    ("resnet:depth=110", 100, 32, 46_048_932),
    ("resnet:depth=18,stem=imagenet", 1000, 224, 11_689_512),  # depths 18, 34, 152: documentation of torchvision
    ("resnet:depth=34,stem=imagenet", 1000, 224, 21_797_672),
    ("resnet:depth=50,stem=imagenet", 1000, 224, 25_557_032),
    ("resnet:depth=101,stem=imagenet", 1000, 224, 44_549_160),
    ("resnet:depth=152,stem=imagenet", 1000, 224, 60_192_808),
    ("resnet_small:depth=110", 10, 32, 1_727_962),
    ("resnet_small:depth=110", 100, 32, 1_733_812),
    ("resnet_small:depth=110,shortcut=conv", 10, 32, 1_730_714),
    ("resnet_small:depth=110,shortcut=conv", 100, 32, 1_736_564),
    ("vgg", 10, 32, 14_728_266),
    ("vgg", 100, 32, 14_774_436),
    ("vgg", 10, 28, 14_728_266),
    ("vgg:head=4096", 10, 32, 33_646_666),
    ("vgg:head=4096", 100, 32, 34_015_396),
    ("vgg:head=confidnet", 10, 32, 14_990_922),
    ("vgg:head=confidnet", 100, 32, 15_037_092),
    ("densenet", 10, 32, 6_956_298),
    ("densenet", 100, 32, 7_048_548),
    ("densenet:transition_relu=false", 100, 32, 7_048_548),
    ("wide_resnet:depth=40,width=10", 10, 32, 55_841_754),
    ("wide_resnet:depth=40,width=10", 100, 32, 55_899_444),
    ("wide_resnet:depth=40,width=10,bias=true,dropout=0.5", 10, 32, 55_856_330),
    ("wide_resnet:depth=40,width=10,bias=true,dropout=0.5", 100, 32, 55_914_020),
    ("wide_resnet:depth=16,width=4", 10, 32, 2_748_890),
    ("wide_resnet:depth=16,width=4", 100, 32, 2_772_020),
    ("vit", 1000, 224, 22_050_664),
    ("mixer", 1000, 224, 59_880_472),
    ("nats_topology:cell=0", 10, 32, 129_306),
    ("nats_topology:cell=11", 10, 32, 802_426),
    ("nats_topology:cell=11", 100, 32, 802_426 + 5850),
    ("nats_topology:cell=11", 120, 16, 802_426 + 7150),
    ("nats_topology:cell=284", 10, 32, 101_306),
    ("nats_size:channels=8-8-8-8-8", 10, 32, 11_714),
    ("nats_size:channels=8:8:8:16:32", 10, 32, 49_202),
    ("nats_size:channels=8-8-40-32-40", 10, 32, 144_834),
    ("nats_size:channels=64:64:64:64:64", 10, 32, 713_674),
]


@pytest.mark.parametrize(("spec", "classes", "size", "numbers"), COUNTS)
def test_parameter_counts(spec, classes, size, numbers):
    with torch.device("meta"):
        assert count(make(spec).build(Shape(classes, size=size))) == numbers


def test_only_what_is_trained_counts():
    network = make("resnet8").build(Shape(10, channels=1, size=28))
    whole = count(network)
    network.head.requires_grad_(False)
    assert count(network) == whole - (64 * 10 + 10)
