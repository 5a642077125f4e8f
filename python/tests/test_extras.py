"""What is said when a package of an extra is not installed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import pytest

import fairground


@pytest.mark.parametrize(
    ("package", "named", "use"),
    [
        ("pyarrow", "tables", lambda run: run.groups.to_arrow()),
        ("polars", "tables", lambda run: run.groups.to_polars()),
        ("matplotlib.axes", "plots", lambda run: run.plot("shares")),
    ],
)
def test_a_missing_package_names_its_extra(
    monkeypatch: pytest.MonkeyPatch, package: str, named: str, use: Callable[[fairground.Run], object]
) -> None:
    run = fairground.simulate("hogs:1", sched="fifo", cpus=1, duration="1ms")
    # Charts are imported anew.
    monkeypatch.delitem(sys.modules, "fairground._plot", raising=False)
    monkeypatch.delattr(fairground, "_plot", raising=False)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ImportError) as refused:
        use(run)
    assert isinstance(refused.value, fairground.MissingExtra)
    assert refused.value.name == package
    assert f"pip install 'fairground[{named}]'" in str(refused.value)
    assert isinstance(refused.value.__cause__, ModuleNotFoundError)
