/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: the queue does not exist. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

void BPF_STRUCT_OPS(wrong_enqueue, struct task_struct *p, u64 enq_flags)
{
    scx_bpf_dsq_insert(p, 7, 1000000, enq_flags);
}

SCX_OPS_DEFINE(wrong_ops, .enqueue = (void *)wrong_enqueue, .name = "wrong_queue");
