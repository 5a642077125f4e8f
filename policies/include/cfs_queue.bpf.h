/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of `cfs`: one per CPU, and one per group and CPU; their clock, min_vruntime; the current entity's
 * vruntime.
 *
 * An entity is a task, or a group in its parent's queue. The current one is in no queue. Its state is in the
 * cfs_queue that it comes from, so that the tick needs no lookup and a wake-up from another CPU can read it.
 * Everything here runs under the run queue's lock of that CPU, except what is marked atomic.
 */
#ifndef FAIRGROUND_CFS_QUEUE_BPF_H
#define FAIRGROUND_CFS_QUEUE_BPF_H

#include "weights.bpf.h"
#include "leftmost.bpf.h"
#include "cfs_tunables.bpf.h"
#include "cfs_groups.bpf.h"

/* A queue's clock starts just below the wrap, so that arithmetic that cannot handle the wrap fails at once. */
#define MIN_VRUNTIME_START (-(1ULL << 20))

/* An entity's weight, and 2^32 / weight. Aligned so that it is copied as one word. */
struct load_weight {
    u32 weight;
    u32 inverse;
} __attribute__((aligned(8)));

struct cfs_queue {
    u64 min_vruntime;
    u64 load; /* sum of the weights of entities that can run, the current one included; atomic */
    u64 curr_vruntime;
    u64 curr_sum_exec;    /* the current entity's sum_exec_runtime as far as it is charged, ns */
    u64 curr_slice_exec;  /* the same when the entity was picked, ns */
    u64 curr_clock_ns;    /* the clock up to which it is charged */
    struct leftmost left; /* smallest vruntime of the waiting tasks */
    u32 curr_pid;         /* 0: none, or one that was put and not yet replaced; GROUP_ENTITY and a number: a group */
    u32 curr_policy;
    struct load_weight curr_load;
    u32 next_pid;     /* buddies: woken last, */
    u32 last_pid;     /* preempted by a wake-up, */
    u32 skip_pid;     /* yielded; 0: none */
    u32 has_buddies;  /* not 0: one of these is set */
    u32 sync_pid;     /* woken by this CPU's current task, which is about to sleep */
    u32 fork_pid;     /* new, and ahead of its parent by exchange: runs first */
    u32 picked;       /* root only: 1 + the group of the task that dispatch has picked; 0: it bypasses dispatch */
    u32 balance_call; /* root only: see BALANCE_CALL */
    u32 balance_only; /* the tick rescheduled only for the load balancer */
    u32 need_resched; /* the current task is to be preempted; no pick yet (test_tsk_need_resched) */
    u32 skip_clock_update; /* and a task woke up since: the time after it is the next task's */
    u32 cpu;
    u32 group;      /* the group; 0: the root */
    u32 leaf_group; /* root only: the group of the current task */
    u32 nr_idle;    /* SCHED_IDLE tasks among those that can run; atomic */
    u32 nr_grouped; /* root: tasks of groups among those that can run; a group's: 1. 0: no group is here; atomic */
    u32 nr;         /* groups only: entities that can run; atomic */
    u32 last_curr;  /* the last current entity, with groups */
    u32 pick_pass;  /* root only: number of the last search through groups */
    u64 pair_start_ns;
    u64 chosen_ns;              /* root only: the clock when dispatch began */
    u64 carry_ns;               /* root only: run time since the wake-up that preempted the last task */
    u64 hrtick_ns;              /* the timer of HRTICK ends the current slice then; 0: it is not armed */
    u64 children;               /* bit c: the group's child c can run here; atomic */
    struct leftmost left_group; /* smallest vruntime of the child groups that wait */
} __attribute__((aligned(64)));

struct cfs_queue cpu_queues[MAX_CPUS];
struct cfs_queue group_queues[GROUP_SLOTS];

static __always_inline struct cfs_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

static __always_inline struct cfs_queue *queue_in(u32 group, u32 cpu)
{
    if (likely(!group))
        return queue_of(cpu);
    return &group_queues[group_slot(group, cpu)];
}

/* The queue that a CPU's current task comes from. */
static __always_inline struct cfs_queue *current_queue(u32 cpu)
{
    return queue_in(queue_of(cpu)->leaf_group, cpu);
}

/* resched_curr: the CPU shall pick again. */
static __always_inline void resched_curr(u32 cpu)
{
    current_queue(cpu)->need_resched = true;
    kick(cpu, SCX_KICK_PREEMPT);
}

/* The CPU has picked, and its current task is of this queue. */
static __always_inline void note_chosen(struct cfs_queue *q)
{
    q->need_resched = false;
    q->skip_clock_update = false;
}

