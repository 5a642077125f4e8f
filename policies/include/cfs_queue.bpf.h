/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arithmetic of `cfs`: a queue's clock (min_vruntime), the current task's vruntime, slices, and where a task is placed.
 *
 * The current task is in no queue. What is known of it lives in its CPU's cfs_queue, so that the tick looks nothing up and a
 * wake-up from another CPU can see it. Everything here runs under the run queue's lock of that CPU, except what says atomic.
 */
#ifndef FAIRGROUND_CFS_QUEUE_BPF_H
#define FAIRGROUND_CFS_QUEUE_BPF_H

#include "weights.bpf.h"
#include "leftmost.bpf.h"
#include "scaling.bpf.h"
#include "cfs_tunables.bpf.h"

/* A queue's clock starts just below the wrap, so that arithmetic which cannot wrap shows at once. */
#define MIN_VRUNTIME_START (-(1ULL << 20))

struct cfs_queue {
    u64 min_vruntime;
    u64 load; /* sum of the weights of tasks that can run, the current one included; atomic */
    u64 curr_vruntime;
    u64 curr_sum_exec;    /* the current task's sum_exec_runtime when it was last read, ns */
    u64 curr_slice_exec;  /* the same when the task was picked, ns */
    u64 curr_clock_ns;    /* the clock when it was last read */
    u64 curr_ahead_ns;    /* charged by the clock since then */
    struct leftmost left; /* smallest vruntime of the waiting tasks */
    u64 curr_avg_wakeup_ns;
    u64 curr_last_wakeup_ns;
    u32 curr_pid; /* 0: none, or one that was put and not yet replaced */
    u32 curr_weight;
    u32 curr_inverse;
    u32 curr_policy;
    u32 next_pid;     /* buddies: woken last, */
    u32 last_pid;     /* preempted by a wake-up, */
    u32 skip_pid;     /* yielded; 0: none */
    u32 sync_pid;     /* woken by this CPU's current task, which is about to sleep */
    u32 fork_pid;     /* new, and ahead of its parent by exchange: runs first */
    u32 stopped_pid;  /* has stopped to sleep, and is not yet off the books */
    u32 picked;       /* dispatch chose: the next task to run need not be questioned */
    u32 balance_only; /* the tick ended the turn for the balancer alone */
} __attribute__((aligned(64)));

struct cfs_queue cpu_queues[MAX_CPUS];

static __always_inline struct cfs_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

static __always_inline u64 tunable_factor(void)
{
    return scaling_factor(sched_tunable_scaling, rule_scaling_cpus_max);
}

/* nr <= nr_latency, where nr_latency = ceil(latency / min_granularity): without a division. */
static __always_inline bool fits_latency(u32 nr)
{
    return (u64)(nr - 1) * sched_min_granularity_ns < sched_latency_ns;
}

/* __sched_period: the time in which each of nr tasks runs once, ns. */
static __always_inline u64 sched_period(u32 nr)
{
    u64 factor = tunable_factor();

    if (fits_latency(nr))
        return sched_latency_ns * factor;
    if (rule_period_scales_latency) {
        u64 granularity = sched_min_granularity_ns * factor, latency = sched_latency_ns * factor;

        return latency * nr / ((latency + granularity - 1) / granularity);
    }
    return sched_min_granularity_ns * factor * nr;
}

/* sched_slice: a task's part of the period, wall ns. `nr` and `load` include the task. */
static __always_inline u64 sched_slice(u32 nr, u64 load, u32 weight)
{
    u64 slice_ns = sched_period(nr) * weight / (load ?: 1);

    if (BASE_SLICE) {
        u64 shortest_ns = sched_min_granularity_ns * tunable_factor();

        if (slice_ns < shortest_ns)
            slice_ns = shortest_ns;
    }
    return slice_ns;
}

/* calc_delta_fair. 2.6.27 scales by the weight of the whole queue (commit a7be37ac8e1), all others by 1024. */
static __always_inline u64 fair_delta(const struct cfs_queue *q, u64 delta_ns, u32 weight, u32 inverse)
{
    if (rule_queue_scaled_vruntime)
        return scale_by_weight(delta_ns, READ_ONCE(q->load), inverse);
    return virtual_time(delta_ns, weight, inverse);
}

static __always_inline u64 sched_vslice(const struct cfs_queue *q, u32 nr, u64 load, u32 weight, u32 inverse)
{
    if (rule_queue_scaled_vruntime)
        return sched_period(nr);
    return virtual_time(sched_slice(nr, load, weight), weight, inverse);
}

/*
 * update_min_vruntime: min_vruntime = max(min_vruntime, min(current, leftmost)). It never goes back. 2.6.25 to 2.6.27 follow
 * the leftmost waiting task alone, so there it can be right of the current one.
 */
