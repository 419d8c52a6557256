"""What the pages take from the code, so that nothing on them is kept by hand.

python docs/build.py             writes the pages of the catalogues and copies those without a server (for `make docs`)
python docs/build.py --outputs   runs every `$ calibrant` line of the pages again and writes below it what it prints
"""

import dataclasses
import importlib
import inspect
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from types import UnionType
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints
from unittest import mock

import numpy as np

import calibrant as cal
from calibrant.calibrators import Calibrator
from calibrant.core.errors import InputError
from calibrant.core.files import write_whole
from calibrant.core.predictions.row_data import Task
from calibrant.measures import Measure
from calibrant.measuring.example import write_examples
from calibrant.measuring.standard import STANDARD, STANDARD_BINARY
from calibrant.repairing.choose import CANDIDATES

DOCS = Path(__file__).parent
WITHOUT_SERVER = DOCS.parent / "src" / "calibrant" / "app" / "pages"  # written by tools/make_pages.py
PLAIN = {  # pages of the other catalogues: file -> (room, title, what it says first)
    "rescorers.md": (
        "rescorers",
        "Rescorers",
        'Another confidence, from inputs or features: `cal.rescore("runs/demo", "clamping:gamma=0", "clamped")`, or '
        "the commands `clamp`, `confidnet`, `trust-score` and `density-ratio`. See [Neural Clamping](clamping.md) and "
        "[Confidence beyond the softmax](confidence.md).",
    ),
    "all_losses.md": (
        "losses",
        "All losses",
        '`--loss focal:gamma=3`, or a sum such as `--loss "ce + 0.5*mdca"`; in Python `cal.losses.make(...)`, a '
        "plain torch module. A *term* alone gets the partner and weight of its paper; in a sum it is just the term. "
        "[Losses compared](losses.md) shows what they do.",
    ),
    "models.md": (
        "models",
        "Networks",
        "`--model wide_resnet:depth=16,width=4`. Networks of other packages come as "
        "`package.module:callable?arg=value`, Hugging Face checkpoints as `hf:NAME_OR_PATH`.",
    ),
    "datasets.md": (
        "datasets",
        "Data sets",
        "`--data cifar10 --override data.root=FOLDER`. Without `root`, files are looked for in `$CALIBRANT_DATA/NAME`, "
        "then in `~/.cache/calibrant/data/NAME`; a missing set says what to get and where to put it. Decoded images "
        "are kept in `$CALIBRANT_CACHE` or `~/.cache/calibrant`.",
    ),
    "corruptions.md": (
        "corruptions",
        "Corruptions",
        "`calibrant predict RUN --corrupt fog:severity=3 --out shifted.npz`: CIFAR-10-C style, on images of any size.",
    ),
    "figures.md": (
        "figures",
        "Figures",
        "`calibrant plot reliability test.npz --out fig.svg`; see [Report and figures](show.md).",
    ),
}
GENERATED = {DOCS / "measures.md", DOCS / "calibrators.md", *(DOCS / name for name in PLAIN)}
PAGES = [file for file in (DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))) if file not in GENERATED]

# -- the page of measures ---------------------------------------------------------------------------

INTRO = """\
# Measures

<!-- Written by docs/build.py from src/calibrant/measures: change the files there, not this page. -->

Every measure is one file. Its name is what you type: `--measure ece`, or `--measure ece:bins=30,scheme=mass` with
options. This page is made from those files, and every example on it is run by the tests. The examples start with
`from calibrant import Predictions` and the class itself, for instance `from calibrant.measures.ece import ECE`.

In the table, *standard* marks what `calibrant measure` prints unless told otherwise, and *stream* what can be computed
[in constant memory](streams.md).

| name | what it is | better | standard | stream |
|---|---|---|---|---|
"""
BETTER = {"down": "lower", "up": "higher", "zero": "near 0", "one": "near 1", "none": "neither"}
DIRECTION = {
    "down": "Lower is better.",
    "up": "Higher is better.",
    "zero": "Nearer to 0 is better; the sign says on which side it is off.",
    "one": "Nearer to 1 is better; the side says in which way it is off.",
    "none": "It describes: neither way is better.",
}


