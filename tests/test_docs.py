"""Every example in the docs and the README is run, and what is printed below it is what it prints.

Each page has its own folder with the files that `calibrant example` writes, and its own Python session, which starts
empty: what a page says can be typed from a fresh install. A ```python block is executed, and a ```text block behind it
is its output; a block that starts with >>> is a doctest; in ```console, ```bash and ```sh blocks every line that starts
with `calibrant` is run. A ```python title="mine.py" block is a file. `<!-- not run: why -->` above a block skips it.
"""

import doctest
import importlib.util
import io
import json
import os
import re
import runpy
from contextlib import redirect_stdout
from pathlib import Path

import pytest

import calibrant as cal
from calibrant.core.errors import InputError

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
NUMBER = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")


def load_build():
    spec = importlib.util.spec_from_file_location("docs_build", DOCS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


build = load_build()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The current folder, with predictions in it."""
    build.prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def same_but_for_rounding(real: str, written: str) -> None:
    assert NUMBER.sub("#", real) == NUMBER.sub("#", written)
    decimals = [
        [min(len(x.partition(".")[2]), 9) for x in NUMBER.findall(text)] for text in (real, written)
    ]  # JSON has all
    assert decimals[0] == decimals[1]
    numbers = [[float(x) for x in NUMBER.findall(text)] for text in (real, written)]
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-3, abs=2e-4)


# -- the pages --------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("page", build.PAGES, ids=lambda page: page.name)
def test_examples_run_and_print_what_the_page_says(page, folder):
    session = {"__name__": "page"}
    printed = ""
    for block in build.blocks(page.read_text()):
        before, printed = printed, ""
        if block.title:
            (folder / block.title).write_text(block.text)
        elif block.language == "text" and before:
            same_but_for_rounding(before, block.text)
        elif block.language in ("console", "bash", "sh"):
            run_commands(block, folder)
        elif block.text.startswith(">>> "):
            run_doctest(block.text, session, page.name)
        elif block.language == "python":
            printed = run_python(block.text, session)


def run_commands(block, folder):
    runs = {command: build.run(command, folder) for command in build.commands(block)}
    for command, done in runs.items():
        assert done.code == build.expected_code(command), f"{command}\n{done.output}"
        assert "Traceback" not in done.output
    if block.language == "console":
        same_but_for_rounding(build.with_outputs(block, runs), block.text)


def run_python(text: str, session: dict) -> str:
    with redirect_stdout(io.StringIO()) as out:
        exec(compile(text, "<page>", "exec"), session)
    return out.getvalue()


def run_doctest(text: str, session: dict, name: str) -> None:
    example = doctest.DocTestParser().get_doctest(text, session, name, None, None)
    out = io.StringIO()
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(example, out=out.write, clear_globs=False)
    session |= example.globs
    assert not out.getvalue(), out.getvalue()


def test_links_between_pages_lead_somewhere():
    anchors = {page.name: set(headings(page.read_text())) for page in build.PAGES}
    anchors["measures.md"] = set(cal.measures.names())
    anchors["calibrators.md"] = set(cal.calibrators.names())
    for page in DOCS.glob("*.md"):
        if page not in build.GENERATED:
            for name, anchor in re.findall(r"\]\(([\w.-]+\.md)(?:#([\w-]+))?\)", page.read_text()):
                if name in anchors:  # pages of this repository; mkdocs checks the rest
                    assert not anchor or anchor in anchors[name], f"{page.name} links to {name}#{anchor}"


def headings(text: str) -> list[str]:
    titles = re.findall(r"^#+ (.+)$", text, re.M)
    return [re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", title).strip().lower()) for title in titles]


# -- the page of measures ---------------------------------------------------------------------------


def test_every_measure_is_on_its_page():
    page = build.measures_page()
    for name in cal.measures.names():
        m = cal.measures.make(name)
        [part] = re.findall(rf"^## `{name}`: (.*?)(?=^## |\Z)", page, re.M | re.S)
        assert part.startswith(m.title)
        assert m.definition in part
        assert m.reference == "-" or m.reference in part
        assert ">>> " in part
        for option, default in vars(m).items():
            assert f"| `{option}` | `{build.shown(default)}` |" in part


def test_the_page_of_measures_says_what_streams():
    table = dict(re.findall(r"^\| \[`(\w+)`\].*\| (yes)? ?\|$", build.measures_page(), re.M))
    assert set(table) == set(cal.measures.names())
    for name, streams in table.items():
        if streams:
            cal.Accumulator([name])
        else:
            with pytest.raises(InputError):
                cal.Accumulator([name])


# -- the page of calibrators ------------------------------------------------------------------------


def test_every_calibrator_is_on_its_page():
    page = build.calibrators_page()
    for name in cal.calibrators.names():
        c = cal.calibrators.make(name)
        [part] = re.findall(rf"^## `{name}`: (.*?)(?=^## |\Z)", page, re.M | re.S)
        assert part.startswith(c.title)
        assert c.reference == "-" or c.reference in part
        assert ("Cannot change a prediction." in part) is c.keeps_argmax
        assert ">>> " in part
        for option, default in vars(c).items():
            assert f"| `{option}` | `{build.shown(default)}` |" in part


@pytest.mark.parametrize("name", build.PLAIN)
def test_every_other_entry_is_on_its_page(name):
    room, title, words = build.PLAIN[name]
    page = build.plain_page(room, title, words)
    for entry in getattr(cal, room).names():
        [part] = re.findall(rf"^## `{entry}`: (.*?)(?=^## |\Z)", page, re.M | re.S)
        built_entry = getattr(cal, room).CATALOGUE.make(entry)
        assert part.startswith(built_entry.title)
        assert built_entry.reference in part


# -- the page of JSON -------------------------------------------------------------------------------

JSON_COMMANDS = {
    "measure": "measure preds.npz --measure ece --measure auroc_correct --resamples 20",
    "test": "test preds.npz --resamples 20",
    "compare": "compare a.npz b.npz --measure ece --resamples 20",
    "check": "check preds.npz --max ece=0.9 --min accuracy=0.1 --resamples 20",
    "watch": "watch preds.npz --tolerance 0.3",
    "table": "table a.npz b.npz --by file --measure ece",
    "board": "board answers.csv",
    "decompose": "decompose preds.npz",
    "decide": "decide test.npz --max-error 0.2",
    "adapt": f"adapt map.json --from {','.join(['0.1'] * 10)} --to 0.19{',0.09' * 9}",
    "apply": "apply map.json test.npz --out calibrated.npz",
    "export": "export map.json --to python --out map.py",
    "report": "report preds.npz --override resamples=40 --with temperature",
    "plot": "plot risk_coverage preds.npz",
    "train": "train demo --out runs/x --override scale=smoke --override data.limit=64 --override data.test_limit=50",
    "list": "list measures",
    "list calibrators": "list calibrators",
}
TYPES = {
    "string": str,
    "number": (int, float),
    "boolean": bool,
    "integer": int,
    "list": list,
    "object": dict,
    "null": type(None),
}


def documented(section: str) -> dict[str, str]:
    """Key -> type, from the first table of a section of docs/json.md."""
    text = (DOCS / "json.md").read_text().partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^\| `([^`]+)` \| ([\w ]+) \|", text, re.M))


def check_keys(value: dict, keys: dict[str, str]) -> None:
    assert set(value) == set(keys)
    for key, words in keys.items():
        assert isinstance(value[key], tuple(t for word in words.split(" or ") for t in as_tuple(TYPES[word]))), key


def as_tuple(types: object) -> tuple:
    return types if isinstance(types, tuple) else (types,)


@pytest.mark.parametrize("section", JSON_COMMANDS)
def test_json_has_the_documented_keys(section, folder):
    cal.fit(cal.Predictions.load("val.npz"), "temperature").save("map.json")
    done = build.run(f"calibrant {JSON_COMMANDS[section]} --json", folder)
    assert done.code == 0, done.output
    value = json.loads(done.output)
    if section == "decompose":
        names = ["nll, temperature", "nll, isotonic", "brier, temperature", "brier, isotonic"]
        assert list(value["losses"]) == names
        for name in names:
            flat = {f"losses.*.{key}": x for key, x in value["losses"][name].items()}
            flat |= {f"{part}.{key}": x for part in value if part != "losses" for key, x in value[part].items()}
            check_keys(flat, documented(section))
        return
    assert value
    if section in ("check", "test"):
        keys, inside = documented(section), f"{section}s.*."
        inner = {key.removeprefix(inside): keys.pop(key) for key in list(keys) if key.startswith(inside)}
        check_keys(value, keys)
        for row in value[f"{section}s"]:
            check_keys(row, inner)
        return
    for row in value if isinstance(value, list) else [value]:
        check_keys(row, documented(section))


def test_fit_has_the_documented_keys(folder):
    done = build.run("calibrant fit val.npz --with temperature --test test.npz --resamples 20 --json", folder)
    keys = documented("fit")
    inner = {key.removeprefix("measures.*."): keys.pop(key) for key in list(keys) if key.startswith("measures.*.")}
    value = json.loads(done.output)
    check_keys(value, keys)
    assert list(value["parameters"]) == ["T", "T_low", "T_high"]
    for row in value["measures"]:
        check_keys(row, inner)


def test_fit_auto_and_all_have_the_documented_keys(folder):
    done = build.run("calibrant fit val.npz --with auto --keep-argmax --resamples 20 --json", folder)
    value = json.loads(done.output)
    plain = {key for key in documented("fit") if "*" not in key}
    assert set(value) == plain | set(documented("fit --with auto"))
    for row in value["candidates"]:
        check_keys(row, documented("candidates"))
    cal.Predictions.load("val.npz").take(range(300)).save("few.npz")
    done = build.run("calibrant fit few.npz --with all --keep-argmax --test test.npz --json", folder)
    for row in json.loads(done.output):
        check_keys(row, documented("fit --with all"))


def test_a_map_has_the_documented_keys(folder):
    cal.fit(cal.Predictions.load("val.npz"), "temperature").save("map.json")
    check_keys(json.loads(Path("map.json").read_text()), documented("A map"))


def test_streams_and_sets_have_the_same_keys(folder):
    for options in ("preds.csv --stream", "preds.npz --set benchmark102 --ood ood.npz"):
        rows = json.loads(build.run(f"calibrant measure {options} --json", folder).output)
        assert len(rows) >= 10
        for row in rows:
            check_keys(row, documented("measure"))


def test_bad_input_prints_no_json(folder):
    done = build.run("calibrant measure preds.npz --measure eec --json 2> error.txt", folder)
    assert (done.code, done.output) == (2, "")
    assert (folder / "error.txt").read_text().startswith("error: ")


def test_the_state_of_an_accumulator_is_documented(p):
    sums = cal.Accumulator()
    sums.update(p)
    check_keys(json.loads(sums.to_json()), documented("The state of an accumulator"))


# -- the page of the structure ----------------------------------------------------------------------


def test_the_structure_page_shows_the_tree_that_is_there():
    tree = runpy.run_path(str(DOCS / "tree.py"))
    page_tree = tree["PAGE"].read_text().partition(tree["BEGIN"])[2].partition(tree["END"])[0]
    assert page_tree.strip() == tree["tree"]().strip(), "run python docs/tree.py"
    for name in re.findall(r"`(_?\w+\.py)`", (DOCS / "structure.md").read_text()):
        assert [*(ROOT / "src" / "calibrant").rglob(name)], f"docs/structure.md speaks of {name}, which is not there"


def test_pages_name_real_tests_and_files():
    for page in build.PAGES:
        for path in re.findall(r"`((?:tests|tools|docs|src|examples|benchmarks)/[\w/.]+\w)`", page.read_text()):
            assert os.path.exists(ROOT / path), f"{page.name} speaks of {path}, which is not there"


def test_the_table_of_gamma_has_the_columns_that_its_tool_writes():
    from importlib.util import module_from_spec, spec_from_file_location

    pytest.importorskip("torch")
    spec = spec_from_file_location("meta_doubts", ROOT / "tools" / "meta_doubts.py")
    tool = module_from_spec(spec)
    spec.loader.exec_module(tool)
    head = tool.table([]).splitlines()[0]
    assert head.endswith("| spread over test images, best epoch | least to most, best epoch |")
    assert head in (ROOT / "docs" / "meta.md").read_text()