/* The dispatch queue of a group's tasks on a CPU. */
static __always_inline u64 dsq_in(u32 group, u32 cpu)
{
    return likely(!group) ? cpu : GROUP_DSQ | group_slot(group, cpu);
}

static __always_inline u64 dsq_of(const struct cfs_queue *q)
{
    return dsq_in(q->group, q->cpu);
}

/* nr_queued of a queue in a hierarchy: a group's, or a root's with groups. */
SEPARATE u32 nr_in_hierarchy(const struct cfs_queue *q)
{
    if (!q)
        return 0;
    if (q->group)
        return q->nr;
    return nr_running(q->cpu) - q->nr_grouped + (u32)__builtin_popcountll(q->children);
}

/* Entities of a queue that can run, the current one included. */
static __always_inline u32 nr_queued(const struct cfs_queue *q)
{
    return likely(!q->nr_grouped) ? nr_running(q->cpu) : nr_in_hierarchy(q);
}

static __always_inline u64 tunable_factor(void)
{
    return scaling_factor(sched_tunable_scaling);
}

/* nr <= nr_latency, where nr_latency = ceil(latency / min_granularity), without a division. */
static __always_inline bool fits_latency(u32 nr)
{
    return (u64)(nr - 1) * sched_min_granularity_ns < sched_latency_ns;
}

/* calc_delta_fair. 2.6.27 scales by the weight of the whole queue (commit a7be37ac8e1), all others by 1024. */
static __always_inline u64 fair_delta(const struct cfs_queue *q, u64 delta_ns, u32 weight, u32 inverse)
{
    if (rule_queue_scaled_vruntime) {
        delta_ns = scale_by_weight(delta_ns, READ_ONCE(q->load), inverse);
        return q->group ? scale_by_groups(q->group, q->cpu, delta_ns) : delta_ns;
    }
    return virtual_time(delta_ns, weight, inverse);
}

/*
 * The task that dispatch has picked is in no queue and not yet current: min_vruntime of its queue must not be
 * computed without it.
 */
static __always_inline bool is_in_transit(const struct cfs_queue *root, const struct cfs_queue *q)
{
    return root->picked == q->group + 1;
}

/* The same for a queue in a hierarchy: a group's, or a root's with groups. */
SEPARATE bool find_left_of_all(struct cfs_queue *q, u64 *vruntime)
{
    bool waits;

    if (!q || !vruntime)
        return false;
    if (q->left.state == LEFT_UNKNOWN) {
        u64 vtime = 0;

        q->left.state = peek_queue(dsq_of(q), 0, &vtime) ? LEFT_KNOWN : LEFT_NONE;
        q->left.vtime = vtime;
    }
    waits = q->left.state == LEFT_KNOWN;
    *vruntime = q->left.vtime;
    if (q->children && find_left_group(q)) {
        *vruntime = waits ? min_time(*vruntime, q->left_group.vtime) : q->left_group.vtime;
        waits = true;
    }
    return waits;
}

/* The smallest vruntime of the waiting tasks and groups. False: none waits. */
static __always_inline bool find_left(struct cfs_queue *q, u64 *vruntime)
{
    bool waits;

    if (unlikely(q->nr_grouped))
        return find_left_of_all(q, vruntime);
    waits = find_leftmost(&q->left, q->cpu);
    *vruntime = q->left.vtime;
    return waits;
}

/* `left`: the smallest vruntime of those that wait, if any `waits`. See update_min_vruntime. */
static __always_inline void raise_min_vruntime(struct cfs_queue *q, bool runs, bool waits, u64 left)
{
    u64 vruntime = left;

    if (rule_min_vruntime != MIN_OF_TREE && runs) {
        vruntime = q->curr_vruntime;
        if (waits)
            vruntime = min_time(vruntime, left);
    } else if (!waits) {
        return;
    }
    q->min_vruntime = max_time(q->min_vruntime, vruntime);
}

/* Where the leftmost one must be searched for. */
SEPARATE void search_min_vruntime(struct cfs_queue *q)
{
    u64 left = 0;
    bool waits;

    if (!q)
        return;
    waits = find_left(q, &left);
    raise_min_vruntime(q, q->curr_pid, waits, left);
}

/*
 * update_min_vruntime: min_vruntime = max(min_vruntime, min(current, leftmost)). It never decreases. 2.6.25 to 2.6.27
 * follow the leftmost waiting entity alone, so there it can be right of the current one. `runs`: there is a current
 * one.
 */
