"""Sweeps: the same bytes wherever they run, whatever dies in the middle."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import distributed
import polars
import pyarrow.parquet
import pytest

import fairground
from fairground import Point, _files, _workers, grid, sweep

#: Long enough that a worker is in the middle of one when another one is done.
POINTS = grid(["hogs:3", "slice:4"], sched=["cfs@6.1", "eevdf"], seed=range(1, 5), cpus=2, duration="400ms")


def content(folder: Path) -> dict[str, bytes]:
    """The files of a data set."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> fairground.Sweep:
    """The points, one after the other, in this process."""
    return sweep(POINTS, tmp_path_factory.mktemp("serial"), workers=1)


def test_a_grid_is_every_combination() -> None:
    points = grid(["hogs:1", "hogs:2"], sched="cfs", seed=range(3), settings={"a": ["1", "2"], "b": True}, cost={"tick_ns": [1, 2]})
    assert len(points) == len(set(points)) == 2 * 3 * 2 * 2
    assert points[0] == Point("hogs:1", seed=0, settings=(("a", "1"), ("b", "on")), cost=(("tick_ns", 1),))
    with pytest.raises(ValueError, match="empty list"):
        grid("hogs:1", seed=[])
    with pytest.raises(ValueError, match="more than"):
        grid("hogs:1", seed=range(1_000_000))
    with pytest.raises(TypeError, match="no_such_word"):
        grid("hogs:1", no_such_word=1)


def test_rows_have_their_parameters(serial: fairground.Sweep) -> None:
    rows = serial.to_polars()
    assert len(serial) == len(POINTS)
    assert rows.select("workload", "sched", "seed").n_unique() == len(POINTS)
    assert rows["duration_ns"].unique().to_list() == [400_000_000]
    assert rows["error"].null_count() == len(rows)
    of_hogs = rows.filter(workload="hogs:3", sched="eevdf", seed=2, of="machine", metric="switches")
    run = fairground.simulate("hogs:3", sched="eevdf", seed=2, cpus=2, duration="400ms")
    switches = run.metrics.to_polars().filter(metric="switches")["value"]
    assert of_hogs["value"].to_list() == switches.to_list()
    assert serial.to_arrow().num_rows == len(serial.to_pandas()) == len(rows)


def test_processes_give_the_bytes_of_the_serial_run(serial: fairground.Sweep, tmp_path: Path) -> None:
    sweep(POINTS, tmp_path, workers=2)
    assert content(tmp_path) == content(serial.out)


def test_a_cluster_gives_the_bytes_of_the_serial_run(
    serial: fairground.Sweep, tmp_path: Path, client: distributed.Client
) -> None:
    sweep(POINTS, tmp_path, client=client)
    assert content(tmp_path) == content(serial.out)


def after(count: int, act: Callable[[], None]) -> tuple[Callable[[Point], None], list[Point]]:
    """A callback that acts once, after so many points; and the points that it saw."""
    seen: list[Point] = []

    def on_point(point: Point) -> None:
        seen.append(point)
        if len(seen) == count:
            act()

    return on_point, seen


def kill(pid: int) -> None:
    """As the kernel does when memory runs out."""
    os.kill(pid, signal.SIGKILL)


def test_a_process_that_dies_in_the_middle_costs_nothing_but_time(serial: fairground.Sweep, tmp_path: Path) -> None:
    def kill_one() -> None:
        victim = multiprocessing.active_children()[0].pid
        assert victim is not None
        kill(victim)

    on_point, seen = after(4, kill_one)
    result = sweep(POINTS, tmp_path, workers=2, on_point=on_point)
    assert len(seen) == len(POINTS)
    assert result.errors == {}
    assert content(tmp_path) == content(serial.out)


def test_a_worker_that_dies_in_the_middle_costs_nothing_but_time(
    serial: fairground.Sweep, tmp_path: Path, client: distributed.Client
) -> None:
    before = client.run(os.getpid)
    on_point, seen = after(4, lambda: kill(next(iter(before.values()))))
    result = sweep(POINTS, tmp_path, client=client, on_point=on_point)
    assert len(seen) == len(POINTS)
    assert result.errors == {}
    assert content(tmp_path) == content(serial.out)
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(before.values())


