"""A kind of job."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

VERSION = 1


def run(options: Mapping[str, Any], needs: list[Path], folder: Path) -> list[dict[str, Any]]:
    return [{"greeting": f"hello {options['name']}"}]
