/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: a loop does not end. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

u64 turns;

void BPF_STRUCT_OPS(endless_enqueue, struct task_struct *p, u64 enq_flags)
{
    while (!READ_ONCE(turns) || READ_ONCE(turns) > 0)
        WRITE_ONCE(turns, 1);
    scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, enq_flags);
}

SCX_OPS_DEFINE(endless_ops, .enqueue = (void *)endless_enqueue, .name = "endless_loop");
