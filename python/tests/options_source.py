"""The text of ``fairground/_options.py``, made from the table of options of the native half."""

from __future__ import annotations

import json
import textwrap

from fairground import _native

#: Keywords that are not called as in a spec.
KEYWORDS = {"set": "settings"}
#: A point is a simulated run, which has this scheduler where none is named.
POINT_DEFAULTS = {"sched": '"cfs"'}
#: Options that are no keywords: operands, and the target, which the function says.
NO_KEYWORDS = ("workload", "on")
#: Columns of a line, as in the rest of the package.
WIDTH = 140

HEAD = '''"""The options of a run as keywords. Written from the program's own table: ``FAIRGROUND_DOCS=write pytest python/tests/test_options.py``."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypedDict

#: A value of a tunable or a feature: ``True`` is ``on``, a string is as on the command line (``"3ms"``).
SettingValue: TypeAlias = str | int | bool
#: A file, or a name.
File: TypeAlias = str | os.PathLike[str]
#: Values by name, as a point keeps them.
Pairs: TypeAlias = tuple[tuple[str, str | int], ...]


class _CommonWords(TypedDict, total=False):
    """The keyword arguments that every run takes."""

'''

SIMULATED = '''

class Words(_CommonWords, total=False):
    """The keyword arguments of a simulated run; :class:`Options` explains each."""

'''

REAL = '''

class TargetWords(_CommonWords, total=False):
    """The keyword arguments of runs on any target: those of :class:`Words`, and what real kernels take."""

'''

POINT = '''

@dataclass(frozen=True)
class Options:
    """The arguments of one simulated run."""

'''


def keyword(option: _native.Opt) -> str:
    """Its keyword."""
    return KEYWORDS.get(option.name, option.name)


def is_simulated(option: _native.Opt) -> bool:
    """Whether it has an effect in the simulated machine."""
    return "sim" in option.targets


def _one(option: _native.Opt) -> str:
    return {"flag": "bool", "number": "int", "file": "File"}.get(option.kind, "str")


def _given(option: _native.Opt) -> str:
    """The type of an argument."""
    if option.assigns:
        return "Mapping[str, SettingValue]"
    if option.many and not option.compared:
        return f"str | Sequence[{_one(option)}]"
    return f"{_one(option)} | None" if option.optional or option.many else _one(option)


def _given_several(option: _native.Opt) -> str:
    """The type of an argument where several values make several runs."""
    return f"{_one(option)} | Sequence[{_one(option)}]" if option.compared else _given(option)


def _kept(option: _native.Opt) -> tuple[str, str]:
    """The type and the default of a field of a point."""
    if option.assigns:
        return "Pairs", "()"
    if option.many and not option.compared:
        return "tuple[str, ...]", "()"
    one = _one(option).replace("File", "str")
    if option.name in POINT_DEFAULTS:
        return one, POINT_DEFAULTS[option.name]
    if option.optional or option.many:
        return f"{one} | None", "None"
    return one, _literal(option)


def _literal(option: _native.Opt) -> str:
    default = json.loads(option.default)
    return json.dumps(default) if isinstance(default, str) else repr(default)


def _comment(option: _native.Opt) -> str:
    text = option.doc.replace("`false`", "``False``") + "."
    if option.choices:
        text += " " + "; ".join(f"`{word}`: {doc}" for word, doc in option.choices) + "."
    return "".join(f"    #: {line}\n" for line in textwrap.wrap(text, WIDTH - 7, break_on_hyphens=False))


def source() -> str:
    """The whole file."""
    options = _native.options()
    words = [option for option in options if option.name not in NO_KEYWORDS]
    simulated = [option for option in words if is_simulated(option)]
    common = [option for option in words if is_simulated(option) and not option.compared]
    compared = [option for option in words if option.compared]
    text = HEAD + "".join(f"    {keyword(option)}: {_given(option)}\n" for option in common)
    text += SIMULATED + "".join(f"    {keyword(option)}: {_given(option)}\n" for option in compared)
    text += REAL + "".join(f"    {keyword(option)}: {_given_several(option)}\n" for option in compared)
    real = [option for option in words if not is_simulated(option)]
    text += "".join(f"{_comment(option)}    {keyword(option)}: {_given(option)}\n" for option in real)
    text += POINT
    for option in options:
        if is_simulated(option) and option.name != "on":
            kind, default = _kept(option)
            assigned = "" if option.name == "workload" else f" = {default}"
            text += f"{_comment(option)}    {keyword(option)}: {kind}{assigned}\n"
    return text
