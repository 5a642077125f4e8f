/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * sd: Con Kolivas's Staircase Deadline of 2007, and its predecessor, the rotating staircase (set rsdl).
 *
 * Rule: time is divided into epochs of 40 levels. A nice value may use s = 20 - nice of them, spread evenly. A task
 * runs for its quota, rr_interval, on its first level, then waits at the end of its next level, and so on down the
 * staircase; after its last one it is expired and waits for the next epoch. The task on the best level runs; within a
 * level in order of arrival. When all are expired the next epoch begins. Sleep is not measured: a task that slept is
 * still on a level that hogs left long ago, with the rest of its quota, and preempts tasks on worse levels.
 *
 * Example (one CPU, rr_interval 8 ms): A nice 0 has 20 levels, 1, 3, 5 ... 39; B nice 10 has 10, 3, 7, 11 ... 39. A
 * runs 8 ms on level 1; on level 3 A and B run 8 ms each, A on 5, both on 7. After 20 * 8 + 10 * 8 = 240 ms both are
 * expired: A has had two thirds. S sleeps 10 ms and runs 1 ms: eight times it runs at once on level 1, eight times on
 * level 3 ...
 *
 * Where it fails: a task that has just expired waits for all others' epochs: 20 * 8 = 160 ms for one of nice 0, and
 * as much again for each other. nice 19 runs once per epoch. Levels that hogs have left are free for sleepers: a task
 * that sleeps until the others have descended gets its share on the best levels. Slices end at ticks: what is run
 * beyond the quota is not charged.
 *
 * Rotating staircase: a nice value has its own level and all worse ones. Each level has a quota too, the sum of those
 * granted there; when it is used up, all tasks still on the level descend with it (minor rotation), so that the wait
 * of a task does not depend on sleepers that return to its level. Nice 1 to 19 have half the quota, below nice -6 it
 * grows.
 *
 * Follows the documentation of RSDL 0.2x and SD 0.3x/0.4x for 2.6.21 (March to May 2007); the patches were not
 * available. docs/laws/sd.md states what must hold. Choices made here: the dithering of the levels (it gives the
 * documented rows of nice -20, 0, 10, 15, 19), the numbers marked "as remembered", fork, yield (to the end of the own
 * level), SCHED_BATCH (as many slots, but the last ones); a migration keeps level and rest of the quota, and expired
 * stays expired. Between CPUs the load balancer of 2.6.22, for which the load of a task is its slots times its quota.
 * Not modelled: the later `interactive` switch, SCHED_ISO.
 */
#define BALANCE_QUEUES  2
#define BALANCE_RELEASE 2_6_22
#define BALANCE_SCALE   128
#include "exit.bpf.h"
#include "sd_queue.bpf.h"

char _license[] SEC("license") = "GPL";

/* Limit of the tasks that one decision pushes down; the rest follow at the next one. */
#define PUSHED_MAX 1024

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct sd_task);
} task_ctx SEC(".maps");

static __always_inline struct sd_task *task_of(struct task_struct *p)
{
    return bpf_task_storage_get(&task_ctx, p, 0, 0);
}

/* The dispatch queue of an epoch. */
static __always_inline u64 array_id(u32 cpu, u64 rotation)
{
    return queue_id(cpu, (u32)rotation & 1);
}

/* Charges the current task, where the kernel has just updated sum_exec_runtime. */
static __always_inline void charge(struct sd_queue *q, struct task_struct *p)
{
    s64 ran_ns = (s64)(p->se.sum_exec_runtime - q->curr_sum_exec);

    q->curr_sum_exec = p->se.sum_exec_runtime;
    q->curr_slice_ns -= ran_ns;
    if (is_rotating())
        *level_quota(q, q->curr_rotation, q->curr_level) -= ran_ns;
}

/* The levels and the load of its nice value. */
static __always_inline void read_nice(struct task_struct *p, struct sd_task *t)
{
    t->nice_index = nice_index(p->static_prio);
    t->allowed = nice_levels[t->nice_index % NICE_LEVELS];
    if (p->policy == SCHED_BATCH)
        t->allowed = last_levels(slot_count(t->nice_index));
    t->load = nice_load[t->nice_index % NICE_LEVELS];
}

/*
 * The epoch of CPU `to` that corresponds to the task's, since each CPU counts its own epochs: a task that takes part
 * in the epoch still does, and an expired one stays expired.
 */
static __always_inline u64 rotation_on(const struct sd_task *t, u32 to)
{
    return t->rotation + READ_ONCE(queue_of(to)->rotation) - READ_ONCE(queue_of(t->cpu)->rotation);
}

