"""Catalogues: a folder with one entry per file. `ece:bins=30,scheme=mass` builds the class in ece.py.

Installed packages add entries by entry points: the group `calibrant.measures` adds to the catalogue of measures.
"""

import dataclasses
import importlib
import importlib.util
import inspect
import re
import sys
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Generic, TypeVar

from calibrant.core.cached_property import cached_property
from calibrant.core.config.convert import check_fields, fields_of, read_option
from calibrant.core.errors import InputError, unknown_name

T = TypeVar("T")
USER_FILE = "calibrant user file "
SPELT_ALIKE = 0.8  # of short names fewer letters in common are another name: mse is not mce
PLUGGED: dict[type, str] = {}  # classes of other packages -> the name they are found by


class Catalogue(Generic[T]):
    """The entries of one plural folder, loaded one by one when they are asked for."""

    def __init__(self, package: str, base: type[T], kind: str, *, reuse: bool = True) -> None:
        self.package, self.base, self.kind, self.reuse = package, base, kind, reuse
        self._instances: dict[str, T] = {}

    @cached_property
    def _folder(self) -> Path:
        return Path(str(sys.modules[self.package].__file__)).parent

    @cached_property
    def _names(self) -> list[str]:
        return sorted(f.stem for f in self._folder.glob("*.py") if not f.stem.startswith("_"))

    @cached_property
    def _plugins(self) -> dict[str, EntryPoint]:
        """Entries of installed packages; where two packages have one name, the first. calibrant's own names win."""
        plugins: dict[str, EntryPoint] = {}
        for entry in entry_points(group=self.package):
            if entry.name not in self._names:
                plugins.setdefault(entry.name, entry)
        return plugins

    def _check_single(self, name: str) -> None:
        """Refuse a name that two installed packages add."""
        values = sorted({entry.value for entry in entry_points(group=self.package) if entry.name == name})
        if len(values) > 1:
            got, fix = f"two: {values[0]} and {values[1]}", "uninstall one of these packages"
            raise InputError(f"{self.kind} {name}", expected="one package with this name", got=got, fix=fix)

    def names(self) -> list[str]:
        return sorted([*self._names, *self._plugins])

    def load_all(self) -> tuple[dict[str, T], dict[str, InputError]]:
        """Every entry with its default options, and the error of every plug-in that cannot be loaded."""
        entries: dict[str, T] = {}
        broken: dict[str, InputError] = {}
        for name in self.names():
            try:
                entries[name] = self.make(name)
            except InputError as error:
                if name not in self._plugins:
                    raise
                broken[name] = error
        return entries, broken

    def find(self, name: str) -> type[T]:
        """The class of a name, or of a user's own file given as a path (`./mine.py`)."""
        if name.endswith(".py"):
            return self._class_in(load_file(Path(name), self.kind), name)
        known = self.find_name(name)
        if known in self._names:
            return self._class_in(importlib.import_module(f"{self.package}.{known}"), known)
        return self._load_plugin(known)

    def find_name(self, name: str) -> str:
        """The name of the entry with this name or alias (`aliases` in its class)."""
        if name in self._names:
            return name
        with_aliases = (n for n in self._names if "aliases" in (self._folder / f"{n}.py").read_text(encoding="utf-8"))
        for entry in with_aliases:  # no other file need be loaded
            if name in getattr(self.find(entry), "aliases", ()):
                return entry
        if name in self._plugins:
            return name
        raise self.unknown(name)

    def unknown(self, name: str) -> InputError:
        """The error for an unknown name: entries that are called so elsewhere come before those spelt like it."""
        words = [f"'{entry}'{word and f' ({word})'}" for entry, word in self.called_elsewhere(name).items()]
        fix = f"did you mean {' or '.join(words)}?" if words else ""
        return unknown_name(self.kind, name, self.names(), fix=fix, cutoff=SPELT_ALIKE)

    def called_elsewhere(self, name: str) -> dict[str, str]:
        """Entries with this name as a class, as a title or elsewhere, each with what differs there."""
        entries = {}
        for entry in self._names:
            cls = self.find(entry)
            own = (entry, cls.__name__, *re.split(r"[()]", getattr(cls, "title", "")))
            if _letters(name) in map(_letters, filter(None, own)):
                entries[entry] = ""
            elif _letters(name) in map(_letters, getattr(cls, "other_names", ())):
                entries[entry] = getattr(cls, "name_hint", "")
        return entries

    @cached_property
    def classes(self) -> dict[str, str]:
        """The classes in the files of the folder, each with the name of its entry."""
        lines = ((name, (self._folder / f"{name}.py").read_text(encoding="utf-8")) for name in self._names)
        return {cls: name for name, text in lines for cls in re.findall(r"^class ([A-Z]\w*)\(", text, re.M)}

    def class_named(self, name: str) -> Any:
        """A class of these files, loaded when it is first asked for: `calibrant.measures.ECE`."""
        if name not in self.classes:
            raise AttributeError(f"module '{self.package}' has no attribute '{name}'")
        return getattr(importlib.import_module(f"{self.package}.{self.classes[name]}"), name)

    def make(self, spec: str) -> T:
        """An instance from `name` or `name:option=value,option=value`."""
        if spec in self._instances:  # entries are frozen: one of each is enough
            return self._instances[spec]
        name, _, options = spec.partition(":")
        cls = self.find(name.strip())
        entry = self._build(cls, name, options)
        if self.reuse and not name.endswith(".py"):  # a user's file may change
            self._instances[spec] = entry
        return entry

    def _build(self, cls: type[T], name: str, options: str) -> T:
        values = _parse_options(cls, name, options)
        if PLUGGED.get(cls) is None:
            return cls(**values)
        try:
            return cls(**values)
        except InputError:
            raise
        except Exception as error:  # whatever a class of another package raises
            got, fix = f"{type(error).__name__}: {error}", "correct or uninstall the package"
            raise InputError(f"{self.kind} {name}", expected="a class that can be built", got=got, fix=fix) from error

    def make_named(self, spec: str) -> T:
        """An instance from a spec in a file, which may come from anybody: names of the catalogue only, never code."""
        name = name_of(spec)
        if name.endswith(".py"):
            raise InputError(
                self.kind,
                expected=f"a name of the catalogue of {self.package.rpartition('.')[2]}",
                got=f"'{name}', which would have run the Python code in {Path(name).absolute()}",
                fix="a file may only name what calibrant has; if you trust the code, give its path yourself",
            )
        return self.make(spec)

    def _load_plugin(self, name: str) -> type[T]:
        """The class that an installed package adds, as `package.module:Class` or as a module that holds one."""
        self._check_single(name)
        entry = self._plugins[name]
        try:
            loaded = entry.load()
        except Exception as error:  # whatever a package raises while it is imported
            got = f"{type(error).__name__}: {error}"
            fix = "correct or uninstall the package"
            raise InputError(f"{self.kind} {name}", expected=f"{entry.value} to load", got=got, fix=fix) from error
        cls = self._class_in(loaded, name) if isinstance(loaded, ModuleType) else loaded
        if not (inspect.isclass(cls) and issubclass(cls, self.base)):
            fix = f"subclass {self.base.__name__}"
            raise InputError(f"{self.kind} {name}", expected=f"a {self.kind}", got=entry.value, fix=fix)
        PLUGGED[cls] = name
        return cls

    def _class_in(self, module: ModuleType, name: str) -> type[T]:
        classes = [
            value
            for value in vars(module).values()
            if inspect.isclass(value) and issubclass(value, self.base) and value.__module__ == module.__name__
        ]
        if len(classes) != 1:
            raise InputError(
                name,
                expected=f"one {self.kind} class in the file",
                got=f"{len(classes)}",
                fix=f"subclass {self.base.__name__} once",
            )
        return classes[0]


