"""Networks of other packages: made by a callable, or loaded from a folder as the hub would give it."""

import copy
import importlib
import sys

import pytest

pytest.importorskip("torch")
import torch
from torch.func import functional_call, jvp

from calibrant.core.errors import InputError
from calibrant.models import Network, Shape, build, count
from calibrant.models._external import External

SHAPE = Shape(classes=3, channels=3, size=16)
CODE = """
import torch
from torch import nn

from calibrant.models import Model, Network
from calibrant.models.resnet8 import ResNet8

NUMBER = 3


class Plain(nn.Module):
    def __init__(self, num_classes, width=8, norm=True):
        super().__init__()
        second = nn.BatchNorm2d(width) if norm else nn.Identity()
        self.features = nn.Sequential(nn.Conv2d(3, width, 3), second, nn.ReLU())
        self.drop = nn.Dropout(0.5)
        self.head = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, num_classes))

    def forward(self, x):
        return self.head(self.drop(self.features(x).mean((2, 3))))


class Normed(Plain):
    def forward(self, x):
        return super().forward(x).log_softmax(1)


class Pair(Plain):
    def forward(self, x):
        return x, super().forward(x)


class ConvHead(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Conv2d(3, 8, 3)
        self.last = nn.Conv2d(8, classes, 1)
        self.idle = nn.Linear(2, 2)

    def forward(self, x):
        return self.last(self.body(x).mean((2, 3), keepdim=True)).flatten(1)


def passes_on(width=8, **kwargs):
    return Plain(width=width, **kwargs)


def takes_anything(**kwargs):
    if set(kwargs) - {"width"}:
        raise TypeError(f"unexpected keyword argument {min(set(kwargs) - {'width'})!r}")
    return Plain(3, **kwargs)


def by_labels(n_classes):
    return Plain(n_classes)


def nothing():
    return Plain(3)


def broken(num_classes):
    raise RuntimeError("no weights today.")


def a_number(num_classes):
    return num_classes


class Makers:
    @staticmethod
    def small(classes=2, layers=(1,)):
        assert isinstance(layers, list)
        return Plain(classes, width=layers[0])
"""


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    """Importable as `plain_nets` and `bundle.nets`."""
    (tmp_path / "plain_nets.py").write_text(CODE)
    (tmp_path / "bundle").mkdir()
    (tmp_path / "bundle" / "__init__.py").write_text("")
    (tmp_path / "bundle" / "nets.py").write_text("from plain_nets import *\n")
    (tmp_path / "bundle" / "fails.py").write_text("import not_there_at_all\n")
    (tmp_path / "bundle" / "typo.py").write_text("1 +\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.partition(".")[0] in ("plain_nets", "bundle", "hugging")]:
        del sys.modules[name]


def images(n=4):
    return torch.randn(n, SHAPE.channels, SHAPE.size, SHAPE.size, generator=torch.Generator().manual_seed(0))


def keeps_the_contract(network):
    assert isinstance(network, Network)
    assert isinstance(network.head, torch.nn.Linear)
    x = images()
    modes = [m.training for m in network.modules()]
    network.eval()
    with torch.no_grad():
        features, logits = network.features(x), network(x)
        assert features.shape == (4, network.head.in_features)
        assert logits.shape == (4, SHAPE.classes)
        assert torch.equal(network.head(features), logits)
    network.train()
    network(x).sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in network.parameters())
    assert not any(module._forward_hooks for module in network.modules())
    return modes  # as they were when it came


# -- callables ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "spec",
    [
        "bundle.nets:Plain",
        "bundle.nets:Plain?width=12&norm=false",
        "plain_nets:Plain",
        "plain_nets:passes_on?width=5",
        "plain_nets:takes_anything",
        "plain_nets:takes_anything?width=4",
        "plain_nets:by_labels",
        "plain_nets:nothing",
        "plain_nets:Makers.small?layers=[6]",
        "plain_nets:Makers.small?layers=[6]&classes=3",
        "plain_nets:Normed?head=head.2",
        "plain_nets:Pair?head=head.2",
    ],
)
def test_a_callable_becomes_a_network(spec):
    assert all(keeps_the_contract(build(spec, SHAPE)))


def test_the_arguments_arrive():
    network = build("plain_nets:Plain?width=12&norm=false", SHAPE)
    assert network.head.in_features == 12
    assert isinstance(network.network.features[1], torch.nn.Identity)


