"""A recipe says everything about a training: a TOML file on disk, a frozen value in the program."""

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal

from calibrant import datasets
from calibrant.core.config import code_trust
from calibrant.core.config.convert import Bounds, Count, NotNegative, Positive, Seed, build, check_fields
from calibrant.core.config.inheritance import ConfigSource, ask_for_choices, combinations, find, load
from calibrant.core.config.overrides import nest, read_changes
from calibrant.core.config.toml import Table
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.sources import entry_source

MOST_EPOCHS = 1_000_000  # one is less than a second of a small network: beyond it a number was mistyped
MOST_BATCH = 65_536  # images at once
Epoch = Annotated[int, Bounds(0, MOST_EPOCHS)]


@dataclass(frozen=True, kw_only=True)
class Data:
    """Options of the data: which images, and their preparation."""

    name: str = "fashion_mini"  # `calibrant list datasets`
    root: str = ""  # where its files are
    split: str = "8:1:1"  # train:val:meta; see datasets/_splits.py
    split_seed: Seed = 0  # one split for every training seed
    limit: Count = 0  # use only so many training images; 0 is all
    test_limit: Count = 0  # and so many for validation and for the test
    val_limit: Count = 0  # and so many for validation, which every epoch looks at; 0 is test_limit
    augment: Literal["none", "flip", "crop", "resized"] = "crop"  # crop after padding, or a random window resized
    pad: Annotated[int, Bounds(0, 512)] = 4  # black pixels on every side before cropping
    flip: bool = True  # mirror half of the images, unless augment is none
    mean: tuple[float, ...] = ()  # of pixels from 0 to 1, one number or one a channel; () is the data set's own
    std: tuple[Positive, ...] = ()

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Optimizer:
    """Options of the optimizer."""

    name: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: Positive = 0.1
    momentum: Annotated[float, Bounds(least=0, below=1)] = 0.9
    nesterov: bool = False
    weight_decay: NotNegative = 5e-4
    clip_norm: NotNegative = 0.0  # of the whole gradient; 0 is no clipping
    accumulate: Annotated[int, Bounds(1, 65_536)] = 1  # passes that share one batch, to fit it in memory

    def __post_init__(self) -> None:
        check_fields(self)
        if self.name == "sgd" and self.nesterov and not self.momentum:
            fix = "give momentum, or say nesterov = false"
            raise InputError("momentum", expected="more than 0 where nesterov is true", got="0", fix=fix)


