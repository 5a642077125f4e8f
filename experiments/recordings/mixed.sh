#!/bin/sh
# The load behind mixed-2cpu.perf-sched.txt.gz, for some seconds (default 4):
# two CPU hogs of nice 0 and 5, a pipeline whose middle has nice -5, two periodic threads,
# a shell that forks a sleeper every 40 ms, and short bursts of hackbench.
seconds=${1:-4}
timeout "$seconds" md5sum /dev/zero >/dev/null &
timeout "$seconds" nice -n 5 sha256sum /dev/zero >/dev/null &
timeout "$seconds" sh -c 'head -c 400M /dev/zero | nice -n -5 gzip -1 | wc -c' >/dev/null &
timeout "$seconds" cyclictest --policy=other --threads=2 --interval=2000 --distance=3000 \
    --quiet >/dev/null 2>&1 &
timeout "$seconds" sh -c 'while sleep 0.04; do :; done' &
timeout "$seconds" sh -c 'while sleep 0.5; do hackbench --groups 2 --fds 5 --loops 100; done' \
    >/dev/null 2>&1 &
wait
