/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * calls: fifo that times the kernel functions which a scheduler calls, to measure what one kfunc or helper costs.
 *
 * Rule: as fifo. Each call of dispatch, or of enqueue for functions that need a task, also times the next kind of call: a
 * hundred calls between two reads of the clock if the call can be repeated, else one. The two reads and the loop are timed as
 * well. bpf_printk prints `name calls ns`; the clock counts the guest's instructions and nothing interrupts, so two runs print
 * the same. Example: `now 100 61112` less `loop 100 4312`, an iteration with a store only: 568 ns a call of scx_bpf_now.
 * Fails: as a scheduler, on purpose. docs/reports/costs-2026-11-26.md has the measurements.
 */
#include "scx.bpf.h"

char _license[] SEC("license") = "GPL";

TUNABLE(u64, slice_ns, 20000000, UNIT("ns"), DOC("longest time that a task runs while others wait"));
TUNABLE(u32, first, 20, DOC("the call of dispatch at which timing begins"));

#define QUEUE  0
#define SORTED 1
#define TIMES  100
#define KINDS  22

struct record {
    u64 value;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct record);
} records SEC(".maps");

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 4);
    __type(key, u32);
    __type(value, u64);
} table SEC(".maps");

struct task_struct *bpf_task_from_pid(s32 pid) __ksym;
void bpf_task_release(struct task_struct *p) __ksym;

u32 calls;
volatile u64 sink;
s32 some_pid;

/* Times a hundred calls of `what`. */
#define TIMED(name, what)                                                                                            \
    do {                                                                                                             \
        u64 begin_ns = bpf_ktime_get_ns(), end_ns;                                                                   \
                                                                                                                     \
        for (u32 i = 0; i < TIMES; i++) {                                                                            \
            what;                                                                                                    \
            asm volatile("" ::: "memory");                                                                           \
        }                                                                                                            \
        end_ns = bpf_ktime_get_ns();                                                                                 \
        bpf_printk(name " 100 %llu", end_ns - begin_ns);                                                             \
    } while (0)

static __always_inline struct task_struct *iterate(u64 queue, u32 steps)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p = NULL;

    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        for (u32 step = 0; step < steps; step++) {
            p = bpf_iter_scx_dsq_next(&it);
            if (p)
                sink = (u64)p->pid;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return NULL;
}

/* The other way out of a queue, by an iteration. The kfunc is timed alone. */
static __always_inline bool move_first(u64 queue)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool moved = false;

    if (!bpf_iter_scx_dsq_new(&it, queue, 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p) {
            u64 begin_ns = bpf_ktime_get_ns(), end_ns;

            moved = scx_bpf_dsq_move(&it, p, SCX_DSQ_LOCAL, 0);
            end_ns = bpf_ktime_get_ns();
            bpf_printk("move %d %llu", moved, end_ns - begin_ns);
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return moved;
}

static __always_inline void by_pid(void)
{
    struct task_struct *p = bpf_task_from_pid(some_pid);

    if (p) {
        sink = (u64)p->pid;
        bpf_task_release(p);
    }
}

static __always_inline void by_key(void)
{
    u32 key = (u32)sink & 3;
    u64 *value = bpf_map_lookup_elem(&table, &key);

    if (value)
        sink = *value;
}

/* Calls that need no task. */
static SEPARATE int time_clocks(u32 kind, s32 cpu)
{
    switch (kind) {
    case 0:
        TIMED("loop", sink = 1);
        break;
    case 1:
        TIMED("now", sink = scx_bpf_now());
        break;
    case 2:
        TIMED("ktime", sink = bpf_ktime_get_ns());
        break;
    case 3:
        TIMED("jiffies", sink = bpf_jiffies64());
        break;
    case 4:
        TIMED("processor_id", sink = bpf_get_smp_processor_id());
        break;
    case 5:
        TIMED("nr_cpu_ids", sink = scx_bpf_nr_cpu_ids());
        break;
    case 6:
        TIMED("lookup_array", by_key());
        break;
    case 7:
        TIMED("test_and_clear_idle", sink = scx_bpf_test_and_clear_cpu_idle(cpu));
        break;
    case 8:
        TIMED("kick", scx_bpf_kick_cpu(cpu, 0));
        break;
    case 9:
        TIMED("nr_queued", sink = (u64)scx_bpf_dsq_nr_queued(QUEUE));
        break;
    case 10:
        TIMED("from_pid_release", by_pid());
        break;
    }
    return 0;
}

static SEPARATE int time_queues(u32 kind)
{
    switch (kind) {
    case 11:
        TIMED("iter_0", iterate(QUEUE, 0));
        break;
    case 12:
        TIMED("iter_1", iterate(QUEUE, 1));
        break;
    case 13:
        TIMED("iter_2", iterate(QUEUE, 2));
        break;
    case 14:
        TIMED("iter_sorted_1", iterate(SORTED, 1));
        break;
    }
    return 0;
}

static __always_inline void look_up(struct task_struct *p)
{
    struct record *r = bpf_task_storage_get(&records, p, 0, 0);

    if (r)
        sink = r->value;
}

static __always_inline void time_task(u32 kind, struct task_struct *p)
{
    switch (kind) {
    case 15:
        TIMED("storage", look_up(p));
        break;
    case 16:
        TIMED("task_cpu", sink = (u64)scx_bpf_task_cpu(p));
        break;
    case 17:
        TIMED("set_slice", scx_bpf_task_set_slice(p, slice_ns));
        break;
    case 18:
        TIMED("set_vtime", scx_bpf_task_set_dsq_vtime(p, 0));
        break;
    case 19:
        TIMED("test_cpu", sink = bpf_cpumask_test_cpu(0, p->cpus_ptr));
        break;
    case 20:
        TIMED("pick_idle", sink = (u64)scx_bpf_pick_idle_cpu(p->cpus_ptr, 0));
        break;
    }
}

s32 BPF_STRUCT_OPS(calls_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    u64 begin_ns = bpf_ktime_get_ns(), end_ns;
    s32 cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);

    end_ns = bpf_ktime_get_ns();
    if (calls >= first && calls < first + KINDS)
        bpf_printk("select_cpu_dfl 1 %llu", end_ns - begin_ns);
    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, 0);
    return cpu;
}