def test_what_follows_a_named_head_is_left_out():
    network, x = build("plain_nets:Normed?head=head.2", SHAPE).eval(), images()
    assert torch.allclose(network(x).log_softmax(1), network.network(x))
    assert not torch.allclose(network(x), network.network(x))


def test_the_look_leaves_no_trace():
    torch.manual_seed(0)
    network = build("plain_nets:Plain", SHAPE)
    after = torch.get_rng_state()
    from plain_nets import Plain

    torch.manual_seed(0)
    plain = Plain(3)
    assert torch.equal(torch.get_rng_state(), after)
    assert all(
        torch.equal(a, b) for a, b in zip(network.state_dict().values(), plain.state_dict().values(), strict=True)
    )
    norm = network.network.features[1]
    assert norm.num_batches_tracked == 0
    assert norm.running_mean.abs().sum() == 0
    assert all(module.training for module in network.modules())


def test_weights_are_those_of_the_network_inside():
    from plain_nets import Plain

    network = build("plain_nets:Plain", SHAPE)
    plain = Plain(3)
    assert list(network.state_dict()) == list(plain.state_dict())
    assert [id(p) for p in network.parameters()] == [id(p) for p in network.network.parameters()]
    assert count(network) == count(plain)
    plain.load_state_dict(network.state_dict())
    other = build("plain_nets:Plain", SHAPE)
    other.load_state_dict(plain.state_dict())
    x = images()
    assert torch.equal(other.eval()(x), network.eval()(x))
    outer = torch.nn.ModuleDict({"a": other})
    assert next(iter(outer.state_dict())) == "a.features.0.weight"
    outer.load_state_dict(outer.state_dict())
    with pytest.raises(RuntimeError, match="Missing key"):
        other.load_state_dict({})


def test_a_copy_is_whole():
    network = build("plain_nets:Plain", SHAPE).eval()
    twin = copy.deepcopy(network)
    assert twin.head is twin.network.head[2]
    assert twin.head is not network.head
    torch.nn.init.zeros_(twin.head.weight)
    assert not torch.equal(twin(images()), network(images()))


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_forward_mode():
    network, x = build("plain_nets:Plain", SHAPE).double().eval(), images().double()
    weights = {name: p.detach() for name, p in network.named_parameters()}
    zero = {name: torch.zeros_like(w) for name, w in weights.items()}
    change = {**zero, "network.head.2.bias": torch.tensor([1.0, 2.0, 3.0]).double()}
    _, forwards = jvp(lambda at: functional_call(network, at, (x,)), (weights,), (change,))
    assert torch.allclose(forwards, torch.tensor([1.0, 2.0, 3.0]).double().expand(4, 3))


def test_recipes_and_networks_of_ours_pass_through():
    network = build("plain_nets:ResNet8?width=4", SHAPE)
    assert not isinstance(network, External)
    assert network.head.in_features == 16
    assert all(module.training for module in network.modules())


def test_a_users_file_still_works(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from dataclasses import dataclass\n"
        "from calibrant.models import Model\n"
        "from calibrant.models.resnet8 import ResNet8\n"
        "@dataclass(frozen=True)\n"
        "class Mine(Model):\n"
        "    width: int = 4\n"
        "    def build(self, shape):\n"
        "        return ResNet8(width=self.width).build(shape)\n"
    )
    assert build(f"{file}:width=2", SHAPE).head.in_features == 8


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bundle.net:Plain", "no module 'bundle.net'.*did you mean 'nets'"),
        ("bundel.nets:Plain", "no module 'bundel'.*did you mean 'bundle'"),
        ("bundle.fails:Plain", "ModuleNotFoundError: No module named 'not_there_at_all'"),
        ("bundle.typo:Plain", "SyntaxError"),
        ("bundle.nets:Plian", "no 'Plian'.*did you mean 'Plain'"),
        ("bundle.nets:Makers.smal", "no 'smal'.*did you mean 'small'"),
        ("bundle.nets:NUMBER", "expected a callable, got a int"),
        ("bundle.nets.Plain", "write bundle.nets:Plain"),
        ("bundle.nets:Plain?widht=3", "expected num_classes, width, norm, got 'widht'.*did you mean 'width'"),
        ("bundle.nets:nothing?width=3", "expected no arguments"),
        ("bundle.nets:Plain?width", "expected \\?arg=value"),
        ("bundle.nets:Plain?num_classes=7", "expected 3 classes, as in the data, got 7"),
        ("bundle.nets:broken", "RuntimeError: no weights today. To fix it"),
        ("bundle.nets:a_number", "returns a torch module, got int"),
        ("bundle.nets:Normed", "none of its linear layers.*head=classifier"),
        ("bundle.nets:Pair", "expected logits \\(B, classes\\), got tuple"),
        ("bundle.nets:Plain?head=head.3", "did you mean 'head.2'"),
        ("bundle.nets:Plain?head=head.0", "expected 3 classes, as in the data, got 8"),
        ("bundle.nets:ConvHead", "none of its linear layers"),
        ("bundle.nets:ConvHead?head=last", "flat features"),
        ("bundle.nets:ConvHead?head=idle", "one that is not used"),
        ("plian_nets:Plain", "model: expected one of"),
        ("resnet:depth", "expected option=value"),
        ("resnte:depth=18", "did you mean 'resnet'"),
        ("hf:", "no such folder"),
        ("hf:./not/there", "no such folder"),
        ("hf:name?hed=x", "did you mean 'head'"),
    ],
)
def test_mistakes_are_named(spec, message):
    with pytest.raises(InputError, match=message):
        build(spec, SHAPE)


