"""The folder of a training: its recipe and facts, the log, the weights, the predictions."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from calibrant.core.cached_property import cached_property
from calibrant.core.config import code_trust
from calibrant.core.config.convert import build as build_facts
from calibrant.core.config.toml import Table, show_value
from calibrant.core.errors import InputError
from calibrant.core.files import read_regular, write_text, write_whole
from calibrant.core.json import read_json, whole
from calibrant.core.predictions import Predictions
from calibrant.core.torch import checkpoint
from calibrant.models import Network, Shape, build
from calibrant.training.batches import Pixels
from calibrant.training.learned_losses import GammaNet, LearnedLoss, make_learned
from calibrant.training.recipe import Recipe, name_entries, source_digests

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True, kw_only=True)
class Run:
    """A training on disk.

    `run.json` holds the recipe and facts, `log.parquet` a row per epoch, `last.safetensors` all it needs to continue
    (the rows of the log too, so that a process may end between any two of these files and the next one finishes them),
    `best.safetensors` the weights of the best epoch so far, `val.npz` and `test.npz` the predictions at the end. Where
    gamma was learned, `gamma.parquet` says which one every test image has.
    """

    folder: Path
    recipe: Recipe
    shape: Shape
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if not {len(self.mean), len(self.std)} <= {1, self.shape.channels} or min(self.std) <= 0:
            expected = f"one number or {self.shape.channels}, one a channel, and std above 0"
            got, fix = f"{self.mean} and {self.std}", "check the constants of the images, and whether they have colours"
            raise InputError("mean and std", expected=expected, got=got, fix=fix)

    @property
    def last(self) -> Path:
        return self.folder / "last.safetensors"

    @property
    def best(self) -> Path:
        return self.folder / "best.safetensors"

    @property
    def weights(self) -> Path:
        """The weights of the last or of the best epoch, as the recipe says."""
        return self.last if self.recipe.select == "last" else self.best

    @cached_property
    def val(self) -> Predictions:
        return Predictions.load(self.folder / "val.npz")

    @cached_property
    def test(self) -> Predictions:
        return Predictions.load(self.folder / "test.npz")

    @property
    def log(self) -> "pl.DataFrame":
        from calibrant.core.io.tables import read_table

        return read_table(self.folder / "log.parquet")

    def pixels(self, device: torch.device) -> Pixels:
        """The conversion of images to the network's input."""
        return Pixels(self.mean, self.std, device, self.recipe.channels_last)

    def network(self, device: str | torch.device = "cpu") -> Network:
        """The trained network, in evaluation mode."""
        tensors, facts = checkpoint.load(self.weights)
        with whole(str(self.weights), fix="train again"):
            short = self.weights == self.last and facts["epoch"] < self.recipe.epochs and not facts["stopped"]
        if short:
            raise InputError(
                str(self.folder),
                expected="a finished training",
                got=f"{facts['epoch']} of {self.recipe.epochs} epochs",
                fix="continue with calibrant train and the same --out",
            )
        network = build(self.recipe.model, self.shape)
        if self.recipe.precision == "64-true":
            network = network.double()
        checkpoint.put(network, checkpoint.under("network", tensors), str(self.weights))
        return network.to(device).eval()

    def load_learned(self, device: str | torch.device = "cpu") -> LearnedLoss:
        """The regulariser that was learned with the network, as it was at the epoch that counts."""
        if not self.recipe.meta.learn:
            fix = "train with a recipe that has a table [meta]"
            raise InputError(str(self.folder), expected="a run that learned a regulariser", got="another", fix=fix)
        learned = make_learned(self.recipe, build(self.recipe.model, self.shape))
        checkpoint.put(learned, checkpoint.under("learned", checkpoint.load(self.weights)[0]), str(self.weights))
        return learned.to(device).eval()

    def gammas(self, p: Predictions) -> "pl.DataFrame":
        """The gamma of every row by gamma-Net, beside the network's output: for figures only."""
        import polars as pl

        learned = self.load_learned()
        if not isinstance(learned, GammaNet):
            fix = 'train with a recipe that says learn = "gamma"'
            raise InputError(str(self.folder), expected="a run with gamma-Net", got=self.recipe.meta.learn, fix=fix)
        if p.features is None:
            raise InputError("predictions", expected="features", got="none", fix="use calibrant predict")
        with torch.no_grad():
            gamma = learned(torch.tensor(p.features)).numpy()
        ids = {} if p.ids is None else {"id": p.ids}
        columns = {"label": p.labels, "predicted": p.predicted, "correct": p.correct, "confidence": p.confidence}
        return pl.DataFrame({**ids, **columns, "gamma": gamma})

    def begin(self) -> None:
        """Empty the folder: files of an earlier training are removed, its state first, so that it cannot go on."""
        self.folder.mkdir(parents=True, exist_ok=True)
        tables = ("log.parquet", "val.npz", "test.npz", "gamma.parquet")
        for name in ("last.safetensors", "run.json", "best.safetensors", *tables):
            (self.folder / name).unlink(missing_ok=True)
        self.write(finished=False)

    @property
    def finished(self) -> bool:
        """Whether everything is written: `run.json` is the last file."""
        try:
            finished = json.loads(read_regular(self.folder / "run.json"))["finished"]
        except (OSError, ValueError, KeyError, TypeError):  # whatever it is, it will be written anew
            return False
        return finished is True and (self.folder / "test.npz").exists()

    @cached_property
    def sources(self) -> dict[str, str]:
        """The digests of what the training is made by, as they were when it began."""
        return source_digests(self.recipe)

    def changed_sources(self) -> list[str]:
        """The names of what the training was made by and is now another."""
        try:
            before: dict[str, str] = dict(json.loads(read_regular(self.folder / "run.json"))["sources"])
        except (OSError, ValueError, KeyError, TypeError):  # of a run from before they were noted
            return []
        return sorted(name for name, digest in self.sources.items() if before.get(name, digest) != digest)

    def write_log(self, rows: list[dict[str, Any]]) -> None:
        """Write the whole log; the state holds it as well, so it can be written at any time."""
        import polars as pl

        self.write_table("log", pl.DataFrame(rows, infer_schema_length=None))

    def write_table(self, name: str, table: "pl.DataFrame") -> None:
        write_whole(self.folder / f"{name}.parquet", lambda stream: table.write_parquet(stream))

    def write(self, **facts: Any) -> None:
        """Write `run.json` with these facts."""
        values = {
            "version": 1,
            "recipe": self.recipe.to_dict(),
            "reduced": self.recipe.reduced,
            "shape": vars(self.shape),
            "classes": self.classes,
            "mean": self.mean,
            "std": self.std,
            "sources": self.sources,
            **facts,
            "torch": torch.__version__,
        }
        file, text = self.folder / "run.json", json.dumps(values, indent=2)
        code_trust.remember(
            file, json.loads(text), name_entries(self.recipe)
        )  # our own training: it may be opened again
        write_text(file, text)


