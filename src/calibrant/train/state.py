"""How far a training is, on disk: a killed run goes on as if nothing had happened."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import nn

from calibrant.core.errors import InputError
from calibrant.models import Network
from calibrant.models import _checkpoint as checkpoint
from calibrant.train.meta import MetaStep
from calibrant.train.recipe import Recipe
from calibrant.train.run import Run


@dataclass
class State:
    """How far a training is: what a killed run needs to go on as if nothing had happened."""

    epoch: int = 0
    step: int = 0
    best: float = math.inf
    best_epoch: int = -1
    stopped: bool = False  # before its last epoch, by patience
    loss: Any = 0.0  # sums over this epoch's samples, numbers or tensors: looking at them may mean waiting
    wrong: Any = 0.0
    seen: int = 0
    seconds: float = 0.0
    log: list[dict[str, Any]] = field(default_factory=list)

    def end_epoch(self, row: dict[str, Any], patience: int) -> None:
        self.log.append(row)
        self.stopped = patience > 0 and self.epoch - self.best_epoch >= patience
        self.epoch += 1
        self.step, self.seen, self.loss, self.wrong, self.seconds = 0, 0, 0.0, 0.0, 0.0


@dataclass(frozen=True)
class Parts:
    """What moves while a network trains."""

    network: Network
    optimizer: torch.optim.Optimizer
    loss: nn.Module
    scaler: Any
    meta: MetaStep | None = None


def save(run: Run, state: State, parts: Parts) -> None:
    """Everything, in one file. Random numbers need no saving: every step starts from its own."""
    facts = asdict(state) | {"loss": float(state.loss), "wrong": float(state.wrong), "best": min(state.best, 1e300)}
    tensors = {
        **checkpoint.named("network", parts.network.state_dict()),
        **checkpoint.named("optimizer", checkpoint.optimizer_tensors(parts.optimizer)),
        **checkpoint.named("loss", parts.loss.state_dict()),
    }
    if parts.meta is not None:
        tensors |= checkpoint.named("learned", parts.meta.learned.state_dict())
        tensors |= checkpoint.named("meta_optimizer", checkpoint.optimizer_tensors(parts.meta.optimizer))
    facts |= {"recipe": run.recipe.to_dict(), "scaler": parts.scaler.state_dict()}
    checkpoint.save(run.last, tensors, facts)


def resume(run: Run, parts: Parts) -> State:
    """The state in the folder, put back into network, optimizer, loss and regulariser."""
    for stray in run.folder.glob(".*.safetensors.*"):  # half a file of a run that was killed while it saved
        stray.unlink()
    tensors, facts = checkpoint.load(run.last)
    _same_recipe(run, facts.pop("recipe"))
    checkpoint.put(parts.network, checkpoint.under("network", tensors), str(run.last))
    checkpoint.put_optimizer(parts.optimizer, checkpoint.under("optimizer", tensors))
    parts.loss.load_state_dict(checkpoint.under("loss", tensors))
    if parts.meta is not None:
        parts.meta.learned.load_state_dict(checkpoint.under("learned", tensors))
        checkpoint.put_optimizer(parts.meta.optimizer, checkpoint.under("meta_optimizer", tensors))
    parts.scaler.load_state_dict(facts.pop("scaler"))
    return State(**facts)


def _same_recipe(run: Run, saved: dict[str, Any]) -> None:
    """Refuse to go on with another recipe; JSON has no tuples, so lists are compared."""

    def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        inner = {k: flat(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v} for k, v in values.items()}
        return {k: list(v) if isinstance(v, tuple) else v for part in inner.values() for k, v in part.items()}

    now, then = flat(run.recipe.to_dict()), flat(Recipe.from_dict(saved).to_dict())  # with keys that came later
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key) and key != "title")
    if changed:
        shown = ", ".join(f"{key} = {then.get(key)!r} then, {now.get(key)!r} now" for key in changed[:3])
        fix = "choose another --out, or --restart to begin again"
        raise InputError(str(run.folder), expected="the recipe its training began with", got=shown, fix=fix)
