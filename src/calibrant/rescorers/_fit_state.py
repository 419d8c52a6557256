"""State of a fit by epochs on disk: an interrupted one continues with the same numbers, if it is the same fit."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from calibrant.core.errors import InputError
from calibrant.core.torch import checkpoint


@dataclass(kw_only=True)
class FitState:
    """The state of a fit by epochs."""

    stage: int = 1
    epoch: int = 0  # of the stage
    waited: int = 0  # epochs of the stage since the best one
    best: float | None = None
    best_stage: int = 1
    best_epoch: int = 0
    log: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class SavedFit:
    """The content of a file of a fit."""

    state: FitState
    tensors: dict[str, Tensor]  # of the optimizer, of now and of the best epoch

    @property
    def now(self) -> dict[str, Tensor]:
        return checkpoint.under("now", self.tensors)

    @property
    def best(self) -> dict[str, Tensor]:
        return checkpoint.under("best", self.tensors)

    def put_optimizer(self, optimizer: torch.optim.Optimizer) -> None:
        checkpoint.put_optimizer(optimizer, checkpoint.under("optimizer", self.tensors))


def save_fit(
    file: Path,
    state: FitState,
    optimizer: torch.optim.Optimizer,
    now: Mapping[str, Tensor],
    best: Mapping[str, Tensor],
    facts: Mapping[str, Any],
) -> None:
    """The state with its tensors; `facts` (options, network, images) say which fit it is."""
    tensors = checkpoint.name_tensors("optimizer", checkpoint.optimizer_tensors(optimizer))
    tensors |= checkpoint.name_tensors("now", now) | checkpoint.name_tensors("best", best)
    checkpoint.save(file, tensors, {"state": asdict(state), **facts})


def load_fit(file: Path, what: str, facts: Mapping[str, Any], later: Mapping[int, set[str]]) -> SavedFit:
    """Read what `save_fit` wrote, if these facts are still the same.

    `later` names, by stage, options that no epoch so far has looked at: they may differ.
    """
    tensors, document = checkpoint.load(file)
    if "state" not in document or "images" not in document:
        raise InputError(str(file), expected=f"the state of {what}", got="another file", fix="delete it")
    then, now, free = document["options"], facts["options"], later[document["state"]["stage"]]
    changed = [f"{k} = {then[k]} then, {now[k]} now" for k in now if k not in free and then[k] != now[k]]
    if document["images"] != facts["images"]:
        changed = ["other images", *changed]
    if document["network"] != facts["network"]:
        changed = ["another network", *changed]
    if changed:
        fix = "use the same, or delete the file to start over"
        got = ", ".join(changed[:3])
        raise InputError(str(file), expected="what its fit began with", got=got, fix=fix)
    return SavedFit(FitState(**document["state"]), tensors)


@contextmanager
def seed_epoch(seed: int, stage: int, epoch: int, device: torch.device) -> Iterator[None]:
    """Seed random numbers for this epoch inside the block; the generators are restored afterwards."""
    number = np.random.SeedSequence([seed, stage, epoch]).generate_state(1, np.uint64)[0]
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(int(number >> np.uint64(1)))
        yield
