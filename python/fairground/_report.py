"""What a command of the program prints, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fairground import _html
from fairground._extras import extra
from fairground._run import Run

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

#: The unit of a column in which each cell has its own.
MIXED = "mixed"


@dataclass(frozen=True, repr=False)
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
        """The table as a pyarrow table.

        A column of unit ``"mixed"`` becomes one of values and one, ``NAME.unit``, of their units. Numbers with a unit are floats. Values of
        several types become texts.
        """
        with extra("tables", "ReportTable.to_arrow"):
            import pyarrow

        columns: dict[str, list[Any]] = {}
        for at, name in enumerate(self.columns):
            values = [row[at] for row in self.rows]
            bare = [cell["value"] if isinstance(cell, Mapping) else cell for cell in values]
            columns[name] = _of_one_type(bare, counts=name not in self.units)
            if self.units.get(name) == MIXED or any(isinstance(cell, Mapping) for cell in values):
                own = None if self.units.get(name) == MIXED else self.units.get(name)
                columns[f"{name}.unit"] = [cell["unit"] if isinstance(cell, Mapping) else own for cell in values]
        return pyarrow.table(columns)

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars data frame, converted by pyarrow."""
        with extra("tables", "ReportTable.to_polars"):
            import polars

        frame = polars.from_arrow(self.to_arrow())
        assert isinstance(frame, polars.DataFrame)
        return frame

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame, converted by pyarrow."""
        arrow = self.to_arrow()
        with extra("tables", "ReportTable.to_pandas"):
            frame: pandas.DataFrame = arrow.to_pandas()
        return frame

    def _repr_html_(self) -> str:
        """The table with its notes, for notebooks."""
        notes = "".join(_html.paragraph(note) for note in self.notes)
        return _html.paragraph(self.title, bold=True) + _html.table(self.columns, self.units, self.rows) + notes

    def __repr__(self) -> str:
        return f"<fairground.ReportTable {self.name}: {len(self)} rows of {', '.join(self.columns)}>"


def _of_one_type(values: list[Any], *, counts: bool) -> list[Any]:
    """Numbers as floats, or integers where the column has only ``counts``; values of several types as texts."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int} and counts:
        return values
    if kinds <= {int, float}:
        return [None if value is None else float(value) for value in values]
    return values if len(kinds) == 1 else [None if value is None else str(value) for value in values]


@dataclass(frozen=True, repr=False)
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
    #: Of :func:`compare` with a workload: the runs, one for each column, with their events.
    runs: tuple[Run, ...] = field(default=(), compare=False)

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

    def _repr_html_(self) -> str:
        """The verdicts, the tables and the notes, for notebooks."""
        heads = [self.title, *self.verdicts]
        tables = "".join(table._repr_html_() for table in self.tables)
        return "".join(_html.paragraph(head, bold=True) for head in heads) + tables + "".join(map(_html.paragraph, self.notes))

    def __repr__(self) -> str:
        return f"<fairground.Report: {self.title}: {', '.join(dict.fromkeys(self))}>"


def report_of(document: dict[str, Any], exit_code: int) -> Report:
    """The report of a command's JSON."""

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