def test_images_that_do_not_fit_are_named():
    with pytest.raises(InputError, match="a network for images of 1 x 16 x 16, got RuntimeError"):
        build("bundle.nets:Plain", Shape(3, channels=1, size=16))


def test_a_mistake_leaves_the_mode_alone():
    from plain_nets import Normed

    from calibrant.models._external import wrap

    network = Normed(3)
    network.drop.eval()
    with pytest.raises(InputError):
        wrap(network, SHAPE, "mine")
    assert network.training
    assert not network.drop.training
    assert not any(module._forward_hooks for module in network.modules())


# -- transformers ---------------------------------------------------------------------------------

VIT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "patch_size": 8}
HUGGING = f"""
from transformers import ResNetConfig, ResNetForImageClassification, ViTConfig, ViTForImageClassification


def vit(num_labels, image_size=16):
    return ViTForImageClassification(ViTConfig(image_size=image_size, num_labels=num_labels, **{VIT}))


def resnet(num_labels):
    sizes = {{"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"}}
    return ResNetForImageClassification(ResNetConfig(num_labels=num_labels, **sizes))
"""


@pytest.fixture
def hugging(tmp_path):
    (tmp_path / "hugging.py").write_text(HUGGING)
    return importlib.import_module("hugging")


@pytest.mark.parametrize("name", ["vit", "resnet"])
def test_models_of_transformers_by_a_callable(name, hugging):
    network = build(f"hugging:{name}", SHAPE)
    assert network.head.out_features == 3
    keeps_the_contract(network)


@pytest.mark.parametrize("name", ["vit", "resnet"])
def test_a_folder_of_the_hub(name, hugging, tmp_path):
    saved = getattr(hugging, name)(num_labels=3).eval()
    saved.save_pretrained(tmp_path / "saved")
    network = build(f"hf:{tmp_path / 'saved'}", SHAPE)
    assert not any(module.training for module in network.modules())
    with torch.no_grad():
        assert torch.allclose(network(images()), saved(images()).logits)
    keeps_the_contract(network)


def test_other_classes_get_a_new_head(hugging, tmp_path):
    saved = hugging.vit(num_labels=5).eval()
    saved.save_pretrained(tmp_path / "saved")
    network = build(f"hf:{tmp_path / 'saved'}", SHAPE).eval()
    assert network.head.out_features == 3
    with torch.no_grad():
        assert torch.allclose(network.features(images()), saved.vit(images()).last_hidden_state[:, 0], atol=1e-6)


def test_pickles_and_empty_folders_are_refused(hugging, tmp_path):
    saved = hugging.vit(num_labels=3)
    saved.save_pretrained(tmp_path / "saved")
    (tmp_path / "saved" / "model.safetensors").unlink()
    torch.save(saved.state_dict(), tmp_path / "saved" / "pytorch_model.bin")
    (tmp_path / "empty").mkdir()
    for folder in ("saved", "empty"):
        with pytest.raises(InputError, match=r"hf:.*expected an image classifier"):
            build(f"hf:{tmp_path / folder}", SHAPE)


def test_images_of_another_size_are_named(hugging, tmp_path):
    hugging.vit(num_labels=3, image_size=32).save_pretrained(tmp_path / "saved")
    with pytest.raises(InputError, match="a network for images of 3 x 16 x 16, got ValueError"):
        build(f"hf:{tmp_path / 'saved'}", SHAPE)