def measures_page() -> str:
    """The whole page: one table, then one section per measure."""
    entries = [(name, cal.measures.make(name)) for name in cal.measures.names()]
    standard = {spec.partition(":")[0] for spec in (*STANDARD, *STANDARD_BINARY)}
    rows = [
        f"| [`{name}`](#{name}) | {m.title} | {BETTER[m.direction]} "
        f"| {'yes' if name in standard else ''} | {'yes' if streams(name) else ''} |\n"
        for name, m in entries
    ]
    return INTRO + "".join(rows) + "".join(section(name, m) for name, m in entries)


def section(name: str, m: Measure) -> str:
    what, caution, example = docstring(type(m))
    low, high = m.bounds
    end = "" if np.isinf(high) else f" to {high:g}"
    bounds = f"from {low:g}{end or ' upwards'}" if np.isfinite(low) else "any number"
    facts = [f"**By default:** {m.definition}.", f"**Direction:** {DIRECTION[m.direction]}", f"**Values:** {bounds}."]
    if m.aliases:
        facts.append(f"**Also found as:** {', '.join(f'`{alias}`' for alias in m.aliases)}.")
    if m.undefined_for:
        facts.append(f"**Does not exist for:** {m.undefined_for}.")
    if m.covers:
        facts.append(f"**Interval:** {m.covers}.")
    if m.reference != "-":
        facts.append(f"**Reference:** {m.reference}.")
    parts = [f"## `{name}`: {m.title} {{ #{name} }}", what, "  \n".join(facts)]
    if caution:
        parts.append(f'!!! warning "Caution"\n{indent(caution)}')
    if options := option_rows(m):
        parts.append("| option | default | takes |\n|---|---|---|\n" + "\n".join(options))
    if variants := list(variant_lines(name, m)):
        parts.append('??? note "What the choices mean"\n' + indent("\n".join(variants)))
    parts.append(f"```pycon\n{example}\n```")
    return "\n\n" + "\n\n".join(parts) + "\n"


def docstring(cls: type) -> tuple[str, str, str]:
    """What it is (the first paragraph), the caution (what follows) and the example."""
    words, _, example = (inspect.getdoc(cls) or "").partition(">>> ")
    what, _, caution = words.strip().partition("\n\n")
    return " ".join(what.split()), caution.strip(), f">>> {example}".strip()


def streams(spec: str) -> bool:
    try:
        cal.Accumulator([spec])
    except InputError:
        return False
    return True


def option_rows(entry: Any) -> list[str]:
    hints = get_type_hints(type(entry))
    return [f"| `{f.name}` | `{shown(f.default)}` | {takes(hints[f.name])} |" for f in dataclasses.fields(entry)]


def takes(hint: Any) -> str:
    """The values of an option, in words."""
    if get_origin(hint) in (Union, UnionType):
        inner = " or ".join(takes(h) for h in get_args(hint) if h is not type(None))
        return f"{inner}, or `none`" if type(None) in get_args(hint) else inner
    if get_origin(hint) is Literal:
        return ", ".join(f"`{value}`" for value in get_args(hint))
    if get_origin(hint) is tuple:
        return "a tuple of numbers"
    named = {int: "a whole number", float: "a number", bool: "`true` or `false`", str: "text"}
    return named.get(hint) or f"a `{hint.__name__}`"


def variant_lines(name: str, m: Measure) -> Iterator[str]:
    """For every choice that is not the default: how to ask for it, and what the measure then is."""
    hints = get_type_hints(type(m))
    for field in dataclasses.fields(m):
        for value in choices(hints[field.name]):
            if value == field.default:
                continue
            option = f"{field.name}={shown(value)}"
            for first in ("", "scheme=mass,", "scheme=width,") if "scheme" in hints else ("",):
                spec = f"{name}:{first}{option}"  # some choices matter for one kind of bins only
                words = cal.measures.make(spec).definition
                if words != cal.measures.make(f"{name}:{first}").definition:
                    yield f"- `{spec}`: {words}"
                    break


def choices(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, UnionType):
        return tuple(value for h in get_args(hint) for value in choices(h))
    if get_origin(hint) is Literal:
        return get_args(hint)
    return (True, False) if hint is bool else ()


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else str(value)


