"""A fault of oneDNN, which computes convolutions on the CPU for torch."""

import torch
from torch import Tensor, nn

BLOCK = 8  # channels that its kernels for AVX2 work on at once


def keep_in_bounds(network: nn.Module) -> None:
    """Give strided 1 x 1 convolutions their input with the channels first where oneDNN would write out of bounds.

    On processors with AVX2 but not AVX-512, oneDNN as it comes with torch 2.13 writes behind the gradient of such
    weights if the channels come last and are no multiple of eight; the process then dies of a damaged heap. Grey images
    are enough: torch takes a single channel for channels last. Nothing changes on other processors.
    """
    if torch.backends.cpu.get_cpu_capability() != "AVX2":
        return
    for module in network.modules():
        narrow = isinstance(module, nn.Conv2d) and module.in_channels % BLOCK > 0
        if narrow and module.kernel_size == (1, 1) and module.stride != (1, 1):
            module.register_forward_pre_hook(_put_channels_first)


def _put_channels_first(module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    x, *others = inputs
    return (x.contiguous(), *others) if x.device.type == "cpu" else inputs
