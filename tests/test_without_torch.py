"""The core needs no torch: in a process that refuses it, every core room is loaded and the main commands are run.

`make test-core` proves the same with a second environment in which nothing but the core is installed.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_layers import LEVEL, WITH_TORCH
from test_public_names import public_homes

from calibrant.data import DEMO_TEST, DEMO_VAL

TESTS = Path(__file__).parent
REFUSED = (  # what only extras bring
    *("torch", "lightning_fabric", "pytorch_lightning", "safetensors", "transformers", "huggingface_hub", "accelerate"),
    *("onnx", "onnxruntime", "sklearn", "PIL", "ray", "pandas", "html5lib", "playwright", "gradio", "fastapi"),
)
CORE_ROOMS = [*sorted(room for room in LEVEL if room not in WITH_TORCH and not room.startswith("__")), "cli"]

REFUSE = f"""
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {REFUSED!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Refuse())
"""
IMPORT = """
import importlib
from pathlib import Path
import calibrant
folder = Path(calibrant.__file__).parent
for file in sorted(folder.rglob("*.py")):
    name = ".".join(("calibrant", *file.relative_to(folder).with_suffix("").parts)).removesuffix(".__init__")
    try:
        if not name.endswith("__main__"):
            importlib.import_module(name)
    except ImportError as error:
        print(name, (error.name or error.__cause__.name).partition(".")[0])
"""
NAMES = """
import calibrant
for name in calibrant.__all__:
    try:
        getattr(calibrant, name)
    except ImportError as error:
        print(name, (error.name or error.__cause__.name).partition(".")[0])
"""
SKIP = re.compile(r"^(?:\w+ = )?pytest\.importorskip\(\"(\w+)", re.M)
RUN = """
from calibrant.cli import main
sys.argv = ["calibrant", *sys.argv[1:]]
main()
"""


def run(code, *args, cwd=None):
    command = [sys.executable, "-c", REFUSE + code, *map(str, args)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def needy():
    """Modules of the package that cannot be imported, with the package that they miss."""
    code, out, error = run(IMPORT)
    assert code == 0, error
    return dict(line.split() for line in out.splitlines())


def test_every_core_room_is_loaded(needy):
    assert {"calibrant.losses.focal", "calibrant.training.loop", "calibrant.core.torch.map_module"} <= set(needy)
    in_core = {name for name in needy if name.split(".")[1] in CORE_ROOMS and ".torch." not in name}
    of_app = {name for name in in_core if name.startswith("calibrant.app.")}
    assert in_core - of_app == {"calibrant.repairing.sklearn"}
    assert {needy[name] for name in of_app} == {"gradio"}


def test_every_public_name_is_there_but_those_of_rooms_that_need_an_extra(needy):
    code, out, error = run(NAMES)
    assert code == 0, error
    missing = dict(line.split() for line in out.splitlines())
    homes = public_homes()
    assert missing == {name: needy[home] for name, home in homes.items() if home in needy}
    core = {name for name, home in homes.items() if home.split(".")[1] in CORE_ROOMS and ".torch." not in home}
    assert core & set(missing) == {"CalibratedClassifier"}
    assert {"train", "losses"} <= set(missing)
    assert {"ProximityGroups", "Recipe", "HuggingFaceMetrics", "nas", "training", "types"} & set(missing) == set()


FILES = sorted(
    file for file in TESTS.rglob("*.py") if not {"plugin_package", "job_package"} & set(file.parts)
)  # packages, not tests


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(TESTS)))
def test_a_test_that_needs_an_extra_skips_itself(file, needy):
    """pytest.importorskip("torch") before the first import that needs it."""
    text = file.read_text()
    skips = {match[1]: text[: match.start()].count("\n") for match in SKIP.finditer(text)}
    for node in ast.parse(text).body:
        for module in imported(node):
            extra = needy.get(module, module.partition(".")[0])
            declared = extra not in REFUSED or node.lineno > skips.get(extra, node.lineno)
            assert declared, f"line {node.lineno} needs pytest.importorskip({extra!r}) above it"


def imported(node):
    """Modules that a top-level statement imports."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return []


def test_measure_fit_apply_and_check(tmp_path):
    script = f"""
import calibrant as cal
val, test = cal.Predictions.load({str(DEMO_VAL)!r}), cal.Predictions.load({str(DEMO_TEST)!r})
repaired = cal.fit(val, "temperature")(test)
print(cal.measure(test, "ece", resamples=50).value > 2 * cal.measure(repaired, "ece", resamples=50).value)
try:
    cal.losses
except ModuleNotFoundError as error:
    print(error.name)
"""
    assert run(script) == (0, "True\ntorch\n", "")


def test_the_demo_works_and_says_how_to_train(tmp_path):
    code, out, error = run(RUN, "demo", "--out", tmp_path / "demo", cwd=tmp_path)
    assert code == 0, error
    assert "There is no torch here" in out
    assert "pip install 'calibrant[train]'" in out
    assert "overconfident" in out
    assert (tmp_path / "demo" / "report.html").stat().st_size > 100_000


@pytest.mark.parametrize("command", ["train demo", "study run losses --scale smoke"])
def test_a_command_that_needs_torch_says_so_in_one_line(command, tmp_path):
    code, out, error = run(RUN, *command.split(), "--out", tmp_path / "run", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "pip install 'calibrant[train]'" in error
    assert error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_app_says_what_it_needs(tmp_path):
    code, out, error = run(RUN, "app", "--no-browser", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert error == "error: app: expected the package gradio, got none. To fix it: pip install 'calibrant[app]'.\n"
    code, out, _ = run(RUN, "app", "--help", cwd=tmp_path)
    assert code == 0
    assert "--max-upload" in out
