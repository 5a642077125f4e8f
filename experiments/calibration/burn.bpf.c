/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * burn: fifo with ballast, to measure what one instruction of a scheduler's program costs on a machine.
 *
 * Rule: as fifo, but each decision of what runs next first executes `burn` rounds of five instructions without effect.
 * The difference between the times of a switch at two values of `burn`, divided by the difference in instructions, is the
 * cost of an instruction; everything that both runs have in common cancels out.
 * Example: a hop of `pipe` takes 73.7 us at burn=0 and 130.9 us at burn=1000: 57.2 us for 5,000 instructions, 11.4 ns each.
 * Fails: as a scheduler, on purpose. docs/reports/costs-2026-11-26.md has the measurements.
 */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(u64, slice_ns, 20000000, UNIT("ns"), DOC("longest time that a task runs while others wait"));
TUNABLE(u32, burn, 0, DOC("rounds of ballast before each decision, at most 4096"));

#define QUEUE 0
#define BURN_MAX 4096

s32 BPF_STRUCT_OPS(burn_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

void BPF_STRUCT_OPS(burn_enqueue, struct task_struct *p, u64 enq_flags)
{
    scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
}

void BPF_STRUCT_OPS(burn_dispatch, s32 cpu, struct task_struct *prev)
{
    u32 rounds = burn;

    for (u32 i = 0; i < BURN_MAX && i < rounds; i++)
        asm volatile("" ::: "memory"); /* the compiler must not take the loop away */
    scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(burn_init)
{
    return scx_bpf_create_dsq(QUEUE, -1);
}

SCX_OPS_DEFINE(burn_ops, .select_cpu = (void *)burn_select_cpu, .enqueue = (void *)burn_enqueue,
               .dispatch = (void *)burn_dispatch, .init = (void *)burn_init, .name = "burn");
