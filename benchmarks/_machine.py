"""Where and with what it was measured."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGES = (
    "calibrant",
    "numpy",
    "scipy",
    "torch",
    "torchmetrics",
    "netcal",
    "uncertainty-calibration",
    "relplot",
    "probmetrics",
    "scikit-learn",
)


def facts(load_before: float) -> list[str]:
    """Lines for the page; the load tells how much the machine did besides."""
    return [
        f"{datetime.now(UTC):%Y-%m-%d}, {platform.system()}, {_processor()}, {os.cpu_count()} CPUs; "
        f"load average {load_before:.1f} before, {load():.1f} after the run",
        f"Python {platform.python_version()}; " + ", ".join(f"{name} {_version(name)}" for name in PACKAGES),
    ]


def load() -> float:
    return os.getloadavg()[0] if hasattr(os, "getloadavg") else float("nan")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        if package != "calibrant":
            return "not installed"
        import calibrant

        return calibrant.__version__


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if not info.exists():
        return platform.machine()
    names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
    return names[0] if names else platform.machine()
