/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: the first task that it sees is put nowhere. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

s32 victim;

void BPF_STRUCT_OPS(forgets_enqueue, struct task_struct *p, u64 enq_flags)
{
    if (!victim)
        victim = p->pid;
    if (p->pid != victim)
        scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, enq_flags);
}

SCX_OPS_DEFINE(forgets_ops, .enqueue = (void *)forgets_enqueue, .name = "forgets");
