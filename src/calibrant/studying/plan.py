"""A plan says everything about a study: data, networks, methods and seeds, what is measured, and what is claimed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from calibrant.core.config import build
from calibrant.core.errors import InputError, unknown_name
from calibrant.core.toml import Table, read_toml

Label = str | int | float | bool
REPLACED = (
    "methods",
    "entries",
    "grid",
    "means",
)  # a preset has its own, or none; other tables are laid over the plan's
MEASURES = ("error", "nll", "ece", "mce", "ece:scheme=mass", "classwise", "auroc_correct")


@dataclass(frozen=True)
class Method:
    """A training: what it changes in the base recipe, and where it takes part."""

    choice: str = ""  # a method that the base recipe offers
    only: dict[str, list[Label]] = field(
        default_factory=dict
    )  # where it runs: {data = ["cifar10"]}; empty is everywhere
    recipe: dict[str, Any] = field(
        default_factory=dict
    )  # keys of the recipe: {loss = "focal", meta = {learn = "gamma"}}


@dataclass(frozen=True)
class After:
    """What is done with trained networks: calibrators and rescorers fitted on val, all judged on every test set."""

    calibrators: list[str] = field(default_factory=lambda: ["identity", "temperature"])
    rescorers: dict[str, str] = field(default_factory=dict)  # name -> "clamping:gamma=0"
    measures: list[str] = field(default_factory=lambda: list(MEASURES))
    shifts: dict[str, str] = field(default_factory=dict)  # name -> another data set, or "corrupt fog:severity=3"


@dataclass(frozen=True)
class Entry:
    """A row of the paper's tables: which training, and what was done to it afterwards."""

    method: str
    calibrator: str = "identity"
    rescorer: str = ""


@dataclass(frozen=True)
class Layout:
    """A table of the page: rows are entries, columns are measures, one block for each data set and network."""

    title: str
    entries: list[str] = field(default_factory=list)  # empty is all
    measures: list[str] = field(default_factory=list)  # empty is all
    set: str = "test"
    published: str = ""  # the paper's own table, by the name of its file


@dataclass(frozen=True)
class Claim:
    """A statement that rows can support or contradict: one entry against another, or against a number."""

    says: str
    of: str
    measure: str
    is_: Literal["lower", "higher", "equal"]
    against: str = ""  # another entry; empty is the number `than`
    than: float = 0.0
    set: str = "test"
    where: dict[str, list[Label]] = field(default_factory=dict)  # cells it speaks of; empty is all
    within: float = 0.0  # how far "equal" may be apart
    source: str = ""  # where the paper says it


@dataclass(frozen=True)
class Plan:
    """A study, whole. Every key of the TOML file is a field here."""

    title: str
    base: str  # a recipe file: "meta"
    paper: str = ""
    scale: str = "paper"
    grid: dict[str, list[Label]] = field(default_factory=dict)  # data, model, seed, or any key of the recipe
    recipe: dict[str, Any] = field(default_factory=dict)  # changes for every training
    methods: dict[str, Method] = field(default_factory=dict)
    after: After = field(default_factory=After)
    entries: dict[str, Entry] = field(default_factory=dict)
    means: dict[str, dict[str, dict[str, Any]]] = field(
        default_factory=dict
    )  # keys of the recipe that a value of the grid stands for: means.model.vit = {model = "hf:...", data.pad = 0}
    alike: dict[str, str] = field(default_factory=dict)  # network -> one of ours by which `plan` tells the time
    names: dict[str, dict[str, str]] = field(
        default_factory=dict
    )  # ours -> published: names.data.cifar10 = "CIFAR-10"; data, model, entry
    table: list[Layout] = field(default_factory=list)
    claim: list[Claim] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError("methods", expected="at least one", got="none", fix='write [methods.CE] and choice = "ce"')
        for key in self.means:
            _known(f"means.{key}", key, self.grid)
        empty = [key for key, values in self.grid.items() if not values]
        if empty:
            raise InputError(f"grid.{empty[0]}", expected="at least one value", got="none", fix="give a list of values")
        for name, entry in self.entries.items():
            _known(f"entries.{name}.method", entry.method, self.methods)
            _known(f"entries.{name}.calibrator", entry.calibrator, ["identity", *self.after.calibrators])
            if entry.rescorer:
                _known(f"entries.{name}.rescorer", entry.rescorer, self.after.rescorers)
        rows = self.rows
        sets = ["test", *self.after.shifts]
        for number, layout in enumerate(self.table):
            for i, one in enumerate(layout.entries):
                _known(f"table.{number}.entries.{i}", one, rows)
            for i, one in enumerate(layout.measures):
                _known(f"table.{number}.measures.{i}", one, self.after.measures)
            _known(f"table.{number}.set", layout.set, sets)
        for number, claim in enumerate(self.claim):
            _known(f"claim.{number}.of", claim.of, rows)
            if claim.against:
                _known(f"claim.{number}.against", claim.against, rows)
            _known(f"claim.{number}.measure", claim.measure, self.after.measures)
            _known(f"claim.{number}.set", claim.set, sets)

    @property
    def rows(self) -> dict[str, Entry]:
        """All entries: every training by itself, and what the plan adds."""
        return {name: Entry(name) for name in self.methods} | self.entries

    def printed_as(self, entry: str) -> tuple[str, ...]:
        """What the paper's tables may call an entry: its own name first."""
        other = self.names.get("entry", {}).get(entry)
        return (entry,) if other is None else (entry, other)

    def cells(self) -> Iterator[tuple[str, dict[str, Label]]]:
        """Every training: its method, and its place in the grid."""
        for values in product(*self.grid.values()):
            place = dict(zip(self.grid, values, strict=True))
            for name, method in self.methods.items():
                if all(place.get(key) in allowed for key, allowed in method.only.items()):
                    yield name, place


def read_plan(path: str | Path, *, scale: str = "paper") -> Plan:
    """A plan from a TOML file, or by its name among those that come with calibrant."""
    return build(Plan, plan_table(find_plan(path), scale))


def plan_table(file: Path, scale: str) -> Table:
    """What the file says at a scale, with the line of every key."""
    table = read_toml(file)
    presets = table.at("scale")
    if scale != "paper" and scale not in presets.values:
        raise unknown_name("scale", scale, ["paper", *presets.values])
    chosen = presets.at(scale) if scale != "paper" else Table()
    kept = {key: value for key, value in table.values.items() if key not in REPLACED or key not in chosen.values}
    if isinstance(kept.get("after"), Mapping):  # its lists and tables are replaced one by one, never joined
        kept["after"] = {key: v for key, v in kept["after"].items() if key not in chosen.at("after").values}
    return chosen.over(Table({**kept, "scale": scale}, table.places))


def plans_folder() -> Path:
    """The plans that come with calibrant: beside the package when installed, at the root of a clone."""
    package = Path(__file__).parents[1]
    inside = package / "recipes" / "plans"
    return inside if inside.exists() else package.parents[1] / "recipes" / "plans"


def plan_names() -> list[str]:
    return sorted(file.stem for file in plans_folder().glob("*.toml"))


def find_plan(path: str | Path) -> Path:
    file = Path(path)
    if file.suffix == ".toml":
        return file
    named = plans_folder() / f"{file}.toml"
    if not named.exists():
        raise unknown_name("plan", str(path), plan_names())
    return named


def _known(where: str, name: str, known: Iterable[str] | Mapping[str, Any]) -> None:
    if name not in known:
        raise unknown_name(where, name, known)
