"""Which file a point's result is in, and writing it."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from fairground import _native
from fairground._points import Point

#: Characters of the readable part of a file's name.
_NAME_MAX = 80


@dataclass(frozen=True)
class Job:
    """A point to run, and where its result goes."""

    point: Point
    #: The digest of the scheduler's object, where that is a file.
    scheduler: str | None
    file: Path

    @property
    def error_file(self) -> Path:
        """Where the reason goes if it cannot be run."""
        return self.file.with_suffix(".error.parquet")


def jobs_of(points: Iterable[Point], folder: Path) -> list[Job]:
    """One job for each different point, in their order."""
    inputs = _Inputs()
    return [_job(point, folder, inputs) for point in dict.fromkeys(points)]


def _job(point: Point, folder: Path, inputs: _Inputs) -> Job:
    scheduler = inputs.scheduler(point.sched)
    files = [inputs.file(word) for word in (point.workload, point.topology, point.profile)]
    words = dataclasses.asdict(point)
    identity = {"fairground": _native.VERSION, "point": words, "scheduler": scheduler, "files": files}
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()[:16]
    readable = re.sub(r"[^A-Za-z0-9@.=]+", "-", f"{point.sched}_{point.workload}")[:_NAME_MAX].strip("-.")
    return Job(point, scheduler, folder / f"{readable}_seed{point.seed}_{digest}.parquet")


class _Inputs:
    """Digests of files that points name; each is read once."""

    def __init__(self) -> None:
        self._schedulers: dict[str, str | None] = {}
        self._files: dict[str, str | None] = {}
        self._known = {name for name, _, _ in _native.schedulers()}

    def scheduler(self, sched: str) -> str | None:
        """Of the object that a file is, or is compiled to; ``None`` of those that come with fairground, whose version says enough.
        A scheduler that cannot be found has none: the run says why."""
        if sched not in self._schedulers:
            digest = None
            if sched.partition("@")[0] not in self._known:
                try:
                    digest = _native.object_digest(sched)
                except _native.Error:
                    pass
            self._schedulers[sched] = digest
        return self._schedulers[sched]

    def file(self, word: str | None) -> str | None:
        """Of a file, if the word is one."""
        if word is None:
            return None
        if word not in self._files:
            path = Path(word)
            content = path.read_bytes() if path.is_file() else None
            self._files[word] = None if content is None else hashlib.sha256(content).hexdigest()
        return self._files[word]


def write_whole(path: Path, content: bytes) -> None:
    """Writes a file so that it is there whole or not at all, whatever happens to this process."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
