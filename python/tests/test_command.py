"""The program from Python: reports, real kernels, messages."""

from __future__ import annotations

import json
import re
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, CommandLine, unavailable

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
    followed = fairground.follow(RECORDING, sched="eevdf")
    assert {row["decision"] for row in followed["agreement"].to_dicts()} >= {"pick", "place woken task"}
    assert followed == fairground.command("follow", RECORDING, sched="eevdf")
    experiments = fairground.reproduce()
    assert any("slice-2009" in row for table in experiments.tables for row in table.rows)
    repeated = fairground.reproduce("slice-2009", on="sim")
    assert repeated.title.startswith("slice-2009: ")
    assert len(repeated["claims"]) > 0
    with pytest.raises(KeyError, match="no table `agreements`; there are agreement"):
        followed["agreements"]


def recorded(folder: Path, name: str, workload: str) -> Path:
    """A recording of a workload on one CPU."""
    trace = folder / name
    fairground.command("run", workload, sched="eevdf", cpus=1, duration="300ms", trace=trace)
    return trace


def test_recordings_are_compared(command_line: CommandLine, tmp_path: Path) -> None:
    before = [recorded(tmp_path, f"before{seed}.txt", "hogs:1") for seed in (1, 2)]
    after = [recorded(tmp_path, f"after{seed}.txt", "hogs:1 + sleepers:1") for seed in (1, 2)]
    printed = json.loads(command_line.out("compare", str(before[0]), str(after[0]), "--format", "json"))
    report = fairground.compare(before[0], after[0])
    assert report.title == printed["title"] != ""
    assert list(report) == [table["id"] for table in printed["tables"]]
    assert {"causes", "lost", "parts"} <= set(report)
    several = fairground.compare(*before, against=after)
    assert not any("no interval" in note for note in several.notes)
    assert [row["is"] for row in several["one-sided"].to_dicts()] == ["new"]
    assert fairground.diagnose(before[0], after[0]).exit_code == 0
    with pytest.raises(fairground.Error) as refused:
        fairground.compare(before[0])
    assert str(refused.value) == command_line.refusal("compare", str(before[0]))
    with pytest.raises(fairground.Error) as refused:
        fairground.follow(tmp_path / "none.dat", sched="cfs")
    assert str(refused.value) == command_line.refusal("follow", str(tmp_path / "none.dat"), "--sched", "cfs")


def test_values_with_their_own_units_become_numbers() -> None:
    table = fairground.compare("hogs:3", sched=["cfs", "eevdf"], duration="100ms")["comparison"]
    frame = table.to_pandas()
    assert list(frame) == ["of", "metric", "cfs", "cfs.unit", "eevdf", "eevdf.unit"]
    share = frame[(frame["of"] == "hog") & (frame["metric"] == "cpu_share")].iloc[0]
    assert (share["cfs"], share["cfs.unit"]) == (pytest.approx(200.0, abs=1.0), "percent")
    assert frame["eevdf"].dtype == "float64"


def test_tables_and_reports_are_shown_in_notebooks() -> None:
    mixed = ({"value": 1500, "unit": "ns"}, None, {"value": 4, "unit": None})
    table = fairground.ReportTable(
        "made",
        "<Made>",
        ("task", "wait", "count", "change", "own"),
        {"wait": "ns", "own": "mixed"},
        tuple(zip(("<a>", None, "c"), (2_500_000, None, 0), (1, 20_000, 3), (-0.001, 0.5, 2.0), mixed, strict=True)),
        ("a note",),
    )
    page = table._repr_html_()
    assert "<p><b>&lt;Made&gt;</b></p>" in page
    assert page.endswith("<p>a note</p>")
    assert ">wait [ms]</th>" in page
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", page)
    assert cells[:5] == ["&lt;a&gt;", "2.50", "1", "0.00", "1.50 µs"]
    assert cells[5:] == ["", "not measured", "20,000", "0.50", "not measured", "c", "0.00", "3", "2.00", "4"]
    report = fairground.compare("hogs:3", sched=["cfs", "eevdf"], duration="100ms")
    assert report._repr_html_().count("</table>") == len(report)
    run = fairground.simulate("hogs:2", duration="1s")
    assert "more rows" in run.events._repr_html_()
    assert "not measured" not in run.findings._repr_html_()


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
        unavailable("kernel", "no kernel 6.1 in the cache")
    run = fairground.run_on("hogs:3", on="vm:6.1", cpus=2, duration="300ms")
    hogs = next(row for row in run.groups.to_arrow().to_pylist() if row["group"] == "hog")
    assert hogs["tasks"] == 3
    assert 190 < hogs["cpu_share"] <= 200
    assert run.events.to_polars().filter(kind="switch").height > 30
    assert run.made["target"] == "vm:6.1"
    assert run.made["kernel"].startswith("6.1")
    printed = json.loads(command_line.out("run", "hogs:3", "--on", "vm:6.1", "--cpus", "2", "--duration", "300ms", "--format", "json"))
    groups = next(table for table in printed["tables"] if table["id"] == "groups")
    at = [column["name"] for column in groups["columns"]].index("cpu_share")
    [row] = [row for row in groups["rows"] if row[0] == "hog"]
    assert hogs["cpu_share"] == pytest.approx(row[at]), "the same instructions are executed"