void BPF_STRUCT_OPS(calls_enqueue, struct task_struct *p, u64 enq_flags)
{
    u64 begin_ns, end_ns;

    some_pid = p->pid;
    time_task(calls - first, p);
    begin_ns = bpf_ktime_get_ns();
    if (calls & 8)
        scx_bpf_dsq_insert_vtime(p, SORTED, slice_ns, bpf_ktime_get_ns(), enq_flags);
    else
        scx_bpf_dsq_insert(p, QUEUE, slice_ns, enq_flags);
    end_ns = bpf_ktime_get_ns();
    if (calls >= first && calls < first + KINDS)
        bpf_printk("insert%d 1 %llu", calls & 8, end_ns - begin_ns);
}

void BPF_STRUCT_OPS(calls_dispatch, s32 cpu, struct task_struct *prev)
{
    u32 kind = calls++ - first;
    u64 begin_ns, mid_ns, end_ns;
    bool moved;

    if (kind < KINDS) {
        time_clocks(kind, cpu);
        time_queues(kind);
        if (kind == KINDS - 1 && (move_first(SORTED) || move_first(QUEUE)))
            return;
        begin_ns = bpf_ktime_get_ns();
        mid_ns = bpf_ktime_get_ns();
        moved = scx_bpf_dsq_move_to_local(SORTED);
        end_ns = bpf_ktime_get_ns();
        bpf_printk("between 1 %llu move_to_local(sorted) %d %llu", mid_ns - begin_ns, moved, end_ns - mid_ns);
        if (moved)
            return;
        begin_ns = bpf_ktime_get_ns();
        moved = scx_bpf_dsq_move_to_local(QUEUE);
        end_ns = bpf_ktime_get_ns();
        bpf_printk("move_to_local %d %llu", moved, end_ns - begin_ns);
        return;
    }
    if (scx_bpf_dsq_move_to_local(SORTED))
        return;
    scx_bpf_dsq_move_to_local(QUEUE);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(calls_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    return bpf_task_storage_get(&records, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE) ? 0 : -12;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(calls_init)
{
    s32 err = scx_bpf_create_dsq(QUEUE, -1);

    return err ?: scx_bpf_create_dsq(SORTED, -1);
}

SCX_OPS_DEFINE(calls_ops, .select_cpu = (void *)calls_select_cpu, .enqueue = (void *)calls_enqueue,
               .dispatch = (void *)calls_dispatch, .init_task = (void *)calls_init_task, .init = (void *)calls_init,
               .name = "calls");
