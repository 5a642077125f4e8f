"""The program ``fairground`` itself: real kernels, experiments, and whatever else only a command has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, TypeAlias

from fairground import _native
from fairground._run import Run, read

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The value of an option: ``True`` is a flag, a mapping ``NAME=VALUE`` for each pair, a sequence the option for each value.
OptionValue: TypeAlias = "str | int | bool | os.PathLike[str] | Mapping[str, object] | Sequence[object] | None"

#: The exit code of a command that could not do what was asked.
REFUSED = 2
#: Options whose values a command takes in one word.
JOINED = ("sched", "on")
#: Options that a result for programs needs, and nothing else may take.
RESERVED = ("format", "quiet")


@dataclass(frozen=True)
class ReportTable:
    """A table of a report."""

    #: Its name, which does not change: ``"differences"``.
    name: str
    #: Its heading, for people.
    title: str
    #: The names of the columns.
    columns: tuple[str, ...]
    #: The units of the columns that have one. In a column of unit ``"mixed"`` each cell is ``{"value": ..., "unit": ...}``.
    units: Mapping[str, str]
    #: The rows. ``None`` is "not measured".
    rows: tuple[tuple[Any, ...], ...]
    #: What the columns mean, and what was left out.
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.rows)

    def to_dicts(self) -> list[dict[str, Any]]:
        """Each row by the names of its columns."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]

    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow table. Cells of a column that mixes types become texts."""
        import pyarrow

        columns = {name: [row[at] for row in self.rows] for at, name in enumerate(self.columns)}
        return pyarrow.table({name: _of_one_type(values) for name, values in columns.items()})

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars data frame, converted by pyarrow."""
        import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame, converted by pyarrow."""
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame


def _of_one_type(values: list[Any]) -> list[Any]:
    kinds = {float if isinstance(value, int) and not isinstance(value, bool) else type(value) for value in values if value is not None}
    if len(kinds) > 1 or kinds == {dict}:
        return [None if value is None else json.dumps(value) if isinstance(value, dict) else str(value) for value in values]
    return [float(value) if kinds == {float} and value is not None else value for value in values]


@dataclass(frozen=True)
class Report:
    """What a command prints: tables, and how they were made. ``docs/reference/output-formats.md`` describes the form."""

    #: The heading.
    title: str
    #: The exit code: 0, or what ended a run (``docs/reference/exit-codes.md``).
    exit_code: int
    #: What a reader must know first, the worst first.
    verdicts: tuple[str, ...]
    #: How the result was made: seed, parameters, costs, versions.
    sections: Mapping[str, Mapping[str, Any]]
    #: The tables, in the order in which they are printed.
    tables: tuple[ReportTable, ...]
    #: Losses, doubts, what to do next.
    notes: tuple[str, ...]
    #: Of :func:`run_on`: everything that the kernel recorded, from before the workload's start until after its end.
    recording: Run | None = None

    def __getitem__(self, name: str) -> ReportTable:
        """The first table of that name.

        :raises KeyError: if there is none; the message lists those that there are.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(f"no table `{name}`; there are {', '.join(dict.fromkeys(self))}")

    def __iter__(self) -> Iterator[str]:
        return (table.name for table in self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __repr__(self) -> str:
        return f"<fairground.Report: {self.title}: {', '.join(dict.fromkeys(self))}>"


def command(name: str, *operands: str | os.PathLike[str], **options: OptionValue) -> Report:
    """Runs a command of the program ``fairground`` and returns what it prints.

    ``command("compare", "hogs:3", sched=["cfs", "eevdf"], cpus=4)`` is ``fairground compare hogs:3 --sched cfs,eevdf --cpus 4``:
    a keyword is an option, with ``-`` for ``_``. ``settings={"base_slice_ns": "3ms"}`` is ``--set base_slice_ns=3ms``. A scheduler
    that was ejected is a result: :attr:`Report.exit_code` and :attr:`Report.verdicts` say so.

    :raises Error: if the command refuses its arguments, or the program is not there; the message has the remedy.
    """
    return _run([name, *(os.fspath(operand) for operand in operands), *_words(options)])


def run_on(target: str, workload: str | os.PathLike[str], **options: OptionValue) -> Report:
    """Runs a workload on a real kernel (``"vm:7.2"``, ``"host"``).

    The figures of the report are those of the workload's time; :attr:`Report.recording` has the events. The options are those of ``fairground run``, as :func:`command` takes them. ``fairground kernels fetch`` fetches a kernel.

    :raises Error: if an argument is invalid, the kernel is not there, or the machine did not come up.
    """
    with TemporaryDirectory(prefix="fairground-") as folder:
        trace = Path(folder) / "trace.txt"
        report = command("run", workload, on=target, trace=trace, **options)
        return replace(report, recording=read(trace))


def _words(options: Mapping[str, OptionValue]) -> list[str]:
    words: list[str] = []
    for name, value in options.items():
        if name in RESERVED:
            raise _native.Error(f"{name}: a report has its own\n  help: leave it out")
        option = "--set" if name == "settings" else f"--{name.replace('_', '-')}"
        words += [word for given in _values(name, value) for word in ([option] if given is True else [f"{option}={given}"])]
    return words


def _values(name: str, value: OptionValue) -> list[object]:
    if value is None or value is False:
        return []
    if isinstance(value, Mapping):
        return [f"{key}={_setting(one)}" for key, one in value.items()]
    if isinstance(value, Sequence) and not isinstance(value, str):
        values = [os.fspath(one) if isinstance(one, os.PathLike) else str(one) for one in value]
        return [",".join(values)] if name in JOINED else list(values)
    return [os.fspath(value) if isinstance(value, os.PathLike) else value]


def _setting(value: object) -> str:
    return {True: "on", False: "off"}[value] if isinstance(value, bool) else str(value)


def _program() -> str:
    """The program of this environment, else that of the search path; ``FAIRGROUND_BINARY`` names another."""
    scripts = sysconfig.get_path("scripts")
    found = os.environ.get("FAIRGROUND_BINARY") or shutil.which("fairground", path=scripts) or shutil.which("fairground")
    if found is None:
        raise _native.Error(
            "the program `fairground` is not there: real kernels, experiments and commands need it\n"
            "  help: the wheel of `make python` has it; or `make build`, and FAIRGROUND_BINARY names the file"
        )
    return found


def _run(words: list[str]) -> Report:
    called = [_program(), *words, "--quiet", "--format=json"]
    try:
        done = subprocess.run(called, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    except OSError as failure:
        raise _native.Error(f"{called[0]}: {failure.strerror}\n  help: FAIRGROUND_BINARY names the program") from failure
    if done.returncode < 0 or done.returncode == REFUSED or not done.stdout:
        said = done.stderr.removeprefix("fairground: ").removesuffix("\n")
        raise _native.Error(said or f"`fairground {words[0]}` ended with {done.returncode} and printed nothing")
    return _report(json.loads(done.stdout), done.returncode)


def _report(document: dict[str, Any], exit_code: int) -> Report:
    def measured(entry: dict[str, Any]) -> Any:
        return {key: entry[key] for key in ("value", "unit")} if entry.get("unit") else entry.get("value")

    sections = {one["name"]: {entry["name"]: measured(entry) for entry in one["entries"]} for one in document["sections"]}
    return Report(
        title=document["title"],
        exit_code=exit_code,
        verdicts=tuple(verdict["text"] for verdict in document["verdicts"]),
        sections=sections,
        tables=tuple(_table(table) for table in document["tables"]),
        notes=tuple(document["notes"]),
    )


def _table(table: dict[str, Any]) -> ReportTable:
    columns = table["columns"]
    return ReportTable(
        name=table["id"],
        title=table["title"],
        columns=tuple(column["name"] for column in columns),
        units={column["name"]: column["unit"] for column in columns if column["unit"]},
        rows=tuple(tuple(row) for row in table["rows"]),
        notes=tuple(table["notes"]),
    )
