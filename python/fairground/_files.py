"""The names of result files, and writing them."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from fairground import _native
from fairground._points import Point

#: Exceptions that end a sweep. Any other exception is an error of one point.
ENDS = (KeyboardInterrupt, SystemExit, GeneratorExit)
#: Characters of the readable part of a file's name, and of the seed in it.
_NAME_MAX = 80
_SEED_MAX = 20
#: Prefix and suffix of files that are being written.
_HALF_PREFIX, _HALF_SUFFIX = ".fairground-", ".tmp"
#: Such a file that is older than this, in s, was left by a killed process, since a file is written within a moment.
_HALF_STALE_S = 3600.0


@dataclass(frozen=True)
class Digests:
    """SHA-256 digests of the files that a point names. ``None``: it names no file, or one that cannot be read; the run then has the error."""

    #: Of the scheduler's object.
    scheduler: str | None = None
    workload: str | None = None
    topology: str | None = None
    profile: str | None = None
    #: Of the sources from which this fairground was built.
    fairground: str = field(default_factory=lambda: _native.SOURCES_SHA256)


@dataclass(frozen=True)
class Job:
    """A point to run, and the file for its result."""

    point: Point
    digests: Digests
    file: Path

    @property
    def error_file(self) -> Path:
        """The file for the reason if the point cannot be run."""
        return self.file.with_suffix(".error.parquet")


def jobs_of(points: Iterable[Point], folder: Path) -> list[Job]:
    """One job for each distinct point, in the order of the points."""
    inputs = _Inputs()
    return [_job(point, folder, inputs) for point in dict.fromkeys(points)]


def _job(point: Point, folder: Path, inputs: _Inputs) -> Job:
    digests = inputs.digests(point)
    identity = {"version": _native.VERSION, "point": dataclasses.asdict(point), "digests": dataclasses.asdict(digests)}
    # A value without a JSON form is written as its repr; the run then reports what is wrong with it.
    text = json.dumps(identity, sort_keys=True, default=repr)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9@.=]+", "-", f"{point.sched}_{point.workload}")[:_NAME_MAX].strip("-.")
    seed = re.sub(r"[^0-9-]+", "-", str(point.seed))[:_SEED_MAX]
    return Job(point, digests, folder / f"{readable}_seed{seed}_{digest}.parquet")


class _Inputs:
    """Digests of the files and schedulers that points name; each is read once."""

    def __init__(self) -> None:
        self._schedulers: dict[object, str | None] = {}
        self._files: dict[object, str | None] = {}

    def digests(self, point: Point) -> Digests:
        if point.sched not in self._schedulers:
            self._schedulers[point.sched] = _of_scheduler(point.sched)
        for word in (point.workload, point.topology, point.profile):
            if word not in self._files:
                self._files[word] = _of_file(word)
        workload, topology, profile = (self._files[word] for word in (point.workload, point.topology, point.profile))
        return Digests(self._schedulers[point.sched], workload, topology, profile)


def _of_scheduler(sched: str) -> str | None:
    try:
        return _native.object_digest(sched)
    except ENDS:
        raise
    except BaseException:  # Also a panic of the native half.
        return None


def _of_file(word: str | None) -> str | None:
    try:
        path = None if word is None else Path(word)
        return hashlib.sha256(path.read_bytes()).hexdigest() if path is not None and path.is_file() else None
    except (OSError, TypeError, ValueError):
        return None


def check_unchanged(point: Point, digests: Digests) -> None:
    """Checks that the files of a point have not changed since the sweep began.

    :raises Error: if one has: the result would be stored under the old content.
    """
    before = ((point.workload, digests.workload), (point.topology, digests.topology), (point.profile, digests.profile))
    for word, digest in before:
        if _of_file(word) != digest:
            raise changed(str(word))


def changed(what: str) -> _native.Error:
    """The error of a point that names a file which has changed meanwhile."""
    return _native.Error(
        f"{what} changed while the sweep ran; run the sweep again\n"
        "  help: on a cluster, the same file must be where the sweep was started and at each worker"
    )


def clean(folder: Path, jobs: Iterable[Job]) -> None:
    """Removes what a killed sweep left: partial files, and error files of points that have a result."""
    for job in jobs:
        if job.file.exists() and job.error_file.exists():
            job.error_file.unlink(missing_ok=True)
    for half in folder.glob(f"{_HALF_PREFIX}*{_HALF_SUFFIX}"):
        try:
            if time.time() - half.stat().st_mtime > _HALF_STALE_S:
                half.unlink()
        except FileNotFoundError:
            pass  # Another sweep into the folder has removed it.


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file atomically: it exists complete or not at all, even if this process is killed."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=_HALF_PREFIX, suffix=_HALF_SUFFIX)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        # Ctrl-C can arrive after the replacement, so the temporary file may be gone.
        Path(name).unlink(missing_ok=True)
        raise
