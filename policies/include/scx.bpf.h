/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The base header of a sched_ext scheduler: kernel types, constants, kfuncs, and the macros that declare callbacks
 * and tunables.
 *
 * The kernel's functions ("kfuncs") have changed their names between releases. Each is declared weak under every
 * name, and a small function picks the one that exists. The loader knows which ones exist, so the choice costs
 * nothing at run time. A `___suffix` is not part of the name: loaders cut it off.
 */
#ifndef FAIRGROUND_SCX_BPF_H
#define FAIRGROUND_SCX_BPF_H

#include "types.bpf.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>

/* Values that have not changed since 6.12 (include/linux/sched/ext.h, kernel/sched/ext.c). */
#define SCX_SLICE_INF       (~0ULL)
#define SCX_DSQ_GLOBAL      ((1ULL << 63) | 1)
#define SCX_DSQ_LOCAL       ((1ULL << 63) | 2)
#define SCX_DSQ_LOCAL_ON    ((1ULL << 63) | (1ULL << 62))
#define SCX_ENQ_WAKEUP      1ULL
#define SCX_ENQ_HEAD        (1ULL << 4)
#define SCX_ENQ_PREEMPT     (1ULL << 32)
#define SCX_ENQ_REENQ       (1ULL << 40)
#define SCX_DEQ_SLEEP       1ULL
#define SCX_TASK_QUEUED     1U
#define SCX_WAKE_FORK       4ULL
#define SCX_WAKE_SYNC       16ULL
#define SCX_KICK_IDLE       1ULL
#define SCX_KICK_PREEMPT    2ULL
#define SCX_DSQ_ITER_REV    (1ULL << 16)
#define SCX_OPS_ENQ_LAST    (1ULL << 1)
#define SCX_OPS_ENQ_EXITING (1ULL << 2)

#define PF_EXITING           0x4
#define PF_KTHREAD           0x200000
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_DEAD            0x80
#define TASK_NOLOAD          0x400
enum { SCHED_NORMAL = 0, SCHED_BATCH = 3, SCHED_IDLE = 5 };
enum { ENOMEM = 12 };

/* Callbacks: `s32 BPF_STRUCT_OPS(mine_select_cpu, struct task_struct *p, ...)`. SLEEPABLE ones may create queues. */
#define BPF_STRUCT_OPS(name, args...)           SEC("struct_ops/" #name) BPF_PROG(name, ##args)
#define BPF_STRUCT_OPS_SLEEPABLE(name, args...) SEC("struct_ops.s/" #name) BPF_PROG(name, ##args)

/* The callback table: `SCX_OPS_DEFINE(mine_ops, .enqueue = (void *)mine_enqueue, ..., .name = "mine");` */
#define SCX_OPS_DEFINE(variable, ...) SEC(".struct_ops.link") struct sched_ext_ops variable = {__VA_ARGS__}

/*
 * A global that tools list, explain and set, before and during a run: TUNABLE(u64, slice_ns, 4000000, UNIT("ns"),
 * DOC("length of a slice"), SET("short", "1000000")). It is a plain variable, so a change counts from the next
 * decision on. UNIT: ns, bool, log2, count, enum. SET: the value in a named parameter set; a variable without one
 * keeps its default there. ALIAS: an earlier name by which it can be set too.
 *
 * TOPOLOGY marks an array that the loader of the object fills before init() runs, one element for each CPU, numbers
 * counted from 0 over the whole machine: `u32 topology_core[MAX_CPUS] TOPOLOGY("core");` and so "llc", "node",
 * "socket". CPUs with equal numbers share the core (SMT threads), the last-level cache, the NUMA node, the socket. No
 * kfunc returns that. All elements are 0 when the loader did not fill it.
 */
