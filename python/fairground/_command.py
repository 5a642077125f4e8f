"""Runs on any target, comparisons and ``follow`` in this process; and the program ``fairground`` for what only a command has."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from fairground import _native
from fairground._options import File, TargetWords, Words
from fairground._points import words_of
from fairground._report import Report, report_of
from fairground._run import Run

if TYPE_CHECKING:
    from typing_extensions import Unpack

#: The value of an option: ``True`` is a flag, a mapping ``NAME=VALUE`` for each pair, a sequence the option for each value.
OptionValue: TypeAlias = "str | int | bool | os.PathLike[str] | Mapping[str, object] | Sequence[object] | None"

#: The exit code of a command that could not do what was asked.
REFUSED = 2
#: Options whose values a command takes in one word.
JOINED = ("sched", "on")
#: Options that a result for programs needs, and nothing else may take.
RESERVED = ("format", "quiet")


def command(name: str, *operands: str | os.PathLike[str], **options: OptionValue) -> Report:
    """Runs a command of the program ``fairground`` and returns what it prints.

    ``command("compare", "hogs:3", sched=["cfs", "eevdf"], cpus=4)`` is ``fairground compare hogs:3 --sched cfs,eevdf --cpus 4``:
    a keyword is an option, with ``-`` for ``_``. ``settings={"base_slice_ns": "3ms"}`` is ``--set base_slice_ns=3ms``. A scheduler
    that was ejected is a result: :attr:`Report.exit_code` and :attr:`Report.verdicts` say so.

    :raises Error: if the command refuses its arguments, or the program is not there; the message has the remedy.
    """
    return _run([name, *(os.fspath(operand) for operand in operands), *_words(options)])


def run_on(workload: File, *, on: str, **words: Unpack[TargetWords]) -> Run:
    """Runs a workload on one target: ``"vm:7.2"``, ``"host"``, or ``"sim"``.

    The arguments are those of ``fairground run``; an unknown one names the nearest, and one without effect on the target is refused.
    Without ``sched`` it is the kernel's own scheduler. A kernel of the catalogue that is not in the cache is fetched from Debian first.
    Other threads continue meanwhile, and Ctrl-C ends the run. Virtual machines boot the program ``fairground``, which must be there.

    :raises Error: if an argument is invalid, the kernel cannot be fetched, or the machine did not come up.
    """
    return Run(_native.run_on(_spec(workload, on, words), _program_for(on)))


def compare(
    first: File,
    *others: File,
    against: File | Sequence[File] = (),
    on: str | Sequence[str] = "sim",
    machine: str | None = None,
    tree: str | Sequence[str] = (),
    per: str = "group",
    all: bool = False,  # noqa: A002  # The name of the option.
    metrics: str | Sequence[str] = (),
    tasks: str | Sequence[str] = (),
    **words: Unpack[TargetWords],
) -> Report:
    """Compares two recordings, or runs a workload under several schedulers or settings, on one target or several: ``fairground compare``.

    ``compare("before.dat", "after.dat")`` says which tasks lost time (``report["lost"]``) and what took it (``report["causes"]``);
    :attr:`Report.title` names the largest cause. Of a recording with several, ``machine`` names one; ``tree`` are the tasks that count.
    ``compare("b1.dat", "b2.dat", against=["a1.dat", "a2.dat"])`` compares several of each side, with intervals.
    ``compare("hogs:3", sched=["cfs", "eevdf"])`` has one column for each scheduler (``report["comparison"]``), and :attr:`Report.runs`
    has the runs with their events; ``metrics`` and ``tasks`` choose rows. Other threads continue meanwhile, and Ctrl-C ends it.

    :raises Error: if a recording cannot be read, or if an argument is invalid.
    """
    rows = (all, _texts(metrics), _texts(tasks))
    if _native.is_recording(os.fspath(first)):
        if words or on != "sim":
            raise _native.Error("options of runs mean nothing where recordings are compared\n  help: leave them out")
        recordings = (os.fspath(first), _texts(others), _texts(against))
        document, code = _native.compare_recordings(recordings, (machine, _texts(tree)), (per == "task", rows))
        return report_of(json.loads(document), code)
    if others or against or machine or tree:
        return command("compare", first, *others, against=_texts(against), on=on, machine=machine, tree=_texts(tree), **words)
    (document, code), runs = _native.compare(_spec(first, on, words), _program_for(on), rows)
    return replace(report_of(json.loads(document), code), runs=tuple(Run(run) for run in runs))


def diagnose(*recordings: str | os.PathLike[str], **options: OptionValue) -> Report:
    """Finds what is wrong in a recording, or what became worse from one to another: ``fairground diagnose``.

    :attr:`Run.findings` has the same of one run or recording, without the program.

    :raises Error: if a recording cannot be read, or if an argument is invalid.
    """
    return command("diagnose", *recordings, **options)


def follow(
    recording: File,
    *,
    machine: str | None = None,
    top: int = 10,
    **words: Unpack[Words],
) -> Report:
    """Compares the decisions of a scheduler with those of a recording, one by one: ``fairground follow``.

    ``report["agreement"]`` has a row for each kind of decision, ``report["differences"]`` one for each kind of difference, ``top`` at most.
    ``words`` are ``sched``, ``settings``, ``profile``, ``topology``, ``hz``, ``seed``, ``engine`` and ``null_loads``; the rest is as recorded. Other
    threads continue meanwhile, and Ctrl-C ends it.

    :raises Error: if the recording cannot be read, or if an argument is invalid.
    """
    document, code = _native.follow(os.fspath(recording), words_of(words), machine, top)
    return report_of(json.loads(document), code)


def reproduce(experiment: str | os.PathLike[str] | None = None, **options: OptionValue) -> Report:
    """Repeats a published result, or an experiment of a file: ``fairground reproduce``. Without a name it lists the experiments.

    The report has published figures beside measured ones.

    :raises Error: if there is no such experiment, or if it cannot be run.
    """
    return command("reproduce", *([] if experiment is None else [experiment]), **options)


def _spec(workload: File, on: str | Sequence[str], words: TargetWords) -> str:
    """The words of a run on these targets, as JSON."""
    return words_of({**words, "workload": workload, "on": on})


def _program_for(on: str | Sequence[str]) -> str | None:
    """The program where a target needs it; the simulated machine does not."""
    targets = [on] if isinstance(on, str) else on
    return None if all(target == "sim" for target in targets) else _program()


def _texts(values: File | Sequence[File]) -> list[str]:
    """One word or several as a list; files as their paths."""
    several = [values] if isinstance(values, (str, os.PathLike)) else values
    return [os.fspath(value) for value in several]


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
            "  help: install the wheel of `make python`, which has it; or `make build`, and FAIRGROUND_BINARY names the file"
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
    return report_of(json.loads(done.stdout), done.returncode)