@dataclass(frozen=True)
class Schedule:
    """Options of the learning rate."""

    name: Literal["constant", "step", "cosine"] = "step"
    milestones: tuple[Epoch, ...] = ()  # epochs at which a step schedule falls
    factor: Annotated[float, Bounds(above=0, most=1)] = 0.1
    warmup: Epoch = 0  # epochs in which the rate rises from 0

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Meta:
    """Options of a regulariser that is learned on the part `meta` while the network trains."""

    learn: Literal["", "gamma", "l2", "smoothing", "class_smoothing", "pair_smoothing"] = ""  # "" is nothing
    objective: str = "ce + 0.5*sece"  # on the meta batch, after the look-ahead
    lookahead: Literal["head", "full"] = "head"  # one step of the last layer, or of all weights
    lookahead_step: Literal["taken", "raw"] = "taken"  # clipped as the network's step is; or never, the authors' code
    by: Literal["jvp", "double_backward"] = "jvp"  # the same gradient; the second is slow, to check the first
    lr: Positive = 1e-3  # of the regulariser's Adam
    batch: Annotated[int, Bounds(0, MOST_BATCH)] = 0  # meta images in a step; 0 is as many as training images
    heads: Annotated[int, Bounds(0, 10_000)] = 0  # of gamma-Net; 0 is one per class
    tau: Positive = 0.01
    cap: Positive = 20.0  # the largest gamma

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A training, whole. Every key of the TOML file is a field here, with one comment each."""

    title: str = ""
    paper: str = ""  # whose training it is: authors, title, year, table
    model: str = "resnet8"  # `calibrant list models`, file.py:callable, package.module:callable?arg=value, hf:NAME
    loss: str = "ce"  # `calibrant list losses`, or a sum of them
    reduction: Literal["mean", "sum"] = "mean"
    mixup: Annotated[float, Bounds(0, 1000)] = 0.0  # alpha of the Beta distribution; 0 is no mixup
    epochs: Epoch = 30  # 0: nothing is trained, only predictions are made
    batch: Annotated[int, Bounds(2, MOST_BATCH)] = 128
    seed: Seed = 0
    select: Literal["last", "best", "refinement"] = "last"  # which epoch's weights count: last, or lowest
    # validation error, or lowest validation NLL after a temperature ("refine, then calibrate")
    patience: Epoch = 0  # stop when the selected number has not improved for so many epochs; 0 is never
    test_each_epoch: bool = False  # log measures of the test part too; never used for selection
    precision: Literal["32-true", "16-mixed", "bf16-mixed", "64-true"] = "32-true"
    channels_last: bool = False
    weights: str = ""  # to start from: another run's best.safetensors, or a file of torch.save
    scale: str = "paper"  # the preset that was used
    data: Data = field(default_factory=Data)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    meta: Meta = field(default_factory=Meta)

    def __post_init__(self) -> None:
        check_fields(self)
        if self.patience and self.select == "last":
            raise InputError(
                "patience", expected="select best or refinement", got="last", fix='say select = "refinement" too'
            )
        if not self.epochs and self.select != "last":
            raise InputError("select", expected="last where there are no epochs", got=self.select, fix="leave it out")
        if self.meta.learn:
            self._check_meta()

    def _check_meta(self) -> None:
        """Refuse options that a learned regulariser does not go together with."""
        learn = self.meta.learn
        loss = "focal" if learn == "gamma" else "ce" if learn.endswith("smoothing") else self.loss
        for key, value, expected in (
            ("loss", self.loss, loss),
            ("mixup", self.mixup, 0.0),
            ("optimizer.accumulate", self.optimizer.accumulate, 1),
        ):
            if value != expected:
                fix = f"say --override {key}={expected}, or leave out meta.learn"
                raise InputError(key, expected=f"{expected} where meta.learn is {learn}", got=f"{value}", fix=fix)
        if self.precision == "16-mixed":
            fix = "use bf16-mixed, which needs no scaled gradients"
            raise InputError("precision", expected="not 16-mixed where meta.learn is set", got="16-mixed", fix=fix)

    @property
    def reduced(self) -> bool:
        """Whether the recipe is smaller than the paper's: its numbers are not the paper's."""
        return self.scale != "paper"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "recipe") -> "Recipe":
        return build(cls, Table(values, {(): where}))


def read_recipe(recipe: str | Path | ConfigSource, changes: Iterable[str] = ()) -> Recipe:
    """A recipe from its name or its file, with changes such as `epochs=5`, `data.root=...` or `scale=small`.

    A file may start from another recipe (`extends = "meta/cifar10-resnet18-ce"`, or the path of a file), offer choices
    (core/config/inheritance.py), and hold presets (`[scale.small]`) whose keys replace its own. Milestones count epochs
    of the file's own `epochs`: where only `epochs` is changed, they move along. The file names entries of catalogues;
    code (`./mine.py`, `package.module:callable`, `hf:NAME`) belongs in the changes, or is read inside
    `with allow_code():`, which is remembered until the file changes.
    """
    source = recipe if isinstance(recipe, ConfigSource) else find_recipe(recipe)
    table = load(source, [recipes_folder()])
    if "choices" in table.values:
        raise ask_for_choices(table, source.file.stem)
    changes_table = read_changes(Recipe, changes)
    whole = recipe_of(table, changes_table, changes_table.values.get("scale", "paper"))
    from_file = {
        key: spec for key, spec in name_entries(whole).items() if tuple(key.split(".")) not in changes_table.places
    }
    code_trust.check(source.file, table.values, from_file)
    return whole


def name_entries(recipe: Recipe) -> dict[str, str]:
    """The entries of catalogues that a recipe names, by key."""
    keys = {"model": recipe.model, "loss": recipe.loss, "data.name": recipe.data.name}
    return {**keys, "meta.objective": recipe.meta.objective}


def recipe_sources(recipe: Recipe) -> Iterator[tuple[str, str]]:
    """What a training is made by: entries by their catalogue, and, as "files", what the user has collected."""
    data = datasets.plain_spec(recipe.data.name, recipe.data.root)
    yield from (("models", recipe.model), ("losses", recipe.loss), ("datasets", data))
    if recipe.meta.learn:
        yield "losses", recipe.meta.objective
    kind, _, place = recipe.model.partition("?")[0].partition(":")
    for files in (recipe.weights, datasets.user_root(data), place if kind == "hf" and Path(place).exists() else ""):
        if files:
            yield "files", files


def source_digests(recipe: Recipe) -> dict[str, str]:
    """A digest for everything that a training is made by."""
    return {
        f"{kind} {spec}": datasets.fingerprint(Path(spec).expanduser())
        if kind == "files"
        else entry_source(kind, spec).digest
        for kind, spec in recipe_sources(recipe)
    }


def recipe_of(table: Table, asked: Table, scale: object = "paper") -> Recipe:
    """The recipe of a table whose choices are made, at a scale, with what was asked for on top."""
    presets = table.at("scale")
    if not isinstance(scale, str) or scale not in ("paper", *presets.values):
        raise unknown_name("scale", str(scale), ["paper", *presets.values])
    top = asked.over(presets.at(scale))
    own = Table({**table.values, "scale": scale}, table.places)
    recipe = build(Recipe, top.over(own))
    epochs = own.values.get("epochs", Recipe.epochs)
    if "milestones" not in top.at("schedule").values and isinstance(epochs, int) and epochs > 0:
        milestones = tuple(round(m * (recipe.epochs / epochs)) for m in recipe.schedule.milestones)
        recipe = replace(recipe, schedule=replace(recipe.schedule, milestones=milestones))
    return recipe


def change(recipe: Recipe, **changes: Any) -> Recipe:
    """The recipe with some values changed: `change(recipe, loss="focal", **{"data.name": "digits"})`."""
    table = Table(recipe.to_dict())
    for key, value in changes.items():
        table = Table(nest(key.split("."), value)).over(table)
    return build(Recipe, table)


def recipes_folder() -> Path:
    """The recipes that come with calibrant: beside the package when installed, at the root of a clone."""
    package = Path(__file__).parents[1]
    return package / "recipes" if (package / "recipes").exists() else package.parents[1] / "recipes"


def find_recipe(name: str | Path) -> ConfigSource:
    """A recipe by path, or by its name among those that come with calibrant (`demo`, `recipes/demo.toml`)."""
    name = Path(name).as_posix()
    source = find(name, [Path()]) or find(name.removeprefix("recipes/"), [recipes_folder()])
    if source is None:
        files = ", ".join(sorted(file.stem for file in recipes_folder().glob("*.toml")))
        stem, expected = name.removeprefix("recipes/").removesuffix(".toml"), f"a TOML file, or a recipe of {files}"
        raise unknown_name("recipe", stem, recipe_names(), expected)
    return source


def recipe_names() -> list[str]:
    """Every recipe that comes with calibrant, each combination of a file's choices by itself."""
    names: list[str] = []
    for file in recipes_folder().glob("*.toml"):
        table = load(ConfigSource(file), [recipes_folder()])
        names += (
            [f"{file.stem}/{choice}" for choice in combinations(table)] if "choices" in table.values else [file.stem]
        )
    return sorted(names)