#define TAG(text)       __attribute__((btf_decl_tag(text)))
#define UNIT(unit)      TAG("unit:" unit)
#define DOC(text)       TAG("doc:" text)
#define SET(set, value) TAG("set:" set "=" value)
#define ALIAS(name)     TAG("alias:" name)
#define TOPOLOGY(level) TAG("topology:" level)
/* The simulated machine sets the variable, a u64, to the cost of that name before init() runs; a setting goes first. */
#define COST(name)                                     TAG("cost:" name)
#define TUNABLE_1(a)                                   a
#define TUNABLE_2(a, ...)                              a TUNABLE_1(__VA_ARGS__)
#define TUNABLE_3(a, ...)                              a TUNABLE_2(__VA_ARGS__)
#define TUNABLE_4(a, ...)                              a TUNABLE_3(__VA_ARGS__)
#define TUNABLE_5(a, ...)                              a TUNABLE_4(__VA_ARGS__)
#define TUNABLE_6(a, ...)                              a TUNABLE_5(__VA_ARGS__)
#define TUNABLE_OF(_1, _2, _3, _4, _5, _6, macro, ...) macro
#define TAGS(...)                                                                                                    \
    TUNABLE_OF(__VA_ARGS__, TUNABLE_6, TUNABLE_5, TUNABLE_4, TUNABLE_3, TUNABLE_2, TUNABLE_1)(__VA_ARGS__)
#define TUNABLE(type, name, value, ...) type name TAGS(__VA_ARGS__) = value

/* Whether the running kernel has a weak kfunc. libbpf has this since 1.2. */
#ifndef bpf_ksym_exists
#define bpf_ksym_exists(symbol) (!!(symbol))
#endif

#define READ_ONCE(x)         (*(volatile typeof(x) *)&(x))
#define WRITE_ONCE(x, value) (*(volatile typeof(x) *)&(x) = (value))
#define likely(x)            __builtin_expect(!!(x), 1)
#define unlikely(x)          __builtin_expect(!!(x), 0)

/*
 * A function that the verifier checks once, separately, for any arguments: numbers, and pointers that may be NULL. A
 * static function is checked again at each call and on each path to it, which multiplies: the limit of 1000000
 * instructions is soon reached.
 */
#define SEPARATE __attribute__((noinline))

/* The same name on every kernel from 6.12 on. */
s32 scx_bpf_create_dsq(u64 dsq_id, s32 node) __ksym;
s32 scx_bpf_select_cpu_dfl(struct task_struct *p, s32 prev_cpu, u64 wake_flags, bool *is_idle) __ksym;
s32 scx_bpf_pick_idle_cpu(const cpumask_t *cpus_allowed, u64 flags) __ksym;
bool scx_bpf_test_and_clear_cpu_idle(s32 cpu) __ksym;
const cpumask_t *scx_bpf_get_online_cpumask(void) __ksym;
void scx_bpf_put_cpumask(const cpumask_t *cpumask) __ksym;
void scx_bpf_kick_cpu(s32 cpu, u64 flags) __ksym;
s32 scx_bpf_dsq_nr_queued(u64 dsq_id) __ksym;
s32 scx_bpf_task_cpu(const struct task_struct *p) __ksym;
u32 scx_bpf_nr_cpu_ids(void) __ksym;
bool bpf_cpumask_test_cpu(u32 cpu, const struct cpumask *cpumask) __ksym;
int bpf_iter_num_new(struct bpf_iter_num *it, int start, int end) __ksym;
int *bpf_iter_num_next(struct bpf_iter_num *it) __ksym;
void bpf_iter_num_destroy(struct bpf_iter_num *it) __ksym;
int bpf_iter_scx_dsq_new(struct bpf_iter_scx_dsq *it, u64 dsq_id, u64 flags) __ksym;
struct task_struct *bpf_iter_scx_dsq_next(struct bpf_iter_scx_dsq *it) __ksym;
void bpf_iter_scx_dsq_destroy(struct bpf_iter_scx_dsq *it) __ksym;

/*
 * for_range(i, n) { ... }: i = 0 ... n - 1. The verifier checks the body once, not n times, so what differs between
 * iterations must be in memory or unknown to it. Index with a mask. Leave by break or by return.
 */
