"""Strided 1 x 1 convolutions that oneDNN would compute outside its arrays get their channels first."""

import pytest

pytest.importorskip("torch")

import torch

from calibrant.core.torch.onednn import keep_in_bounds


@pytest.mark.parametrize(
    ("processor", "channels", "stride", "first"),
    [("AVX2", 4, 2, True), ("AVX2", 8, 2, False), ("AVX2", 4, 1, False), ("AVX512", 4, 2, False)],
)
def test_only_narrow_strided_ones_on_avx2_are_changed(processor, channels, stride, first, monkeypatch):
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: processor)
    layer = torch.nn.Conv2d(channels, 8, 1, stride=stride, bias=False)
    expected = layer(x := torch.randn(2, channels, 6, 6).to(memory_format=torch.channels_last))
    keep_in_bounds(torch.nn.Sequential(layer))
    seen = []
    layer.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].is_contiguous()))
    assert torch.allclose(layer(x), expected, atol=1e-6)
    assert seen == [first]


def test_a_narrow_network_trains_on_grey_images():
    network = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.Conv2d(4, 8, 1, stride=2))
    keep_in_bounds(network)
    grey = torch.randn(32, 8, 8, 1).permute(0, 3, 1, 2)  # channels last, says torch
    for _ in range(50):
        network(grey).square().mean().backward()
    assert all(torch.isfinite(weights.grad).all() for weights in network.parameters())
