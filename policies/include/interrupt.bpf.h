/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a callback runs in an interrupt: then a wake-up is issued by a timer or a device, not by the running task.
 *
 * x86 keeps the nesting count in a per-CPU variable that programs may read: in pcpu_hot until 6.14, separately since.
 * Elsewhere it cannot be read, and the caller's guess is used.
 */
#ifndef FAIRGROUND_INTERRUPT_BPF_H
#define FAIRGROUND_INTERRUPT_BPF_H

#include "scx.bpf.h"

/* Bits of preempt_count: softirq and disabled softirqs, hardware interrupts, NMI (include/linux/preempt.h). */
#define INTERRUPT_MASK 0x00ffff00

struct pcpu_hot {
    s32 preempt_count;
} __attribute__((preserve_access_index));

extern const struct pcpu_hot pcpu_hot __ksym __weak;
extern const s32 __preempt_count __ksym __weak;

static __always_inline bool in_interrupt(bool guess)
{
    s32 count = 0;

    if (bpf_ksym_exists(&__preempt_count))
        count = *(const s32 *)bpf_this_cpu_ptr(&__preempt_count);
    else if (bpf_ksym_exists(&pcpu_hot))
        count = ((const struct pcpu_hot *)bpf_this_cpu_ptr(&pcpu_hot))->preempt_count;
    else
        return guess;
    return count & INTERRUPT_MASK;
}

#endif
