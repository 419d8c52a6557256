"""One list of promises, run over every model in the catalogue."""

import copy
import dataclasses
import math
from typing import Literal, get_args, get_origin, get_type_hints

import pytest
from entry_docstrings import check_docstring

pytest.importorskip("torch")
import torch
from torch.func import functional_call, grad, jvp

from calibrant.core.catalogue import spec_of
from calibrant.core.errors import InputError
from calibrant.models import Model, Network, Shape, build, count, find, make, names

NAMES = names()
SMALL = {  # options under which a large network is tried; a new file is tried with its defaults
    "vit": "vit:patch=8,width=24,depth=2,heads=3,mlp=48",
    "mixer": "mixer:patch=8,width=24,depth=2,tokens=12,mlp=48",
    "wide_resnet": "wide_resnet:depth=10,width=1",
    "densenet": "densenet:growth=8",
    "resnet_small": "resnet_small:depth=8,width=8",
    "nats_size": "nats_size:channels=8-16-24-8-16",
    "vgg": "vgg:depth=11",
}
OTHERS = [
    "resnet:pool=2x2",
    "resnet:stem=imagenet",
    "resnet:depth=50",
    "resnet_small:depth=8,shortcut=conv,width=7",
    "resnet_small:depth=14,width=7",
    "vgg:head=confidnet",
    "vgg:depth=13,head=4096",
    "wide_resnet:depth=10,width=2,bias=true,dropout=0.3",
    "densenet:growth=4,transition_relu=false",
    "nats_topology:cell=0",
    "nats_topology:cell=9",
]
SPECS = [*(SMALL.get(name, name) for name in NAMES), *OTHERS]
CLASSES = 3
# The first forward-mode derivative loads decompositions that torch itself marks as outdated.
quiet = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")


pytestmark = pytest.mark.usefixtures("one_thread")


def size_of(spec):
    return 64 if "stem=imagenet" in spec else 24 if spec.startswith("vgg") else 16


def build_network(spec, *, channels=3, seed=0):
    torch.manual_seed(seed)
    return make(spec).build(Shape(CLASSES, channels, size_of(spec)))


def images(spec, n=4, *, channels=3, seed=1):
    return torch.randn(n, channels, size_of(spec), size_of(spec), generator=torch.Generator().manual_seed(seed))


def same(a, b):
    return all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))


# -- what it says about itself --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_states_its_facts(name):
    assert find(name).title
    assert find(name).reference


def test_titles_are_unique_and_the_families_are_there():
    titles = [find(name).title for name in NAMES]
    assert len(set(titles)) == len(titles)
    asked = "resnet resnet_small resnet8 vgg densenet wide_resnet vit mixer nats_topology nats_size"
    assert set(asked.split()) <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_a_summary_a_caution_and_an_example(name):
    check_docstring(find(name))


@pytest.mark.parametrize("name", NAMES)
def test_is_a_frozen_dataclass(name):
    recipe = make(name)
    assert isinstance(recipe, Model)
    assert recipe == find(name)()
    assert hash(recipe) == hash(find(name)())
    assert spec_of(recipe) == name
    for field in (*(f.name for f in dataclasses.fields(recipe)), "something"):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(recipe, field, 1)


@pytest.mark.parametrize("spec", SPECS)
def test_spec_makes_it_again(spec):
    assert make(spec_of(make(spec))) == make(spec)


@pytest.mark.parametrize("name", NAMES)
def test_unknown_options_and_wrong_values_are_refused(name):
    hints = get_type_hints(find(name))
    for field in dataclasses.fields(find(name)):
        hint = hints[field.name]
        with pytest.raises(InputError, match="did you mean"):
            make(f"{name}:{field.name}x=1")
        wrong = [
            "",
            "abc",
            *(["nan", "inf", "-1", "1"] if hint is float else ["-3", "0", "2.5"] if hint is int else []),
        ]
        for text in wrong:
            with pytest.raises(InputError):
                make(f"{name}:{field.name}={text}")
        if get_origin(hint) is Literal:
            with pytest.raises(InputError):
                find(name)(**{field.name: f"{get_args(hint)[0]}x"})


# -- the network ----------------------------------------------------------------------------------


@pytest.mark.parametrize("spec", SPECS)
def test_head_turns_features_into_logits(spec):
    network, x = build_network(spec).eval(), images(spec)
    with torch.no_grad():
        features, logits = network.features(x), network(x)
        assert isinstance(network, Network)
        assert isinstance(network.head, torch.nn.Linear)
        assert features.shape == (4, network.head.in_features)
        assert logits.shape == (4, CLASSES)
        assert logits.isfinite().all()
        assert torch.equal(network.head(features), logits)
        assert torch.equal(network(x), logits)  # nothing is random in evaluation
        assert torch.allclose(network(x[:1]), logits[:1], atol=1e-4)  # and no image looks at another
        assert not torch.equal(logits[0], logits[1])