def test_what_is_there_is_not_run_again(tmp_path: Path) -> None:
    first = sweep(POINTS[:3], tmp_path, workers=1)
    times = [file.stat().st_mtime_ns for file in first.files]
    more = sweep(POINTS[:5], tmp_path, workers=1)
    assert (first.ran, more.ran) == (3, 2)
    assert [file.stat().st_mtime_ns for file in more.files[:3]] == times


def test_a_file_that_a_point_names_is_a_part_of_the_point(tmp_path: Path) -> None:
    workload = tmp_path / "two.toml"
    workload.write_text(hogs_toml(2))
    points = grid(str(workload), duration="20ms")
    out = tmp_path / "out"
    assert sweep(points, out, workers=1).ran == 1
    assert sweep(points, out, workers=1).ran == 0
    workload.write_text(hogs_toml(3))
    assert sweep(points, out, workers=1).ran == 1


def hogs_toml(count: int) -> str:
    """A workload file of tasks that run all the time."""
    task = f'[[task]]\nname = "hog"\ncount = {count}\nprogram = [{{ run = "forever" }}]\n'
    return f'format = 1\nname = "hogs"\nduration = "1s"\n\n{task}'


def test_an_error_stays_with_its_point(tmp_path: Path) -> None:
    points = [*POINTS[:2], Point("hogs:1", sched="cfz"), Point("hogs:1", settings=(("nothing", "1"),))]
    result = sweep(points, tmp_path, workers=2)
    assert len(result.files) == 2
    assert list(result.errors) == points[2:]
    assert result.errors[points[2]].startswith("there is no scheduler `cfz`\n  help: did you mean `cfs`?")
    recorded = [polars.read_parquet(path) for path in sorted(tmp_path.glob("*.error.parquet"))]
    assert {(row["sched"][0], row["error"][0]) for row in recorded} == {
        (point.sched, why) for point, why in result.errors.items()
    }
    again = sweep(points, tmp_path, workers=1)
    assert again.ran == 2


work = _workers._work


def dies(point: Point, digests: _files.Digests) -> _workers.Result:
    """What a worker does with a point that kills its process."""
    if point.seed == 2:
        kill(os.getpid())
    return work(point, digests)


def test_a_point_that_always_kills_its_process_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "_work", dies)
    points = grid("hogs:1", seed=range(1, 7), duration="20ms")
    result = sweep(points, tmp_path, workers=2)
    assert [point.seed for point in result.errors] == [2]
    assert [point.seed for point in result.points if point not in result.errors] == [1, 3, 4, 5, 6]
    assert len(result.files) == 5


def test_a_point_that_kills_its_worker_is_alone_to_blame(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_workers, "_work", dies)
    # Workers find the tests, and so do those that come after a loss.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    points = grid("hogs:1", seed=range(1, 26), duration="20ms")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        result = sweep(points, tmp_path, client=client)
    assert [point.seed for point in result.errors] == [2]
    assert len(result.files) == 24


SWEEPING = """
import os, signal, sys
from fairground import grid, sweep
points = grid(["hogs:3", "slice:4"], sched=["cfs@6.1", "eevdf"], seed=range(1, 5), cpus=2, duration="400ms")
done = []
def on_point(point):
    done.append(point)
    if len(done) == 5:
        os.kill(os.getpid(), signal.SIGKILL)
sweep(points, sys.argv[1], workers=1, on_point=on_point)
"""


def test_a_sweep_that_is_killed_goes_on_where_it_was(serial: fairground.Sweep, tmp_path: Path) -> None:
    killed = subprocess.run([sys.executable, "-c", SWEEPING, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    (tmp_path / ".half.tmp").write_bytes(serial.files[-1].read_bytes()[:100])
    for path in tmp_path.glob("*.parquet"):
        assert pyarrow.parquet.read_table(path).num_rows > 0
    result = sweep(POINTS, tmp_path, workers=1)
    assert result.ran == len(POINTS) - 5
    whole = {name: data for name, data in content(tmp_path).items() if name != ".half.tmp"}
    assert whole == content(serial.out)
