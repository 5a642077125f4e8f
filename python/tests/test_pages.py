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
from conftest import ROOT, CommandLine, unavailable

NOTEBOOK = ROOT / "docs/tutorial/python.ipynb"
#: Longest time of one of its cells, s: one boots a virtual machine.
CELL_S = 600


def test_the_examples_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "experiments").symlink_to(ROOT / "experiments")
    monkeypatch.chdir(tmp_path)
    flags = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL
    result = doctest.testfile(str(ROOT / "docs/howto/python.md"), module_relative=False, optionflags=flags)
    assert result.attempted > 12
    assert result.failed == 0


def test_the_notebook(command_line: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs no file, and only the virtual machine may be missing."""
    monkeypatch.setenv("FAIRGROUND_BINARY", command_line.binary)
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "commit the notebook without its outputs"
    resources = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=CELL_S, kernel_name="python3", resources=resources).execute()
    outputs = {cell["id"]: cell.get("outputs", []) for cell in notebook.cells}
    pages = {name: "".join(one.get("data", {}).get("text/html", "") for one in of_cell) for name, of_cell in outputs.items()}
    for cell in ("one", "findings", "evidence", "sites", "blockers", "own", "replay", "differs", "parts", "agreement", "experiment", "pivot"):
        assert "</table>" in pages[cell], cell
    for cell in ("shares", "latency", "timeline"):
        assert "image/png" in outputs[cell][0]["data"], cell
    assert ">cut-slices</td>" in pages["findings"]
    assert outputs["differs"][0]["text"].startswith("`cc1` loses ")
    assert outputs["grid"][0]["data"]["text/plain"] == "(18, 0)"
    printed = [one["text"] for one in outputs["vm"] if one["output_type"] == "stream"]
    assert len(list(tmp_path.iterdir())) == 0
    if "</table>" not in pages["vm"]:
        assert printed[0].startswith("skipped: ")
        unavailable("kernel", printed[0])


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