@pytest.mark.parametrize("spec", SPECS)
def test_every_weight_learns(spec):
    network, x = build_network(spec), images(spec, 6)
    assert network.training
    loss = torch.nn.functional.cross_entropy(network(x), torch.tensor([0, 1, 2, 0, 1, 2]))
    loss.backward()
    assert loss < 4 * math.log(CLASSES) + 4
    for name, p in network.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name
    live = [p for p in network.parameters() if p.grad.abs().sum() > 0]
    assert len(live) > 0.5 * len(list(network.parameters()))


@pytest.mark.parametrize("spec", SPECS)
def test_same_seed_same_weights_and_weights_travel(spec):
    one, again, other = build_network(spec), build_network(spec), build_network(spec, seed=5)
    assert same(one, again)
    assert not same(one, other)
    other.load_state_dict(one.state_dict())
    x = images(spec)
    with torch.no_grad():
        assert torch.equal(one.eval()(x), other.eval()(x))
        assert torch.equal(copy.deepcopy(one)(x), one(x))


@pytest.mark.parametrize("name", NAMES)
def test_grey_images_and_other_sizes(name):
    spec = SMALL.get(name, name)
    for channels, size in ((1, 24), (4, 40)):
        network = build(spec, Shape(CLASSES, channels, size)).eval()
        with torch.no_grad():
            assert network(torch.randn(2, channels, size, size)).shape == (2, CLASSES)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("vit", "mixer")])
def test_clothes_of_28_pixels(name):
    network = build(SMALL.get(name, name), Shape(10, channels=1, size=28)).eval()
    with torch.no_grad():
        assert network(torch.randn(2, 1, 28, 28)).shape == (2, 10)


@pytest.mark.parametrize("name", NAMES)
def test_channels_last_and_half_precision(name):
    spec = SMALL.get(name, name)
    network, x = build_network(spec).eval(), images(spec)
    with torch.no_grad():
        plain = network(x)
        assert torch.allclose(network.to(memory_format=torch.channels_last)(x), plain, atol=1e-4)
        assert torch.allclose(network(x.to(memory_format=torch.channels_last)), plain, atol=1e-4)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            half = network(x)
        assert (half.float() - plain).abs().max() < 0.1 * (1 + plain.abs().max())


@pytest.mark.parametrize("name", NAMES)
def test_no_image_is_changed(name):
    spec = SMALL.get(name, name)
    x = images(spec)
    kept = x.clone()
    build_network(spec)(x)
    assert torch.equal(x, kept)


def test_count_is_of_what_is_trained():
    assert count(build_network("resnet8")) == sum(p.numel() for p in build_network("resnet8").parameters())


# -- forward-mode derivatives ---------------------------------------------------------------------


def as_function(spec, training):
    """The network as a function of its weights, the weights, and a change of all; dropout off."""
    network, x = build_network(spec).double(), images(spec).double()
    for module in network.train(training).modules():
        if isinstance(module, torch.nn.Dropout):
            module.eval()
    weights = {name: p.detach() for name, p in network.named_parameters()}
    generator = torch.Generator().manual_seed(3)
    change = {name: w.abs().mean() * torch.randn(w.shape, generator=generator).double() for name, w in weights.items()}
    buffers = {name: b.clone() for name, b in network.named_buffers()}

    def logits(at):
        return functional_call(network, {**at, **{name: b.clone() for name, b in buffers.items()}}, (x,))

    return logits, weights, change


@quiet
@pytest.mark.parametrize(("spec", "training"), [(spec, i % 2 == 0) for i, spec in enumerate(SPECS)])
def test_forward_mode_agrees_with_reverse_mode(spec, training):
    """u (J v) = (u J) v. A layer has its modes, so half the networks are tried in each."""
    logits, weights, change = as_function(spec, training)
    value, forwards = jvp(logits, (weights,), (change,))
    u = torch.randn(value.shape, generator=torch.Generator().manual_seed(4)).double()
    back = grad(lambda at: (u * logits(at)).sum())(weights)
    expected = sum((back[name] * change[name]).sum() for name in weights)
    assert forwards.abs().max() > 0
    assert (u * forwards).sum() == pytest.approx(float(expected), rel=1e-6)


@quiet
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("name", ["resnet8", "vit", "mixer", "nats_size", "wide_resnet"])
def test_forward_mode_agrees_with_finite_differences(name, training):
    logits, weights, change = as_function(SMALL.get(name, name), training)
    _, forwards = jvp(logits, (weights,), (change,))
    step = 1e-7  # small: a ReLU that switches in between would spoil the difference
    ahead, back = (logits({k: w + sign * step * change[k] for k, w in weights.items()}) for sign in (1, -1))
    differences = (ahead - back) / (2 * step)
    assert (forwards - differences).abs().max() < 1e-4 * (1 + differences.abs().max())