def indent(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


# -- the page of calibrators ------------------------------------------------------------------------

CALIBRATORS_INTRO = """\
# Calibrators

<!-- Written by docs/build.py from src/calibrant/calibrators: change the files there, not this page. -->

Every calibrator is one file. Its name is what you type: `--with temperature`, or `--with histogram:bins=30` with
options, or `--with temperature+isotonic` for one after the other. [Repair](repair.md) says how to use them. This page
is made from those files, and every example on it is run by the tests. The examples start with
`from calibrant import Predictions` and the class itself, for instance
`from calibrant.calibrators.temperature import Temperature`.

In the table, *predictions* says whether the map can change a prediction, *classes* how many it works for, *tasks*
which [tasks](repair.md#scores-of-the-positive-class) it can repair, and *auto* marks the candidates of
`--with auto`. Those that repair one score act on P(positive) of binary predictions, which can change a prediction.

| name | what it is | predictions | classes | tasks | auto |
|---|---|---|---|---|---|
"""


def calibrators_page() -> str:
    """The whole page: one table, then one section per calibrator."""
    entries = [(name, cal.calibrators.make(name)) for name in cal.calibrators.names()]
    rows = [
        f"| [`{name}`](#{name}) | {c.title} | {'kept' if c.keeps_argmax else 'may change'} "
        f"| {'2' if c.binary else 'any'} | {'all' if len(c.tasks) == len(get_args(Task)) else ', '.join(c.tasks)} "
        f"| {'yes' if name in CANDIDATES else ''} |\n"
        for name, c in entries
    ]
    return CALIBRATORS_INTRO + "".join(rows) + "".join(calibrator_section(name, c) for name, c in entries)


def calibrator_section(name: str, c: Calibrator) -> str:
    keeps = "Cannot change a prediction." if c.keeps_argmax else "May change predictions."
    facts = [f"**Predictions:** {keeps}", *(["**Classes:** two only."] if c.binary else [])]
    return plain_section(name, c, facts + [f"**Also found as:** `{alias}`." for alias in c.aliases])


# -- the pages of the other catalogues --------------------------------------------------------------


def plain_page(room: str, title: str, words: str) -> str:
    """A table of names, then one section each."""
    catalogue = importlib.import_module(f"calibrant.{room}").CATALOGUE
    entries = [(name, catalogue.make(name)) for name in catalogue.names()]
    rows = [f"| [`{name}`](#{name}) | {e.title} |\n" for name, e in entries]
    origin = f"<!-- Written by docs/build.py from src/calibrant/{room}: change the files there, not this page. -->"
    head = f"# {title}\n\n{origin}\n\n{words}\n\n| name | what it is |\n|---|---|\n"
    return head + "".join(rows) + "".join(plain_section(name, e) for name, e in entries)


def plain_section(name: str, e: Any, facts: list[str] | None = None) -> str:
    what, caution, example = docstring(type(e))
    parts = [f"## `{name}`: {e.title} {{ #{name} }}", what]
    named = {"Reference": e.reference, "Get it": getattr(e, "source", ""), "Licence": getattr(e, "licence", "")}
    facts = [*(facts or []), *(f"**{key}:** {value}." for key, value in named.items() if value and value != "-")]
    if facts:
        parts.append("  \n".join(facts))
    if caution:
        parts.append(f'!!! warning "Caution"\n{indent(caution)}')
    if options := option_rows(e):
        parts.append("| option | default | takes |\n|---|---|---|\n" + "\n".join(options))
    if example != ">>>":
        parts.append(f"```pycon\n{example}\n```")
    return "\n\n" + "\n\n".join(parts) + "\n"


# -- commands on the pages, and what they print -----------------------------------------------------

FENCE = re.compile(
    r"^(?P<skip><!-- not run.*?-->\n)?```(?P<language>\w+)(?P<info>[^\n]*)\n(?P<text>.*?)^```$", re.M | re.S
)
EXIT = re.compile(r"#\s*exit (\d)\b")


class Block(NamedTuple):
    """A fenced block that is to be run: ```python, ```pycon, ```console, ```bash or ```sh."""

    language: str
    title: str  # the file name of ```python title="mine.py", or nothing
    text: str


class Run(NamedTuple):
    command: str
    code: int
    output: str


def blocks(text: str) -> list[Block]:
    """All blocks of a page but those under a line `<!-- not run: why -->`."""
    results = []
    for result in FENCE.finditer(text):
        if not result["skip"]:
            title = re.search(r'title="([^"]*)"', result["info"])
            results.append(Block(result["language"], title[1] if title else "", result["text"]))
    return results


def commands(block: Block) -> list[str]:
    """The calibrant commands of a shell block; other lines (make, pip, git, output) are left alone."""
    lines = block.text.replace("\\\n", " ").splitlines()
    prompted = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return [line for line in prompted or lines if line.split(" ", 1)[0] == "calibrant"]


def expected_code(command: str) -> int:
    said = EXIT.search(command)
    return int(said[1]) if said else 0


def prepare(folder: Path) -> None:
    """The files that the pages use, as `calibrant example` writes them, and the command itself."""
    write_examples(folder)
    shim = folder / ".bin" / "calibrant"
    shim.parent.mkdir()
    source = Path(cal.__file__).parents[1]
    code = (
        f"import sys; sys.argv[0] = 'calibrant'; sys.path.insert(0, '{source}'); from calibrant.cli import main; main()"
    )
    shim.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -c "{code}" "$@"\n')
    shim.chmod(0o755)


def run(command: str, folder: Path) -> Run:
    """Run one line as in a terminal of 80 columns: here, which is fast, or in a shell if the line needs one."""
    terminal = {
        "PATH": f"{folder / '.bin'}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    plain, first = _plain(command)
    code, output = (_in_shell if _needs_shell(plain) else _in_here)(plain, folder, terminal)
    output = "\n".join(output.splitlines()[:first])
    return Run(command, code, "\n".join(line.rstrip() for line in output.rstrip().splitlines()))


def _plain(command: str) -> tuple[str, int | None]:
    """The command, and how many lines of it are shown: what `| head -3` says is done here as well."""
    cut = re.fullmatch(r"([^|]*)\| head -(\d+)", command)
    return (cut[1], int(cut[2])) if cut else (command, None)


def _needs_shell(command: str) -> bool:
    """Does anything outside of quotes and comments mean something to a shell?"""
    words = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    words.whitespace_split = True
    return any(word and (set(word) <= set("|&;<>") or "$" in word) for word in words)


def _in_here(command: str, folder: Path, terminal: dict[str, str]) -> tuple[int, str]:
    from calibrant.cli import main

    out = io.StringIO()
    arguments = mock.patch.object(sys, "argv", shlex.split(command, comments=True))
    around = mock.patch.dict(os.environ, terminal), arguments, chdir(folder), redirect_stdout(out), redirect_stderr(out)
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("always", cal.LeakWarning)  # which a terminal shows, whoever runs the page
        for one in around:
            stack.enter_context(one)
        try:
            main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


def _in_shell(command: str, folder: Path, terminal: dict[str, str]) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


def with_outputs(block: Block, runs: dict[str, Run]) -> str:
    """The text of a console block with real output below its commands; a line `...` stays where it was."""
    parts = []
    for part in re.split(r"^(?=\$ )", block.text.strip("\n"), flags=re.M):
        command, *old = part.rstrip("\n").splitlines() or [""]
        new = old
        if command.startswith("$ ") and command.removeprefix("$ ") in runs:
            new = runs[command.removeprefix("$ ")].output.splitlines()
            if "..." in old:
                head, tail = old.index("..."), len(old) - old.index("...") - 1
                new = [*new[:head], "...", *new[len(new) - tail :]]
        parts.append("\n".join([command, *new]))
    return "\n\n".join(parts).lstrip("\n") + "\n"


def refresh(page: Path) -> None:
    """Write the page again with the output its commands have now."""
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        text = page.read_text()
        for block in blocks(text):
            if block.language == "console":
                runs = {command: run(command, Path(folder)) for command in commands(block)}
                text = text.replace(block.text, with_outputs(block, runs))
            elif block.title:
                (Path(folder) / block.title).write_text(block.text)
    write_whole(page, lambda stream: stream.write(text.encode()))


def main() -> None:
    pages = {"measures.md": measures_page(), "calibrators.md": calibrators_page()}
    for name, text in (pages | {name: plain_page(*about) for name, about in PLAIN.items()}).items():
        write_whole(DOCS / name, lambda stream, text=text: stream.write(text.encode()))
    for page in sorted(WITHOUT_SERVER.glob("*.html")):
        (DOCS / "pages").mkdir(exist_ok=True)
        write_whole(DOCS / "pages" / page.name, lambda stream, page=page: stream.write(page.read_bytes()))
    if "--outputs" in sys.argv[1:]:
        for page in PAGES:
            refresh(page)


if __name__ == "__main__":
    main()
