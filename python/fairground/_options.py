"""The options of a run as keywords. Written from the program's own table: ``FAIRGROUND_DOCS=write pytest python/tests/test_options.py``."""

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

    calls: bool
    settings: Mapping[str, SettingValue]
    at: str | Sequence[str]
    engine: str
    kernel_abi: str
    null_loads: str
    show_globals: str | Sequence[str]
    expect: Mapping[str, SettingValue]
    cpus: int | None
    topology: File | None
    hz: int | None
    timers: str
    seed: int
    costs: str | None
    instruction_ns: int | None
    cost: Mapping[str, SettingValue]
    check: bool
    idle_bound: str | None
    duration: str | None
    lead_in: str | None
    max_events: int | None
    locks: str | None


class Words(_CommonWords, total=False):
    """The keyword arguments of a simulated run; :class:`Options` explains each."""

    sched: File | None
    profile: File | None


class TargetWords(_CommonWords, total=False):
    """The keyword arguments of runs on any target: those of :class:`Words`, and what real kernels take."""

    sched: File | Sequence[File]
    profile: File | Sequence[File]
    #: The scheduler's own loader, a program with its arguments, in one word (`'./scx_bpfland -s 5000'`), on `vm:KERNEL`: it runs in the
    #: guest and attaches the scheduler there.
    loader: str | None
    #: How the virtual machine's time advances: by counted instructions, the same in every run, or by the host's clock. `deterministic`: By
    #: counted instructions, one CPU at a time: bit for bit the same in every run; `fast`: By the host's clock, CPUs side by side: for load,
    #: not for measuring.
    vm_mode: str
    #: A kernel of your own (bzImage) for `--on vm`.
    kernel: File | None
    #: Memory of the virtual machine, MiB.
    memory: int
    #: A boot parameter for the virtual machine's kernel; may be given several times.
    append: str | Sequence[str]
    #: Memory for recorded events on a real kernel, KiB for each CPU.
    buffer: int
    #: ``False``: Record no events on a real kernel: nothing disturbs the run, and it reports no more than its tasks and the kernel's own
    #: accounting do.
    record: bool
    #: Record a kernel stack with each switch, and waits for locks, on a real kernel.
    stacks: bool
    #: How long after a tick the tasks of a run on a real kernel start (with the deterministic clock; otherwise after this delay); at most 1
    #: s.
    hold: str | None


@dataclass(frozen=True)
class Options:
    """The arguments of one simulated run."""

    #: A workload: a name (`slice:16`), several joined by `+`, or a file: TOML, or JSON of rt-app. `workload list` names them.
    workload: str
    #: Record the calls in which tasks may wait or wake others: futexes, pipes, sockets, polls, sleeps, waits for children.
    calls: bool = False
    #: Scheduler: a name (`cfs`), a name with a parameter set (`cfs@6.1`), an object file (`./mine.bpf.o`), its source (`./mine.bpf.c`), a
    #: published one with options (`scx_lavd:power=powersave`), or, on a real kernel, `kernel`: that kernel's own. Several with commas
    #: [default: cfs in simulation, kernel elsewhere].
    sched: str = "cfs"
    #: Set a tunable or feature before the run, or a part of one (`x[1].y=3`, `x[*]=cpus`; `kernel.NAME=VALUE`: one of a real kernel
    #: itself); with several values, `compare` runs each.
    settings: Pairs = ()
    #: Set a tunable or feature during the run.
    at: tuple[str, ...] = ()
    #: A profile: what the object's own loader would set, as a file (`experiments/profiles/scx_qmap.toml`).
    profile: str | None = None
    #: How the scheduler's instructions are executed: both engines give the same result. `jit`: Machine code; `interpreter`: Instruction by
    #: instruction: the oracle.
    engine: str = "jit"
    #: The release of Linux whose sched_ext interface the simulated kernel offers: an object takes the branches that it takes there. `6.12`:
    #: the first with sched_ext; `6.13`: with `scx_bpf_dsq_insert` and `scx_bpf_dsq_move`; `6.14`: with `scx_bpf_now`; `6.15`: with idle
    #: CPUs by node, and event counters; `6.16`: with `scx_bpf_select_cpu_and`; `6.17`: with `cgroup_set_bandwidth`; `6.18`: with
    #: `scx_bpf_cpu_curr` and `scx_bpf_locked_rq`; `6.19`: with `scx_bpf_dsq_peek`, and functions that take structures; `7.0`: with no name
    #: that is known to be new; `7.1`: with schedulers of control groups; `7.2`: with CPU identifiers by topology (cid).
    kernel_abi: str = "7.2"
    #: What a load through a NULL pointer does: an error, or 0 as in the kernel's exception table. `error`: End the run with an error;
    #: `zero`: Read 0.
    null_loads: str = "error"
    #: Show what the scheduler's variables hold at the end of the run: all of them, or those that are named, or parts
    #: (`--show-globals=x,y[0..4].z`).
    show_globals: tuple[str, ...] = ()
    #: Require a value of one of the scheduler's variables at the end of the run, or of a part (`x[1].y=3`); also with `!=`, `<`, `<=`, `>`,
    #: `>=`. Otherwise the exit code is 1. May be given several times.
    expect: Pairs = ()
    #: Number of CPUs, of the simulated machine or of the virtual one; beside --topology the same number.
    cpus: int | None = None
    #: Sockets × cores × threads (`2x4x2`), on so many NUMA nodes (`8x1x1,nodes=1`), or a topology file (`./laptop.toml`).
    topology: str | None = None
    #: Ticks a second: 100, 250, 300 or 1000 [default: 250]. A real kernel has what it was built with.
    hz: int | None = None
    #: What ends a sleep: a timer of its own, or a tick, as on x86-64 up to Linux 2.6.23. `hrtimer`: A high-resolution timer: at its time;
    #: `jiffies`: The tick: at the second tick after its end.
    timers: str = "hrtimer"
    #: Seed of every random draw.
    seed: int = 1
    #: The cost preset [default: beside `vm:KERNEL` that of its kernel, else modern].
    costs: str | None = None
    #: What an instruction takes in a virtual machine whose clock counts them, ns: 1, 2, 4 or 8. At 1 the guest is as fast as a processor of
    #: today, and a run takes eight times as long. Costs that were measured in such a guest (`--costs linux-7.2-scx`) change in proportion
    #: [default: 8].
    instruction_ns: int | None = None
    #: Change one cost.
    cost: Pairs = ()
    #: Check the simulator's invariants after each event: a run that breaks one ends with an error.
    check: bool = False
    #: With `--check`: no CPU may be idle for this long while a task that may run there waits.
    idle_bound: str | None = None
    #: How long to run, in simulated time; the workload's own length by default.
    duration: str | None = None
    #: How long before a simulated run its tasks are created and sleep; they begin with a wake-up. Without it they begin as forks [default:
    #: 400ms beside a real kernel and under published schedulers, else none].
    lead_in: str | None = None
    #: How many events a simulated run may keep, 32 bytes of memory each: one more ends it with an error. A run that writes no trace and no
    #: page, and whose tasks leave no marks, keeps none [default: 100000000].
    max_events: int | None = None
    #: What the workload's spin locks are: themselves, or the sleeping locks with priority inheritance that PREEMPT_RT makes of them.
    #: `spin`: Spinning, as the workload says; `rt`: Sleeping, as `CONFIG_PREEMPT_RT` makes them; `rt-2006`: Sleeping, as the -rt kernels of
    #: 2006 made them: a task never spins for one that is taken, never overtakes a waiter, and an rwlock has one reader at a time.
    locks: str | None = None
