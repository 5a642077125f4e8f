"""One run, or one recording."""

from __future__ import annotations

import json
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairground import _html, _native
from fairground._extras import extra
from fairground._files import changed
from fairground._options import Words
from fairground._points import Point
from fairground._table import Table

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from fairground._plot import Picture


class Run:
    """The events and figures of a run or a recording.

    The figures are those of the command line, from the same code; docs/reference/metrics defines each. Null is "not measured".
    """

    def __init__(self, native: _native.Run, label: str | None = None) -> None:
        self._native = native
        self._label = label

    @property
    def label(self) -> str:
        """The scheduler, or the recording's name."""
        return self._native.label if self._label is None else self._label

    @property
    def made(self) -> dict[str, Any]:
        """How the run was made: version, seed, settings, machine, costs, and under ``spec`` its arguments."""
        made: dict[str, Any] = json.loads(self._native.made)
        return made

    @property
    def notes(self) -> list[str]:
        """Remarks: what is missing from a recording, and how the translation of an rt-app file differs from rt-app."""
        return self._native.notes

    @property
    def log(self) -> list[str]:
        """The lines that the scheduler printed, with CPU and time: ``[001] 0.003000: LINE``."""
        return self._native.log

    @property
    def ejection(self) -> str | None:
        """Why the scheduler was ejected; ``None`` when it was not."""
        return self._native.ejection

    @property
    def verdicts(self) -> list[str]:
        """What a reader must know first, the worst first, in the words of the command line: what ended the run, which tasks never ran."""
        return self._native.verdicts

    @property
    def never_ran(self) -> list[tuple[str, int]]:
        """The tasks that are runnable at the end and never ran: name, and how long each has been waiting, ns. Waits below 10 ms do not count."""
        return self._native.never_ran

    @property
    def variables(self) -> dict[str, str]:
        """The scheduler's variables that ``show_globals`` names, at the end: values as the command line prints them."""
        return dict(self._native.variables)

    @property
    def digest(self) -> int:
        """A hash of all events: equal for equal events."""
        return self._native.digest

    @property
    def events(self) -> Table:
        """One row for each event, in the order of time; docs/reference/parquet.md has the columns."""
        return Table(self._native.events())

    @property
    def metrics(self) -> Table:
        """The metrics of the whole machine, one a row: ``metric``, ``unit``, ``value``."""
        return Table(self._native.metrics())

    @property
    def tasks(self) -> Table:
        """One row for each task, a column for each metric; :attr:`Table.units` has their units."""
        return Table(self._native.tasks())

    @property
    def groups(self) -> Table:
        """The same for each group of equal tasks."""
        return Table(self._native.groups())

    @property
    def cgroups(self) -> Table:
        """The same for each control group, with those below it; empty where there are none."""
        return Table(self._native.cgroups())

    @property
    def findings(self) -> Table:
        """What is wrong, as ``fairground diagnose`` finds it, the costliest first. ``cpu_time_ppm`` is the time lost, in millionths of all
        CPU time."""
        return Table(self._native.findings())

    @property
    def evidence(self) -> Table:
        """The figures behind :attr:`findings`: ``rank`` is the finding's, ``value`` has a ``unit``, or ``text`` has words."""
        return Table(self._native.evidence())

    @property
    def not_judged(self) -> list[tuple[str, str]]:
        """The rules that could not judge, each with what is missing. No finding is good news only if this is empty."""
        return self._native.not_judged

    def contention(self, depth: int = 4) -> Contention:
        """Where tasks wait and for which others; ``depth`` functions of a call chain name a place."""
        return Contention(self._native.contention(depth))

    def replay(
        self,
        **words: Unpack[Words],
    ) -> Run:
        """Runs the load of this recording in the simulated machine, under another scheduler.

        Without ``sched`` it is the model of the scheduler that made the recording; :meth:`near` then says how near the replay
        comes to it. What ``words`` leave out of the machine is as recorded. The arguments are those of :func:`simulate`.

        :raises Error: if the recording does not tell its scheduler and ``sched`` does not either, or if an argument is invalid.
        """
        if "sched" not in words:
            words["sched"], own = _native.own_scheduler(self._native)
            words["settings"] = dict(pair.split("=", 1) for pair in own) | dict(words.get("settings", {}))
        point = Point.of(self.label, **words)
        return Run(_native.replay(self._native, point, scheduler_of(point, None)))

    def near(self, replayed: Run) -> Table:
        """How far a replay is off this recording: ``metric``, ``off_percent``, ``near`` (``near``, ``fair``, ``poor``)."""
        return Table(_native.near(self._native, replayed._native))

    def plot(self, kind: str = "shares", **how: float) -> Picture:
        """A matplotlib chart, which a notebook shows inline.

        ``"shares"``: CPU time of each group beside its fair share. ``"latency"``: percentiles of the wake-up latency.
        ``"timeline"``: which task ran on which CPU, from ``start_ms`` to ``end_ms``.

        :raises Error: if there is no such chart.
        """
        with extra("plots", "plot"):
            from fairground import _plot

        if kind not in _plot.KINDS:
            raise _native.Error(f"plot: there is no picture `{kind}`\n  help: give {', '.join(_plot.KINDS)}")
        return _plot.KINDS[kind](self, **how)

    def _repr_html_(self) -> str:
        """The verdicts and a table of the groups, for notebooks."""
        shown = ("group", "tasks", "cpu_share", "fluid_share", "fairness_error", "wakeup_latency.p99")
        groups = self.groups
        rows = [[row[name] for name in shown] for row in groups.to_arrow().to_pylist()]
        verdicts = "".join(_html.paragraph(verdict, bold=True) for verdict in self.verdicts)
        return verdicts + _html.paragraph(repr(self)) + _html.table(shown, groups.units, rows)

    def __repr__(self) -> str:
        return f"<fairground.Run of {self.label}: {len(self.events)} events, {len(self.tasks)} tasks>"


