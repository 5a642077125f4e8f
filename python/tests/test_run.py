"""Runs and recordings: the figures of the command line, as tables; its messages, as exceptions."""

from __future__ import annotations

import csv
import io
import re
import signal
import sys
import threading
import time
from pathlib import Path

import pandas
import polars
import pyarrow
import pytest
from conftest import ROOT, CommandLine

import fairground

#: No task is ever taken from the queue.
STALLS = """
#include "scx.bpf.h"
char _license[] SEC("license") = "GPL";
const volatile unsigned long long never_set;
void BPF_STRUCT_OPS(lost_enqueue, struct task_struct *p, u64 enq_flags)
{
    if (!never_set)
        scx_bpf_dsq_insert(p, 1, 1000000, enq_flags);
}
s32 BPF_STRUCT_OPS_SLEEPABLE(lost_init)
{
    return scx_bpf_create_dsq(1, -1);
}
SCX_OPS_DEFINE(lost_ops, .enqueue = (void *)lost_enqueue, .init = (void *)lost_init, .timeout_ms = 100, .name = "lost");
"""
#: The first task that is enqueued stays with the scheduler.
FORGETS = ROOT / "crates/cli/tests/schedulers/forgets.bpf.c"
RECORDING = ROOT / "experiments/recordings/mixed-2cpu-whole.perf-sched.txt.gz"
WORKLOAD = "hogs:3 + sleepers:2"


def short(**words: object) -> fairground.Run:
    """A run that is over in a moment."""
    given = {"sched": "cfs@6.1", "duration": "300ms", "seed": 7} | words
    return fairground.simulate(WORKLOAD, **given)  # type: ignore[arg-type]


def printed_machine(text: str) -> dict[str, float | None]:
    """The machine's metrics in CSV, the missing ones as ``None``."""
    rows = csv.DictReader(io.StringIO(text))
    values = ((row["metric"], row["value"]) for row in rows if row["of"] == "machine")
    return {key: float(value) if value else None for key, value in values}


def metrics_of(run: fairground.Run) -> dict[str, float | None]:
    """The machine's metrics."""
    rows = run.metrics.to_polars().select("metric", "value").rows()
    return dict(rows)


def test_figures_are_those_of_the_command_line(command_line: CommandLine) -> None:
    words = ("run", WORKLOAD, "--sched", "cfs@6.1", "--duration", "300ms", "--seed", "7")
    printed = printed_machine(command_line.out(*words, "--all", "--format", "csv"))
    assert len(printed) > 30
    assert metrics_of(short()) == printed


def test_events_are_those_of_the_command_line(command_line: CommandLine) -> None:
    words = ("run", WORKLOAD, "--sched", "cfs@6.1", "--duration", "300ms", "--seed", "7", "--trace", "-")
    lines = [line for line in command_line.out(*words).splitlines() if not line.startswith("#")]
    switches = [line for line in lines if "sched_switch" in line]
    events = short().events.to_polars()
    assert len(switches) > 20
    assert len(switches) == len(events.filter(kind="switch"))
    last = re.search(r"next_comm=(\S+) ", switches[-1])
    assert last is not None
    name = events.filter(kind="switch")["other_comm"][-1]
    assert last.group(1).startswith(name)


def test_a_recording_is_measured_as_the_command_line_does(command_line: CommandLine) -> None:
    printed = printed_machine(command_line.out("analyze", str(RECORDING), "--all", "--format", "csv"))
    run = fairground.read(RECORDING)
    assert metrics_of(run) == printed
    assert run.made["events"] == len(run.events) > 1000


def test_the_same_words_give_the_same_events_and_another_seed_gives_others(tmp_path: Path) -> None:
    random = tmp_path / "random.toml"
    task = '[[task]]\nname = "t"\ncount = 3\nprogram = [{ loop = [{ run = "100us..900us" }, { sleep = "1ms" }] }]\n'
    random.write_text(f'format = 1\nname = "random"\nduration = "200ms"\n\n{task}')
    first, second, other = (fairground.simulate(str(random), seed=seed) for seed in (7, 7, 8))
    assert first.digest == second.digest
    assert first.events.to_arrow() == second.events.to_arrow()
    assert first.digest != other.digest


def test_tables_go_into_every_library_in_one_call() -> None:
    run = short()
    for table in (run.events, run.metrics, run.tasks, run.groups, run.cgroups):
        arrow, frame, other = pyarrow.table(table), polars.DataFrame(table), table.to_pandas()
        assert isinstance(other, pandas.DataFrame)
        assert arrow.num_rows == len(frame) == len(other) == len(table)
        assert arrow.column_names == frame.columns == list(other.columns) == table.columns
    assert len(run.events) > 100
    assert run.tasks.to_polars()["group"].to_list() == ["hog"] * 3 + ["sleeper"] * 2
    assert run.groups.units["run_time"] == "ns"


def test_events_have_the_documented_columns() -> None:
    page = (ROOT / "docs/reference/parquet.md").read_text()
    section = page.split("## Events")[1].split("| kind | task")[0]
    documented = re.findall(r"^\| `(\w+)` \| (\w+)", section, flags=re.MULTILINE)
    kinds = {"UInt64": "uint64", "UInt32": "uint32", "Utf8": "string", "Int8": "int8"}
    schema = pyarrow.table(short().events).schema
    assert [(field.name, str(field.type)) for field in schema] == [(name, kinds[kind]) for name, kind in documented]
    assert schema.metadata[b"fairground.schema"] == b"events"


def test_every_metric_of_a_group_has_a_page() -> None:
    for metric in short().groups.columns[2:]:
        assert (ROOT / "docs/reference/metrics" / f"{metric.split('.')[0]}.md").exists(), metric


