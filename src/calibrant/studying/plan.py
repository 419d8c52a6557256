"""A plan says everything about a study: data, networks, methods and seeds, what is measured, and what is claimed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from typing import Any, Literal

from calibrant.core.catalogue import name_of
from calibrant.core.errors import InputError, unknown_name
from calibrant.studying import published_tables

Label = str | int | float | bool
Only = dict[str, list[Label]]  # axis of the grid -> some of its values
Names = dict[str, dict[str, str]]  # data, model or entry -> ours -> as printed
MEASURES = ("error", "nll", "ece", "mce", "ece:scheme=mass", "classwise", "auroc_correct")


@dataclass(frozen=True)
class Method:
    """A training: what it changes in the base recipe, and where it takes part."""

    choice: str = ""  # a method that the base recipe offers
    only: Only = field(default_factory=dict)  # where it runs: {data = ["cifar10"]}; empty is everywhere
    recipe: dict[str, Any] = field(
        default_factory=dict
    )  # keys of the recipe; they may as well stand beside `choice`: loss = "focal"


@dataclass(frozen=True)
class Shift:
    """A shifted test set, and the trainings that are tested on it."""

    set: str  # another data set, or "corrupt fog:severity=3"
    only: Only = field(default_factory=dict)  # {data = ["cifar10"], method = ["CE"]}; empty is everywhere


@dataclass(frozen=True)
class After:
    """The steps after training: calibrators and rescorers fitted on val, all measured on every test set.

    Networks that others trained have seen all but the test images. `halves` is for them: the seed of a cell draws the
    half of all test images that is fitted on (no limit counts), the other half judges, and all seeds share what the
    network predicts.
    """

    calibrators: list[str] = field(default_factory=lambda: ["identity", "temperature"])
    rescorers: dict[str, str] = field(default_factory=dict)  # name -> "clamping:gamma=0"
    measures: list[str] = field(default_factory=lambda: list(MEASURES))
    shifts: dict[str, str | Shift] = field(
        default_factory=dict
    )  # name -> another data set, or "corrupt fog:severity=3"; a table says for which trainings
    halves: bool = False  # only where nothing is trained: epochs = 0

    @property
    def shifted(self) -> dict[str, Shift]:
        return {name: Shift(shift) if isinstance(shift, str) else shift for name, shift in self.shifts.items()}


@dataclass(frozen=True)
class Entry:
    """A row of the paper's tables: a training, and the calibrator or rescorer applied to it."""

    method: str
    calibrator: str = "identity"
    rescorer: str = ""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """A table of the page: rows are entries, columns are measures, one block for each data set and network."""

    title: str
    rows: Literal["entry", "method"] = "entry"  # all entries, or only the trainings themselves
    entries: list[str] = field(default_factory=list)  # some of these rows; empty is all
    measures: list[str] = field(default_factory=list)  # empty is all
    set: str = "test"
    published: str = ""  # the paper's own table, by the name of its file
    names: Names = field(default_factory=dict)  # as the plan's, for this table alone


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A figure of the page, one for each data set and network: a measure over something, or reliability diagrams."""

    title: str
    over: Literal["bins", "epochs", "entries", "seeds", "reliability"]
    entries: list[str] = field(default_factory=list)  # at most as many as there are colours; empty is the first ones
    measure: str = "ece"  # over epochs: a column of the training log, "val_ece"
    bins: int = 15  # of reliability diagrams, which are those of the last seed
    set: str = "test"


@dataclass(frozen=True, kw_only=True)
class Claim:
    """A statement that rows can support or contradict: one entry against another, several others, or a number."""

    says: str
    of: str
    measure: str
    is_: Literal["lower", "higher", "equal"]
    against: str = ""  # another entry; empty is those of `among`, or the number `than`
    among: list[str] = field(default_factory=list)  # other entries: `of` is lower (or higher) than all but `rank` - 1
    rank: int = 1  # 2: the lowest or the second lowest of all these entries
    than: float = 0.0
    set: str = "test"
    where: Only = field(default_factory=dict)  # cells it speaks of; empty is all
    within: float = 0.0  # how far "equal" may be apart
    source: str = ""  # where the paper says it
    published: list[str] = field(default_factory=list)  # printed tables it speaks of, beside those of the plan

    @property
    def rivals(self) -> list[str]:
        """The other entries; none where it is about a number."""
        return [self.against] if self.against else self.among


@dataclass(frozen=True, eq=False, kw_only=True)  # equal only to itself, so that what it expands to is known by it
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
    names: Names = field(default_factory=dict)  # names.data.cifar10 = "CIFAR-10"
    table: list[Layout] = field(default_factory=list)
    figure: list[Drawing] = field(default_factory=list)
    claim: list[Claim] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.methods:
            raise InputError("methods", expected="at least one", got="none", fix='write [methods.CE] and choice = "ce"')
        for key in self.means:
            _check_known(f"means.{key}", key, self.grid)
        empty = [key for key, values in self.grid.items() if not values]
        if empty:
            raise InputError(f"grid.{empty[0]}", expected="at least one value", got="none", fix="give a list of values")
        _check_calibrators(self.after.calibrators)
        for name, entry in self.entries.items():
            _check_known(f"entries.{name}.method", entry.method, self.methods)
            _check_known(f"entries.{name}.calibrator", entry.calibrator, ["identity", *self.after.calibrators])
            if entry.rescorer:
                _check_known(f"entries.{name}.rescorer", entry.rescorer, self.after.rescorers)
        rows = self.rows
        for number, layout in enumerate(self.table):
            for i, entry_name in enumerate(layout.entries):
                _check_known(
                    f"table.{number}.entries.{i}", entry_name, self.methods if layout.rows == "method" else rows
                )
            for i, measure in enumerate(layout.measures):
                check_measure(f"table.{number}.measures.{i}", measure, self.after.measures)
            if layout.published:
                _check_known(f"table.{number}.published", layout.published, published_tables.names())
        for number, figure in enumerate(self.figure):
            for i, entry_name in enumerate(figure.entries):
                _check_known(
                    f"figure.{number}.entries.{i}", entry_name, self.methods if figure.over == "epochs" else rows
                )
            if figure.over in ("entries", "seeds"):
                check_measure(f"figure.{number}.measure", figure.measure, self.after.measures)
            if figure.over == "bins" and not self.over_bins(figure.measure):
                fix = f'add "{figure.measure}:bins=10" and others to after.measures'
                raise InputError(
                    f"figure.{number}.measure", expected="a measure with bins", got=figure.measure, fix=fix
                )
        for number, claim in enumerate(self.claim):
            _check_known(f"claim.{number}.of", claim.of, rows)
            if claim.against:
                _check_known(f"claim.{number}.against", claim.against, rows)
            for i, entry_name in enumerate(claim.among):
                _check_known(f"claim.{number}.among.{i}", entry_name, rows)
            for i, name in enumerate(claim.published):
                _check_known(f"claim.{number}.published.{i}", name, published_tables.names())
            _check_rank(f"claim.{number}", claim)
            check_measure(f"claim.{number}.measure", claim.measure, self.after.measures)

    @property
    def rows(self) -> dict[str, Entry]:
        """All entries: every training by itself, and what the plan adds."""
        return {name: Entry(name) for name in self.methods} | self.entries

    def over_bins(self, measure: str) -> dict[int, str]:
        """The plan's measures that differ from this one in their number of bins alone."""
        counts = [spec.removeprefix(f"{measure}:bins=") for spec in self.after.measures]
        return {int(count): f"{measure}:bins={count}" for count in counts if count.isdigit()}

    def entries_of(self, layout: Layout) -> list[str]:
        return layout.entries or list(self.methods if layout.rows == "method" else self.rows)

    def names_in_paper(self, axis: str, ours: str, layout: Layout) -> tuple[str, ...]:
        """The names that a paper's table may use for an entry, a data set or a network: first those of this table."""
        names = (layout.names.get(axis, {}).get(ours), ours, self.names.get(axis, {}).get(ours))
        return tuple(dict.fromkeys(name for name in names if name is not None))

    def cells(self) -> Iterator[tuple[str, dict[str, Label]]]:
        """Every training: its method, and its place in the grid."""
        for values in product(*self.grid.values()):
            place = dict(zip(self.grid, values, strict=True))
            for name, method in self.methods.items():
                if among(place, method.only):
                    yield name, place


