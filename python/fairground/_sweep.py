"""Many runs: in this process, in processes of this machine, or on a Dask cluster; one Parquet file for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairground import _native
from fairground._extras import extra
from fairground._files import Job, clean, jobs_of, write_whole
from fairground._points import Point
from fairground._workers import Done, here, in_cluster, in_processes

if TYPE_CHECKING:
    import distributed
    import pandas
    import polars
    import pyarrow


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep: a Parquet data set.

    Each row has the parameters (``workload``, ``sched``, ``cpus``, ``seed``, ``set.NAME`` …) and one value: ``of`` (``machine``, or
    the name of a group of tasks), ``metric``, ``unit``, ``value``. docs/howto/python.md lists all columns.
    """

    #: The folder.
    out: Path
    #: The requested points.
    points: list[Point]
    #: The file of each point that has a result, in the order of the points.
    files: list[Path]
    #: The reason of each point without a result. The next sweep tries such a point again.
    errors: dict[Point, str] = field(default_factory=dict)
    #: The number of points that this sweep ran; the others had results.
    ran: int = 0

    def __len__(self) -> int:
        return len(self.files)

    def to_arrow(self) -> pyarrow.Table:
        """All rows, in the order of the points. Columns that a point does not have are null."""
        with extra("tables", "Sweep.to_arrow"):
            import pyarrow
            import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(file) for file in self._some_files()]
        return pyarrow.concat_tables(tables, promote_options="default")

    def to_polars(self) -> polars.DataFrame:
        """The same as a polars data frame."""
        with extra("tables", "Sweep.to_polars"):
            import polars

        return polars.concat([polars.read_parquet(file) for file in self._some_files()], how="diagonal")

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas data frame."""
        arrow = self.to_arrow()
        with extra("tables", "Sweep.to_pandas"):
            frame: pandas.DataFrame = arrow.to_pandas()
        return frame

    def _some_files(self) -> list[Path]:
        if self.files:
            return self.files
        if not self.points:
            raise _native.Error("the sweep has no results: it has no points")
        first = next(iter(self.errors.values()), "")
        raise _native.Error(
            f"the sweep has no results: none of its {len(self.points)} points could be run; Sweep.errors says why\n  the first: {first}"
        )

    def __repr__(self) -> str:
        return f"<fairground.Sweep in {self.out}: {len(self.files)} of {len(self.points)} points, {len(self.errors)} errors>"


def sweep(
    points: Iterable[Point],
    out: str | os.PathLike[str],
    *,
    workers: int | None = None,
    client: distributed.Client | None = None,
    on_point: Callable[[Point], None] | None = None,
) -> Sweep:
    """Runs every point that has no result in ``out`` yet, and returns the results of all points.

    By default it uses as many processes as there are CPUs; ``workers=1`` runs the points in this process, one after the other; with a
    Dask ``client`` they run on its cluster. The bytes of a file do not depend on where its point ran. This process writes each file
    atomically, as soon as its point is done, so an interrupted sweep resumes when it is called again.

    A point that cannot be run, for any reason, does not stop the others: it is an entry of :attr:`Sweep.errors`, and a file
    ``NAME.error.parquet`` if its arguments fit the columns. A point that names a file which changed during the sweep is an error, too. If
    a worker dies, its points are run again; a point whose workers die repeatedly is an error.

    ``on_point`` is called after each point. An exception from it ends the sweep and its processes, as Ctrl-C does. In a script,
    processes need ``if __name__ == "__main__":`` around the call. The files that points name are read where the points run.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(points, folder)
    clean(folder, jobs)
    todo = [job for job in jobs if not job.file.exists()]
    errors: dict[Point, str] = {}
    # Closed on every exit, so that no process continues without a reader.
    with closing(_results(todo, workers, client)) as results:
        for done in results:
            _write(done)
            if done.error is not None:
                errors[done.job.point] = done.error
            if on_point is not None:
                on_point(done.job.point)
    in_order = {job.point: errors[job.point] for job in jobs if job.point in errors}
    files = [job.file for job in jobs if job.point not in errors]
    return Sweep(folder, [job.point for job in jobs], files, in_order, len(todo))


def _write(done: Done) -> None:
    """Writes the result or the error file of a point; never leaves both, even if interrupted."""
    job = done.job
    if done.error is None:
        job.error_file.unlink(missing_ok=True)
    if done.content is not None:
        write_whole(job.file if done.error is None else job.error_file, done.content)


def _results(todo: Sequence[Job], workers: int | None, client: distributed.Client | None) -> Generator[Done, None, None]:
    if client is not None:
        if workers is not None:
            raise ValueError("workers and client exclude each other: a cluster has its own workers")
        return in_cluster(todo, client)
    count = workers if workers is not None else len(os.sched_getaffinity(0))
    if count < 1:
        raise ValueError(f"workers={count}: at least one is needed")
    if count == 1 or len(todo) < 2:
        return here(todo)
    return in_processes(todo, min(count, len(todo)))
