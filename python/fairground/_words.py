"""Lists of the built-in schedulers and workloads."""

from __future__ import annotations

from dataclasses import dataclass

from fairground import _native


@dataclass(frozen=True)
class SchedulerInfo:
    """A built-in scheduler."""

    #: Its name, as in ``sched="cfs"``.
    name: str
    #: What it is, in one sentence.
    summary: str
    #: Its parameter sets: ``"6.1"`` is ``sched="cfs@6.1"``.
    sets: tuple[str, ...]


@dataclass(frozen=True)
class WorkloadInfo:
    """A built-in workload."""

    #: Its name, as in ``workload="slice:16"``.
    name: str
    #: The arguments after the colon; empty if it takes none.
    arguments: str
    #: What it is, in one line.
    summary: str


def schedulers() -> list[SchedulerInfo]:
    """The built-in schedulers. A compiled sched_ext object (``./mine.bpf.o``) is accepted as well."""
    return [SchedulerInfo(name, summary, tuple(sets)) for name, summary, sets in _native.schedulers()]


def workloads() -> list[WorkloadInfo]:
    """The built-in workloads. A file (``./mine.toml``, rt-app's ``.json``) is accepted as well."""
    return [WorkloadInfo(*entry) for entry in _native.workloads()]
