/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: the first task that it sees goes into a queue from which nothing is taken. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

#define SERVED 1
#define STARVED 2

s32 victim;

void BPF_STRUCT_OPS(starves_enqueue, struct task_struct *p, u64 enq_flags)
{
    if (!victim)
        victim = p->pid;
    scx_bpf_dsq_insert(p, p->pid == victim ? STARVED : SERVED, 1000000, enq_flags);
}

void BPF_STRUCT_OPS(starves_dispatch, s32 cpu, struct task_struct *prev)
{
    scx_bpf_dsq_move_to_local(SERVED);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(starves_init)
{
    s32 error = scx_bpf_create_dsq(SERVED, -1);

    return error ? error : scx_bpf_create_dsq(STARVED, -1);
}

SCX_OPS_DEFINE(starves_ops, .enqueue = (void *)starves_enqueue, .dispatch = (void *)starves_dispatch,
               .init = (void *)starves_init, .name = "starves");
