"""Digests of source code: what decides the numbers of an entry, of a user's file or of an installed plug-in.

The digest of a file is that of its syntax tree, without comments, docstrings and annotations: new words change nothing.
A file brings the files that it imports: an entry of ours those of its own catalogue, a user's file those beside it and
on the path. Imports are read from the tree and nothing is run, so an import that is made by a call is not seen.
"""

import ast
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from hashlib import sha256
from importlib.metadata import EntryPoint, entry_points, packages_distributions, version
from pathlib import Path
from typing import Any

from calibrant.core.config.code_trust import python_files

OURS = Path(__file__).parents[1]  # the folder of the package calibrant
LIBRARIES = tuple(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "purelib", "platlib"))
WORDS = frozenset({"annotation", "returns", "type_comment", "type_params", "type_ignores", "ctx", "kind", "simple"})
NAME = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Source:
    """The files and versions of packages that something is made by."""

    files: frozenset[Path] = frozenset()
    packages: frozenset[str] = frozenset()  # "name version" of what is installed

    def __or__(self, other: "Source") -> "Source":
        return Source(self.files | other.files, self.packages | other.packages)

    @property
    def digest(self) -> str:
        """A hash, the same on every machine that has the same code; a file that is absent counts as empty."""
        parts = [*self.packages, *(_read_code(file).digest for file in self.files)]
        return sha256("\n".join(sorted(parts)).encode()).hexdigest()[:16]

    @property
    def of_users(self) -> list[Path]:
        """The files that do not come with calibrant."""
        return sorted(file for file in self.files if not file.is_relative_to(OURS))


def entry_source(catalogue: str, spec: str) -> Source:
    """The source of the entries of a catalogue (`losses`) that a text names: `ce + 0.5*./mine.py`.

    >>> names = {file.stem for file in entry_source("losses", "mdca:weight=2").files}
    >>> names >= {"mdca", "focal", "_base"}, "brier" in names  # focal is its partner
    (True, False)
    """
    ours, folder = _entries(catalogue), OURS / catalogue
    source = Source()
    for name in python_files(spec):
        source |= _user_source(Path(name).expanduser().absolute(), folder)
        spec = spec.replace(name, "")
    plugins = {entry.name: entry for entry in entry_points(group=f"calibrant.{catalogue.replace('/', '.')}")}
    module = spec.partition(":")[0]
    if catalogue == "models" and module and module not in {*ours, *plugins, "hf"}:
        return source | _module_source(module)  # a network of another package
    names = {*NAME.findall(spec), "_make"}  # which has what a catalogue does with all of its entries
    while files := {folder / f"{ours[name]}.py" for name in names if name in ours} - source.files:
        source |= Source(frozenset(_imported(files, [OURS.parent], [folder])))
        names |= {spec.partition(":")[0] for file in source.files for spec in _read_code(file).partners}
    for name in {*NAME.findall(spec)} & {*plugins} - {*ours}:
        source |= plugin_source(plugins[name])
    return source


def plugin_source(entry: EntryPoint) -> Source:
    """The source of an entry point: the version of its package, and its files where they are not installed ones."""
    packages = frozenset[str]() if entry.dist is None else frozenset({f"{entry.dist.name} {entry.dist.version}"})
    return Source(frozenset(), packages) | _module_source(entry.module)


def job_source(module: str) -> Source:
    """The source of a kind of job of ours: it and what it imports, directly or not, of the rooms that it names."""
    file = OURS.parent.joinpath(*module.split(".")).with_suffix(".py")
    rooms = {name.split(".")[1] for _, name in _read_code(file).imports if name.startswith("calibrant.")}
    inside = [OURS / room for room in sorted(rooms - {"core", "studying"})]
    return Source(frozenset(_imported({file}, [OURS.parent], inside)))


def _user_source(file: Path, catalogue: Path) -> Source:
    """A user's file, what it imports from beside it and from the path, and the base classes of its catalogue."""
    own = [file.parent, *(Path(folder).absolute() for folder in filter(None, sys.path))]
    own = [folder for folder in own if folder != OURS.parent and not _is_library(folder)]
    return Source(frozenset(_imported({file}, [*own, OURS.parent], [*own, catalogue])))


def _module_source(module: str) -> Source:
    """The source of an importable module: its package's version or, where it is not installed, its files."""
    top = module.partition(".")[0]
    roots = [Path(folder or ".").absolute() for folder in sys.path]
    file = next((found for root in roots if (found := _find(root, module))), None)
    if file is None or _is_library(file):
        return Source(frozenset(), frozenset(f"{name} {version(name)}" for name in _packages().get(top, ())))
    root = next(root for root in roots if _find(root, module))
    return Source(frozenset(_imported({file}, [root], [root / top, root / f"{top}.py"])))


