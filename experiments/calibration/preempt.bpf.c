/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * preempt: fifo in which a task that wakes up runs at once, to measure what a preempting kick costs on a machine.
 *
 * Rule: as fifo, but a task that wakes up goes to the head of the queue, and its CPU is kicked with SCX_KICK_PREEMPT. A sched_ext
 * scheduler has no other way to preempt; the kick is an interrupt that the CPU sends to itself (irq_work).
 * Example: beside a loop, a task that sleeps 1 ms runs 54.9 us after its waking. The timer's interrupt, the wake-up and the program's
 * instructions are 43.3 us of that; the kick is the rest.
 * Fails: as a scheduler, on purpose: a task that wakes up often starves all others. docs/reports/costs-2026-11-26.md has
 * the measurements.
 */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(u64, slice_ns, 20000000, UNIT("ns"), DOC("longest time that a task runs while others wait"));

#define QUEUE 0

s32 BPF_STRUCT_OPS(preempt_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

void BPF_STRUCT_OPS(preempt_enqueue, struct task_struct *p, u64 enq_flags)
{
    if (!(enq_flags & SCX_ENQ_WAKEUP)) {
        scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
        return;
    }
    scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags | SCX_ENQ_HEAD);
    scx_bpf_kick_cpu(scx_bpf_task_cpu(p), SCX_KICK_PREEMPT);
}

void BPF_STRUCT_OPS(preempt_dispatch, s32 cpu, struct task_struct *prev)
{
    scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(preempt_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(preempt_ops, .select_cpu = (void *)preempt_select_cpu, .enqueue = (void *)preempt_enqueue,
               .dispatch = (void *)preempt_dispatch, .init = (void *)preempt_init, .name = "preempt");
