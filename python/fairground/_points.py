"""The description of a run, and grids of descriptions."""

from __future__ import annotations

import itertools
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeAlias, TypedDict, TypeVar

#: A value of a tunable or a feature: ``True`` is ``on``, a string is as on the command line (``"3ms"``).
SettingValue: TypeAlias = str | int | bool

T = TypeVar("T")

#: Maximum number of points of a grid: a hundred thousand runs of a tenth of a second take three hours.
POINTS_MAX = 100_000


class Words(TypedDict, total=False):
    """The scalar keyword arguments of a run; :class:`Point` explains each."""

    sched: str | os.PathLike[str]
    cpus: int | None
    topology: str | os.PathLike[str] | None
    duration: str | None
    seed: int
    hz: int | None
    timers: str
    costs: str
    instruction_ns: int | None
    locks: str | None
    profile: str | os.PathLike[str] | None
    engine: str
    null_loads: str
    kernel_abi: str
    lead_in: str | None
    check: bool
    idle_bound: str | None
    max_events: int | None


@dataclass(frozen=True)
class Point:
    """The arguments of one run, as :func:`simulate` takes them. Two equal points give the same bytes.

    Points are made by :func:`grid`, or by :meth:`of`, which takes settings as a mapping. Numbers may be numpy integers, files may be
    ``pathlib`` paths.
    """

    #: A name (``"slice:16"``), several joined by ``+``, or a file: TOML, or rt-app's JSON.
    workload: str
    #: A name (``"cfs"``), a name with a parameter set (``"cfs@6.1"``), an object file, or its source.
    sched: str = "cfs"
    #: The number of CPUs; 2 when there is no topology either.
    cpus: int | None = None
    #: Sockets, cores and threads (``"2x4x2"``), or a topology file.
    topology: str | None = None
    #: Simulated time with its unit; the workload's own length by default.
    duration: str | None = None
    #: The seed of every random draw.
    seed: int = 1
    #: Tunables and features before the run: names and values.
    settings: tuple[tuple[str, str], ...] = ()
    #: Changes during the run: ``"5s:NAME=VALUE"``.
    at: tuple[str, ...] = ()
    #: Ticks a second: 100, 250, 300 or 1000; 250 by default.
    hz: int | None = None
    #: What ends a sleep: ``"hrtimer"`` or ``"jiffies"``.
    timers: str = "hrtimer"
    #: The cost preset; ``"modern"`` by default.
    costs: str | None = None
    #: What an instruction takes, ns (1, 2, 4 or 8), for a preset that was measured in a guest that counts them; 8 by default.
    instruction_ns: int | None = None
    #: Changes of costs: names and values.
    cost: tuple[tuple[str, int], ...] = ()
    #: The kind of the workload's spin locks: ``"spin"``, ``"rt"`` or ``"rt-2006"``.
    locks: str | None = None
    #: A profile: a file with the variables that the object's own loader would set.
    profile: str | None = None
    #: ``"jit"`` or ``"interpreter"``: both give the same result.
    engine: str = "jit"
    #: What a load through a NULL pointer does: ``"error"`` or ``"zero"``.
    null_loads: str = "error"
    #: The release of Linux whose sched_ext interface the simulated kernel offers: ``"6.12"`` to ``"7.2"``.
    kernel_abi: str = "7.2"
    #: How long the tasks exist, asleep, before the run, with its unit.
    lead_in: str | None = None
    #: Whether the simulator's invariants are checked after each event.
    check: bool = False
    #: With ``check``: how long a CPU may be idle while a task that may run there waits, with its unit.
    idle_bound: str | None = None
    #: How many events the run may record; 100,000,000 by default.
    max_events: int | None = None

    def __post_init__(self) -> None:
        plain: dict[str, object] = {name: _whole(getattr(self, name)) for name in ("cpus", "seed", "hz", "instruction_ns", "max_events")}
        plain |= {name: _path(getattr(self, name)) for name in ("workload", "sched", "topology", "profile")}
        plain["settings"] = tuple(tuple(pair) for pair in self.settings)
        plain["cost"] = tuple((name, _whole(value)) for name, value in self.cost)
        plain["at"] = (self.at,) if isinstance(self.at, str) else tuple(self.at)
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        if self.cpus is not None and self.topology is not None:
            raise ValueError("cpus and topology exclude each other: a topology says how many CPUs there are")

    def words(self) -> str:
        """The given arguments as JSON, for the native half, which checks them."""
        words = {field.name: getattr(self, field.name) for field in fields(self)}
        words |= {"set": dict(words.pop("settings")), "cost": dict(self.cost)}
        given = {name: value for name, value in words.items() if value is not None}
        return json.dumps(given, default=repr)

    @classmethod
    def of(
        cls,
        workload: str | os.PathLike[str],
        *,
        settings: Mapping[str, SettingValue] | None = None,
        at: str | Sequence[str] = (),
        cost: Mapping[str, int] | None = None,
        **words: object,
    ) -> Point:
        """A point from the arguments of :func:`simulate`."""
        return cls(
            workload=workload,  # type: ignore[arg-type]  # A path becomes a string.
            settings=tuple((name, _text(value)) for name, value in (settings or {}).items()),
            at=at,  # type: ignore[arg-type]  # A string counts as a sequence of one.
            cost=tuple((cost or {}).items()),
            **words,  # type: ignore[arg-type]  # The dataclass rejects unknown names; the native half checks types.
        )