/* The load of a task for the load balancer: its run time in an epoch. */
static __always_inline u64 balance_weight(struct task_struct *p)
{
    return nice_load[nice_index(p->static_prio)];
}

/* Expired tasks are taken first: their caches are coldest. */
static __always_inline u64 balance_queue(u32 cpu, u32 index)
{
    return array_id(cpu, queue_of(cpu)->rotation + 1 - index);
}

/* A task that would be the best one there is moved, however heavy it is. */
static __always_inline bool balance_prefers(struct task_struct *p, u32 to)
{
    struct sd_queue *q = queue_of(to);

    return level_of_key(p->scx.dsq_vtime) < (q->curr_pid ? q->curr_level : SD_LEVELS);
}

static __always_inline u64 balance_last_ran_ns(struct task_struct *p)
{
    struct sd_task *t = task_of(p);

    return t ? t->last_ran_ns : 0;
}

/* To the end of its level in the same array. */
static __always_inline u64 balance_target(struct task_struct *p, u32 from, u32 to, u64 *vtime)
{
    struct sd_task *t = task_of(p);

    *vtime = level_key(level_of_key(p->scx.dsq_vtime), queue_of(to)->sequence + 1);
    return array_id(to, t ? rotation_on(t, to) : queue_of(to)->rotation);
}

/* Moves a task's accounting to another CPU. Its rest counts for the level there. */
static __always_inline void balance_moved(struct task_struct *p, u32 from, u32 to)
{
    struct sd_task *t = task_of(p);

    if (!t)
        return;
    leave_cpu(from, t->load);
    join_cpu(to, t->load);
    t->rotation = rotation_on(t, to);
    t->cpu = to;
    queue_of(to)->sequence++;
    if (is_rotating() && t->slice_ns > 0)
        *level_quota(queue_of(to), t->rotation, t->level) += t->slice_ns;
}

#include "balance.bpf.h"

/* Moves a task that is in no queue to another CPU. Its key there: at the end of its level. */
static __noinline u64 rehome(struct task_struct *p, struct sd_task *t, u32 cpu)
{
    balance_moved(p, t->cpu, cpu);
    return last_key(queue_of(cpu), t);
}

s32 BPF_STRUCT_OPS(sd_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
    bool is_idle = false;
    s32 cpu = balance_select_cpu(p, prev_cpu, wake_flags, &is_idle);

    if (is_idle)
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, 0);
    return cpu;
}

/*
 * A new task: beside its parent, if it stays on that CPU, with half of the parent's rest; otherwise like a task that
 * is new here.
 */
static __always_inline void place_new(struct sd_queue *q, struct sd_task *t, u32 cpu)
{
    t->slice_ns = 0;
    t->rotation = q->rotation - 1;
    if (rule_fork_shares_quota && this_cpu() == cpu && q->curr_pid && q->curr_rotation == q->rotation) {
        t->rotation = q->rotation;
        t->level = q->curr_level;
        t->slice_ns = q->curr_slice_ns >> 1;
        q->curr_slice_ns -= t->slice_ns;
    }
}

/* A task becomes able to run: it wakes up, is new, or comes back after an attribute change. Before enqueue. */
void BPF_STRUCT_OPS(sd_runnable, struct task_struct *p, u64 enq_flags)
{
    struct sd_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct sd_queue *q = queue_of(cpu);

    if (!t)
        return;
    read_nice(p, t);
    if (t->is_new)
        place_new(q, t, cpu);
    else
        t->rotation = rotation_on(t, cpu);
    t->cpu = cpu;
    find_level(q, t);
    scx_bpf_task_set_dsq_vtime(p, last_key(q, t));
    join_cpu(cpu, t->load);
}

/* A task waits: it woke up, is new, was preempted, or had to leave another CPU. */
void BPF_STRUCT_OPS(sd_enqueue, struct task_struct *p, u64 enq_flags)
{
    struct sd_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    u64 key = p->scx.dsq_vtime;
    struct sd_queue *q;
    bool joins;

    if (!t) {
        scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, SCX_SLICE_INF, enq_flags);
        return;
    }
    joins = (enq_flags & SCX_ENQ_WAKEUP) || t->is_new;
    if (joins)
        t->is_new = false;
    else
        cpu = balance_active_push(p, cpu);
    if (t->cpu != cpu)
        key = rehome(p, t, cpu);
    scx_bpf_dsq_insert_vtime(p, array_id(cpu, t->rotation), SCX_SLICE_INF, key, enq_flags & ~SCX_ENQ_PREEMPT);
    q = queue_of(cpu);
    if (!joins)
        offer_to_idle_cpu(p);
    else if (q->curr_pid && t->rotation == q->rotation && t->level < q->curr_level)
        kick(cpu, SCX_KICK_PREEMPT);
}