def test_settings_and_what_made_a_run_are_told() -> None:
    run = short(settings={"base_slice_ns": "6ms", "RUN_TO_PARITY": False}, sched="eevdf", cpus=4, hz=1000)
    own = {entry["name"]: entry["value"] for entry in run.made["settings"] if not entry["of_set"]}
    assert own == {"base_slice_ns": "6ms", "RUN_TO_PARITY": "off"}
    assert (run.made["machine"]["cpus"], run.made["machine"]["hz"], run.made["machine"]["seed"]) == (4, 1000, 7)
    assert run.made["duration_ns"] == 300_000_000
    assert run.label == "eevdf"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"sched": "cfz"}, ("--sched", "cfz")),
        ({"sched": "cfs@9"}, ("--sched", "cfs@9")),
        ({"sched": "./none.bpf.o"}, ("--sched", "./none.bpf.o")),
        ({"hz": 7}, ("--hz", "7")),
        ({"topology": "2x"}, ("--topology", "2x")),
        ({"duration": "5"}, ("--duration", "5")),
        ({"costs": "modem"}, ("--costs", "modem")),
        ({"settings": {"latencee": 1}}, ("--set", "latencee=1")),
        ({"at": "5s"}, ("--at", "5s")),
        ({"lead_in": "x"}, ("--lead-in", "x")),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_errors_are_exceptions_with_the_same_words(
    command_line: CommandLine, given: dict[str, object], words: tuple[str, ...]
) -> None:
    with pytest.raises(fairground.Error) as raised:
        fairground.simulate("hogs:1", **given)  # type: ignore[arg-type]
    assert str(raised.value) == command_line.refusal("run", "hogs:1", *words)


def test_what_no_flag_can_say_is_refused_too(tmp_path: Path) -> None:
    for given, told in (({"timers": "sun"}, "`jiffies`"), ({"locks": "rt2006"}, "did you mean `rt-2006`"), ({"engine": "x"}, "`jit`")):
        with pytest.raises(fairground.Error, match=told):
            fairground.simulate("hogs:1", **given)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="exclude each other"):
        fairground.simulate("hogs:1", cpus=2, topology="1x2x1")
    with pytest.raises(TypeError):
        fairground.simulate("hogs:1", cpus="two")  # type: ignore[arg-type]
    broken = tmp_path / "broken.dat"
    broken.write_bytes(b"nothing of that kind")
    with pytest.raises(fairground.Error, match=r"broken\.dat"):
        fairground.read(broken)


def test_what_clang_says_of_a_source_is_in_the_exception(tmp_path: Path) -> None:
    source = tmp_path / "broken.bpf.c"
    source.write_text(STALLS.replace("1000000, enq_flags", "no_such_variable, enq_flags"))
    for call in (lambda: fairground.simulate("hogs:1", sched=source), lambda: fairground.compare("hogs:1", sched=source)):
        with pytest.raises(fairground.Error) as raised:
            call()
        assert "use of undeclared identifier 'no_such_variable'" in str(raised.value)
        assert "broken.bpf.c:8:" in str(raised.value)


def test_an_ejection_is_a_result(tmp_path: Path) -> None:
    stalls = tmp_path / "lost.bpf.c"
    stalls.write_text(STALLS)
    run = fairground.simulate("hogs:3", sched=str(stalls), duration="1s")
    assert run.ejection is not None
    assert "ejected" in run.ejection
    assert run.verdicts[0] == run.ejection
    assert any("never_set" in note for note in run.notes)
    assert fairground.simulate("hogs:2", duration="50ms").ejection is None


def test_verdicts_are_those_of_the_command_line(command_line: CommandLine) -> None:
    words = {"sched": str(FORGETS), "cpus": 1, "duration": "2s"}
    run = fairground.simulate("hogs:3", **words)  # type: ignore[arg-type]
    assert run.never_ran == [("hog/0", 2_000_000_000)]
    assert run.verdicts[0].startswith("1 task never ran: hog/0 (waiting for 2.000 s, ")
    printed = command_line.out("run", "hogs:3", "--sched", str(FORGETS), "--cpus", "1", "--duration", "2s")
    assert run.verdicts[0] in printed.splitlines()[0]
    assert run.verdicts[0] in run._repr_html_()
    assert (short().verdicts, short().never_ran) == ([], [])
    recording = fairground.read(RECORDING)
    assert (recording.verdicts, recording.never_ran) == ([], [])


def test_another_thread_goes_on_while_a_machine_runs_and_ctrl_c_ends_it() -> None:
    """The run would take hours. A second thread sees the first one stand at one instruction while it itself goes on, which it
    could not if a run held Python's lock; then it sends what Ctrl-C sends."""
    main = threading.main_thread().ident
    assert main is not None
    progress = 0

    def watch() -> None:
        nonlocal progress
        before = None
        while progress < 100:
            frame = sys._current_frames()[main]
            at = (frame.f_code.co_name, frame.f_lasti)
            progress = progress + 1 if at == before and at[0] == "simulate" else 0
            before = at
            time.sleep(0.001)
        signal.raise_signal(signal.SIGINT)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with pytest.raises(KeyboardInterrupt):
        fairground.simulate("hogs:1", duration="1000000s")
    watcher.join()
    assert progress == 100


def test_what_there_is() -> None:
    by_name = {scheduler.name: scheduler for scheduler in fairground.schedulers()}
    assert "6.1" in by_name["cfs"].sets
    assert {"hogs", "slice", "schbench"} <= {workload.name for workload in fairground.workloads()}