def _whole(value: object) -> object:
    """Any integer, also of numpy, as an ``int``. Other values are returned unchanged; the native half reports the error."""
    try:
        return int(operator.index(value))  # type: ignore[arg-type]  # Values that are not integers raise TypeError.
    except TypeError:
        return value


def _path(value: object) -> object:
    """A path as a string; any other value unchanged."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _text(value: SettingValue) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def grid(
    workload: str | os.PathLike[str] | Iterable[str | os.PathLike[str]],
    *,
    settings: Mapping[str, SettingValue | Iterable[SettingValue]] | None = None,
    cost: Mapping[str, int | Iterable[int]] | None = None,
    **words: object,
) -> list[Point]:
    """Every combination of the arguments that have several values.

    Each keyword of :func:`simulate` takes one value, or a list (or a range) of them; so does each name in ``settings`` and
    ``cost``. ``grid(["hogs:3", "slice:16"], sched=["cfs", "eevdf"], seed=range(25))`` has 100 points. Grids are lists and can be
    concatenated with ``+``.

    Points are in the order of the keywords; the last one changes fastest.
    """
    axes: list[tuple[str, str, list[object]]] = [("word", "workload", _values(workload))]
    axes += [("word", name, _values(value)) for name, value in words.items()]
    axes += [("settings", name, _values(value)) for name, value in (settings or {}).items()]
    axes += [("cost", name, _values(value)) for name, value in (cost or {}).items()]
    count = 1
    for _, _, values in axes:
        count *= len(values)
    if count > POINTS_MAX:
        raise ValueError(f"the grid has {count} points, more than {POINTS_MAX}")
    return list(_points(axes))


def _points(axes: list[tuple[str, str, list[object]]]) -> Iterator[Point]:
    for chosen in itertools.product(*(values for _, _, values in axes)):
        of_kind: dict[str, dict[str, object]] = {"word": {}, "settings": {}, "cost": {}}
        for (kind, name, _), value in zip(axes, chosen, strict=True):
            of_kind[kind][name] = value
        yield Point.of(settings=of_kind["settings"], cost=of_kind["cost"], **of_kind["word"])  # type: ignore[arg-type]


def _values(value: object) -> list[object]:
    """The values of an argument: a list, a range or another iterable has several; a string, a tuple and a mapping are one."""
    if isinstance(value, (str, tuple, Mapping)) or not isinstance(value, Iterable):
        return [value]
    values = list(value)
    if not values:
        raise ValueError("an empty list of values leaves no point")
    return values