@cache
def _entries(catalogue: str) -> dict[str, str]:
    """The names and aliases of our entries, and of the files beside them -> the file."""
    files = (OURS / catalogue).glob("*.py")
    return {name: file.stem for file in files for name in (file.stem, *_read_code(file).aliases)}


@cache
def _packages() -> dict[str, list[str]]:
    return {name: sorted(set(packages)) for name, packages in packages_distributions().items()}


def _is_library(file: Path) -> bool:
    """Whether a file is Python's own or installed; an environment may lie in a folder of the user."""
    real = file.resolve()
    return any(real.is_relative_to(folder) for folder in LIBRARIES) or "site-packages" in real.parts


# -- imports ----------------------------------------------------------------------------------------


def _imported(files: set[Path], roots: list[Path], inside: list[Path]) -> set[Path]:
    """These files and all that they import, directly or not, from these folders."""
    found, waiting = set(files), list(files)
    while waiting:
        file = waiting.pop()
        for level, name in _read_code(file).imports:
            for module in _modules([file.parents[level - 1]] if level else [file.parent, *roots], name):
                ours = module.is_relative_to(OURS)  # which may lie in a folder of the user
                folders = (folder for folder in inside if folder.is_relative_to(OURS) == ours)
                if module not in found and any(map(module.is_relative_to, folders)) and not _is_library(module):
                    found.add(module)
                    waiting.append(module)
    return found


def _modules(places: list[Path], name: str) -> Iterator[Path]:
    """The file of a module in the first place that has it; outside calibrant with the packages around it."""
    for place in [OURS.parent] if name.partition(".")[0] == OURS.name else places:
        if found := _find(place, name):
            yield found
            parents = name.split(".")[:-1] if not found.is_relative_to(OURS) else []
            for depth in range(1, len(parents) + 1):
                if (package := place.joinpath(*parents[:depth], "__init__.py")).is_file():
                    yield package
            return


def _find(place: Path, name: str) -> Path | None:
    path = place.joinpath(*name.split(".")) if name else place
    candidates = (path.with_name(f"{path.name}.py"), path / "__init__.py")
    return next((file for file in candidates if file.is_file()), None)


# -- one file ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Code:
    digest: str
    imports: tuple[tuple[int, str], ...] = ()  # dots in front, and the name
    aliases: tuple[str, ...] = ()
    partners: tuple[str, ...] = ()


def _read_code(file: Path) -> _Code:
    try:
        facts = file.stat()
    except OSError:
        return _Code("")
    return _parse(file, facts.st_mtime_ns, facts.st_size)


@lru_cache(maxsize=4096)
def _parse(file: Path, changed: int, size: int) -> _Code:
    content = file.read_bytes()
    try:
        tree = _without_types(ast.parse(content))
    except (SyntaxError, ValueError):  # it will fail where it is run
        return _Code(sha256(content).hexdigest())
    nodes = list(ast.walk(tree))
    assigned = [
        (target.id, value.value)
        for node in nodes
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
        for value in ast.walk(node.value)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    ]
    texts = {name: tuple(text for key, text in assigned if key == name) for name in ("aliases", "partner")}
    digest = sha256("".join(_write(tree)).encode()).hexdigest()
    return _Code(digest, tuple(dict.fromkeys(_imports(nodes))), texts["aliases"], texts["partner"])


def _imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            yield node.level, base
            yield from ((node.level, f"{base}.{alias.name}".lstrip(".")) for alias in node.names)


def _without_types(tree: ast.Module) -> ast.Module:
    """The tree without what only a type checker reads, and without docstrings."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list):
                checked = [_is_for_types(line) for line in block]
                kept = [[line] if not c else line.orelse for line, c in zip(block, checked, strict=True)]
                setattr(node, name, [line for lines in kept for line in lines])
        if isinstance(node, ast.JoinedStr):  # Python 3.12 has empty texts in it
            node.values = [part for part in node.values if not (isinstance(part, ast.Constant) and part.value == "")]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and (
            ast.get_docstring(node, clean=False) is not None
        ):
            node.body = node.body[1:]
    return tree


def _is_for_types(line: ast.AST) -> bool:
    return isinstance(line, ast.If) and isinstance(line.test, ast.Name) and line.test.id == "TYPE_CHECKING"


def _write(value: Any) -> Iterator[str]:
    """A tree as text, the same in every version of Python: `ast.dump` writes empty fields in some."""
    if isinstance(value, ast.AST):
        yield f"{type(value).__name__}("
        for name, inside in ast.iter_fields(value):
            if name not in WORDS and inside is not None and inside != []:
                yield f"{name}="
                yield from _write(inside)
        yield ")"
    elif isinstance(value, list):
        for inside in value:
            yield from _write(inside)
            yield ","
    else:
        yield repr(value)
