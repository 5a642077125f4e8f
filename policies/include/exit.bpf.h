/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The record of a scheduler's exit, for its loader to read.
 *
 * The kernel calls exit() when a scheduler has been unloaded, whatever the reason: its user detached it, a CPU went
 * offline, it made an error, a task stalled. `EXIT_RECORD(mine)` defines the callback `mine_exit`, to be named in the
 * callback table, and the variable `exit_record`. A loader finds the variable by its members' names; `kind` is
 * written last, and not 0 from then on.
 *
 * Example: the watchdog finds a task that has waited for 30 s: kind 1026, reason "runnable task stall", msg the
 * task's name.
 */
#ifndef FAIRGROUND_EXIT_BPF_H
#define FAIRGROUND_EXIT_BPF_H

#include "scx.bpf.h"

enum { EXIT_REASON_MAX = 64, EXIT_MSG_MAX = 256 };

struct exit_record {
    u32 kind;                     /* enum scx_exit_kind: 64 the user, 66 the kernel, 1024 an error, 1026 a stall */
    s64 exit_code;                /* bit 48: the kernel asks for the scheduler to be attached again */
    char reason[EXIT_REASON_MAX]; /* the kind in words */
    char msg[EXIT_MSG_MAX];       /* what happened */
};

#define EXIT_RECORD(name)                                                                                            \
    struct exit_record exit_record;                                                                                  \
                                                                                                                     \
    void BPF_STRUCT_OPS(name##_exit, struct scx_exit_info *info)                                                     \
    {                                                                                                                \
        bpf_probe_read_kernel_str(exit_record.reason, sizeof(exit_record.reason), info->reason);                     \
        bpf_probe_read_kernel_str(exit_record.msg, sizeof(exit_record.msg), info->msg);                              \
        exit_record.exit_code = info->exit_code;                                                                     \
        WRITE_ONCE(exit_record.kind, (u32)info->kind);                                                               \
    }

#endif