/* The first key of an array. False: it is empty. */
static __always_inline bool first_key(u64 array, u64 *key)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    bool found = false;

    if (!bpf_iter_scx_dsq_new(&it, array, 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p) {
            *key = p->scx.dsq_vtime;
            found = true;
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return found;
}

/* Pushes the first task of the active array down if its level was used up by a minor rotation. False: it was not. */
static __always_inline bool push_first_down(struct sd_queue *q, u32 cpu)
{
    struct bpf_iter_scx_dsq it;
    struct task_struct *p;
    struct sd_task *t;
    bool pushed = false;

    if (!bpf_iter_scx_dsq_new(&it, array_id(cpu, q->rotation), 0)) {
        p = bpf_iter_scx_dsq_next(&it);
        if (p && level_of_key(p->scx.dsq_vtime) < q->prio_level) {
            t = task_of(p);
            if (t) {
                find_level(q, t);
                pushed = scx_bpf_dsq_move_vtime(&it, p, array_id(cpu, t->rotation), last_key(q, t), 0);
            }
        }
    }
    bpf_iter_scx_dsq_destroy(&it);
    return pushed;
}

/* The rest of a minor rotation: tasks that wait on the levels above prio_level descend, in order. */
static __noinline void push_down(struct sd_queue *q, u32 cpu)
{
    u32 i;

    for_range (i, PUSHED_MAX) {
        if (!push_first_down(q, cpu))
            break;
    }
}

/* The first task of an epoch, including the current one if it continues. True: there is one. */
static __always_inline bool pick_from(struct sd_queue *q, u32 cpu, u64 rotation, struct task_struct *prev)
{
    u64 array = array_id(cpu, rotation), first = 0;
    bool stays = prev && q->curr_rotation == rotation;

    if (!(stays && (!first_key(array, &first) || time_diff(prev->scx.dsq_vtime, first) < 0)) &&
        scx_bpf_dsq_move_to_local(array)) {
        q->picked = true;
        return true;
    }
    if (stays)
        scx_bpf_task_set_slice(prev, SCX_SLICE_INF);
    return stays;
}

/* The first task of the next epoch, which then begins. */
static __noinline bool pick_next(struct sd_queue *q, u32 cpu, struct task_struct *prev)
{
    if (!pick_from(q, cpu, q->rotation + 1, prev))
        return false;
    rotate_arrays(q);
    return true;
}

/* The first task of this epoch, otherwise of the next. */
static __always_inline bool pick(struct sd_queue *q, u32 cpu, struct task_struct *prev)
{
    return pick_from(q, cpu, q->rotation, prev) || pick_next(q, cpu, prev);
}

/* Nothing waits here: the CPU pulls a task, or becomes idle. */
static __noinline void go_idle(struct sd_queue *q, u32 cpu)
{
    if (!newidle_balance(cpu) || !pick(q, cpu, NULL))
        balance_nothing_came(cpu);
}

/* This CPU picks again. `prev` is still current: if it can run and its slice is not 0 afterwards, it continues. */
void BPF_STRUCT_OPS(sd_dispatch, s32 this, struct task_struct *prev)
{
    u32 cpu = (u32)this & (MAX_CPUS - 1);
    struct sd_queue *q = queue_of(cpu);

    if (prev && q->curr_pid == (u32)prev->pid)
        charge(q, prev);
    else
        prev = NULL;
    balance_run(cpu);
    if (q->prio_level)
        push_down(q, cpu);
    if (!pick(q, cpu, prev))
        go_idle(q, cpu);
}

/* The current task bypassed dispatch (idle CPU, or back after a real-time task): a better one may have joined. */
static __noinline void check_bypass(struct sd_queue *q, u32 cpu)
{
    u64 first = 0;

    if (nr_running(cpu) > 1 && first_key(array_id(cpu, q->rotation), &first) && level_of_key(first) < q->curr_level &&
        ask_for_choice(cpu))
        kick(cpu, SCX_KICK_PREEMPT);
}

/* A task comes onto a CPU. */
void BPF_STRUCT_OPS(sd_running, struct task_struct *p)
{
    struct sd_task *t = task_of(p);
    u32 cpu = task_cpu(p);
    struct sd_queue *q = queue_of(cpu);

    if (!t)
        return;
    if (t->cpu != cpu)
        scx_bpf_task_set_dsq_vtime(p, rehome(p, t, cpu));
    t->is_new = false;
    /* It came onto an idle CPU, where no task of the old epoch is left. */
    if (t->rotation == q->rotation + 1)
        rotate_arrays(q);
    t->rotation = q->rotation;
    q->curr_pid = (u32)p->pid;
    q->curr_level = t->level;
    q->curr_rotation = t->rotation;
    q->curr_slice_ns = t->slice_ns;
    q->curr_sum_exec = p->se.sum_exec_runtime;
    if (!q->picked)
        check_bypass(q, cpu);
    q->picked = false;
}

/* The current task descends when its quota, or that of its level, is used up. */
void BPF_STRUCT_OPS(sd_tick, struct task_struct *p)
{
    u32 cpu = this_cpu();
    struct sd_queue *q = queue_of(cpu);
    struct sd_task *t;

    if (balance_tick(cpu))
        scx_bpf_task_set_slice(p, 0);
    if (q->curr_pid != (u32)p->pid)
        return;
    charge(q, p);
    if (is_rotating() && *level_quota(q, q->curr_rotation, q->curr_level) <= 0 && q->prio_level <= q->curr_level) {
        q->prio_level = q->curr_level + 1;
        q->minor_rotations++;
    } else if (q->curr_slice_ns > 0) {
        return;
    }
    t = task_of(p);
    if (!t)
        return;
    t->slice_ns = q->curr_slice_ns;
    find_level(q, t);
    scx_bpf_task_set_dsq_vtime(p, last_key(q, t));
    q->curr_slice_ns = t->slice_ns;
    q->curr_level = t->level;
    q->curr_rotation = t->rotation;
    scx_bpf_task_set_slice(p, 0);
}

/* A task leaves its CPU. */
static __always_inline void put_prev(struct task_struct *p, struct sd_task *t)
{
    struct sd_queue *q = queue_of(t->cpu);

    if (q->curr_pid != (u32)p->pid)
        return;
    /* Where dispatch has charged it nothing is left. */
    if (p->se.sum_exec_runtime != q->curr_sum_exec)
        charge(q, p);
    t->slice_ns = q->curr_slice_ns;
    t->last_ran_ns = scx_bpf_now();
    q->curr_pid = 0;
}

/* The same for one that stays runnable. One that does not comes to ops.quiescent next, under the same lock. */
void BPF_STRUCT_OPS(sd_stopping, struct task_struct *p, bool runnable)
{
    struct sd_task *t;

    if (!runnable)
        return;
    t = task_of(p);
    if (t)
        put_prev(p, t);
}

/* A task goes to sleep, or is dequeued for an attribute change. It keeps level, rest of the quota and epoch. */
void BPF_STRUCT_OPS(sd_quiescent, struct task_struct *p, u64 deq_flags)
{
    struct sd_task *t = task_of(p);

    if (!t)
        return;
    put_prev(p, t);
    leave_cpu(t->cpu, t->load);
}

/* To the end of the own level. */
bool BPF_STRUCT_OPS(sd_yield, struct task_struct *from, struct task_struct *to)
{
    struct sd_task *t = task_of(from);
    struct sd_queue *q;

    if (!t)
        return false;
    q = queue_of(t->cpu);
    if (q->curr_pid != (u32)from->pid)
        return false;
    scx_bpf_task_set_dsq_vtime(from, last_key(q, t));
    scx_bpf_task_set_slice(from, 0);
    return false;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sd_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
    struct sd_task *t = bpf_task_storage_get(&task_ctx, p, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

    if (!t)
        return -ENOMEM;
    t->is_new = true;
    return 0;
}

s32 BPF_STRUCT_OPS_SLEEPABLE(sd_init)
{
    s32 err = create_cpu_queues();

    if (err)
        return err;
    init_scaling(MAX_CPUS);
    for (u32 i = 0; i < NICE_LEVELS; i++)
        nice_levels[i] = is_rotating() ? last_levels(slot_count(i)) : dithered_levels(slot_count(i));
    for (u32 i = 0; i < NICE_LEVELS; i++)
        nice_load[i] = slot_count(i) * (u64)quota_ns(i) * BALANCE_SCALE / (slot_count(20) * (u64)quota_ns(20));
    return balance_init();
}

BALANCE_HOTPLUG(sd)
EXIT_RECORD(sd)

SCX_OPS_DEFINE(sd_ops, .select_cpu = (void *)sd_select_cpu, .runnable = (void *)sd_runnable,
               .enqueue = (void *)sd_enqueue, .dispatch = (void *)sd_dispatch, .running = (void *)sd_running,
               .tick = (void *)sd_tick, .stopping = (void *)sd_stopping, .quiescent = (void *)sd_quiescent,
               .yield = (void *)sd_yield, .init_task = (void *)sd_init_task, .init = (void *)sd_init,
               .exit = (void *)sd_exit, .cpu_online = (void *)sd_cpu_online, .cpu_offline = (void *)sd_cpu_offline,
               .flags = SCX_OPS_ENQ_EXITING, .timeout_ms = 30000, .name = "sd");
