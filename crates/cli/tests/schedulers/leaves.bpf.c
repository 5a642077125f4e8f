/* SPDX-License-Identifier: GPL-2.0-only */
/* Leaves in good order at its first tick. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

extern void scx_bpf_exit_bstr(s64 exit_code, char *fmt, unsigned long long *data, u32 data__sz) __ksym __weak;

void BPF_STRUCT_OPS(leaves_tick, struct task_struct *p)
{
    static char fmt[] = "the work is done";
    unsigned long long none[1] = {};

    scx_bpf_exit_bstr(7, fmt, none, 0);
}

SCX_OPS_DEFINE(leaves_ops, .tick = (void *)leaves_tick, .name = "leaves");
