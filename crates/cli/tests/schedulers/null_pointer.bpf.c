/* SPDX-License-Identifier: GPL-2.0-only */
/* Broken on purpose: it does not check what a lookup returns. */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __type(key, u32);
    __type(value, u64);
} slices SEC(".maps");

void BPF_STRUCT_OPS(null_enqueue, struct task_struct *p, u64 enq_flags)
{
    u32 key = 0;
    u64 *slice_ns = bpf_map_lookup_elem(&slices, &key);

    scx_bpf_dsq_insert(p, SCX_DSQ_GLOBAL, *slice_ns, enq_flags);
}

SCX_OPS_DEFINE(null_ops, .enqueue = (void *)null_enqueue, .name = "null_pointer");