#define for_range(i, n)                                                                                              \
    for (struct bpf_iter_num range_of_##i __attribute__((aligned(8), cleanup(bpf_iter_num_destroy))),                \
         *begun_##i = (bpf_iter_num_new(&range_of_##i, 0, (n)), (struct bpf_iter_num *)NULL);                        \
         !begun_##i && range_next(&range_of_##i, &(i));)

/*
 * An index limited to `size`, a power of two, right where it is used. Compilers move a plain `index & (size - 1)` out
 * of loops, and omit it where they know the range; the verifier forgets in each iteration what it knew before.
 */
#define BOUNDED(index, size)                                                                                         \
    ({                                                                                                               \
        u64 bounded_ = (index);                                                                                      \
                                                                                                                     \
        asm volatile("" : "+r"(bounded_));                                                                           \
        bounded_ &((size) - 1);                                                                                      \
    })

/* One function, several names or prototypes. */
bool scx_bpf_dsq_insert___v2___packed(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_insert___since613(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch___in612(struct task_struct *p, u64 dsq_id, u64 slice, u64 enq_flags) __ksym __weak;
bool __scx_bpf_dsq_insert_vtime(struct task_struct *p, struct scx_bpf_dsq_insert_vtime_args *args) __ksym __weak;
void scx_bpf_dsq_insert_vtime___since613(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
                                         u64 enq_flags) __ksym __weak;
void scx_bpf_dispatch_vtime___in612(struct task_struct *p, u64 dsq_id, u64 slice, u64 vtime,
                                    u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___v2___flags(u64 dsq_id, u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_to_local___since613(u64 dsq_id) __ksym __weak;
bool scx_bpf_consume___in612(u64 dsq_id) __ksym __weak;
bool scx_bpf_dsq_move___since613(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
                                 u64 enq_flags) __ksym __weak;
bool scx_bpf_dispatch_from_dsq___in612(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
                                       u64 enq_flags) __ksym __weak;
bool scx_bpf_dsq_move_vtime___since613(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
                                       u64 enq_flags) __ksym __weak;
bool scx_bpf_dispatch_vtime_from_dsq___in612(struct bpf_iter_scx_dsq *it__iter, struct task_struct *p, u64 dsq_id,
                                             u64 enq_flags) __ksym __weak;
void scx_bpf_dsq_move_set_vtime___since613(struct bpf_iter_scx_dsq *it__iter, u64 vtime) __ksym __weak;
void scx_bpf_dispatch_from_dsq_set_vtime___in612(struct bpf_iter_scx_dsq *it__iter, u64 vtime) __ksym __weak;
bool scx_bpf_task_set_slice___since619(struct task_struct *p, u64 slice) __ksym __weak;
bool scx_bpf_task_set_dsq_vtime___since619(struct task_struct *p, u64 vtime) __ksym __weak;
u64 scx_bpf_now___since614(void) __ksym __weak;

static __always_inline bool range_next(struct bpf_iter_num *it, u32 *i)
{
    int *next = bpf_iter_num_next(it);

    if (!next)
        return false;
    *i = (u32)*next;
    return true;
}

/* Appends a task to a queue in order of arrival (or puts it at the head: SCX_ENQ_HEAD). */
static __always_inline void scx_bpf_dsq_insert(struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 enq_flags)
{
    if (bpf_ksym_exists(scx_bpf_dsq_insert___v2___packed))
        scx_bpf_dsq_insert___v2___packed(p, dsq_id, slice_ns, enq_flags);
    else if (bpf_ksym_exists(scx_bpf_dsq_insert___since613))
        scx_bpf_dsq_insert___since613(p, dsq_id, slice_ns, enq_flags);
    else
        scx_bpf_dispatch___in612(p, dsq_id, slice_ns, enq_flags);
}

/* Puts a task into a queue ordered by `vtime`, a wrapping 64-bit key; equal keys in order of arrival. */
static __always_inline void scx_bpf_dsq_insert_vtime(struct task_struct *p, u64 dsq_id, u64 slice_ns, u64 vtime,
                                                     u64 enq_flags)
{
    if (bpf_ksym_exists(scx_bpf_dsq_insert_vtime___since613)) {
        scx_bpf_dsq_insert_vtime___since613(p, dsq_id, slice_ns, vtime, enq_flags);
    } else if (bpf_ksym_exists(__scx_bpf_dsq_insert_vtime)) {
        struct scx_bpf_dsq_insert_vtime_args args = {
            .dsq_id = dsq_id, .slice = slice_ns, .vtime = vtime, .enq_flags = enq_flags};

        __scx_bpf_dsq_insert_vtime(p, &args);
    } else {
        scx_bpf_dispatch_vtime___in612(p, dsq_id, slice_ns, vtime, enq_flags);
    }
}

/* Moves the first task that may run here to this CPU's local queue. False: there is none. Only in dispatch. */
static __always_inline bool scx_bpf_dsq_move_to_local(u64 dsq_id)
{
    if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___v2___flags))
        return scx_bpf_dsq_move_to_local___v2___flags(dsq_id, 0);
    if (bpf_ksym_exists(scx_bpf_dsq_move_to_local___since613))
        return scx_bpf_dsq_move_to_local___since613(dsq_id);
    return scx_bpf_consume___in612(dsq_id);
}

/* Moves the present task of an iterator. False: another CPU took it. Only in dispatch. */
static __always_inline bool scx_bpf_dsq_move(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
                                             u64 enq_flags)
{
    if (bpf_ksym_exists(scx_bpf_dsq_move___since613))
        return scx_bpf_dsq_move___since613(it, p, dsq_id, enq_flags);
    if (bpf_ksym_exists(scx_bpf_dispatch_from_dsq___in612))
        return scx_bpf_dispatch_from_dsq___in612(it, p, dsq_id, enq_flags);
    return false;
}

/* The same into a queue ordered by vtime, where it gets the key `vtime`. */
static __always_inline bool scx_bpf_dsq_move_vtime(struct bpf_iter_scx_dsq *it, struct task_struct *p, u64 dsq_id,
                                                   u64 vtime, u64 enq_flags)
{
    if (bpf_ksym_exists(scx_bpf_dsq_move_vtime___since613)) {
        scx_bpf_dsq_move_set_vtime___since613(it, vtime);
        return scx_bpf_dsq_move_vtime___since613(it, p, dsq_id, enq_flags);
    }
    if (bpf_ksym_exists(scx_bpf_dispatch_vtime_from_dsq___in612)) {
        scx_bpf_dispatch_from_dsq_set_vtime___in612(it, vtime);
        return scx_bpf_dispatch_vtime_from_dsq___in612(it, p, dsq_id, enq_flags);
    }
    return false;
}

static __always_inline void scx_bpf_task_set_slice(struct task_struct *p, u64 slice_ns)
{
    if (bpf_ksym_exists(scx_bpf_task_set_slice___since619))
        scx_bpf_task_set_slice___since619(p, slice_ns);
    else
        p->scx.slice = slice_ns;
}

/* Only while the task is in no queue: the queue's order depends on the key. */
static __always_inline void scx_bpf_task_set_dsq_vtime(struct task_struct *p, u64 vtime)
{
    if (bpf_ksym_exists(scx_bpf_task_set_dsq_vtime___since619))
        scx_bpf_task_set_dsq_vtime___since619(p, vtime);
    else
        p->scx.dsq_vtime = vtime;
}

/* The clock of this CPU's run queue where it exists (cheap, since 6.14), else the monotonic clock, ns. */
static __always_inline u64 scx_bpf_now(void)
{
    if (bpf_ksym_exists(scx_bpf_now___since614))
        return scx_bpf_now___since614();
    return bpf_ktime_get_ns();
}

#endif
