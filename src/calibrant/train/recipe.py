"""A recipe says everything about a training: a TOML file on disk, a frozen value in the program."""

import dataclasses
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from calibrant.core.errors import InputError, unknown_name


@dataclass(frozen=True)
class Data:
    """Which images, and what is done to them on the way in."""

    name: str = "fashion_mini"  # `calibrant list datasets`
    root: str = ""  # where its files are
    split: str = "8:1:1"  # train:val:meta; see datasets/_splits.py
    split_seed: int = 0  # one split for every training seed
    limit: int = 0  # use only so many training images; 0 is all
    test_limit: int = 0  # and so many for validation and for the test
    augment: Literal["none", "crop", "resized"] = "crop"  # crop after padding, or random resized crop
    pad: int = 4
    flip: bool = True
    test_normalise: Literal["same", "imagenet"] = "same"  # by ImageNet's constants is a slip of the code behind 002


@dataclass(frozen=True)
class Optimizer:
    """How weights move."""

    name: Literal["sgd", "adam", "adamw"] = "sgd"
    lr: float = 0.1
    momentum: float = 0.9
    nesterov: bool = False
    weight_decay: float = 5e-4
    clip_norm: float = 0.0  # of the whole gradient; 0 is no clipping
    accumulate: int = 1  # passes that share one batch, to fit it in memory


@dataclass(frozen=True)
class Schedule:
    """How the learning rate falls."""

    name: Literal["constant", "step", "cosine"] = "step"
    milestones: tuple[int, ...] = ()  # epochs at which a step schedule falls
    factor: float = 0.1
    warmup: int = 0  # epochs in which the rate rises from 0


@dataclass(frozen=True)
class Meta:
    """Whether a regulariser is learned on the part `meta` while the network trains, and how."""

    learn: Literal["", "gamma", "l2", "smoothing", "class_smoothing", "pair_smoothing"] = ""  # "" is nothing
    objective: str = "ce + 0.5*sece"  # on the meta batch, after the look-ahead
    lookahead: Literal["head", "full"] = "head"  # one step of the last layer, or of all weights
    by: Literal["jvp", "double_backward"] = "jvp"  # the same gradient; the second is slow, to check the first
    lr: float = 1e-3  # of the regulariser's Adam
    batch: int = 0  # meta images in a step; 0 is as many as training images
    heads: int = 0  # of gamma-Net; 0 is one per class
    tau: float = 0.01
    cap: float = 20.0  # the largest gamma
    reshuffle: bool = True  # the meta images each time they begin again; false is a habit of the authors' code
    leak_meta_grad: bool = False  # another one: the meta batch trains the network as well
    update_statistics: bool = False  # another one: the meta batch counts in batch norm's running averages

    def __post_init__(self) -> None:
        _at_least("meta.batch", self.batch, 0)
        _at_least("meta.heads", self.heads, 0)
        for name in ("lr", "tau", "cap"):
            if not getattr(self, name) > 0:
                got = f"{getattr(self, name):g}"
                raise InputError(f"meta.{name}", expected="more than 0", got=got, fix="give a larger value")


