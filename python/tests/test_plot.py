"""Pictures show what was measured, and nothing else."""

from __future__ import annotations

import math
import time
from typing import Any

import numpy
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

import fairground
from fairground import _plot


def extent(picture: Figure) -> tuple[float, float]:
    """From the first to the last moment that a timeline shows as busy, in ms."""
    bars = [bar for bar in picture.axes[0].collections if isinstance(bar, PolyCollection)]
    places = [place for bar in bars for path in bar.get_paths() for place in numpy.asarray(path.vertices)[:, 0].tolist()]
    return min(places), max(places)


def test_a_timeline_ends_where_the_run_ends() -> None:
    run = fairground.simulate("hogs:3", duration="30ms")
    picture = run.plot("timeline")
    assert extent(picture) == pytest.approx((0.0, 30.0))
    assert picture.axes[0].get_xlim() == pytest.approx((0.0, 30.0))
    later = run.plot("timeline", start_ms=20.0, end_ms=1000.0)
    assert extent(later) == pytest.approx((20.0, 30.0))
    for words in ({"start_ms": 30.0}, {"start_ms": 9.0, "end_ms": 8.0}):
        with pytest.raises(fairground.Error, match="the run ends at 30 ms"):
            run.plot("timeline", **words)


def test_a_timeline_of_many_names_is_drawn_in_a_moment() -> None:
    """As many slices as there may be, of hundreds of names, on many CPUs: each is looked at once."""
    cpus, names, turns = 64, 300, 300
    switches = [
        {"time_ns": 1_000 * turn + cpu, "cpu": cpu, "other_task": 1 + (turn * 7 + cpu) % names, "other_comm": f"t{(turn * 7 + cpu) % names}"}
        for turn in range(turns)
        for cpu in range(cpus)
    ]
    slices = _plot._slices(switches, 0, 1_000_000)
    begin = time.process_time()
    spans = _plot._spans(slices, 0)
    assert time.process_time() - begin < 5.0
    assert list(spans) == sorted(f"t{number}" for number in range(names))
    assert sum(len(of_cpu) for of_name in spans.values() for of_cpu in of_name.values()) == len(slices) == turns * cpus


def test_what_was_not_measured_has_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[dict[str, Any]] = [
        {"group": "known", "cpu_share": 40.0, "fluid_share": 0.0},
        {"group": "unknown", "cpu_share": 60.0, "fluid_share": None},
    ]
    monkeypatch.setattr(_plot, "_rows", lambda table: measured)
    picture = fairground.simulate("hogs:2", duration="10ms").plot("shares")
    widths = [bar.get_width() for bar in picture.axes[0].patches]  # type: ignore[attr-defined]  # Patches of bars are rectangles.
    assert widths[:3] == [40.0, 60.0, 0.0]
    assert math.isnan(widths[3])
