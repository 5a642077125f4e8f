"""Who runs the points of a sweep. Each way gives the same bytes, in the order in which they happen to be done."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairground import _native
from fairground._files import Job
from fairground._points import Point
from fairground._run import scheduler_of

if TYPE_CHECKING:
    import distributed

#: Points that wait at a worker, beside the one that runs: so many that it never waits for this process.
_AHEAD = 3
#: Points that a cluster has at once, at least: its workers may come later than its points.
_CLUSTER_MIN = 64
#: How often a point may lose the process that it runs in, alone there, before it is an error.
_LOSSES_MAX = 2


@dataclass(frozen=True)
class Done:
    """What came of a job: the file's content, and why it is an error if it is one."""

    job: Job
    content: bytes
    error: str | None


def _work(point: Point, scheduler: str | None) -> tuple[bytes, str | None]:
    """Runs in a worker: the file of a point, and why it is an error."""
    try:
        return _native.point_file(point, scheduler_of(point, scheduler)), None
    except _native.Error as why:
        return _native.error_file(point, str(why)), str(why)


def _lost(job: Job, why: str) -> Done:
    return Done(job, _native.error_file(job.point, why), why)


def here(jobs: Sequence[Job]) -> Iterator[Done]:
    """One after the other, in this process."""
    for job in jobs:
        yield Done(job, *_work(job.point, job.scheduler))


def in_processes(jobs: Sequence[Job], workers: int) -> Iterator[Done]:
    """In processes of this machine. When one dies, its pool is gone; those that were in it run again, one at a time, so that only
    the one that kills its process is to blame."""
    waiting, suspects = deque(jobs), deque[Job]()
    losses: dict[Job, int] = {}
    while waiting or suspects:
        if not suspects:
            suspects.extend((yield from _in_pool(waiting, workers, workers * (1 + _AHEAD))))
            continue
        for job in (yield from _in_pool(suspects, 1, 1)):
            losses[job] = losses.get(job, 0) + 1
            if losses[job] < _LOSSES_MAX:
                suspects.append(job)
            else:
                yield _lost(job, f"the process that ran it died, {_LOSSES_MAX} times")


def _in_pool(source: deque[Job], workers: int, at_once: int) -> Generator[Done, None, list[Job]]:
    """Runs the jobs of ``source`` until there are none, or until a process dies; gives those that were in the pool then."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    running: dict[Future[tuple[bytes, str | None]], Job] = {}
    try:
        while source or running:
            while source and len(running) < at_once:
                running[pool.submit(_work, source[0].point, source[0].scheduler)] = source[0]
                source.popleft()
            finished, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in finished:
                content, error = future.result()
                yield Done(running.pop(future), content, error)
    except BrokenProcessPool:
        return list(running.values())
    finally:
        pool.shutdown(cancel_futures=True)
    return []


def in_cluster(jobs: Sequence[Job], client: distributed.Client) -> Iterator[Done]:
    """On a cluster of Dask, which runs what a lost worker had on another one."""
    from distributed import KilledWorker, as_completed

    waiting = deque(jobs)
    running: dict[str, Job] = {}
    finished = as_completed()

    def send() -> int:
        """Sends as many as the workers there are now have to do for a while; more are sent when half of them are done."""
        at_once: int = max(_CLUSTER_MIN, sum(client.nthreads().values()) * (1 + _AHEAD))
        while waiting and len(running) < at_once:
            job = waiting.popleft()
            future = client.submit(_work, job.point, job.scheduler, pure=False)
            running[future.key] = job
            finished.add(future)
        return at_once // 2

    few = send()
    try:
        for future in finished:
            job = running.pop(future.key)
            try:
                content, error = future.result()
            except KilledWorker:
                yield _lost(job, "every worker that ran it died")
            else:
                yield Done(job, content, error)
            if waiting and len(running) <= few:
                few = send()
    finally:
        finished.clear()