@dataclass(frozen=True)
class Recipe:
    """A training, whole. Every key of the TOML file is a field here, with one comment each."""

    title: str = ""
    paper: str = ""  # the source of the recipe, for instance "002, table 1"
    model: str = "resnet8"  # `calibrant list models`, package.module:callable?arg=value, hf:NAME
    loss: str = "ce"  # `calibrant list losses`, or a sum of them
    reduction: Literal["mean", "sum"] = "mean"
    mixup: float = 0.0  # alpha of the Beta distribution; 0 is no mixup
    epochs: int = 30
    batch: int = 128
    seed: int = 0
    select: Literal["last", "best", "refinement"] = "last"  # which epoch's weights count: last, or lowest
    # validation error, or lowest validation NLL after a temperature ("refine, then calibrate")
    patience: int = 0  # stop when the selected number has not improved for so many epochs; 0 is never
    test_each_epoch: bool = False  # log measures of the test part too; never used for selection
    precision: Literal["32-true", "16-mixed", "bf16-mixed", "64-true"] = "32-true"
    channels_last: bool = False
    weights: str = ""  # safetensors to start from, for instance another run's best.safetensors
    scale: str = "paper"  # the preset that was used
    data: Data = field(default_factory=Data)
    optimizer: Optimizer = field(default_factory=Optimizer)
    schedule: Schedule = field(default_factory=Schedule)
    meta: Meta = field(default_factory=Meta)

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 2), ("patience", 0), ("mixup", 0)):
            _at_least(name, getattr(self, name), least)
        _at_least("optimizer.accumulate", self.optimizer.accumulate, 1)
        _at_least("optimizer.lr", self.optimizer.lr, 0)
        _at_least("data.limit", self.data.limit, 0)
        _at_least("data.test_limit", self.data.test_limit, 0)
        if self.patience and self.select == "last":
            raise InputError(
                "patience", expected="select best or refinement", got="last", fix='say select = "refinement" too'
            )
        if self.meta.learn:
            self._check_meta()

    def _check_meta(self) -> None:
        """What a learned regulariser does not go together with."""
        learn = self.meta.learn
        loss = "focal" if learn == "gamma" else "ce" if learn.endswith("smoothing") else self.loss
        for key, value, expected in (
            ("loss", self.loss, loss),
            ("mixup", self.mixup, 0.0),
            ("optimizer.accumulate", self.optimizer.accumulate, 1),
        ):
            if value != expected:
                fix = f"say --set {key}={expected}, or leave out meta.learn"
                raise InputError(key, expected=f"{expected} where meta.learn is {learn}", got=f"{value}", fix=fix)
        if self.precision == "16-mixed":
            fix = "use bf16-mixed, which needs no scaled gradients"
            raise InputError("precision", expected="not 16-mixed where meta.learn is set", got="16-mixed", fix=fix)

    @property
    def reduced(self) -> bool:
        """Made smaller than the paper's: its numbers are not the paper's."""
        return self.scale != "paper"

    def to_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], where: str = "recipe") -> "Recipe":
        return _build(cls, values, where, "")  # type: ignore[no-any-return]


def read_recipe(path: str | Path, changes: Iterable[str] = ()) -> Recipe:
    """A recipe from a TOML file, with changes such as `epochs=5`, `data.root=...` or `scale=small`.

    A file may start from another one (`extends = "base.toml"`), and hold presets (`[scale.small]`) whose keys replace
    its own. Milestones are epochs of the file's own `epochs`: where only `epochs` is changed, they move along.
    """
    values = _read(Path(path))
    presets = values.pop("scale", {})
    wanted = dict(_parse_change(change) for change in changes)
    scale = wanted.pop("scale", "paper")
    if scale != "paper" and scale not in presets:
        raise unknown_name("scale", scale, ["paper", *presets])
    preset = _flat(presets.get(scale, {}))
    flat = {**_flat(values), **preset, **wanted}
    if "schedule.milestones" not in {**preset, **wanted} and "schedule.milestones" in flat:
        share = int(flat.get("epochs", Recipe.epochs)) / int(values.get("epochs", Recipe.epochs))
        flat["schedule.milestones"] = [round(m * share) for m in flat["schedule.milestones"]]
    return Recipe.from_dict(_nested({**flat, "scale": scale}), str(path))


def change(recipe: Recipe, **changes: Any) -> Recipe:
    """The recipe with some values changed: `change(recipe, loss="focal", **{"data.name": "digits"})`."""
    flat = {**_flat(recipe.to_dict()), **changes}
    return Recipe.from_dict(_nested(flat))


