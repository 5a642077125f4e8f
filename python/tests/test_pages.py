"""What is shown works: the page, the notebook, the types."""

from __future__ import annotations

import doctest
import os
import subprocess
import sys
from pathlib import Path

import nbclient
import nbformat
import pytest
from conftest import ROOT

NOTEBOOK = ROOT / "python/examples/sweep.ipynb"


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testfile(str(ROOT / "docs/howto/python.md"), module_relative=False, optionflags=flags)
    assert result.attempted > 12
    assert result.failed == 0


def test_the_notebook() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit the notebook without its outputs"
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", []) if "data" in output]
    assert sum("image/png" in data for data in shown) == 2
    assert any("<td>hog</td>" in data.get("text/html", "") for data in shown)
    ran = next(cell for cell in notebook.cells if cell["id"] == "grid")
    assert ran["outputs"][0]["data"]["text/plain"] == "(18, 0)"


def checked(tmp_path: Path, folder: Path, *words: str) -> None:
    """Runs a checker of types."""
    environment = os.environ | {"MYPY_CACHE_DIR": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_types(tmp_path: Path) -> None:
    checked(tmp_path, ROOT / "python", "mypy", "--strict", "fairground", "tests")


def test_the_types_of_the_native_half(tmp_path: Path) -> None:
    config = str(ROOT / "python/pyproject.toml")
    checked(tmp_path, tmp_path, "mypy.stubtest", "fairground._native", "--mypy-config-file", config)
