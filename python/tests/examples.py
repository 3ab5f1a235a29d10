"""The worked examples of the repository, for tests."""

import importlib.util
import os
import subprocess
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"


def compiled(source: str, folder: Path) -> Path:
    """The example in C as a shared object in `folder`."""
    shared = (folder / source.rsplit("/", 1)[-1]).with_suffix(".so")
    compiler = os.environ.get("CC", "cc")
    include = ROOT / "include"
    subprocess.run([compiler, "-shared", "-fPIC", "-I", include, "-o", shared, EXAMPLES / source], check=True)
    return shared


def example(source: str) -> ModuleType:
    """The example in Python."""
    path = EXAMPLES / source
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
