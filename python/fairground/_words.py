"""What there is: schedulers and workloads by name."""

from __future__ import annotations

from dataclasses import dataclass

from fairground import _native


@dataclass(frozen=True)
class SchedulerInfo:
    """A scheduler that comes with fairground."""

    #: Its name, as in ``sched="cfs"``.
    name: str
    #: What it is, in one sentence.
    summary: str
    #: Its parameter sets: ``"6.1"`` is ``sched="cfs@6.1"``.
    sets: tuple[str, ...]


@dataclass(frozen=True)
class WorkloadInfo:
    """A workload that comes with fairground."""

    #: Its name, as in ``workload="slice:16"``.
    name: str
    #: What stands behind the colon; empty when nothing does.
    arguments: str
    #: What it is, in one line.
    summary: str


def schedulers() -> list[SchedulerInfo]:
    """The schedulers that come with fairground. Any compiled sched_ext object (``./mine.bpf.o``) is one as well."""
    return [SchedulerInfo(name, summary, tuple(sets)) for name, summary, sets in _native.schedulers()]


def workloads() -> list[WorkloadInfo]:
    """The workloads that come with fairground. A file (``./mine.toml``, rt-app's ``.json``) is one as well."""
    return [WorkloadInfo(*entry) for entry in _native.workloads()]
