"""Sweeps in which something goes wrong: a point, a file, the disk, an interrupt by the user."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import distributed
import numpy
import polars
import pytest
from test_run import STALLS

import fairground
from fairground import Point, _files, _native, _sweep, _workers, grid, sweep

#: It would take hours.
ENDLESS = Point("hogs:128", cpus=64, hz=1000, duration="1000000s")
#: Until such a sweep has ended, and its processes; most of it is for a machine that has other things to do.
PATIENCE_S = 30.0


@pytest.fixture(params=["here", "processes", "cluster"])
def where(request: pytest.FixtureRequest, client: distributed.Client) -> dict[str, Any]:
    """The three ways to run a sweep."""
    ways: dict[str, dict[str, Any]] = {"here": {"workers": 1}, "processes": {"workers": 2}, "cluster": {"client": client}}
    return ways[request.param]


def short(**words: Any) -> list[Point]:
    """A grid of points that are over in a moment."""
    return grid("hogs:1", duration="20ms", **words)


def test_a_point_of_impossible_words_keeps_no_other_from_running(tmp_path: Path, where: dict[str, Any]) -> None:
    points = [*short(seed=[1, -1, 2]), Point("hogs:1", duration=5), Point("hogs:1", sched=5)]  # type: ignore[arg-type]
    result = sweep([*points, *short(seed=3)], tmp_path, **where)
    assert sorted(result.to_polars()["seed"].unique()) == [1, 2, 3]
    assert list(result.errors) == [points[1], points[3], points[4]]
    assert result.errors[points[1]].startswith("seed: ")
    assert result.errors[points[3]].startswith("TypeError: duration: ")
    assert len(list(tmp_path.iterdir())) == 3


class Panic(BaseException):
    """Like that of the native half: no `Exception`, and unreadable in another process."""

    def __init__(self, why: str, _: object) -> None:
        super().__init__(why)


work = _workers._work


def panics(point: Point, digests: _files.Digests) -> _workers.Result:
    """What a worker does when the native half panics on a point."""
    panic = Panic("index out of bounds", None)
    with mock.patch.object(_native, "point_file", side_effect=panic if point.seed == 2 else _native.point_file):
        return work(point, digests)


def test_a_panic_is_an_error_of_its_point(tmp_path: Path, where: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "_work", panics)
    if "client" in where:
        where["client"].run(sys.path.append, str(Path(__file__).parent))
    result = sweep(short(seed=range(1, 5)), tmp_path, **where)
    assert {point.seed: why for point, why in result.errors.items()} == {2: "Panic: index out of bounds"}
    assert len(result.files) == 3
    recorded = [polars.read_parquet(path)["error"].to_list() for path in tmp_path.glob("*.error.parquet")]
    assert recorded == [["Panic: index out of bounds"]]


def test_a_panic_before_anything_runs_is_an_error_of_its_point_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    digest = _native.object_digest

    def panic(sched: str) -> str:
        if sched == "eevdf":
            raise Panic("index out of bounds", None)
        return digest(sched)

    monkeypatch.setattr(_native, "object_digest", panic)
    result = sweep(short(sched=["cfs", "eevdf", "rfs"]), tmp_path, workers=1)
    assert [point.sched for point in result.errors] == ["eevdf"]
    assert len(result.files) == 2


def test_numbers_of_numpy_and_paths_are_words(tmp_path: Path) -> None:
    workload = tmp_path / "two.toml"
    workload.write_text(hogs_toml(2))
    points = grid(workload, seed=numpy.arange(2), cpus=numpy.int32(2), hz=numpy.int64(1000), cost={"tick_ns": numpy.arange(1, 3)}, duration="20ms")
    assert points[3] == Point(str(workload), seed=1, cpus=2, hz=1000, cost=(("tick_ns", 2),), duration="20ms")
    assert all(type(point.seed) is int for point in points)
    assert Point("hogs:1", profile=Path("p.toml")).profile == "p.toml"  # type: ignore[arg-type]
    result = sweep(points, tmp_path / "out", workers=1)
    assert (len(result), result.errors) == (4, {})
    assert sweep(grid(str(workload), seed=range(2), cpus=2, hz=1000, cost={"tick_ns": [1, 2]}, duration="20ms"), result.out).ran == 0


def hogs_toml(count: int) -> str:
    """A workload file of tasks that run all the time."""
    task = f'[[task]]\nname = "hog"\ncount = {count}\nprogram = [{{ run = "forever" }}]\n'
    return f'format = 1\nname = "hogs"\nduration = "1s"\n\n{task}'


def test_a_file_that_changes_while_its_point_runs_is_filed_as_neither(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workload = tmp_path / "hogs.toml"
    workload.write_text(hogs_toml(2))
    run = _native.point_file

    def edited(*words: Any) -> bytes:
        content = run(*words)
        workload.write_text(hogs_toml(3))
        return content

    points = grid(str(workload), duration="20ms")
    with monkeypatch.context() as patched:
        patched.setattr(_native, "point_file", edited)
        result = sweep(points, tmp_path / "out", workers=1)
    assert result.errors[points[0]].startswith(f"{workload} changed while the sweep ran; run the sweep again")
    again = sweep(points, tmp_path / "out", workers=1)
    assert (again.ran, again.errors) == (1, {})
    assert again.to_polars()["workload_sha256"].unique().to_list() == [hashlib.sha256(workload.read_bytes()).hexdigest()]


def test_a_file_that_changes_before_its_point_runs_is_an_error_too(tmp_path: Path, where: dict[str, Any]) -> None:
    workload = tmp_path / "hogs.toml"
    scheduler = tmp_path / "mine.bpf.c"
    points = [*short(seed=1), *grid(str(workload), duration="300ms", seed=range(200)), *short(sched=str(scheduler))]
    workload.write_text(hogs_toml(2))
    scheduler.write_text(STALLS)

    def edit(_: Point) -> None:
        for path, text in ((workload, hogs_toml(3)), (scheduler, STALLS.replace("100,", "200,"))):
            new = path.with_suffix(".new")
            new.write_text(text)
            new.replace(path)

    result = sweep(points, tmp_path / "out", on_point=act_once(edit), **where)
    last = max(result.errors, key=lambda point: point.seed if point.workload == str(workload) else -1)
    assert last.seed == 199
    assert result.errors[last].startswith(f"{workload} changed while the sweep ran")
    assert result.errors[points[-1]].startswith(f"{scheduler} changed while the sweep ran")
    again = sweep([last, points[-1]], tmp_path / "out", workers=1)
    assert (again.ran, again.errors) == (2, {})


def test_another_fairground_of_the_same_version_has_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = short(seed=range(2))
    first = sweep(points, tmp_path, workers=1)
    with monkeypatch.context() as patched:
        patched.setattr(_native, "SOURCES_SHA256", "0" * 64)
        assert sweep(points, tmp_path, workers=1).ran == 2
    with monkeypatch.context() as patched:
        patched.setattr(_native, "object_digest", lambda sched: "0" * 64)
        others = {job.file for job in _files.jobs_of(points, tmp_path)}
    assert others.isdisjoint(first.files)
    assert sweep(points, tmp_path, workers=1).ran == 0


def test_a_worker_with_another_fairground_is_told_of() -> None:
    (job,) = _files.jobs_of(short(), Path())
    _, why = work(job.point, dataclasses.replace(job.digests, fairground="0" * 64))
    assert why is not None
    assert "another fairground" in why


def test_points_that_differ_in_anything_differ_in_a_column(tmp_path: Path) -> None:
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text(hogs_toml(2))
    points = [
        *short(engine=["jit", "interpreter"]),
        *short(null_loads="zero"),
        *short(check=True),
        *short(check=True, idle_bound="5ms"),
        *short(max_events=1_000_000),
        *grid(str(first), duration="20ms"),
    ]
    rows = [sweep(points, tmp_path / "out", workers=1).to_polars()]
    first.write_text(hogs_toml(3))
    rows.append(sweep(points[-1:], tmp_path / "out", workers=1).to_polars())
    every = polars.concat(rows, how="diagonal")
    # A word without a column of its own has one only in the tables that differ in it: joined, it stands at the end.
    words = [*every.columns[: every.columns.index("of")], "max_events"]
    assert every.select(words).n_unique() == len(points) + 1
    assert every["check"].dtype == polars.Boolean
    assert every.filter(check=True)["idle_bound_ns"].unique().sort().to_list() == [None, 5_000_000]
    digests = every.filter(workload=str(first))["workload_sha256"].unique()
    assert len(digests) == 2
    assert digests.str.len_bytes().to_list() == [64, 64]
    assert every["sched_sha256"].unique().to_list() == [_native.object_digest("cfs")]
    assert every["fairground"].unique().to_list() == [fairground.__version__]


def interrupt(_: Point) -> None:
    """What Ctrl-C does, a little later: when only points that last are left."""
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()


def give_up(_: Point) -> None:
    """An exception of the `on_point` callback."""
    raise RuntimeError("enough")


@pytest.mark.parametrize(("act", "raised"), [(interrupt, KeyboardInterrupt), (give_up, RuntimeError)])
def test_who_ends_a_sweep_ends_its_processes(tmp_path: Path, act: Callable[[Point], None], raised: type[BaseException]) -> None:
    before = set(multiprocessing.active_children())
    begin = time.monotonic()
    with pytest.raises(raised):
        sweep([*short(), ENDLESS, *short(seed=range(2, 9))], tmp_path, workers=2, on_point=act_once(act))
    assert time.monotonic() - begin < PATIENCE_S
    assert set(multiprocessing.active_children()) <= before
    assert not list(tmp_path.glob(".*"))
    assert all(len(polars.read_parquet(path)) for path in tmp_path.iterdir())


def act_once(act: Callable[[Point], None]) -> Callable[[Point], None]:
    """Acts at the first point only."""
    seen: list[Point] = []

    def on_point(point: Point) -> None:
        seen.append(point)
        if len(seen) == 1:
            act(point)

    return on_point


def test_a_full_disk_ends_a_sweep_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))

    monkeypatch.setattr(_sweep, "write_whole", full)
    begin = time.monotonic()
    with pytest.raises(OSError, match="No space left"):
        sweep([*short(), ENDLESS], tmp_path, workers=2)
    assert time.monotonic() - begin < PATIENCE_S
    assert not list(tmp_path.iterdir())


def test_who_ends_a_sweep_takes_its_points_off_the_cluster(tmp_path: Path, client: distributed.Client) -> None:
    with pytest.raises(RuntimeError, match="enough"):
        sweep([*short(), *grid("hogs:8", seed=range(60), duration="100s")], tmp_path, client=client, on_point=give_up)
    end = time.monotonic() + PATIENCE_S
    while any(client.processing().values()):
        assert time.monotonic() < end
        time.sleep(0.1)


OTHER_CLIENT = """
import sys, distributed
from fairground import grid, sweep
client = distributed.Client(sys.argv[1], set_as_default=False)
assert not sweep(grid("hogs:1", duration="20ms", seed=range(3)), sys.argv[2], client=client).errors
"""


def test_a_client_need_not_be_the_default_one(tmp_path: Path, client: distributed.Client) -> None:
    words = [sys.executable, "-c", OTHER_CLIENT, client.scheduler.address, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.iterdir())) == 3


def test_a_point_has_a_result_or_an_error_never_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    points = short()
    job = _files.jobs_of(points, tmp_path)[0]
    job.error_file.write_bytes(b"of an earlier sweep")
    write = _files.write_whole

    def killed(path: Path, content: bytes) -> None:
        write(path, content)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(_sweep, "write_whole", killed)
        with pytest.raises(KeyboardInterrupt):
            sweep(points, tmp_path, workers=1)
    assert list(tmp_path.iterdir()) == [job.file]
    job.error_file.write_bytes(b"of a version that could leave both")
    assert sweep(points, tmp_path, workers=1).ran == 0
    assert list(tmp_path.iterdir()) == [job.file]


def test_halves_of_files_are_removed_when_no_process_can_be_writing_them(tmp_path: Path) -> None:
    old, new, foreign = tmp_path / ".fairground-old.tmp", tmp_path / ".fairground-new.tmp", tmp_path / ".mine.tmp"
    for path in (old, new, foreign):
        path.write_bytes(b"PAR1")
    for path in (old, foreign):
        os.utime(path, (0, 0))
    sweep(short(), tmp_path, workers=1)
    assert [path.exists() for path in (old, new, foreign)] == [False, True, True]


def test_ctrl_c_while_a_file_gets_its_name_is_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace = os.replace

    def interrupted(source: str, target: Path) -> None:
        replace(source, target)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        _files.write_whole(tmp_path / "a.parquet", b"whole")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"whole"]


def test_a_sweep_without_results_says_where_the_reasons_are(tmp_path: Path) -> None:
    result = sweep(short(sched=["cfz", "cfy"]), tmp_path, workers=1)
    for read in (result.to_polars, result.to_arrow, result.to_pandas):
        with pytest.raises(fairground.Error, match=r"none of its 2 points could be run; Sweep\.errors says why\n.*no scheduler `cfz`"):
            read()
    with pytest.raises(fairground.Error, match="it has no points"):
        sweep([], tmp_path).to_polars()