def _read(file: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(file.read_text())
    except FileNotFoundError:
        raise InputError(str(file), expected="a recipe", got="no such file", fix="check the path") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(str(file), expected="TOML", got=str(error), fix="correct the file") from None
    base = values.pop("extends", None)
    if base is None:
        return values
    return _nested({**_flat(_read(file.parent / base)), **_flat(values)})


def _build(cls: type, values: Mapping[str, Any], where: str, prefix: str) -> Any:
    hints = get_type_hints(cls)
    for key in values:
        if key not in hints:
            raise InputError.inside(where, unknown_name("key", prefix + key, [prefix + name for name in hints]))
    made = {key: _typed(value, hints[key], where, prefix + key) for key, value in values.items()}
    try:
        return cls(**made)
    except InputError as error:
        raise InputError.inside(where, error) from None


def _typed(value: Any, hint: Any, where: str, key: str) -> Any:
    """The value as the field's type; text from the command line is read as that type."""
    if dataclasses.is_dataclass(hint):
        if not isinstance(value, Mapping):
            raise InputError(
                f"{where}: {key}", expected="a table", got=repr(value), fix=f"write [{key}], or --set {key}.name=..."
            )
        return _build(hint, value, where, f"{key}.")  # type: ignore[arg-type]
    if get_origin(hint) is Literal:
        if value not in get_args(hint):
            raise InputError.inside(where, unknown_name(key, str(value), get_args(hint)))
        return value
    try:
        if get_origin(hint) is tuple:
            parts = value.replace(",", " ").split() if isinstance(value, str) else value
            return tuple(int(part) for part in parts)
        if hint is bool and str(value).lower() in ("true", "false"):
            return str(value).lower() == "true"
        if hint is str and isinstance(value, str):
            return value
        if hint in (int, float) and not isinstance(value, bool) and float(value) == hint(value):
            return hint(value)
    except (ValueError, TypeError):
        pass
    assert not isinstance(hint, UnionType)
    kind = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}.get(hint, "whole numbers")
    raise InputError(f"{where}: {key}", expected=kind, got=repr(value), fix="correct the value")


def _parse_change(change: str) -> tuple[str, str]:
    key, equals, value = change.partition("=")
    if not equals:
        raise InputError("--set", expected="key=value", got=f"'{change}'", fix="write --set epochs=5")
    return key.strip(), value.strip()


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and not (prefix == "" and key == "scale"):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat


def _nested(flat: Mapping[str, Any]) -> dict[str, Any]:
    nested: dict[str, Any] = {}
    for key, value in flat.items():
        *tables, last = key.split(".")
        place = nested
        for table in tables:
            place = place.setdefault(table, {})
            if not isinstance(place, dict):
                raise InputError("--set", expected="a key", got=f"'{key}'", fix=f"{table} is not a table")
        place[last] = value
    return nested


def _at_least(name: str, value: float, least: float) -> None:
    if value < least:
        raise InputError(name, expected=f"at least {least:g}", got=f"{value:g}", fix="give a larger value")


def recipes_folder() -> Path:
    """The recipes that come with calibrant: beside the package when installed, at the root of a clone."""
    package = Path(__file__).parents[1]
    return package / "recipes" if (package / "recipes").exists() else package.parents[1] / "recipes"


def find_recipe(path: str | Path) -> Path:
    """A recipe by path, or by its name among those that come with calibrant (`demo`, `recipes/demo.toml`)."""
    path = Path(path)
    if path.exists():
        return path
    folder = recipes_folder()
    name = "/".join(path.parts[1:] if path.parts[:1] == ("recipes",) else path.parts).removesuffix(".toml")
    if (folder / f"{name}.toml").exists():
        return folder / f"{name}.toml"
    raise unknown_name("recipe", name, recipe_names())


def recipe_names() -> list[str]:
    folder = recipes_folder()
    names = (str(file.relative_to(folder).with_suffix("")) for file in folder.rglob("*.toml"))
    return sorted(name for name in names if not name.rpartition("/")[2].startswith("_"))
