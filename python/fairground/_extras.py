"""Packages that only some functions need: the extras of pyproject.toml."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class MissingExtra(ImportError):
    """A package that this function needs is not installed; the message names the extra that brings it."""


@contextmanager
def extra(name: str, use: str) -> Iterator[None]:
    """Imports inside it belong to the extra ``name`` and serve ``use``, words for the message.

    :raises MissingExtra: if a package is not installed; ``__cause__`` is Python's own error.
    """
    try:
        yield
    except ModuleNotFoundError as why:
        raise MissingExtra(
            f"{use}: the package {why.name} is not installed\n  help: pip install 'fairground[{name}]'", name=why.name
        ) from why
