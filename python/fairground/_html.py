"""Tables as notebooks show them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

#: Maximum number of rows of a shown table; the rest is counted.
ROWS_MAX = 40
#: Characters of a column of texts up to which it is not made narrower.
_WIDTH_MAX = 24
#: Units of time by length, ns.
_TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns"))
#: Signs of units that have one.
_SIGNS = {"percent": "%"}
_MISSING = "not measured"


def paragraph(text: str, *, bold: bool = False) -> str:
    """A paragraph of escaped text."""
    return f"<p><b>{escape(text)}</b></p>" if bold else f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], units: Mapping[str, str], rows: Iterable[Sequence[object]], *, missing: str = _MISSING) -> str:
    """A table with the units in its heading. Durations are in the unit that fits the column; ``missing`` stands for ``None``, except
    among texts, where the cell is empty."""
    all_rows = list(rows)
    shown = all_rows[:ROWS_MAX]
    made = [_column(name, units.get(name), [row[at] for row in shown], missing) for at, name in enumerate(columns)]
    heads = "".join(head for head, _ in made)
    lines = "".join(f"<tr>{''.join(line)}</tr>" for line in zip(*(cells for _, cells in made), strict=True))
    left = len(all_rows) - len(shown)
    more = paragraph(f"{left} more rows") if left else ""
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{lines}</tbody></table>{more}"


def _column(name: str, unit: str | None, values: Sequence[object], missing: str) -> tuple[str, list[str]]:
    """The heading and the cells of a column."""
    scale, unit = _fitting(values, unit)
    head = re.sub(r"([_.])", r"\1<wbr>", escape(f"{name} [{unit}]" if unit else name))
    if any(_is_number(value) for value in values):
        whole = all(float(value).is_integer() for value in values if isinstance(value, int | float)) and scale == 1.0
        texts = [_cell(value, scale, whole, missing) for value in values]
        side = ' style="text-align:right;white-space:nowrap"'
        return f'<th style="text-align:right">{head}</th>', [f"<td{side}>{escape(text)}</td>" for text in texts]
    texts = ["" if value is None else str(value) for value in values]
    width = min(_WIDTH_MAX, max(map(len, texts), default=0))
    side = f' style="text-align:left;white-space:normal;min-width:{width}ex"'
    return f"<th{side}>{head}</th>", [f"<td{side}>{escape(text)}</td>" for text in texts]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float | Mapping) and not isinstance(value, bool)


def _fitting(values: Sequence[object], unit: str | None) -> tuple[float, str | None]:
    """The divisor of a column, and the unit that its heading has."""
    if unit == "mixed":
        return 1.0, None
    if unit != "ns":
        return 1.0, _SIGNS.get(unit or "", unit)
    longest = max((abs(value) for value in values if isinstance(value, int | float)), default=0.0)
    return next(((size, name) for size, name in _TIMES if longest >= size), _TIMES[-1])


def _cell(value: object, scale: float, whole: bool, missing: str) -> str:
    if isinstance(value, Mapping):
        number = value["value"]
        size, unit = _fitting([number], value["unit"])
        text = _cell(number, size, isinstance(number, int) and size == 1.0, missing)
        return text if unit is None or number is None else f"{text} {unit}"
    if value is None:
        return missing
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    text = f"{value / scale:,.{0 if whole else 2}f}"
    # A rounded negative number may be zero.
    return text.removeprefix("-") if not text.strip("-0.") else text
