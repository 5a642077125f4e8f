/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * callbacks: fifo with callbacks that do nothing, to measure what calling a scheduler costs on a machine.
 *
 * Rule: as fifo, with callbacks runnable, running, stopping and quiescent that return at once. A hop of `pipe` in which both
 * tasks sleep calls each of them once; a quarter of the additional time, compared with fifo, is the cost of a callback. With
 * `by_key` the queue is ordered by keys, which are all equal.
 * Example: a hop takes 72.7 us under fifo and 76.8 us under callbacks: 1.0 us for each of the four.
 * Fails: as fifo does. docs/reports/costs-2026-11-26.md has the measurements.
 */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(u64, slice_ns, 20000000, UNIT("ns"), DOC("longest time that a task runs while others wait"));
TUNABLE(bool, by_key, 0, DOC("a queue in the order of keys, in place of one in order of arrival"));

#define QUEUE 0

s32 BPF_STRUCT_OPS(callbacks_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

void BPF_STRUCT_OPS(callbacks_enqueue, struct task_struct *p, u64 enq_flags)
{
    if (by_key)
        scx_bpf_dsq_insert_vtime(p, QUEUE, slice_ns, 0, enq_flags);
    else
        scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
}

void BPF_STRUCT_OPS(callbacks_dispatch, s32 cpu, struct task_struct *prev)
{
    scx_bpf_dsq_move_to_local(QUEUE);
}

void BPF_STRUCT_OPS(callbacks_runnable, struct task_struct *p, u64 enq_flags)
{
}

void BPF_STRUCT_OPS(callbacks_running, struct task_struct *p)
{
}

void BPF_STRUCT_OPS(callbacks_stopping, struct task_struct *p, bool runnable)
{
}

void BPF_STRUCT_OPS(callbacks_quiescent, struct task_struct *p, u64 deq_flags)
{
}

s32 BPF_STRUCT_OPS_SLEEPABLE(callbacks_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(callbacks_ops, .select_cpu = (void *)callbacks_select_cpu, .enqueue = (void *)callbacks_enqueue,
               .runnable = (void *)callbacks_runnable, .running = (void *)callbacks_running,
               .stopping = (void *)callbacks_stopping, .quiescent = (void *)callbacks_quiescent,
               .dispatch = (void *)callbacks_dispatch, .init = (void *)callbacks_init, .name = "callbacks");
