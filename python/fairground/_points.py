"""The description of a run, and grids of descriptions."""

from __future__ import annotations

import itertools
import json
import operator
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TypeVar

from fairground import _native
from fairground._options import Options, SettingValue

T = TypeVar("T")

#: Maximum number of points of a grid: a hundred thousand runs of a tenth of a second take three hours.
POINTS_MAX = 100_000
#: The keyword of ``--set``.
SETTINGS = "settings"
#: The options by keyword.
OPTIONS: Mapping[str, _native.Opt] = {SETTINGS if one.name == "set" else one.name: one for one in _native.options()}


@dataclass(frozen=True)
class Point(Options):
    """The arguments of one run, as :func:`simulate` takes them. Two equal points give the same bytes.

    Points are made by :func:`grid`, or by :meth:`of`, which takes names with values as mappings. Numbers may be numpy integers, files may
    be ``pathlib`` paths.
    """

    def __post_init__(self) -> None:
        for field in fields(self):
            object.__setattr__(self, field.name, _kept(OPTIONS[field.name], getattr(self, field.name)))
        if self.cpus is not None and self.topology is not None:
            raise ValueError("cpus and topology exclude each other: a topology says how many CPUs there are")

    def words(self) -> str:
        """The given arguments as JSON, for the native half, which checks them."""
        return words_of({field.name: getattr(self, field.name) for field in fields(self)})

    @classmethod
    def of(cls, workload: str | os.PathLike[str], **words: object) -> Point:
        """A point from the arguments of :func:`simulate`.

        :raises TypeError: if an argument is no option of a simulated run.
        """
        known = [field.name for field in fields(cls)]
        for name in words:
            _check_keyword(name, known)
        return cls(workload, **words)  # type: ignore[arg-type]  # The point converts them; the native half checks types.


def words_of(keywords: Mapping[str, object]) -> str:
    """Keyword arguments as JSON: the words of a spec.

    :raises TypeError: if an argument is no option of a run.
    """
    given = {}
    for keyword, value in keywords.items():
        _check_keyword(keyword, list(OPTIONS))
        option = OPTIONS[keyword]
        kept = _kept(option, value)
        if kept is not None and kept != ():
            given[option.name] = dict(kept) if option.assigns else kept  # type: ignore[call-overload]  # Pairs.
    return json.dumps(given, default=repr)


def _check_keyword(name: str, known: list[str]) -> None:
    if name in known:
        return
    if name in OPTIONS:
        targets = "virtual machines" if OPTIONS[name].targets == ["vm"] else "other targets"
        raise TypeError(f"`{name}` applies to {targets}: `run_on` takes it")
    near = _native.nearest(name, known)
    there = ", ".join(f"`{one}`" for one in known if one != "workload")
    hint = f"; did you mean `{near}`?" if near else f": there are {there}"
    raise TypeError(f"a run has no option `{name}`{hint}")


def _kept(option: _native.Opt, value: object) -> object:
    """An argument as a point keeps it: lists as tuples, mappings as pairs. What has the wrong type stays, and is refused later."""
    if option.assigns:
        pairs = value.items() if isinstance(value, Mapping) else value
        return tuple((name, _assigned(one)) for name, one in pairs) if isinstance(pairs, Iterable) and not isinstance(pairs, str) else value
    if option.many and isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(_path(one) for one in value)
    if option.many and not option.compared and isinstance(value, str):
        return (value,)
    return _whole(value) if option.kind == "number" else _path(value)


def _whole(value: object) -> object:
    """Any integer, also of numpy, as an ``int``. Other values are returned unchanged; the native half reports the error."""
    try:
        return int(operator.index(value))  # type: ignore[arg-type]  # Values that are not integers raise TypeError.
    except TypeError:
        return value


def _path(value: object) -> object:
    """A path as a string; any other value unchanged."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _assigned(value: object) -> object:
    """The value of a name: ``True`` is ``on``."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return value if isinstance(value, str) else _whole(value)


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
        words = of_kind["word"]
        yield Point.of(words.pop("workload"), settings=of_kind["settings"], cost=of_kind["cost"], **words)  # type: ignore[arg-type]


def _values(value: object) -> list[object]:
    """The values of an argument: a list, a range or another iterable has several; a string, a tuple and a mapping are one."""
    if isinstance(value, (str, tuple, Mapping)) or not isinstance(value, Iterable):
        return [value]
    values = list(value)
    if not values:
        raise ValueError("an empty list of values leaves no point")
    return values
