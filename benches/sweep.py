#!/usr/bin/env python3
"""Wall time and processor time of a sweep of 200 simulations: one after the other, on a Dask cluster of two workers on this machine, and
on the cluster when one of its workers is killed in the middle.

Needs the Python module (`make python`) and two idle CPUs. Usage: sweep.py [REPEATS]
"""

import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import distributed

import fairground

POINTS = fairground.grid(
    ["hogs:4 + sleepers:4,run=1ms,sleep=3ms", "slice:16"], sched=["cfs@6.1", "eevdf"], seed=range(50), cpus=4, duration="20s"
)


class Measured:
    """One sweep into an empty folder: wall time and processor time in seconds, and its files."""

    def __init__(self, client: distributed.Client | None, on_point: Callable[[fairground.Point], None] | None = None) -> None:
        with tempfile.TemporaryDirectory() as folder:
            start, start_cpu = time.perf_counter(), used(client)
            result = fairground.sweep(POINTS, folder, client=client, workers=1 if client is None else None, on_point=on_point)
            self.wall, self.cpu = time.perf_counter() - start, used(client) - start_cpu
            assert not result.errors, result.errors
            self.files = {path.name: path.read_bytes() for path in Path(folder).iterdir()}

    def __str__(self) -> str:
        return f"{self.wall:.2f} s (processor time {self.cpu:.2f} s)"


def used(client: distributed.Client | None) -> float:
    """Processor time so far of this process, where Dask's scheduler runs as well, and of the workers."""
    workers = client.run(time.process_time).values() if client is not None else ()
    return time.process_time() + sum(workers)


def with_a_loss(client: distributed.Client) -> Measured:
    """A sweep on the cluster; when half of it is done a worker is killed."""
    done = 0

    def on_point(_: fairground.Point) -> None:
        nonlocal done
        done += 1
        if done == len(POINTS) // 2:
            os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)

    return Measured(client, on_point)


def median(kind: str, runs: list[Measured]) -> tuple[float, float]:
    """Medians of wall time and of processor time, which are printed."""
    wall, cpu = statistics.median(run.wall for run in runs), statistics.median(run.cpu for run in runs)
    print(f"{kind}: {wall:.2f} s, processor time {cpu:.2f} s (medians of {len(runs)})")
    return wall, cpu


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 9
    serial: list[Measured] = []
    cluster: list[Measured] = []
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as local,
        distributed.Client(local) as client,
    ):
        for _ in range(repeats):
            serial.append(Measured(None))
            cluster.append(Measured(client))
            same = serial[-1].files == cluster[-1].files
            print(f"serial {serial[-1]}; two workers {cluster[-1]}; same bytes: {same}", flush=True)
        lost = with_a_loss(client)
        print(f"a worker killed in the middle: {lost.wall:.2f} s; same bytes: {lost.files == serial[-1].files}")
    print(f"{len(POINTS)} simulations")
    wall_serial, cpu_serial = median("one after the other", serial)
    wall_cluster, cpu_cluster = median("two workers", cluster)
    print(f"wall time: {wall_cluster / (wall_serial / 2):.3f} times half of the serial one; processor time: {cpu_cluster / cpu_serial:.3f} times")


if __name__ == "__main__":
    main()