class Contention:
    """The waits of a run or a recording; docs/howto/find-lock-waits.md explains the columns. Units stand at the end of their names."""

    def __init__(self, native: _native.Contention) -> None:
        self._native = native

    @property
    def lock_waits(self) -> int:
        """Waits for locks."""
        return self._native.lock_waits

    @property
    def sites(self) -> Table:
        """One row for each place where tasks wait, the longest waits first, plain sleep last."""
        return Table(self._native.sites())

    @property
    def blockers(self) -> Table:
        """One row for each pair of waiter and blocker at a place, the longest waits first, plain sleep last."""
        return Table(self._native.blockers())

    @property
    def points(self) -> Table:
        """One row for each call chain that ended in a switch, the rarest first; empty where the recording has no stacks."""
        return Table(self._native.points())

    def __repr__(self) -> str:
        switches, with_stack = self._native.switches
        return f"<fairground.Contention: {self.lock_waits} waits for locks; {switches} switches, {with_stack} with a stack>"


def simulate(
    workload: str | os.PathLike[str],
    *,
    callbacks: bool = False,
    **words: Unpack[Words],
) -> Run:
    """Runs a workload under a scheduler in the simulated machine.

    The arguments are those of ``fairground run``; :class:`Point` explains each, and an unknown one names the nearest. ``settings`` are tunables and features by name
    (``{"base_slice_ns": "3ms", "RUN_TO_PARITY": False}``), ``at`` changes them during the run (``"5s:NAME=VALUE"``), and
    ``callbacks`` also records each callback of the scheduler. Other threads continue while the machine runs, and Ctrl-C ends it.

    A scheduler that is ejected is a result, not an error: :attr:`Run.ejection` says why.

    :raises Error: if an argument is invalid; the message has the remedy.
    """
    point = Point.of(workload, **words)
    return Run(_native.simulate(point, scheduler_of(point, None), callbacks))


def read(path: str | os.PathLike[str], *, machine: str | None = None) -> Run:
    """Reads a recording of a real machine, and measures it: trace.dat, perf.data, the text of perf and ftrace.

    Of a recording of several machines or buffers, ``machine`` is the name of the one that is read; :attr:`Run.notes` has the names.

    :raises Error: if the file cannot be read, or is not a recording, or has no such machine.
    """
    return Run(_native.read(os.fspath(path), machine))


def scheduler_of(point: Point, digest: str | None) -> _native.Scheduler:
    """The compiled scheduler of a point. Built-in schedulers, and files with a given digest, are cached.

    :raises Error: if the digest of the object differs.
    """
    if point.profile is not None:
        return _native.Scheduler(point)
    alone = Point(workload="", sched=point.sched, engine=point.engine)
    if digest is None and not comes_with_fairground(point.sched):
        return _native.Scheduler(alone)
    return _compiled(alone, digest)


def comes_with_fairground(sched: str) -> bool:
    """Whether ``sched`` is the name of a built-in scheduler, with or without a parameter set, and not a file."""
    return sched.partition("@")[0] in _known_names()


@lru_cache(maxsize=1)
def _known_names() -> frozenset[str]:
    return frozenset(name for name, _, _ in _native.schedulers())


@lru_cache(maxsize=32)
def _compiled(alone: Point, digest: str | None) -> _native.Scheduler:
    scheduler = _native.Scheduler(alone)
    if digest not in (None, scheduler.digest):
        raise changed(alone.sched)  # An exception is not cached.
    return scheduler