def test_no_program_is_started_where_none_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, after = recorded(tmp_path, "before.txt", "hogs:1"), recorded(tmp_path, "after.txt", "hogs:1 + sleepers:1")
    monkeypatch.setenv("FAIRGROUND_BINARY", str(tmp_path / "none"))
    compared = fairground.compare("hogs:2", sched=["cfs", "rfs"], duration="50ms", metrics="cpu_share")
    assert [run.label for run in compared.runs] == ["cfs", "rfs"]
    assert all(len(run.events) > 10 for run in compared.runs)
    assert fairground.compare(before, after)["lost"].columns
    assert len(fairground.follow(before, sched="eevdf")["agreement"]) > 0
    simulated = fairground.run_on("hogs:2", on="sim", duration="50ms")
    assert simulated.digest == fairground.simulate("hogs:2", duration="50ms").digest
    with pytest.raises(fairground.Error, match="none: "):
        fairground.run_on("hogs:1", on="host")


def test_what_is_made_in_this_process_is_what_the_command_prints(tmp_path: Path) -> None:
    words: dict[str, object] = {"sched": ["cfs", "eevdf"], "duration": "100ms", "cpus": 2}
    assert fairground.compare("hogs:3", **words) == fairground.command("compare", "hogs:3", **words)  # type: ignore[arg-type]
    before, after = recorded(tmp_path, "before.txt", "hogs:1"), recorded(tmp_path, "after.txt", "hogs:1 + sleepers:1")
    assert fairground.compare(before, after) == fairground.command("compare", before, after)
    assert fairground.compare(before, after, per="task", all=True) == fairground.command("compare", before, after, per="task", all=True)
    followed = fairground.follow(before, sched="cfs", settings={"WAKEUP_PREEMPTION": False}, hz=1000, top=2)
    assert followed == fairground.command("follow", before, sched="cfs", settings={"WAKEUP_PREEMPTION": False}, hz=1000, top=2)


def test_options_without_effect_are_refused() -> None:
    with pytest.raises(fairground.Error, match="--memory applies to virtual machines only, and the run is on sim"):
        fairground.run_on("hogs:1", on="sim", memory=2048)
    with pytest.raises(fairground.Error, match="--cpus means nothing to `follow`"):
        fairground.follow(RECORDING, sched="cfs", cpus=2)
    with pytest.raises(fairground.Error, match="`run_on` takes one scheduler"):
        fairground.run_on("hogs:1", on="sim", sched=["cfs", "rfs"])


@pytest.mark.parametrize("name", ["compare", "follow"])
def test_ctrl_c_ends_what_runs_in_this_process(name: str) -> None:
    calls: dict[str, Callable[[], object]] = {
        "compare": lambda: fairground.compare("hogs:1", sched=["cfs", "rfs"], duration="1000000s", max_events=10**9),
        "follow": lambda: [fairground.follow(RECORDING, sched="eevdf") for _ in range(10_000)],
    }
    timer = threading.Timer(1.0, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        calls[name]()
    timer.join()