def spec_of(entry: Any) -> str:
    """The shortest text that makes this entry again: its name and the options that are not the default.

    >>> from calibrant.measures.ece import ECE
    >>> spec_of(ECE(bins=30)), spec_of(ECE())
    ('ece:bins=30', 'ece')
    """
    options = [
        f"{field.name}={_show(value)}"
        for field in dataclasses.fields(entry)
        if (value := getattr(entry, field.name)) != field.default
    ]
    name = name_of(entry)
    return f"{name}:{','.join(options)}" if options else name


def name_of(entry: Any) -> str:
    """The name of an entry or, of the text that makes it, the part in front of the options.

    >>> from calibrant.measures.ece import ECE
    >>> name_of(ECE(bins=30)), name_of("ece:bins=30")
    ('ece', 'ece')
    """
    if isinstance(entry, str):
        return entry.partition(":")[0].strip()
    module = type(entry).__module__
    own = module.removeprefix(USER_FILE) if module.startswith(USER_FILE) else module.rpartition(".")[2]
    return PLUGGED.get(type(entry), own)


def check_options(entry: Any) -> None:
    """Refuse options of a wrong type, unknown words and undefined numbers in an entry made in Python."""
    check_fields(entry, type(entry).__name__)


def _letters(name: str) -> str:
    """A name without case, spaces and signs."""
    return re.sub(r"[\W_]", "", name.lower())


def _show(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def _parse_options(cls: type, name: str, text: str) -> dict[str, Any]:
    known = fields_of(cls)
    options: dict[str, Any] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = part.partition("=")
        if not equals:
            raise InputError(
                f"option of {name}", expected="option=value", got=f"'{part}'", fix=f"write {name}:{key}=..."
            )
        if key not in known:
            raise (
                unknown_name(f"option of {name}", key, known)
                if known
                else InputError(
                    f"option of {name}",
                    expected="none: it has no options",
                    got=f"'{key}'",
                    fix="leave it out",
                )
            )
        if key in options:
            raise InputError(f"{name}:{key}", expected="one value", got="two", fix="give each option once")
        options[key] = read_option(known[key][1], value, f"{name}:{key}")
    return options


def load_file(path: Path, kind: str) -> ModuleType:
    if not path.exists():
        raise InputError(str(path), expected=f"a Python file with a {kind}", got="no such file", fix="check the path")
    name = f"{USER_FILE}{path}"  # a name no import statement can have: ./json.py must not become json
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    keeps_bytecode, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # which hides an edit in the same second
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        got = f"{type(error).__name__}: {error}"
        raise InputError(str(path), expected=f"a Python file with a {kind}", got=got, fix="correct the file") from error
    finally:
        sys.dont_write_bytecode = keeps_bytecode
    return module
