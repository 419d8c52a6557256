"""State of a training on disk: a killed run continues bit-identically."""

import math
from dataclasses import asdict, dataclass, field
from typing import Any

from calibrant.core.errors import InputError
from calibrant.core.torch import checkpoint
from calibrant.training.parts import Parts
from calibrant.training.recipe import Recipe
from calibrant.training.run import Run


@dataclass(kw_only=True)
class TrainingState:
    """The state of a training, with which a killed run continues as if nothing had happened."""

    epoch: int = 0
    step: int = 0
    best: float = math.inf
    best_epoch: int = -1
    stopped: bool = False  # before its last epoch, by patience
    loss: Any = 0.0  # sums over this epoch's samples, numbers or tensors: looking at them may mean waiting
    wrong: Any = 0.0
    meta_before: Any = 0.0  # sums over this epoch's steps: the meta objective before and after the look-ahead
    meta_after: Any = 0.0
    seen: int = 0
    seconds: float = 0.0
    log: list[dict[str, Any]] = field(default_factory=list)

    def end_epoch(self, row: dict[str, Any], patience: int) -> None:
        self.log.append(row)
        self.stopped = patience > 0 and self.epoch - self.best_epoch >= patience
        self.epoch += 1
        self.step, self.seen, self.loss, self.wrong, self.seconds = 0, 0, 0.0, 0.0, 0.0
        self.meta_before, self.meta_after = 0.0, 0.0


def save(run: Run, state: TrainingState, parts: Parts) -> None:
    """Save the whole state in one file. Random numbers need no saving: every step starts from its own."""
    sums = {name: float(getattr(state, name)) for name in ("loss", "wrong", "meta_before", "meta_after")}
    facts = asdict(state) | sums | {"best": min(state.best, 1e300)}
    tensors = {
        **checkpoint.name_tensors("network", parts.network.state_dict()),
        **checkpoint.name_tensors("optimizer", checkpoint.optimizer_tensors(parts.optimizer)),
        **checkpoint.name_tensors("loss", parts.loss.state_dict()),
    }
    if parts.meta is not None:
        tensors |= checkpoint.name_tensors("learned", parts.meta.learned.state_dict())
        tensors |= checkpoint.name_tensors("meta_optimizer", checkpoint.optimizer_tensors(parts.meta.optimizer))
    facts |= {"recipe": run.recipe.to_dict(), "scaler": parts.scaler.state_dict()}
    checkpoint.save(run.last, tensors, facts)


def save_best(run: Run, state: TrainingState, parts: Parts) -> None:
    """Save the weights of this epoch, and of the regulariser learned with them, as the best ones."""
    tensors = checkpoint.name_tensors("network", parts.network.state_dict())
    if parts.meta is not None:
        tensors |= checkpoint.name_tensors("learned", parts.meta.learned.state_dict())
    checkpoint.save(run.best, tensors, {"epoch": state.epoch + 1})


def resume(run: Run, parts: Parts) -> TrainingState:
    """Load the state in the folder into network, optimizer, loss and regulariser."""
    tensors, facts = checkpoint.load(run.last)
    _same_recipe(run, facts.pop("recipe"))
    checkpoint.put(parts.network, checkpoint.under("network", tensors), str(run.last))
    checkpoint.put_optimizer(parts.optimizer, checkpoint.under("optimizer", tensors))
    parts.loss.load_state_dict(checkpoint.under("loss", tensors))
    if parts.meta is not None:
        parts.meta.learned.load_state_dict(checkpoint.under("learned", tensors))
        checkpoint.put_optimizer(parts.meta.optimizer, checkpoint.under("meta_optimizer", tensors))
    parts.scaler.load_state_dict(facts.pop("scaler"))
    return TrainingState(**facts)


def _same_recipe(run: Run, saved: dict[str, Any]) -> None:
    """Refuse to continue with another recipe; JSON has no tuples, so lists are compared."""

    def flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
        inner = {k: flat(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v} for k, v in values.items()}
        return {k: list(v) if isinstance(v, tuple) else v for part in inner.values() for k, v in part.items()}

    now, then = flat(run.recipe.to_dict()), flat(Recipe.from_dict(saved).to_dict())  # with keys that came later
    changed = sorted(key for key in now.keys() | then.keys() if now.get(key) != then.get(key) and key != "title")
    if changed:
        differences = ", ".join(f"{key} = {then.get(key)!r} then, {now.get(key)!r} now" for key in changed[:3])
        fix = "choose another --out, or --restart to start over"
        raise InputError(str(run.folder), expected="the recipe its training began with", got=differences, fix=fix)
