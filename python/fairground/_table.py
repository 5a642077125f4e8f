"""Tables for pyarrow, polars, pandas and other libraries that read Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairground import _html, _native
from fairground._extras import extra

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


class Table:
    """A table that implements Arrow's PyCapsule interface.

    ``polars.DataFrame(table)``, ``pyarrow.table(table)`` and DuckDB accept it directly. The rows of events are created while
    they are read, so that a long trace is not in memory twice.
    """

    def __init__(self, native: _native.Table) -> None:
        self._native = native

    def __len__(self) -> int:
        return len(self._native)

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in order."""
        return [name for name, _ in self._native.columns]

    @property
    def units(self) -> dict[str, str]:
        """The units of the columns that have one: ``ns``, ``%``, ``1/s``."""
        return {name: unit for name, unit in self._native.columns if unit}

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_arrow(self) -> pyarrow.Table:
        """The table as a pyarrow table."""
        with extra("tables", "Table.to_arrow"):
            import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """The table as a polars data frame."""
        with extra("tables", "Table.to_polars"):
            import polars

        return polars.DataFrame(self)

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a pandas data frame, converted by pyarrow."""
        arrow = self.to_arrow()
        with extra("tables", "Table.to_pandas"):
            frame: pandas.DataFrame = arrow.to_pandas()
        return frame

    def _repr_html_(self) -> str:
        """The first rows, for notebooks."""
        shown = min(len(self), _html.ROWS_MAX)
        rows = self.to_arrow().slice(0, shown).to_pylist()
        more = _html.paragraph(f"{len(self) - shown} more rows") if len(self) > shown else ""
        return _html.table(self.columns, self.units, [list(row.values()) for row in rows], missing="") + more

    def __repr__(self) -> str:
        return f"<fairground.Table: {len(self)} rows of {', '.join(self.columns)}>"
