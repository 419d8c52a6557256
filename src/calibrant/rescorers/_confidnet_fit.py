"""Training of ConfidNet: two stages of epochs, what each of them minimises, and which epoch is kept."""

import copy
import hashlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from calibrant.core.curves.ranking import average_precision
from calibrant.core.predictions import Predictions
from calibrant.core.torch import checkpoint
from calibrant.core.torch.loader import Loader, pairs
from calibrant.rescorers._confidnet_rows import ClassifierOutputs, aims, collect_outputs, look
from calibrant.rescorers._fit_state import FitState, load_fit, save_fit, seed_epoch
from calibrant.rescorers.confidnet import ConfidenceHead, ConfidNet, FittedConfidNet, OnEpoch, fingerprint

LEAST_ERRORS = 30  # AUPR-error of fewer is mostly chance: the loss selects instead

# Options that no epoch so far has looked at, by the stage that a state is in: a fit may continue with others.
LATER = {1: {"epochs", "patience", "stages", "clone_epochs", "clone_lr"}, 2: {"clone_epochs", "patience"}}


class Fitting:
    """One fit. The classifier is frozen while it runs; every epoch starts from random numbers of its own."""

    def __init__(
        self,
        options: ConfidNet,
        network: nn.Module,
        train_loader: Loader,
        val_loader: Loader,
        augmented: bool,
        file: str | Path | None,
        on_epoch: OnEpoch | None,
    ) -> None:
        self.options, self.network, self.on_epoch = options, network, on_epoch
        self.train_loader, self.val_loader = train_loader, val_loader
        self.file = None if file is None else Path(file)
        self.dropouts = [m for m in network.modules() if isinstance(m, nn.modules.dropout._DropoutNd) and m.p > 0]
        self.keeps = not augmented and not self.dropouts  # the same features in every epoch
        self.cached_rows: ClassifierOutputs | None = None
        self.val = self.rows(val_loader, "the images that select")
        wrong = int((self.val.logits.argmax(1) != self.val.labels).sum())
        self.by = "aupr_error" if LEAST_ERRORS <= wrong < len(self.val.labels) else "loss"
        with self.seed(0, 0):
            head = ConfidenceHead(self.val.features.shape[1], options.width, options.depth)
        self.head = head.to(self.val.features.device, self.val.features.dtype)
        self.clone: nn.Module | None = None
        self.optimizer = self.adam()
        self.state, self.best = FitState(), self.tensors()
        self.network_hash = fingerprint(network)
        # The labels stand for the images that select, whose features may differ in the last bit on another device.
        self.images_hash = hashlib.sha256(self.val.labels.cpu().numpy().tobytes()).hexdigest() + "+" * augmented

    def run(self) -> FittedConfidNet:
        if self.file is not None and self.file.exists():
            self.resume(self.file)
        if self.state.stage == 1:
            self.run_stage(self.options.epochs, self.train_head)
        if self.options.stages == 2:
            if self.state.stage == 1:
                self.begin_clone()
            self.run_stage(self.options.clone_epochs, self.train_clone)
        self.put(self.best)
        for module in (self.head, self.clone):
            if module is not None:
                module.eval().requires_grad_(False)
        return FittedConfidNet(self.network, self.head, self.clone, self.facts())

    def run_stage(self, epochs: int, train: Callable[[int], float]) -> None:
        state, patience = self.state, self.options.patience
        while state.epoch < epochs and not 0 < patience <= state.waited:
            with self.seed(state.stage, state.epoch + 1):
                loss = train(state.epoch)
            self.end_epoch(loss)

    def end_epoch(self, loss: float) -> None:
        state, (aupr, val_loss) = self.state, self.validate()
        value = aupr if self.by == "aupr_error" else -val_loss
        better = state.best is None or value > state.best
        state.epoch += 1
        state.waited = 0 if better else state.waited + 1
        if better:
            state.best, state.best_stage, state.best_epoch = value, state.stage, state.epoch
            self.best = self.tensors()
        row = {"stage": state.stage, "epoch": state.epoch, "loss": loss, "val_loss": val_loss, "best": better}
        state.log.append({**row, "val_aupr_error": None if np.isnan(aupr) else aupr})
        if self.file is not None:
            self.save(self.file)
        if self.on_epoch is not None:
            self.on_epoch(state.log[-1])

    # -- the two stages -------------------------------------------------------------------------

    def train_head(self, epoch: int) -> float:
        """One epoch of the head on features of frozen layers, in a new order."""
        rows = self.cached_rows or self.learning_rows(epoch)
        if self.keeps:
            self.cached_rows = rows
        n, total = len(rows.targets), 0.0
        order = np.random.default_rng([self.options.seed, epoch]).permutation(n)
        for start in range(0, n, self.options.batch):
            index = torch.from_numpy(order[start : start + self.options.batch]).to(rows.targets.device)
            total += self.step(rows.features[index], rows.targets[index], rows.weights[index]) * len(index)
        return total / n

    def learning_rows(self, epoch: int) -> ClassifierOutputs:
        """Features and targets of the training images, from one pass with the classifier's dropout on."""
        self.tell(0 if self.keeps else epoch)
        for module in self.dropouts:
            module.train()
        try:
            return self.rows(self.train_loader, "the images to learn from")
        finally:
            for module in self.dropouts:
                module.eval()

    def begin_clone(self) -> None:
        self.put(self.best)
        self.clone = copy.deepcopy(self.network).requires_grad_(True).eval()
        self.optimizer = self.adam()
        self.state.stage, self.state.epoch, self.state.waited = 2, 0, 0
        self.best = self.tensors()

    def train_clone(self, epoch: int) -> float:
        """One epoch of head and clone; the targets are still those of the classifier itself."""
        assert self.clone is not None
        self.tell(epoch)
        n, total = 0, 0.0
        for x, labels in pairs(self.train_loader, self.network):
            with torch.no_grad():
                logits = look(self.network, self.options.head, x)[0]
                targets, weights = aims(logits, labels, self.options.error_weight)
            features = look(self.clone, self.options.head, x)[1]
            total += self.step(features, targets, weights) * len(labels)
            n += len(labels)
        return total / n

    def step(self, features: Tensor, targets: Tensor, weights: Tensor) -> float:
        loss = (weights * (self.head(features).sigmoid() - targets) ** 2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return float(loss.detach())

    # -- looking --------------------------------------------------------------------------------

    def rows(self, loader: Loader, purpose: str) -> ClassifierOutputs:
        return collect_outputs(self.network, self.options.head, loader, self.options.error_weight, purpose)

    def validate(self) -> tuple[float, float]:
        """AUPR-error and loss on the images that select."""
        val = self.val
        with torch.no_grad():
            features = val.features
            if self.clone is not None:
                loader = pairs(self.val_loader, self.network)
                features = torch.cat([look(self.clone, self.options.head, x)[1] for x, _ in loader])
            q = self.head(features).sigmoid()
            loss = float((val.weights * (q - val.targets) ** 2).mean())
        p = Predictions.from_logits(val.logits.cpu().numpy(), val.labels.cpu().numpy(), allow_few_rows=True)
        correct, wrong = p.with_confidence(q.cpu().double().numpy()).top_label.groups
        return average_precision([(wrong, correct)]), loss

    def tell(self, epoch: int) -> None:
        set_epoch = getattr(self.train_loader, "set_epoch", None)
        if set_epoch is not None:
            set_epoch(epoch)

    def seed(self, stage: int, epoch: int) -> AbstractContextManager[None]:
        like = next(self.network.parameters(), torch.zeros(()))
        return seed_epoch(self.options.seed, stage, epoch, like.device)

    # -- what is kept ---------------------------------------------------------------------------

    def adam(self) -> torch.optim.Adam:
        if self.clone is None:
            return torch.optim.Adam(self.head.parameters(), lr=self.options.lr)
        return torch.optim.Adam([*self.clone.parameters(), *self.head.parameters()], lr=self.options.clone_lr)

    def tensors(self) -> dict[str, Tensor]:
        """A copy of what is trained."""
        owners = {"head": self.head} if self.clone is None else {"head": self.head, "clone": self.clone}
        return {
            f"{owner}.{name}": tensor.detach().clone()
            for owner, module in owners.items()
            for name, tensor in module.state_dict().items()
        }

    def put(self, tensors: dict[str, Tensor]) -> None:
        self.head.load_state_dict(checkpoint.under("head", tensors))
        if self.clone is not None:
            self.clone.load_state_dict(checkpoint.under("clone", tensors))

    def facts(self) -> dict[str, Any]:
        chosen = {"stage": self.state.best_stage, "epoch": self.state.best_epoch, "by": self.by}
        return {
            "options": asdict(self.options),
            "network": self.network_hash,
            "features": self.val.features.shape[1],
            "mean_target": float(self.val.targets.cpu().double().mean()),
            "chosen": chosen,
            "log": self.state.log,
        }

    def save(self, file: Path) -> None:
        facts = {"images": self.images_hash, **self.facts()}
        save_fit(file, self.state, self.optimizer, self.tensors(), self.best, facts)

    def resume(self, file: Path) -> None:
        facts = {"options": asdict(self.options), "images": self.images_hash, "network": self.network_hash}
        saved = load_fit(file, "a ConfidNet", facts, LATER)
        if saved.state.stage == 2:
            self.begin_clone()
        self.state = saved.state
        self.put(saved.now)
        self.best = {n: t.to(self.val.features.device) for n, t in saved.best.items()}
        saved.put_optimizer(self.optimizer)
