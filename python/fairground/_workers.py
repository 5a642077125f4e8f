"""The ways to run the points of a sweep. Each yields the same bytes, in the order in which points finish."""

from __future__ import annotations

import multiprocessing
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from fairground import _native
from fairground._files import ENDS, Digests, Job, changed, check_unchanged
from fairground._points import Point
from fairground._run import scheduler_of

if TYPE_CHECKING:
    import distributed

#: Points queued for each worker besides the running one: enough that a worker never waits for this process.
_AHEAD = 3
#: Minimum number of tasks submitted to a cluster, since workers may join after the points are submitted.
_CLUSTER_MIN = 64
#: Maximum number of points in one task of a cluster.
_TOGETHER_MAX = 4
#: A point is an error when its process has died this many times while it ran alone.
_LOSSES_MAX = 2
#: Maximum wait for a process, in s, without a check for signals: Ctrl-C does not end a wait if another thread received the signal.
_LOOK_S = 0.5
#: Maximum number of causes in the text of an exception.
_CAUSES_MAX = 4

#: The content of a point's file, and the error if there is one. A point whose arguments do not fit the columns has no content.
Result: TypeAlias = tuple[bytes | None, str | None]


@dataclass(frozen=True)
class Done:
    """The result of a job."""

    job: Job
    content: bytes | None
    error: str | None


def _work(point: Point, digests: Digests) -> Result:
    """Runs in a worker. Every exception becomes this point's error, also a panic of the native half, which another process could not
    unpickle."""
    try:
        return _run(point, digests), None
    except ENDS:
        raise
    except BaseException as why:
        return _refused(point, digests, _text_of(why))


def _work_all(work: Callable[[Point, Digests], Result], together: Sequence[tuple[Point, Digests]]) -> list[Result]:
    """Runs some points in a worker of a cluster, one after the other."""
    return [work(point, digests) for point, digests in together]


def _run(point: Point, digests: Digests) -> bytes:
    if digests.fairground != _native.SOURCES_SHA256:
        raise _native.Error(
            f"this worker has another fairground ({_native.VERSION}, built of other sources) than the process that sweeps\n"
            "  help: install the same one at each worker"
        )
    scheduler = scheduler_of(point, digests.scheduler)
    if scheduler.digest != digests.scheduler:
        raise changed(point.sched)
    content = _native.point_file(point, scheduler, digests)
    check_unchanged(point, digests)
    return content


def _text_of(why: BaseException) -> str:
    """The text of an exception with its causes; an error of this package has its text already."""
    if isinstance(why, _native.Error):
        return str(why)
    text, cause = f"{type(why).__name__}: {why}", why.__cause__
    for _ in range(_CAUSES_MAX):
        if cause is None:
            break
        text, cause = f"{text}: {cause}", cause.__cause__
    return text


def _refused(point: Point, digests: Digests, why: str) -> Result:
    try:
        return _native.error_file(point, digests, why), why
    except ENDS:
        raise
    except BaseException:
        return None, why


def _refusal(job: Job, why: str) -> Done:
    return Done(job, *_refused(job.point, job.digests, why))


def here(jobs: Sequence[Job]) -> Generator[Done, None, None]:
    """Runs the jobs one after the other, in this process."""
    for job in jobs:
        yield Done(job, *_work(job.point, job.digests))


def in_processes(jobs: Sequence[Job], workers: int) -> Generator[Done, None, None]:
    """Runs the jobs in processes of this machine. If a process dies, its pool is lost; the jobs that were in the pool run again, one at
    a time, so that only a job that kills its process becomes an error."""
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
                yield _refusal(job, f"the process that ran it died, {_LOSSES_MAX} times")


def _in_pool(source: deque[Job], workers: int, at_once: int) -> Generator[Done, None, list[Job]]:
    """Runs the jobs of ``source`` until there are none, or until a process dies; returns the unfinished jobs that were in the pool
    then. Closing the generator ends the processes."""
    pool = ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))
    running: dict[Future[Result], Job] = {}
    lost: list[Job] = []
    try:
        whole = True
        while running or (source and whole):
            whole = whole and _fill(pool, source, running, at_once)
            finished, _ = wait(running, _LOOK_S, FIRST_COMPLETED)
            for future in finished:
                job = running.pop(future)
                try:
                    content, error = future.result()
                except BrokenProcessPool:
                    lost.append(job)
                    whole = False
                except Exception as why:
                    yield _refusal(job, _text_of(why))
                else:
                    yield Done(job, content, error)
    except BaseException:
        _end(pool)
        raise
    pool.shutdown()
    return lost


def _fill(pool: ProcessPoolExecutor, source: deque[Job], running: dict[Future[Result], Job], at_once: int) -> bool:
    """Submits jobs until ``at_once`` are running. Returns whether the pool is intact: a process of it may have died."""
    while source and len(running) < at_once:
        try:
            future = pool.submit(_work, source[0].point, source[0].digests)
        except BrokenProcessPool:
            return False
        running[future] = source.popleft()
    return True


def _end(pool: ProcessPoolExecutor) -> None:
    """Kills the processes of a pool: they write no files, so they leave nothing incomplete."""
    for process in list((pool._processes or {}).values()):
        process.kill()
    # A process may have sent half of a result. The thread of the pool that reads it must not wait forever for the rest.
    writer = getattr(pool._result_queue, "_writer", None)
    if writer is not None:
        writer.close()
    pool.shutdown(cancel_futures=True)


def in_cluster(jobs: Sequence[Job], client: distributed.Client) -> Generator[Done, None, None]:
    """Runs the jobs on a Dask cluster, which runs the tasks of a lost worker on another one. One task has several points, since a task
    costs some milliseconds. Jobs that were in a task when workers died run again at the end, one at a time, so that only a job that kills
    its workers becomes an error."""
    from distributed import KilledWorker, as_completed

    waiting, suspects = deque(jobs), deque[Job]()
    running: dict[str, tuple[distributed.Future, list[Job]]] = {}
    alone: Job | None = None
    finished = as_completed(loop=client.loop)

    def submit(together: list[Job]) -> None:
        future = client.submit(_work_all, _work, [(job.point, job.digests) for job in together], pure=False)
        running[future.key] = (future, together)
        finished.add(future)

    def send() -> int:
        """Submits enough tasks for the present workers. Returns half of that number: more are submitted when fewer remain."""
        threads: int = sum(client.nthreads().values())
        at_once = max(_CLUSTER_MIN, threads * (1 + _AHEAD))
        while waiting and len(running) < at_once:
            # The last points are single tasks, so that all workers are busy until the end.
            count = min(_TOGETHER_MAX, max(1, len(waiting) // (_TOGETHER_MAX * max(threads, 1))))
            submit([waiting.popleft() for _ in range(count)])
        return at_once // 2

    try:
        few = send()
        for future in finished:
            _, together = running.pop(future.key)
            try:
                results = future.result()
            except KilledWorker:
                if together == [alone]:
                    yield _refusal(together[0], "every worker that ran it died")
                else:
                    suspects.extend(together)
            except Exception as why:
                for job in together:
                    yield _refusal(job, _text_of(why))
            else:
                for job, (content, error) in zip(together, results, strict=True):
                    yield Done(job, content, error)
            if waiting and len(running) <= few:
                few = send()
            if suspects and not running:
                alone = suspects.popleft()
                submit([alone])
    finally:
        finished.clear()
        if running and client.status == "running":
            client.cancel([future for future, _ in running.values()])
