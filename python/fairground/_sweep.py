"""Many runs: in this process, in processes of this machine, or on a Dask cluster; one Parquet file for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from fairground import _native
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

    The columns are the parameters (``workload``, ``sched``, ``cpus``, ``seed``, ``set.NAME`` …), and one value in each row:
    ``of`` whom (``machine``, or a group of tasks), ``metric``, ``unit``, ``value``. docs/howto/python.md has them all.
    """

    #: The folder.
    out: Path
    #: The points, as they were given.
    points: list[Point]
    #: The file of each point that has one, in the order of the points.
    files: list[Path]
    #: Why a point has none. It is tried again by the next sweep over it.
    errors: dict[Point, str] = field(default_factory=dict)
    #: How many points were run now; the others were there already.
    ran: int = 0

    def __len__(self) -> int:
        return len(self.files)

    def to_arrow(self) -> pyarrow.Table:
        """Every row, in the order of the points. A column that a point does not have is null there."""
        import pyarrow
        import pyarrow.parquet

        tables = [pyarrow.parquet.read_table(file) for file in self._some_files()]
        return pyarrow.concat_tables(tables, promote_options="default")

    def to_polars(self) -> polars.DataFrame:
        """The same as a data frame of polars."""
        import polars

        return polars.concat([polars.read_parquet(file) for file in self._some_files()], how="diagonal")

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a data frame of pandas."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
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
    """Runs every point that has no result in ``out`` yet, and gives the results of all.

    Without more words it runs in as many processes as there are CPUs; ``workers=1`` runs here, one after the other; a ``client``
    of Dask runs on its cluster. The files are the same bytes wherever a point was run. Each is written by this process, whole or
    not at all, as soon as its point is done: a sweep that was interrupted goes on where it was.

    A point that cannot be run, whatever the reason, is an error of its own (:attr:`Sweep.errors`, and a file ``NAME.error.parquet``
    if its words can stand in one) and keeps no other from running. So is a point that names a file which changed meanwhile. The loss of a worker costs nothing but time; a point that loses its workers again and again is an error.

    ``on_point`` is called after each point; what it raises ends the sweep, as Ctrl-C does, and the processes with it. In a script, processes need ``if __name__ == "__main__":`` around the call. Files that
    points name are read where they run.
    """
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    jobs = jobs_of(points, folder)
    clean(folder, jobs)
    todo = [job for job in jobs if not job.file.exists()]
    errors: dict[Point, str] = {}
    # Closed at once, whatever happens: no process runs on without a reader.
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
    """A result, or why there is none; never both, whenever this is interrupted."""
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
