"""What is not needed is not loaded: seen in fresh processes, from the modules they end with."""

import json
import subprocess
import sys

import pytest

from calibrant.data import DEMO_TEST, DEMO_VAL

IMPORT = "import calibrant"
COMMAND = """
import sys
from calibrant.cli import main
sys.argv = ["calibrant", *{arguments!r}]
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
"""
REPORT = "\nimport json, sys\nprint('\\nloaded', json.dumps(sorted({m.partition('.')[0] for m in sys.modules})))"


def loaded(code: str) -> set[str]:
    """Top-level packages in a process that has run the code."""
    done = subprocess.run(
        [sys.executable, "-c", code + REPORT], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stdout.rpartition("\nloaded ")[2]))


def test_import_loads_no_heavy_package():
    packages = loaded(IMPORT)
    assert {"calibrant"} <= packages
    assert packages & {"torch", "scipy", "polars", "altair", "rich", "typer", "sklearn", "pandas"} == set()


def test_knowing_every_name_loads_nothing_more():
    assert "torch" not in loaded("import calibrant\nassert {'train', 'nas'} <= set(dir(calibrant))")


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["measure", str(DEMO_TEST), "--measure", "ece"], ["list", "measures"]],
    ids=["help", "measure", "list"],
)
def test_commands_do_not_load_torch(arguments):
    packages = loaded(COMMAND.format(arguments=arguments))
    assert "calibrant" in packages
    assert packages & {"torch", "altair", "sklearn", "pandas"} == set()


def test_a_small_file_of_arrays_is_measured_without_scipy_and_polars():
    packages = loaded(COMMAND.format(arguments=["measure", str(DEMO_TEST)]))
    assert packages & {"torch", "altair", "scipy", "polars"} == set()


def test_report_does_not_load_the_slow_part_of_scipy(tmp_path):
    out = str(tmp_path / "report.html")
    arguments = ["report", str(DEMO_TEST), "--fit-on", str(DEMO_VAL), "--out", out]
    assert "calibrant" in loaded(COMMAND.format(arguments=arguments) + "\nassert 'scipy.stats' not in sys.modules")


def test_a_loaded_package_is_seen():
    assert "polars" in loaded("import calibrant, polars")
