#!/usr/bin/env python3
"""The speed of reading a recording: `fairground analyze` beside `perf sched latency` and `perf sched timehist`.

    benches/reading.py [--fairground BINARY] [--rounds N] [--events N] [perf.data]

Without a file one is recorded under hackbench (root, Linux with perf): at least a million events, with perf's own buffers. The
programs read the same file alternately, with their output to /dev/null; processor time (user and system) and peak memory are the
kernel's (wait4), medians of all rounds. Prints a table, and fairground's speed relative to the others.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

EVENTS = 1_000_000
# Events of all senders for each message of one.
EVENTS_PER_LOOP = 130
HACKBENCH = ["hackbench", "-g", "4", "-l"]


def measure(command):
    """Wall seconds, processor seconds and peak MiB of a command that must succeed."""
    begin = time.monotonic()
    with open(os.devnull, "wb") as nothing:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=nothing, stderr=nothing)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode != 0:
        sys.exit(f"{' '.join(command)} ended with {child.returncode}")
    seconds = time.monotonic() - begin
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def record(folder, wanted):
    """Records until there are enough events, and says where."""
    path, loops = os.path.join(folder, "perf.data"), wanted // EVENTS_PER_LOOP
    while True:
        load = ["--", *HACKBENCH, str(loops)]
        command = ["perf", "sched", "record", "-o", path, *load]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        events = count(path)
        if events >= wanted:
            return path
        loops = loops * 2 * wanted // max(events, 1)


def count(path):
    """The samples of a file, as perf counts them."""
    said = subprocess.run(["perf", "report", "--stats", "-i", path], check=True, capture_output=True, text=True)
    lines = (line.split() for line in said.stdout.splitlines())
    return next(int(words[2]) for words in lines if words[:2] == ["SAMPLE", "events:"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fairground", default="target/x86_64-unknown-linux-gnu/release/fairground")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("recording", nargs="?")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = args.recording or record(folder, args.events)
        text = os.path.join(folder, "recording.txt")
        subprocess.run([args.fairground, "convert", path, text], check=True)
        events = count(path)
        print(f"{path}: {events} events, {os.path.getsize(path) / 2**20:.0f} MiB; the used ones as text {os.path.getsize(text) / 2**20:.0f} MiB")
        programs = {
            "fairground analyze": [args.fairground, "analyze", path],
            "fairground analyze, text": [args.fairground, "analyze", text],
            "perf sched latency": ["perf", "sched", "latency", "-i", path],
            "perf sched timehist": ["perf", "sched", "timehist", "-i", path],
        }
        runs = {name: [] for name in programs}
        for _ in range(args.rounds):
            for name, command in programs.items():
                runs[name].append(measure(command))
    medians = {name: [statistics.median(column) for column in zip(*of)] for name, of in runs.items()}
    print(f"{'':26}{'wall s':>9}{'cpu s':>9}{'ns/event':>10}{'peak MiB':>10}")
    for name, (wall, cpu, peak) in medians.items():
        print(f"{name:26}{wall:9.3f}{cpu:9.3f}{cpu / events * 1e9:10.0f}{peak:10.0f}")
    ours = medians["fairground analyze"]
    for name, theirs in medians.items():
        if name.startswith("perf"):
            print(f"fairground is {theirs[1] / ours[1]:.1f} times as fast as {name} by processor time, {theirs[0] / ours[0]:.1f} by wall time")


if __name__ == "__main__":
    main()