static __always_inline void update_min_vruntime_with(struct cfs_queue *q, bool runs)
{
    if (unlikely(q->nr_grouped) || q->left.state == LEFT_UNKNOWN)
        search_min_vruntime(q);
    else
        raise_min_vruntime(q, runs, q->left.state == LEFT_KNOWN, q->left.vtime);
}

static __always_inline void update_min_vruntime(struct cfs_queue *q)
{
    update_min_vruntime_with(q, q->curr_pid);
}

/* Takes back what the current entity was charged ahead. */
SEPARATE void set_back_curr(struct cfs_queue *q, u64 delta_ns)
{
    if (q)
        q->curr_vruntime -= fair_delta(q, delta_ns, q->curr_load.weight, q->curr_load.inverse);
}

/* Advances the current entity's vruntime; backwards if it had been charged ahead. */
static __always_inline void advance_curr(struct cfs_queue *q, s64 delta_ns)
{
    if (likely(delta_ns >= 0))
        q->curr_vruntime += fair_delta(q, (u64)delta_ns, q->curr_load.weight, q->curr_load.inverse);
    else
        set_back_curr(q, (u64)-delta_ns);
}

/* Charges the groups above a queue for its current task. */
SEPARATE void advance_groups(u32 group, u32 cpu, s64 delta_ns)
{
    u32 level;

    for_range (level, GROUP_DEPTH_MAX) {
        struct cfs_queue *q;

        if (!group)
            break;
        group = parent_group(group);
        q = queue_in(group, cpu);
        advance_curr(q, delta_ns);
        q->curr_sum_exec += (u64)delta_ns;
        if (!is_in_transit(queue_of(cpu), q))
            update_min_vruntime(q);
    }
}

/* Charges the current task, and the groups above it, for a time that is not 0. */
static __always_inline void charge(struct cfs_queue *q, s64 delta_ns)
{
    advance_curr(q, delta_ns);
    if (unlikely(q->group))
        advance_groups(q->group, q->cpu, delta_ns);
}

/* What the current task has run since it was last charged; less than 0 when it was charged ahead. */
static __always_inline s64 uncharged_ns(const struct cfs_queue *q, const struct task_struct *p)
{
    return (s64)(p->se.sum_exec_runtime - q->curr_sum_exec);
}

/*
 * update_curr where the kernel has just updated sum_exec_runtime (tick, dispatch, yield). What was charged ahead by
 * the clock is subtracted, so in the end exactly sum_exec_runtime is charged.
 */
static __always_inline void update_curr(struct cfs_queue *q, struct task_struct *p, u64 now_ns)
{
    s64 delta_ns = uncharged_ns(q, p);

    if (delta_ns) {
        charge(q, delta_ns);
        q->curr_sum_exec += (u64)delta_ns;
    }
    q->curr_clock_ns = now_ns;
    update_min_vruntime_with(q, true);
}

/*
 * The same when the task stops; its record is not read any more. rq_clock_skip_update: a wake-up has just read the
 * clock, so the pick that follows does not read it again. The preempted task is charged up to the wake-up; the rest,
 * the time in the scheduler, is charged to its successor.
 */
static __always_inline void charge_stopped(struct cfs_queue *q, struct task_struct *p)
{
    s64 delta_ns = uncharged_ns(q, p);

    if (unlikely(q->skip_clock_update)) {
        q->skip_clock_update = false;
        queue_of(q->cpu)->carry_ns = (u64)delta_ns;
    } else if (delta_ns) {
        charge(q, delta_ns);
    }
}

/* The task that comes next is charged for that time. */
SEPARATE void take_carried(struct cfs_queue *root, struct cfs_queue *q)
{
    if (!root || !q)
        return;
    q->curr_sum_exec -= root->carry_ns;
    q->curr_slice_exec -= root->carry_ns;
    q->curr_clock_ns -= root->carry_ns;
    root->carry_ns = 0;
}

/* update_curr from other callbacks: a wake-up charges the current task up to now by the clock. */
static __always_inline void update_curr_by_clock(u32 cpu)
{
    struct cfs_queue *q = current_queue(cpu);
    s64 delta_ns;

    if (!q->curr_pid)
        return;
    delta_ns = (s64)(scx_bpf_now() - q->curr_clock_ns);
    if (delta_ns > 0) {
        charge(q, delta_ns);
        q->curr_sum_exec += (u64)delta_ns;
        q->curr_clock_ns += (u64)delta_ns;
    }
    update_min_vruntime_with(q, true);
}

/* ns that the current entity has run since it was picked. */
static __always_inline u64 curr_ran(const struct cfs_queue *q)
{
    return q->curr_sum_exec - q->curr_slice_exec;
}

#endif
