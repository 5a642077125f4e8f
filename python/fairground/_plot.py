"""Charts of a run, drawn by matplotlib; a notebook shows them inline."""

from __future__ import annotations

import io
import math
from typing import Any, Protocol

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from fairground import _native
from fairground._extras import extra
from fairground._table import Table


class Run(Protocol):
    """What a picture is drawn of."""

    @property
    def label(self) -> str: ...
    @property
    def groups(self) -> Table: ...
    @property
    def events(self) -> Table: ...


class Picture(Figure):
    """A matplotlib figure that a notebook shows, with and without pyplot."""

    def _repr_png_(self) -> bytes:
        file = io.BytesIO()
        self.savefig(file, format="png")
        return file.getvalue()

#: Okabe and Ito's colours, which most people can tell apart.
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#f0e442")
#: Maximum number of on-CPU intervals in a timeline; more could not be told apart.
_SLICES_MAX = 20_000
#: Inches.
_WIDTH, _ROW_HEIGHT, _HEIGHT_MIN = 9.0, 0.35, 2.4


def _rows(table: Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return rows


def _figure(rows: int) -> tuple[Picture, Axes]:
    figure = Picture(figsize=(_WIDTH, max(_HEIGHT_MIN, 1.2 + rows * _ROW_HEIGHT)), layout="constrained")
    return figure, figure.subplots()


def shares(run: Run) -> Picture:
    """CPU time of each group beside its fair share."""
    groups = _rows(run.groups)
    figure, axes = _figure(2 * len(groups))
    places = range(len(groups))
    series = (("CPU time", "cpu_share", -0.2, _COLOURS[0]), ("fair share", "fluid_share", 0.2, _COLOURS[1]))
    for name, metric, shift, colour in series:
        # A value that was not measured has no bar, which differs from a bar of length 0.
        lengths = [math.nan if group[metric] is None else group[metric] for group in groups]
        axes.barh([place + shift for place in places], lengths, 0.38, label=name, color=colour)
    axes.set_yticks(list(places), [group["group"] for group in groups])
    axes.invert_yaxis()
    axes.set_xlabel("% of one CPU (cpu_share, fluid_share)")
    axes.set_title(f"{run.label}: who got the CPU")
    axes.legend()
    return figure


def latency(run: Run) -> Picture:
    """Percentiles of the wake-up latency of each group that woke up."""
    figure, axes = _figure(6)
    steps = ("p50", "p90", "p99", "p99.9", "max")
    woken = [group for group in _rows(run.groups) if group["wakeup_latency.count"]]
    for number, group in enumerate(woken):
        values = [group[f"wakeup_latency.{step}"] / 1e3 for step in steps]
        count = int(group["wakeup_latency.count"])
        axes.plot(steps, values, marker="o", label=f"{group['group']}, {count} wake-ups", color=_COLOURS[number % len(_COLOURS)])
    axes.set_ylabel("wake-up latency, µs")
    axes.set_yscale("symlog", linthresh=1.0)
    axes.set_title(f"{run.label}: from wake-up to CPU")
    if woken:
        axes.legend()
    return figure


def timeline(run: Run, start_ms: float = 0.0, end_ms: float | None = None) -> Picture:
    """Which task ran on which CPU, from ``start_ms`` to ``end_ms`` after the run began, at most until it ended; 100 ms by default."""
    with extra("tables", "timeline"):
        import pyarrow.compute as pc

    events = run.events.to_arrow()
    zero_ns, last_ns = (int(events.schema.metadata[key]) for key in (b"fairground.start_ns", b"fairground.end_ns"))
    from_ns = zero_ns + int(start_ms * 1e6)
    to_ns = min(last_ns, zero_ns + int((start_ms + 100.0 if end_ms is None else end_ms) * 1e6))
    if from_ns >= to_ns:
        raise _native.Error(
            f"timeline: there is nothing from {start_ms:g} ms on\n"
            f"  help: the run ends at {(last_ns - zero_ns) / 1e6:g} ms; start_ms must be before that, and before end_ms"
        )
    chosen = (pc.field("kind") == "switch") & (pc.field("time_ns") < to_ns)
    switches = events.filter(chosen).select(["time_ns", "cpu", "other_task", "other_comm"]).to_pylist()
    cpus = int(events.schema.metadata[b"fairground.cpus"])
    slices = _slices(switches, from_ns, to_ns)
    if len(slices) > _SLICES_MAX:
        raise _native.Error(
            f"timeline: there are {len(slices)} slices, more than {_SLICES_MAX}\n  help: give a shorter time with start_ms and end_ms"
        )
    figure, axes = _figure(cpus)
    spans = _spans(slices, zero_ns)
    for number, (name, of_name) in enumerate(spans.items()):
        label: str | None = name
        for cpu, of_cpu in of_name.items():
            axes.broken_barh(of_cpu, (cpu - 0.4, 0.8), facecolors=_COLOURS[number % len(_COLOURS)], label=label)
            label = None  # Once in the legend.
    axes.set_yticks(range(cpus), [f"CPU {cpu}" for cpu in range(cpus)])
    axes.invert_yaxis()
    axes.set_xlim((from_ns - zero_ns) / 1e6, (to_ns - zero_ns) / 1e6)
    axes.set_xlabel("ms")
    axes.set_title(f"{run.label}: who ran where")
    if spans:
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _slices(switches: list[dict[str, Any]], from_ns: int, to_ns: int) -> list[tuple[int, int, int, str]]:
    """Begin and end in ns, CPU and task name of each on-CPU interval."""
    running: dict[int, tuple[int, int, str]] = {}
    found = []

    def end(cpu: int, at_ns: int) -> None:
        begin, task, name = running.pop(cpu, (0, 0, ""))
        if task and at_ns > from_ns:
            found.append((max(begin, from_ns), at_ns, cpu, name))

    for switch in switches:
        cpu, at_ns = switch["cpu"], switch["time_ns"]
        end(cpu, at_ns)
        running[cpu] = (at_ns, switch["other_task"], switch["other_comm"])
    for cpu in list(running):
        end(cpu, to_ns)
    return found


def _spans(slices: list[tuple[int, int, int, str]], zero_ns: int) -> dict[str, dict[int, list[tuple[float, float]]]]:
    """Begin and length in ms of the on-CPU intervals of each task name, in order, on each CPU."""
    spans: dict[str, dict[int, list[tuple[float, float]]]] = {name: {} for name in sorted({name for _, _, _, name in slices})}
    for begin, end, cpu, name in slices:
        spans[name].setdefault(cpu, []).append(((begin - zero_ns) / 1e6, (end - begin) / 1e6))
    return spans


KINDS = {"shares": shares, "latency": latency, "timeline": timeline}
