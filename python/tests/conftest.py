"""What the tests share: the command line that the module is held against, and a cluster."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import distributed
import pytest

ROOT = Path(__file__).parents[2]


def unavailable(name: str, reason: str) -> NoReturn:
    """Skips the test that is running, or fails it where ``name`` must be available (``tests/unavailable.sh``)."""
    test = os.environ["PYTEST_CURRENT_TEST"].split(" ")[0]
    done = subprocess.run([ROOT / "tests/unavailable.sh", name, test, reason], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.fail(done.stderr)
    pytest.skip(reason)


class CommandLine:
    """The program ``fairground``."""

    def __init__(self, binary: str) -> None:
        self.binary = binary

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Runs it."""
        return subprocess.run([self.binary, *words, "--quiet"], capture_output=True, text=True, check=False)

    def out(self, *words: str) -> str:
        """What it prints when it succeeds."""
        done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def refusal(self, *words: str) -> str:
        """What it says when it refuses."""
        done = self.run(*words)
        assert done.returncode == 2, done.stdout
        return done.stderr.removeprefix("fairground: ").removesuffix("\n")


@pytest.fixture(scope="session")
def command_line() -> CommandLine:
    """The program, where ``FAIRGROUND_BINARY`` says it is."""
    binary = os.environ.get("FAIRGROUND_BINARY")
    if binary is None:
        unavailable("release", "FAIRGROUND_BINARY names no program to hold the module against")
    return CommandLine(binary)


@pytest.fixture(scope="module")
def client() -> Iterator[distributed.Client]:
    """A cluster of two workers, each a process."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client
