/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel types that the schedulers use.
 *
 * `preserve_access_index` makes each access a CO-RE relocation: the loader (libbpf for a kernel, fairground-bpf for
 * the simulated machine) inserts the offset of the running kernel. So a structure here names only the members in use,
 * in any order, and one object runs on every kernel from 6.12 on.
 */
#ifndef FAIRGROUND_TYPES_BPF_H
#define FAIRGROUND_TYPES_BPF_H

typedef unsigned char u8;
typedef signed char s8;
typedef unsigned short u16;
typedef short s16;
typedef unsigned int u32;
typedef int s32;
typedef unsigned long long u64;
typedef long long s64;
typedef _Bool bool;

/* The spellings that libbpf's own headers use. */
typedef u8 __u8;
typedef s8 __s8;
typedef u16 __u16;
typedef s16 __s16;
typedef u32 __u32;
typedef s32 __s32;
typedef u64 __u64;
typedef s64 __s64;
typedef u16 __be16;
typedef u32 __be32;
typedef u32 __wsum;

#define true  1
#define false 0
#define NULL  ((void *)0)

enum bpf_map_type {
    BPF_MAP_TYPE_HASH = 1,
    BPF_MAP_TYPE_ARRAY = 2,
    BPF_MAP_TYPE_PERCPU_ARRAY = 6,
    BPF_MAP_TYPE_LRU_HASH = 9,
    BPF_MAP_TYPE_QUEUE = 22,
    BPF_MAP_TYPE_STACK = 23,
    BPF_MAP_TYPE_RINGBUF = 27,
    BPF_MAP_TYPE_TASK_STORAGE = 29,
    BPF_MAP_TYPE_CGRP_STORAGE = 32,
};
enum { BPF_F_NO_PREALLOC = 1, BPF_LOCAL_STORAGE_GET_F_CREATE = 1 };

/* In a map's value, where the kernel finds it by its name. */
struct bpf_timer {
    u64 __opaque[2];
} __attribute__((aligned(8)));

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

typedef struct cpumask {
    unsigned long bits[1];
} cpumask_t;

struct sched_entity {
    u64 sum_exec_runtime; /* ns on a CPU since fork; updated before tick, stopping and dispatch */
    u64 exec_start;       /* the clock at the last update, ns: for a waiting task, when it ran last */
    u64 slice;            /* EEVDF: sched_runtime of sched_setattr, ns */
    u8 custom_slice;      /* sched_setattr has set it */
};

struct sched_ext_entity {
    u64 slice;     /* ns left; 0 asks for a new decision */
    u64 dsq_vtime; /* key of a queue ordered by vtime */
    u32 weight;    /* cgroup scale: 100 at nice 0 */
    u32 flags;
};

struct task_struct {
    s32 pid;
    s32 tgid;        /* pid of its first thread: the process */
    u32 flags;       /* PF_* */
    u32 __state;     /* TASK_*: kind of sleep; 0 when runnable */
    u32 on_cpu;      /* it is running; a byte in later kernels, to which a signed type could not be adapted */
    s32 static_prio; /* 120 + nice */
    u32 policy;      /* SCHED_NORMAL, SCHED_BATCH, SCHED_IDLE, ... */
    s32 nr_cpus_allowed;
    const cpumask_t *cpus_ptr;
    struct task_struct *real_parent;
    struct sched_entity se;
    struct sched_ext_entity scx;
    char comm[16];
};

struct kernfs_node {
    u64 id; /* of a cgroup: 1 for the root; the others are neither small nor consecutive */
};

struct cgroup {
    s32 level; /* 0: the root */
    struct kernfs_node *kn;
};

struct scx_init_task_args {
    bool fork;             /* a new task; otherwise one that existed before the scheduler */
    struct cgroup *cgroup; /* its first cgroup */
};

struct scx_cgroup_init_args {
    u32 weight; /* cpu.weight, 1 ... 10000, 100 by default */
};

struct scx_exit_task_args {
    bool cancelled;
};

enum scx_exit_kind { SCX_EXIT_NONE = 0 }; /* only size and name matter; the numbers: exit.bpf.h */

struct scx_exit_info {
    enum scx_exit_kind kind;
    s64 exit_code;
    const char *reason;
    char *msg;
};

/* Only a type's name and size matter here: kfuncs fill it. */
struct bpf_iter_scx_dsq {
    u64 __opaque[6];
};

struct bpf_iter_num {
    u64 __opaque[1];
};

struct scx_bpf_dsq_insert_vtime_args {
    u64 dsq_id;
    u64 slice;
    u64 vtime;
    u64 enq_flags;
};

/* The callback table. Members in use only: the loader places each by its name. */
struct sched_ext_ops {
    s32 (*select_cpu)(struct task_struct *p, s32 prev_cpu, u64 wake_flags);
    void (*enqueue)(struct task_struct *p, u64 enq_flags);
    void (*dequeue)(struct task_struct *p, u64 deq_flags);
    void (*dispatch)(s32 cpu, struct task_struct *prev);
    void (*tick)(struct task_struct *p);
    void (*runnable)(struct task_struct *p, u64 enq_flags);
    void (*running)(struct task_struct *p);
    void (*stopping)(struct task_struct *p, bool runnable);
    void (*quiescent)(struct task_struct *p, u64 deq_flags);
    bool (*yield)(struct task_struct *from, struct task_struct *to);
    void (*set_weight)(struct task_struct *p, u32 weight);
    s32 (*init_task)(struct task_struct *p, struct scx_init_task_args *args);
    void (*exit_task)(struct task_struct *p, struct scx_exit_task_args *args);
    void (*enable)(struct task_struct *p);
    s32 (*cgroup_init)(struct cgroup *cgrp, struct scx_cgroup_init_args *args);
    void (*cgroup_exit)(struct cgroup *cgrp);
    s32 (*cgroup_prep_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
    void (*cgroup_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
    void (*cgroup_cancel_move)(struct task_struct *p, struct cgroup *from, struct cgroup *to);
    void (*cgroup_set_weight)(struct cgroup *cgrp, u32 weight);
    void (*cpu_online)(s32 cpu);
    void (*cpu_offline)(s32 cpu);
    s32 (*init)(void);
    void (*exit)(struct scx_exit_info *info);
    u32 dispatch_max_batch;
    u64 flags;
    u32 timeout_ms;
    char name[128];
};

#pragma clang attribute pop

#endif
