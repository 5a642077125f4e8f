"""Findings, waits and replays of runs and recordings are those of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import ROOT, CommandLine

import fairground

RECORDING = ROOT / "experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz"
#: One task always runs, and two that sleep briefly share its CPU.
CUTS = "hogs:4 + sleepers:2"


def printed(command_line: CommandLine, *words: str) -> dict[str, Any]:
    """What a command prints for programs."""
    document: dict[str, Any] = json.loads(command_line.out(*words, "--format", "json"))
    return document


def table(document: dict[str, Any], name: str) -> list[list[Any]]:
    """The rows of a table."""
    rows: list[list[Any]] = next(table["rows"] for table in document["tables"] if table["id"] == name)
    return rows


def starved(tmp_path: Path) -> Path:
    """A recording in which a scheduler of 2007 lets sleepers cut slices."""
    trace = tmp_path / "cuts.txt"
    fairground.command("run", CUTS, sched="cfs@2.6.24", cpus=1, duration="3s", trace=trace)
    return trace


def test_findings_are_those_of_diagnose(command_line: CommandLine, tmp_path: Path) -> None:
    trace = starved(tmp_path)
    document = printed(command_line, "diagnose", str(trace))
    run = fairground.read(trace)
    found = run.findings.to_polars()
    assert found.height >= 1
    assert found.select("rule", "finding").rows() == [(rule, finding) for _, rule, _, finding in table(document, "findings")]
    percents = [percent for _, _, percent, _ in table(document, "findings")]
    assert [ppm / 1e4 for ppm in found["cpu_time_ppm"]] == pytest.approx(percents)
    evidence = run.evidence.to_polars()
    assert set(evidence["rank"]) == set(found["rank"])
    assert evidence.filter(rank=1).height == len(table(document, "evidence"))
    judged = {rule for rule, _ in run.not_judged}
    assert {note.split(": ")[1] for note in document["notes"] if note.startswith("not judged")} == judged


def test_what_a_recording_lacks_is_not_judged(tmp_path: Path) -> None:
    lines = ["# tracer: nop"]
    lines += [f" hog-7 [000] d..2. {at}.000000: sched_wakeup: comm=tick pid=8 prio=120 target_cpu=000" for at in range(1, 9)]
    recording = tmp_path / "wakeups.txt"
    recording.write_text("\n".join(lines) + "\n")
    run = fairground.read(recording)
    assert len(run.findings) == 0
    assert len(run.not_judged) == 8


def test_waits_are_those_of_contention(command_line: CommandLine) -> None:
    words = ("critical:4", "--sched", "eevdf", "--cpus", "2", "--duration", "200ms")
    document = printed(command_line, "contention", *words, "--top", "100000")
    run = fairground.simulate("critical:4", sched="eevdf", cpus=2, duration="200ms")
    waits = run.contention()
    sites = waits.sites.to_polars()
    assert sites.height == len(table(document, "sites")) > 0
    assert sites["waits"].to_list() == [row[1] for row in table(document, "sites")]
    assert sites["wait_ns"].to_list() == [row[2] for row in table(document, "sites")]
    assert waits.blockers.to_polars()["wait_ns"].to_list() == [row[3] for row in table(document, "blockers")]
    assert len(waits.points) == 0
    entries = next(section["entries"] for section in document["sections"] if section["name"] == "contention")
    assert waits.lock_waits == next(entry["value"] for entry in entries if entry["name"] == "waits for locks") > 0


def test_a_replay_is_that_of_the_command_line(command_line: CommandLine, tmp_path: Path) -> None:
    trace = starved(tmp_path)
    document = printed(command_line, "replay", str(trace), "--sched", "rfs", "--all")
    recording = fairground.read(trace)
    replayed = recording.replay(sched="rfs")
    assert replayed.label == "rfs"
    machine = [row[1:] for row in table(document, "comparison") if row[0] == "machine"]
    own = recording.replay()
    assert own.label == "cfs@2.6.24"
    for run, at in ((recording, 1), (own, 2), (replayed, 3)):
        metrics = dict(run.metrics.to_polars().select("metric", "value").rows())
        assert {row[0]: metrics[row[0]] for row in machine} == {row[0]: (row[at] or {}).get("value") for row in machine}
    near = recording.near(own).to_polars()
    assert near.rows() == [(figure, off and off["value"], near) for figure, off, near in table(document, "nearness")]


def test_a_recording_that_does_not_tell_its_scheduler_asks_for_one() -> None:
    with pytest.raises(fairground.Error, match="does not tell which scheduler made it.*\n.*name a scheduler"):
        fairground.read(RECORDING).replay()
    assert fairground.read(RECORDING).replay(sched="eevdf", settings={"base_slice_ns": "1ms"}).made["scheduler"]


def test_of_two_machines_each_is_read_apart(tmp_path: Path) -> None:
    def line(file: str, task: str, fields: str) -> str:
        return f"{file:>10} {task:>16} [000] 100.00{fields} [120]\n"

    report = tmp_path / "report.txt"
    report.write_text(
        "  host.dat: cpus=1\n guest.dat: cpus=1\n"
        + line("host.dat:", "<idle>-0", "0000: sched_switch: swapper/0:0 [120] R ==> qemu:500")
        + line("guest.dat:", "<idle>-0", "0010: sched_switch: swapper/0:0 [120] R ==> app:500")
        + line("guest.dat:", "app-500", "4000: sched_switch: app:500 [120] S ==> swapper/0:0")
        + line("host.dat:", "qemu-500", "9000: sched_switch: qemu:500 [120] S ==> swapper/0:0")
    )
    host = fairground.read(report)
    assert host.groups.to_arrow()["group"].to_pylist() == ["qemu"]
    assert any("guest.dat" in note for note in host.notes)
    guest = fairground.read(report, machine="guest.dat")
    assert guest.groups.to_arrow()["group"].to_pylist() == ["app"]
    with pytest.raises(fairground.Error, match=r"host\.dat, guest\.dat"):
        fairground.read(report, machine="guest")
