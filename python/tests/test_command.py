"""The program from Python: reports, real kernels, messages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import ROOT, CommandLine

import fairground

RECORDING = ROOT / "experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz"


def test_a_report_has_the_tables_of_the_command(command_line: CommandLine) -> None:
    words = ("compare", "hogs:3", "--sched", "cfs,eevdf", "--duration", "100ms", "--cpus", "2")
    printed = json.loads(command_line.out(*words, "--format", "json"))
    report = fairground.command("compare", "hogs:3", sched=["cfs", "eevdf"], duration="100ms", cpus=2)
    assert [table.name for table in report.tables] == list(report) == [table["id"] for table in printed["tables"]]
    for table, expected in zip(report.tables, printed["tables"], strict=True):
        assert [list(row) for row in table.rows] == expected["rows"]
        assert table.to_arrow().num_rows == table.to_polars().height == len(table.to_pandas()) == len(table)
    assert report.exit_code == 0
    assert report.sections["machine"]["hz"] == 250


def test_follow_and_experiments_are_reports() -> None:
    followed = fairground.command("follow", RECORDING, sched="eevdf")
    assert {row["decision"] for row in followed["agreement"].to_dicts()} >= {"pick", "place woken task"}
    experiments = fairground.command("reproduce")
    assert any("slice-2009" in row for table in experiments.tables for row in table.rows)
    with pytest.raises(KeyError, match="no table `agreements`; there are agreement"):
        followed["agreements"]


def test_messages_are_those_of_the_command_line(command_line: CommandLine) -> None:
    with pytest.raises(fairground.Error) as refused:
        fairground.command("compare", "hogs:3", sched=["cfs", "cfz"])
    assert str(refused.value) == command_line.refusal("compare", "hogs:3", "--sched", "cfs,cfz")
    with pytest.raises(fairground.Error, match="format: a report has its own"):
        fairground.command("run", "hogs:3", format="csv")


def test_a_program_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAIRGROUND_BINARY", str(tmp_path / "none"))
    with pytest.raises(fairground.Error, match="none: No such file"):
        fairground.command("doctor")
    monkeypatch.delenv("FAIRGROUND_BINARY")
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    with pytest.raises(fairground.Error, match="the program `fairground` is not there"):
        fairground.command("doctor")


def test_a_run_in_a_virtual_machine_has_its_figures_and_its_events(command_line: CommandLine) -> None:
    kernels = json.loads(command_line.out("kernels", "list", "--format", "json"))
    cached = [row for table in kernels["tables"] for row in table["rows"] if "6.1" in str(row)]
    if not cached:
        pytest.skip("no kernel 6.1 in the cache")
    report = fairground.run_on("vm:6.1", "hogs:3", cpus=2, duration="300ms")
    assert report.exit_code == 0
    hogs = next(row for row in report["groups"].to_dicts() if row["group"] == "hog")
    assert hogs["tasks"] == 3
    assert 190 < hogs["cpu_share"] <= 200
    assert report.recording is not None
    assert report.recording.events.to_polars().filter(kind="switch").height > 30
