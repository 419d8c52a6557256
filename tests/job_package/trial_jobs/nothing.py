"""No work, or a fault that is asked for: a slow, failing or dying job."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from calibrant.studying.job_kinds import Row


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[Row]:
    """One row; told so, it takes its time or memory, leaves a file, fails, or ends its process."""
    time.sleep(options.get("seconds", 0.0))
    until = time.process_time() + options.get("busy", 0.0)
    while time.process_time() < until:
        pass
    bytearray(options.get("memory", 0))
    if options.get("die"):
        os._exit(9)
    if "file" in options:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / options["file"]).write_text("here")
    if "die_unless" in options and not Path(options["die_unless"]).exists():
        Path(options["die_unless"]).touch()
        os._exit(9)
    if "fail_unless" in options and not Path(options["fail_unless"]).exists():
        raise ValueError("told to fail")
    files = sum(len(list(need.iterdir())) for need in needs if need.exists())
    return [{"number": options.get("number", 0), "square": options.get("number", 0) ** 2, "found": files}]