def among(place: Mapping[str, Label], only: Only) -> bool:
    return all(place.get(key) in allowed for key, allowed in only.items())


def check_measure(where: str, name: str, measured: Iterable[str]) -> None:
    """Refuse a measure that the study does not have: a misspelt one, or one that would have to be added."""
    if name in measured:
        return
    from calibrant.measures import names

    listed = list(measured)
    if name_of(name) in names() and not get_close_matches(name, listed, n=1):
        expected = f"one of the plan's measures ({', '.join(listed)})"
        raise InputError(where, expected=expected, got=f"'{name}'", fix="add it to after.measures")
    raise unknown_name(where, name, listed, f"one of {', '.join(listed)}")


def _check_calibrators(specs: list[str]) -> None:
    """Refuse a misspelt calibrator where it stands, before an entry that spells it right is blamed."""
    from calibrant.calibrators import names

    for i, spec in enumerate(specs):
        name = name_of(spec)
        if name.isidentifier() and name not in ("identity", "auto") and name not in names():
            raise unknown_name(f"after.calibrators.{i}", name, names())


def _check_rank(where: str, claim: Claim) -> None:
    """Refuse a rank that the entries of `among` cannot decide."""
    if claim.among and claim.against:
        fix = "leave one of them out"
        raise InputError(f"{where}.among", expected="no `against` beside it", got=claim.against, fix=fix)
    if claim.among and claim.is_ == "equal":
        raise InputError(f"{where}.is", expected="lower or higher", got="equal", fix="compare with one entry")
    if not 1 <= claim.rank <= max(1, len(claim.rivals)):
        expected = f"1 to {max(1, len(claim.rivals))}, the number of other entries"
        raise InputError(f"{where}.rank", expected=expected, got=str(claim.rank), fix="add entries to `among`")


def _check_known(where: str, name: str, known: Iterable[str] | Mapping[str, Any]) -> None:
    if name not in known:
        raise unknown_name(where, name, known)
