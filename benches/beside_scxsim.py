#!/usr/bin/env python3
"""The speed of simulation: `fairground run` beside scxsim, the simulator of sched_ext schedulers in the branch simulator.v3 of
sched-ext/scx (`cargo build --release` in rust/scx_simulator).

    benches/beside_scxsim.py --peer target/release/scxsim [--peer-commit ID] [--fairground BINARY] [--before BINARY]
                             [--object scx_simple.bpf.o] [--pairs N] [--files FOLDER] [--markdown | --page FILE.md]

Both programs read the same rt-app files and run the same scheduler, the kernel's example scx_simple: fairground the compiled BPF object,
scxsim its own copy of the source, compiled for the host. They run in pairs, each as a whole process, and alternate in which is first.
CPU time (user and system) is the kernel's (wait4); the figures are medians of all pairs. `--before` is an older fairground, measured with
each pair.

The programs should simulate the same work. An untimed run of each, over a part of the time and with its trace, counts the on-CPU
intervals (how often a task was put on a CPU). A difference above one percent is stated, and the ratio is also given per interval.
Two settings:

  no costs        Kernel work takes no simulated time, in either. Both simulate the same intervals, so this is the comparison.
                  fairground: --costs zero. scxsim: --no-overhead --no-noise (no cost of a switch, no jitter of the tick). It orders
                  events of one time at random, fairground by insertion. Its --fixed-priority would be the same, but doubles its CPU
                  time with 256 CPUs and saves a few percent elsewhere.
  default costs   Each with its own model of costs. fairground charges switches, wake-ups, interrupts, ticks, the scheduler's
                  instructions and timer slack, so its tasks run less often; scxsim charges a switch, with a normal distribution.

fairground's own CFS and EEVDF run with no costs only: with costs a wake-up may preempt a task between its `resume` and its `suspend`. The
other task's `resume` then comes too early and is lost, as in rt-app, and the pair stops.

scxsim always runs with --no-rbc: without it, it reads a performance counter around each callback where the machine has one. Neither is
asked for a trace: fairground analyses the events as they come, scxsim keeps them in memory.

What remains unequal:
  - fairground computes and prints its tables of results; scxsim prints nothing.
  - Both tick at 250 Hz. An idle CPU has no tick in fairground; scxsim processes the ticks of idle CPUs, too.
  - rt-app's `suspend` and `resume` are a mutex and a condition in fairground, as in rt-app; in scxsim a sleep and a wake-up.
  - fairground executes BPF instructions by its JIT compiler, whose time counts, and checks memory accesses; scxsim's build compiles the
    scheduler's C before the run, without optimisation (with -O2 its times were the same within 2 %).
"""

import argparse
import dataclasses
import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile

CACHE = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
# Where `make third-party` leaves it.
OBJECT = os.path.join(CACHE, "fairground/third-party/scx_simple.bpf.o")
# Without variables that change what a program does: its log, its defaults.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "RUST_LOG" and not name.startswith(("SCX_SIM_", "FAIRGROUND_"))}

# Costs of the simulated machine: options of fairground, options of scxsim.
COSTS = {
    "no costs": (["--costs", "zero"], ["--no-overhead", "--no-noise"]),
    "default costs": ([], []),
}
# The untimed run that counts intervals covers this part of the simulated time.
CHECKED_PART = 20
# The largest difference of intervals that counts as the same work.
EQUAL = 0.01

# The report lies between these lines of a page.
BEGIN = "<!-- measured: written by `make bench-beside` -->"
END = "<!-- end of measured -->"


