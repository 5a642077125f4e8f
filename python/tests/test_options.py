"""The keywords of the module are the options of a run."""

from __future__ import annotations

import inspect
import json
import os
from dataclasses import MISSING, fields
from typing import get_type_hints

import options_source
import pytest
from conftest import ROOT, CommandLine

import fairground
from fairground import _native, _options
from fairground._points import Point

WRITTEN = ROOT / "python/fairground/_options.py"


def test_the_file_of_options_is_that_of_the_table() -> None:
    text = options_source.source()
    if os.environ.get("FAIRGROUND_DOCS") == "write":
        WRITTEN.write_text(text)
    assert WRITTEN.read_text() == text, "FAIRGROUND_DOCS=write pytest python/tests/test_options.py"


def test_every_option_is_a_keyword_with_its_default_and_its_doc(command_line: CommandLine) -> None:
    schema = json.loads(command_line.out("schema", "run"))["properties"]
    options = {option.name: option for option in _native.options()}
    assert list(options) == list(schema)
    of_point = {field.name: field for field in fields(Point)}
    words, real = get_type_hints(_options.Words), get_type_hints(_options.TargetWords)
    for name, option in options.items():
        assert option.doc == schema[name]["description"]
        assert option.targets == schema[name]["targets"]
        assert json.loads(option.default) == schema[name]["default"]
        keyword = options_source.keyword(option)
        if name in options_source.NO_KEYWORDS:
            continue
        assert keyword in real
        assert (keyword in of_point) == (keyword in words) == ("sim" in option.targets)
        if keyword in of_point and not option.many:
            assert of_point[keyword].default == schema[name]["default"]
    assert of_point.pop("workload").default is MISSING
    assert set(of_point) == set(words)


def test_each_function_takes_the_options() -> None:
    for function, typed in (
        (fairground.simulate, "Unpack[Words]"),
        (fairground.Run.replay, "Unpack[Words]"),
        (fairground.follow, "Unpack[Words]"),
        (fairground.run_on, "Unpack[TargetWords]"),
        (fairground.compare, "Unpack[TargetWords]"),
    ):
        given = inspect.signature(function).parameters["words"]
        assert (given.kind, given.annotation) == (inspect.Parameter.VAR_KEYWORD, typed), function


@pytest.mark.parametrize(("wrong", "right"), [("cpu", "cpus"), ("setings", "settings"), ("seeds", "seed"), ("timer", "timers")])
def test_an_unknown_keyword_names_the_nearest(wrong: str, right: str) -> None:
    for call in (fairground.simulate, fairground.grid):
        with pytest.raises(TypeError, match=f"`{wrong}`; did you mean `{right}`\\?"):
            call("hogs:1", **{wrong: 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=f"did you mean `{right}`"):
        fairground.run_on("hogs:1", on="host", **{wrong: 1})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="`wrong_entirely`: there are `calls`, `sched`, "):
        fairground.simulate("hogs:1", wrong_entirely=1)  # type: ignore[call-arg]


def test_an_option_of_real_kernels_is_refused_in_a_simulated_run() -> None:
    with pytest.raises(TypeError, match="`memory` applies to virtual machines"):
        fairground.simulate("hogs:1", memory=2048)  # type: ignore[call-arg]


def test_options_that_only_the_command_line_had_work() -> None:
    run = fairground.simulate("hogs:1", sched="eevdf", duration="50ms", expect={"base_slice_ns": 1}, show_globals="base_slice_ns")
    assert list(run.variables) == ["base_slice_ns"]
    assert any("not as expected" in verdict for verdict in run.verdicts), run.verdicts
    plain, with_calls = (fairground.simulate("lat_ctx:2", duration="10ms", calls=calls) for calls in (False, True))
    assert len(with_calls.events) > len(plain.events)
