"""Tensors out of files that were published as pickles: their numbers are read as weights, no name is called."""

import io
import pickle
from typing import Any

import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.datasets import StoredTensor


def tensor_of(stored: StoredTensor, what: str) -> Tensor:
    """The torch tensor of stored numbers, with memory of its own."""
    try:
        storage: Any = torch.load(io.BytesIO(stored.content), weights_only=True, map_location="cpu")
        flat = torch.empty(0, dtype=storage.dtype).set_(storage, stored.offset, stored.size, stored.stride)
        return flat.clone()
    except (pickle.UnpicklingError, RuntimeError, ValueError, TypeError, AttributeError, EOFError, KeyError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        fix = "get the published file again"
        raise InputError(what, expected="a tensor of numbers", got=reason, fix=fix) from None
