/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a scheduler's time in charge ended, written down where its loader can read it.
 *
 * The kernel calls exit() when a scheduler has left, whatever the reason: its user took it off, a CPU went away, it did something
 * wrong, a task waited for too long. `EXIT_RECORD(mine)` makes the callback `mine_exit`, to be named in the callback table, and
 * the variable `exit_record`. A loader finds the variable by its members' names; `kind` is written last, and not 0 from then on.
 */
#ifndef FAIRGROUND_EXIT_BPF_H
#define FAIRGROUND_EXIT_BPF_H

#include "scx.bpf.h"

enum { EXIT_REASON_MAX = 64, EXIT_MSG_MAX = 256 };

struct exit_record {
    u32 kind;                     /* enum scx_exit_kind: 64 its user, 66 the kernel, 1024 an error, 1026 a stall */
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