def open_run(folder: str | Path) -> Run:
    """Open the run in a folder that `calibrant train` has written.

    One that was trained elsewhere and names code (`./mine.py`, `package.module:callable`, `hf:NAME`) is refused
    outside `with allow_code():`, which says that it is trusted; this is remembered until its run.json changes.
    """
    folder = Path(folder)
    file = folder / "run.json"
    if not file.exists():
        fix = "give the folder that calibrant train --out wrote"
        raise InputError(str(folder), expected="the folder of a run", got="no run.json in it", fix=fix)
    values = read_json(file, expected="a run.json", fix="train again")
    with whole(str(file), fix="train again"):
        version, known = values["version"], {key: values[key] for key in _FACTS}
    if version != 1:
        raise InputError(str(file), expected="version 1", got=show_value(version), fix="use a newer calibrant")
    facts = build_facts(_Facts, Table(known, {(): str(file)}))
    code_trust.check(file, values, name_entries(facts.recipe))
    return Run(folder=folder, **{key: getattr(facts, key) for key in _FACTS})


@dataclass(frozen=True)
class _Facts:
    """The required content of a run.json."""

    recipe: Recipe
    shape: Shape
    classes: tuple[str, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]

    def __post_init__(self) -> None:
        if (k := self.shape.classes) != len(self.classes):
            raise InputError("classes", expected=f"{k} names", got=f"{len(self.classes)}", fix="train again")


_FACTS = tuple(field.name for field in fields(_Facts))
