"""Build the compiled passes beside their source where a C compiler is found; else the package is pure Python."""

import os
import platform
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = Path("src/calibrant/core/curves/native")
FLAGS = ("-O3", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra", "-Wno-psabi")


class NativeBuildHook(BuildHookInterface):
    """Compile passes.c for wheels and editable installs."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel":
            return
        suffix = {"darwin": "dylib", "win32": "dll"}.get(sys.platform, "so")
        root = Path(self.root)
        library = root / FOLDER / f"passes.{suffix}"
        if not compile_passes(root / FOLDER / "passes.c", library):
            return
        build_data["artifacts"].append(f"/{FOLDER.as_posix()}/{library.name}")
        build_data["pure_python"] = False
        tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{tag}"


def compile_passes(source: Path, library: Path, *more: str) -> bool:
    """Whether the library was built; a compiler that fails leaves the package as it is."""
    library.unlink(missing_ok=True)
    compiler = shlex.split(os.environ.get("CC", "")) or [next(filter(shutil.which, ("cc", "gcc", "clang")), "")]
    if not compiler[0] or shutil.which(compiler[0]) is None:
        return False
    extra = [*more, *(["-fPIC"] if platform.system() != "Windows" else [])]
    command = [*compiler, *FLAGS, *extra, "-shared", str(source), "-o", str(library), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        print(f"calibrant: the compiled passes were not built, numpy is used instead.\n{done.stderr}", file=sys.stderr)
        library.unlink(missing_ok=True)
    return done.returncode == 0
