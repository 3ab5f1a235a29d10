"""Description of the machine and the versions that produced the results, to compare results."""

import os
import platform
from importlib import metadata
from pathlib import Path

from tresse import _native
from tresse.sweep import code_version


def describe() -> dict[str, str]:
    """Return the machine and the versions, in the order of reports."""
    libraries = ("numpy", "scipy", "pandas", "matplotlib", "joblib")
    return {
        "tresse": f"{_native.version()} (code {code_version()})",
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}",
        "Python": platform.python_version(),
        "libraries": ", ".join(f"{name} {metadata.version(name)}" for name in libraries),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or "unknown processor")