static __always_inline void update_min_vruntime(struct cfs_queue *q, u32 cpu)
{
    bool waiting = find_leftmost(&q->left, cpu);
    u64 vruntime;

    if (rule_min_vruntime == MIN_OF_TREE) {
        if (waiting)
            q->min_vruntime = max_time(q->min_vruntime, q->left.vtime);
        return;
    }
    if (q->curr_pid) {
        vruntime = q->curr_vruntime;
        if (waiting)
            vruntime = min_time(vruntime, q->left.vtime);
    } else if (waiting) {
        vruntime = q->left.vtime;
    } else {
        return;
    }
    q->min_vruntime = max_time(q->min_vruntime, vruntime);
}

/*
 * Charges the current task where the kernel has just brought sum_exec_runtime up to date (tick, dispatch, stopping, yield).
 * What was charged ahead by the clock is taken back, so in the end exactly sum_exec_runtime is charged.
 */
static __always_inline void charge_curr(struct cfs_queue *q, struct task_struct *p)
{
    u64 sum_exec = p->se.sum_exec_runtime;
    s64 delta_ns = (s64)(sum_exec - q->curr_sum_exec - q->curr_ahead_ns);

    if (delta_ns >= 0)
        q->curr_vruntime += fair_delta(q, (u64)delta_ns, q->curr_weight, q->curr_inverse);
    else
        q->curr_vruntime -= fair_delta(q, (u64)-delta_ns, q->curr_weight, q->curr_inverse);
    q->curr_sum_exec = sum_exec;
    q->curr_ahead_ns = 0;
    q->curr_clock_ns = scx_bpf_now();
}

static __always_inline void update_curr(struct cfs_queue *q, u32 cpu, struct task_struct *p)
{
    charge_curr(q, p);
    update_min_vruntime(q, cpu);
}

/* update_curr from elsewhere: a wake-up sees what the current task has used up to now by the clock. */
static __always_inline void update_curr_by_clock(struct cfs_queue *q, u32 cpu)
{
    s64 delta_ns;

    if (!q->curr_pid)
        return;
    delta_ns = (s64)(scx_bpf_now() - q->curr_clock_ns - q->curr_ahead_ns);
    if (delta_ns > 0) {
        q->curr_vruntime += fair_delta(q, (u64)delta_ns, q->curr_weight, q->curr_inverse);
        q->curr_ahead_ns += (u64)delta_ns;
    }
    update_min_vruntime(q, cpu);
}

/* ns that the current task has run since it was picked. */
static __always_inline u64 curr_ran(const struct cfs_queue *q)
{
    return q->curr_sum_exec + q->curr_ahead_ns - q->curr_slice_exec;
}

/* Base of place_entity: min_vruntime, or one of the averages that 2.6.24 could try. nr and load without the new task. */
static __always_inline u64 placement_base(struct cfs_queue *q, u32 cpu, u32 nr, u64 load)
{
    u64 vruntime = q->min_vruntime, rightmost = 0;

    if (rule_min_vruntime == MIN_OF_TREE && find_leftmost(&q->left, cpu))
        vruntime = min_time(vruntime, q->left.vtime);
    if (TREE_AVG) {
        if (peek_vtime(cpu, SCX_DSQ_ITER_REV, &rightmost))
            vruntime += (u64)(time_diff(rightmost, vruntime) >> 1);
    } else if (APPROX_AVG && nr) {
        vruntime += sched_period(nr) * NICE_0_WEIGHT / (load ?: 1) / 2;
    }
    return vruntime;
}

/* The credit of a sleeper, virtual ns. */
static __always_inline u64 sleeper_credit(const struct cfs_queue *q, u32 policy, u32 weight, u32 inverse)
{
    u64 credit = sched_latency_ns * tunable_factor();

    if (NORMALIZED_SLEEPER && policy != SCHED_IDLE)
        credit = fair_delta(q, credit, weight, inverse);
    if (GENTLE_FAIR_SLEEPERS)
        credit >>= 1;
    return credit;
}

/* The wake-up granularity, virtual ns, between a task that runs (or is further right) and one that is further left. */
static __always_inline u64 wakeup_granularity(const struct cfs_queue *q, u32 right_weight, u32 right_inverse,
                                              u32 left_weight, u32 left_inverse)
{
    u64 gran = sched_wakeup_granularity_ns * tunable_factor();

    switch (rule_gran) {
    case GRAN_CURR:
        return virtual_time(gran, right_weight, right_inverse);
    case GRAN_QUEUE:
        if (ASYM_GRAN && right_weight < NICE_0_WEIGHT)
            right_inverse = nice_inverse[20];
        return scale_by_weight(gran, READ_ONCE(q->load), right_inverse);
    case GRAN_HEAVY_CURR:
        if (!ASYM_GRAN || right_weight > NICE_0_WEIGHT)
            gran = virtual_time(gran, right_weight, right_inverse);
        return gran;
    default:
        return ASYM_GRAN ? virtual_time(gran, left_weight, left_inverse) : gran;
    }
}

#endif