@dataclasses.dataclass
class Load:
    """An rt-app file, and how it is run. `ms` is the simulated time: about a second of CPU time."""

    name: str
    cpus: int
    ms: int
    tasks: dict

    def write(self, folder):
        """Writes the file and returns its path."""
        path = os.path.join(folder, f"{self.name}.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"global": {"duration": max(self.ms // 1000, 1)}, "tasks": self.tasks}, file, indent=1)
        return path


def sleepers(count):
    """Tasks of 16 kinds that run 100 to 295 µs and sleep 1 to 3 ms, so that they do not stay in step."""
    kinds = 16
    return {f"sleeper{i:02}": {"instance": count // kinds, "loop": -1, "run": 100 + 13 * i, "sleep": 1000 + 131 * i} for i in range(kinds)}


def pairs(count):
    """Pairs of tasks that wake each other after 20 to 26 µs. The tasks that wait first come first: a `resume` without a waiter is lost."""
    pongs = {f"pong{i}": {"instance": 1, "loop": -1, "suspend": f"pong{i}", "run": 20 + i % 7, "resume": f"ping{i}"} for i in range(count)}
    pings = {f"ping{i}": {"instance": 1, "loop": -1, "run": 20 + i % 5, "resume": f"pong{i}", "suspend": f"ping{i}"} for i in range(count)}
    return {**pongs, **pings}


def hogs(count):
    """Tasks that only run. One `run` outlasts the simulated time: scxsim yields at the end of each."""
    return {"hog": {"instance": count, "loop": -1, "run": 1_000_000_000}}


LOADS = [
    Load("sleep-wake-8", 8, 60_000, sleepers(32)),
    Load("sleep-wake-64", 64, 10_000, sleepers(192)),
    Load("sleep-wake-256", 256, 2_000, sleepers(768)),
    Load("sleep-wake-4096-on-64", 64, 2_000, sleepers(4096)),
    Load("ping-pong-8", 8, 3_000, pairs(8)),
    Load("ping-pong-64", 64, 400, pairs(64)),
    Load("hogs-16-on-8", 8, 900_000, hogs(16)),
    Load("hogs-512-on-256", 256, 60_000, hogs(512)),
]


def ours(binary, load, path, ms, sched, costs):
    """The command line of fairground."""
    command = [binary, "run", path, "--cpus", str(load.cpus), "--sched", sched, "--duration", f"{ms}ms", "--quiet"]
    return command + COSTS[costs][0]


def theirs(binary, load, path, ms, costs):
    """The command line of scxsim."""
    command = [binary, path, "--cpus", str(load.cpus), "--scheduler", "simple", "--end-time", f"{ms}ms", "--no-rbc"]
    return command + COSTS[costs][1]


def cpu_time(command):
    """Seconds of CPU time, user and system, of a command that must succeed."""
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=nothing, stderr=nothing, env=ENVIRONMENT)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return usage.ru_utime + usage.ru_stime


def our_intervals(command, folder):
    """On-CPU intervals of a run of fairground: its switches to a task."""
    trace = os.path.join(folder, "trace.ftrace")
    subprocess.run([*command, "--trace", trace], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT)
    with open(trace, "rb") as lines:
        return sum(b": sched_switch: " in line and b" next_pid=0 " not in line for line in lines)


def their_intervals(command):
    """On-CPU intervals of a run of scxsim: its SCHED events."""
    with subprocess.Popen([*command, "--dump-trace"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=ENVIRONMENT) as child:
        intervals = sum(b" SCHED " in line for line in child.stderr)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    return intervals


@dataclasses.dataclass
class Row:
    """One comparison: CPU seconds of every pair, intervals per simulated second."""

    load: Load
    sched: str
    ours: list
    theirs: list
    before: list
    our_rate: float
    their_rate: float

    def name(self):
        """The scheduler, an object without its folder."""
        return os.path.basename(self.sched).removesuffix(".bpf.o")

    def ratio(self):
        """scxsim's CPU time divided by fairground's."""
        return statistics.median(self.theirs) / statistics.median(self.ours)

    def per_interval(self):
        """The same for each on-CPU interval."""
        return self.ratio() * self.our_rate / self.their_rate

    def unequal(self):
        """Whether the programs simulated different work."""
        return abs(self.their_rate / self.our_rate - 1) > EQUAL

    def cells(self):
        """The cells of the table. A ratio has the lowest and the highest of the pairs behind it."""
        of_pairs = [theirs / ours for theirs, ours in zip(self.theirs, self.ours)]
        cells = [self.load.name, self.name(), str(self.load.cpus), f"{self.load.ms / 1000:g} s"]
        cells += [f"{self.our_rate / 1000:.1f}", f"{self.their_rate / 1000:.1f}" + (" *" if self.unequal() else "")]
        cells += [f"{statistics.median(self.ours):.2f}", f"{statistics.median(self.theirs):.2f}"]
        cells += [f"{self.ratio():.2f} ({min(of_pairs):.2f}–{max(of_pairs):.2f})", f"{self.per_interval():.2f}"]
        if self.before:
            cells.append(f"{statistics.median(self.before) / statistics.median(self.ours):.2f}")
        return cells


def compare(args, folder, load, sched, costs):
    """Counts the intervals of both programs, and measures them in pairs."""
    path = load.write(folder)
    part = max(load.ms // CHECKED_PART, 10)
    our_rate = our_intervals(ours(args.fairground, load, path, part, sched, costs), folder) * 1000 / part
    their_rate = their_intervals(theirs(args.peer, load, path, part, costs)) * 1000 / part
    row = Row(load, sched, [], [], [], our_rate, their_rate)
    runs = [(row.ours, ours(args.fairground, load, path, load.ms, sched, costs)), (row.theirs, theirs(args.peer, load, path, load.ms, costs))]
    if args.before:
        runs.append((row.before, ours(args.before, load, path, load.ms, sched, costs)))
    for pair in range(args.pairs):
        for seconds, command in runs if pair % 2 == 0 else reversed(runs):
            seconds.append(cpu_time(command))
    print(f"{load.name}, {row.name()}, {costs}: {row.ratio():.2f}", file=sys.stderr)
    return row


def starts(args, folder):
    """A sentence on the CPU time of a run of 1 ms: the start, most of it the loading of the scheduler."""
    load = LOADS[0]
    path = load.write(folder)
    objects = {"scx_simple": args.object, "cfs": "cfs", "eevdf": "eevdf"}
    commands = {f"fairground with {name}": ours(args.fairground, load, path, 1, sched, "no costs") for name, sched in objects.items()}
    commands["scxsim"] = theirs(args.peer, load, path, 1, "no costs")
    medians = {name: statistics.median(cpu_time(command) for _ in range(args.pairs)) * 1000 for name, command in commands.items()}
    times = ", ".join(f"{name} {ms:.0f} ms" for name, ms in medians.items())
    return f"Every time includes the start of the program (CPU time of a run of 1 ms): {times}."


def table(rows, before, markdown):
    """The rows as lines, in Markdown or aligned."""
    head = ["workload", "fairground's scheduler", "CPUs", "simulated"]
    head += ["fairground: 1000 intervals/s", "scxsim: 1000 intervals/s", "fairground: CPU s", "scxsim: CPU s"]
    head += ["ratio (of the pairs)", "per interval"] + (["ratio of `--before`"] if before else [])
    cells = [head, *(row.cells() for row in rows)]
    if markdown:
        lines = ["| " + " | ".join(line) + " |" for line in cells]
        return [lines[0], "|" + "---|" * len(head), *lines[1:]]
    widths = [max(map(len, column)) for column in zip(*cells)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in cells]


def commit(binary):
    """The commit of the git tree that a binary lies in."""
    folder = os.path.dirname(os.path.realpath(binary))
    said = subprocess.run(["git", "-C", folder, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True)
    return said.stdout.strip() if said.returncode == 0 else "unknown"


def machine(args):
    """What was compared, and where."""
    with open("/proc/cpuinfo", encoding="utf-8") as lines:
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "unknown CPU")
    version = subprocess.run([args.fairground, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    load = f"load {args.load[0]:.1f} at the beginning, {os.getloadavg()[0]:.1f} at the end"
    lines = [f"{datetime.date.today()}. {model}, {os.cpu_count()} CPUs, Linux {os.uname().release}; {load}."]
    lines.append(f"{version}, commit {commit(args.fairground)}; scxsim, commit {args.peer_commit or commit(args.peer)}; {args.pairs} pairs.")
    return lines


def report(args, sections, start):
    """One table a section, as text."""
    lines = [*machine(args), "A ratio is scxsim's CPU time divided by fairground's: above 1, fairground is faster.", start]
    for name, rows in sections.items():
        lines += [f"## {name}" if args.markdown else name, "\n".join(table(rows, args.before, args.markdown))]
        differences = [f"{row.load.name}, {row.name()}: {(row.their_rate / row.our_rate - 1) * 100:+.1f} %" for row in rows if row.unequal()]
        if differences:
            star = "\\*" if args.markdown else "*"
            lines.append(f"{star} The work is unequal. On-CPU intervals of scxsim, beside fairground's: {'; '.join(differences)}.")
    return "\n\n".join(lines)


def replace_in_page(path, text):
    """Puts the report between the two marks of a page."""
    with open(path, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    after = rest.split(END)[1]
    with open(path, "w", encoding="utf-8") as file:
        file.write(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


def keep(args):
    """Leaves the files and the command lines in a folder, for a profile."""
    os.makedirs(args.files, exist_ok=True)
    with open(os.path.join(args.files, "commands.txt"), "w", encoding="utf-8") as commands:
        for load in LOADS:
            path = load.write(args.files)
            for costs in COSTS:
                print(*ours(args.fairground, load, path, load.ms, args.object, costs), file=commands)
                print(*theirs(args.peer, load, path, load.ms, costs), file=commands)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peer", required=True, help="scxsim, built")
    parser.add_argument("--peer-commit", help="the commit of its source, where that is not a git tree")
    parser.add_argument("--fairground", default="target/x86_64-unknown-linux-gnu/release/fairground")
    parser.add_argument("--before", help="an older fairground, measured too")
    parser.add_argument("--object", default=OBJECT, help="scx_simple.bpf.o; `make third-party` builds it")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--files", help="only write the rt-app files and the command lines into this folder")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--page", help="write the tables into this Markdown file, between its two marks")
    args = parser.parse_args()
    args.markdown |= args.page is not None
    # A loaded machine disturbs caches, and so CPU time.
    args.load = os.getloadavg()
    if args.files:
        return keep(args)
    sections = {}
    small = [load for load in LOADS if load.cpus <= 64 and load.name.startswith(("sleep-wake", "ping-pong")) and "-on-" not in load.name]
    with tempfile.TemporaryDirectory() as folder:
        for costs in COSTS:
            sections[f"scx_simple in both, {costs}"] = [compare(args, folder, load, args.object, costs) for load in LOADS]
        built_in = [compare(args, folder, load, sched, "no costs") for sched in ("cfs", "eevdf") for load in small]
        start = starts(args, folder)
        sections["fairground's CFS and EEVDF beside scx_simple in scxsim, no costs"] = built_in
    text = report(args, sections, start)
    if args.page:
        replace_in_page(args.page, text)
    else:
        print(text)


if __name__ == "__main__":
    main()
