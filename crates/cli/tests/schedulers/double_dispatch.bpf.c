/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: it dispatches a task twice. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(double_enqueue, struct task_struct *p, u64 enq_flags)
{
    for (int i = 0; i < 2; i++)
        scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, 1000000, enq_flags);
}

SCX_OPS_DEFINE(double_ops, .enqueue = (void *)double_enqueue, .name = "double_dispatch");
