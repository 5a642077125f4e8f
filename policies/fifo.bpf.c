/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * fifo: the smallest scheduler. Copy this file to start your own; README.md goes through it line by line.
 *
 * Rule: all CPUs share one queue. A task waits at its end, runs for at most slice_ns, and goes to the end again.
 * Example: hogs A, B, C on one CPU, slice 20 ms: A 0-20, B 20-40, C 40-60, A 60-80 ... each gets a third, waits 40
 * ms. Where it fails: it ignores nice values; a task that wakes up waits for all others (here up to 40 ms, more with
 * each hog); one queue for all CPUs moves tasks away from their caches, and all CPUs contend for its lock. It follows
 * no kernel.
 */
#include "exit.bpf.h"
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(u64, slice_ns, 20000000, UNIT("ns"), DOC("longest time that a task runs while others wait"));

#define QUEUE 0

/* A task wakes up: an idle CPU takes it at once, without the queue. */
s32 BPF_STRUCT_OPS(fifo_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

/* A task can run and no CPU is free, or its slice is over: to the end of the queue. */
void BPF_STRUCT_OPS(fifo_enqueue, struct task_struct *p, u64 enq_flags)
{
    scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
}

/* A CPU needs a task: the first in the queue that may run there. */
void BPF_STRUCT_OPS(fifo_dispatch, s32 cpu, struct task_struct *prev)
{
    scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(fifo_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

/*
 * A CPU comes or goes: the kernel moves the tasks of one that goes, and the queue is not a CPU's own. Without these two
 * the kernel would detach the scheduler.
 */
void BPF_STRUCT_OPS(fifo_cpu_online, s32 cpu)
{
}

void BPF_STRUCT_OPS(fifo_cpu_offline, s32 cpu)
{
}

EXIT_RECORD(fifo)

SCX_OPS_DEFINE(fifo_ops, .select_cpu = (void *)fifo_select_cpu, .enqueue = (void *)fifo_enqueue,
               .dispatch = (void *)fifo_dispatch, .init = (void *)fifo_init, .exit = (void *)fifo_exit,
               .cpu_online = (void *)fifo_cpu_online, .cpu_offline = (void *)fifo_cpu_offline, .name = "fifo");
