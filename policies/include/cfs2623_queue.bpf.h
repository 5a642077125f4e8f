/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The accounting of `cfs_2_6_23`: the fair clock of a queue, and wait_runtime, what each task is owed.
 *
 * The current task is in no queue. Its state is in its CPU's record, so that the tick needs no lookup and a wake-up
 * from another CPU can read it. Everything here runs under the run queue's lock of that CPU, unless a comment says
 * otherwise.
 *
 * Example: A and B of nice 0, A runs 10 ms. fair_clock + 5 ms; A's wait_runtime + 5 - 10 = -5 ms, B's, when its wait
 * ends, + 5.
 */
#ifndef FAIRGROUND_CFS2623_QUEUE_BPF_H
#define FAIRGROUND_CFS2623_QUEUE_BPF_H

#include "cfs2623_math.bpf.h"
#include "leftmost.bpf.h"
#include "cfs2623_tunables.bpf.h"

/* init_cfs_rq: 0 means "not waiting". */
#define FAIR_CLOCK_START 1
/* sched_init_granularity: upper bound of a scaled time. */
#define SCALED_TIME_MAX_NS 100000000ULL
/* MAX_PRIO: worse than the priority of any task. */
#define IDLE_PRIO 140

struct cfs2623_queue {
    u64 fair_clock;    /* time that a nice-0 task that is always runnable would have received, ns */
    u64 exec_clock;    /* time that fair tasks ran here, ns */
    u64 sleeper_bonus; /* credited to sleepers and not yet paid back by others, ns */
    u64 curr_key;      /* of its last (re-)insertion: pick, tick or yield */
    s64 curr_wait_runtime;
    u64 curr_sum_exec;                   /* the current task's sum_exec_runtime when it was last read, ns */
    u64 curr_prev_sum_exec;              /* the same when it was picked, ns */
    u64 curr_clock_ns;                   /* the clock when it was last read */
    u64 curr_ahead_ns;                   /* charged by the clock since then */
    u64 bonus_granted_ns, bonus_paid_ns; /* since the start */
    s64 clamped_ns;                      /* cut off by the bound of wait_runtime since the start: + above, - below */
    u32 curr_pid;                        /* 0: none, or one that was put and not yet replaced */
    u32 curr_weight;
    u32 curr_inverse;
    u32 sync_pid;         /* woken by this CPU's current task, which is about to sleep */
    u32 picked;           /* dispatch picked: the next task to run is not compared again */
    struct leftmost left; /* smallest key of the waiting tasks */
    u64 inverse_load;     /* the load that `inverse` belongs to */
    u64 inverse;
    u64 seen_fair_clock, seen_exec_clock, seen_ns; /* PRECISE_CPU_LOAD: at the last tick */
    u64 pulled_key;                                /* smallest key of tasks that balancing brought, */
    u32 pulled;                                    /* if any since the tick that asked for it */
    u32 balances;                                  /* that tick rescheduled only for the load balancer */
    s32 curr_prio;                                 /* static_prio; IDLE_PRIO when idle */
    u32 balance_call;                              /* see BALANCE_CALL */
} __attribute__((aligned(64)));

/* Per task, beside p->scx.dsq_vtime, which is the key. wait_runtime is the queue's while the task runs. */
struct cfs2623_task {
    s64 wait_runtime;     /* CPU time that it is owed, ns; negative: owes */
    u64 wait_start_fair;  /* the fair clock when it began to wait */
    u64 sleep_start_fair; /* the fair clock when it fell asleep; 0: not asleep */
    u64 delta_fair_run;   /* waited or slept, and not yet charged: see sched_stat_granularity_ns */
    u64 delta_fair_sleep;
    u32 cpu; /* the CPU of these two clock values, whose load counts it */
    u32 weight;
    u32 inverse;
    u32 is_new;
    u32 waiting;
};

struct cfs2623_queue cpu_queues[MAX_CPUS];

static __always_inline struct cfs2623_queue *queue_of(u32 cpu)
{
    return &cpu_queues[cpu & (MAX_CPUS - 1)];
}

#define BALANCE_CALL(cpu) (queue_of(cpu)->balance_call)

/* A base value times the factor of sched_init_granularity: 1 + floor(log2(CPUs)). */
static __always_inline u64 scaled(u64 base_ns)
{
    u64 time_ns = base_ns * scaling_factor(sched_tunable_scaling);

    return time_ns > SCALED_TIME_MAX_NS ? SCALED_TIME_MAX_NS : time_ns;
}

static __always_inline u64 ticks_ns(u32 ticks)
{
    return ticks * (1000000000ULL / (CONFIG_HZ ?: 1000));
}

/* sched_granularity of -rc1 to -rc3. */
static __always_inline u64 fixed_granularity(void)
{
    return scaled(sched_granularity_ns ?: ticks_ns(2));
}

static __always_inline u64 min_granularity(void)
{
    return scaled(sched_min_granularity_ns);
}

/* sched_granularity(): the key distance at which each of nr tasks has run latency / nr. */
static __always_inline u64 granularity(u64 nr)
{
    u64 latency_ns, gran_ns, least_ns;

    if (!rule_latency)
        return fixed_granularity();
    latency_ns = scaled(sched_latency_ns);
    if (nr < 2)
        return latency_ns;
    gran_ns = latency_ns / nr;
    gran_ns -= gran_ns / nr;
    least_ns = min_granularity();
    return gran_ns > least_ns ? gran_ns : least_ns;
}

static __always_inline u64 wakeup_granularity(u32 policy)
{
    if (unlikely(policy == SCHED_BATCH))
        return sched_batch_wakeup_granularity_ns ?: ticks_ns(10);
    if (sched_wakeup_granularity_ns)
        return scaled(sched_wakeup_granularity_ns);
    return (rule_latency ? min_granularity() : fixed_granularity()) / 2;
}

static __always_inline s64 runtime_limit(void)
{
    if (sched_runtime_limit_ns)
        return (s64)scaled(sched_runtime_limit_ns);
    return (s64)(rule_latency ? scaled(sched_latency_ns) : 4 * fixed_granularity());
}

/* __add_wait_runtime and limit_wait_runtime: what is beyond the bound is lost. `limit_ns` is runtime_limit(). */
static __always_inline s64 add_wait_runtime(struct cfs2623_queue *q, s64 wait_runtime, s64 delta_ns, s64 limit_ns)
{
    wait_runtime += delta_ns;
    if (unlikely(wait_runtime > limit_ns)) {
        q->clamped_ns += wait_runtime - limit_ns;
        wait_runtime = limit_ns;
    } else if (unlikely(wait_runtime < -limit_ns)) {
        q->clamped_ns += wait_runtime + limit_ns;
        wait_runtime = -limit_ns;
    }
    return wait_runtime;
}

/* delta * weight / load of the queue. */
static __always_inline u64 share_of(const struct cfs2623_queue *q, u64 delta_ns, u64 weight, s64 limit_ns)
{
    u64 share_ns = calc_delta_mine(delta_ns, weight, q->inverse, rule_rounds);

    if (!rule_rounds && share_ns > (u64)limit_ns)
        return (u64)limit_ns;
    return share_ns;
}

/* The current task's payment for sleepers, out of the delta_mine_ns that it was entitled to. */
static __noinline u64 pay_bonus(struct cfs2623_queue *q, u64 delta_exec_ns, u64 delta_mine_ns, s64 limit_ns)
{
    u64 bonus_ns = q->sleeper_bonus, pay_ns = bonus_ns, room_ns;

    if (rule_bonus == PAY_ALL) {
        room_ns = (u64)(limit_ns - q->curr_wait_runtime);
        pay_ns = delta_mine_ns;
        if (pay_ns > room_ns)
            pay_ns = room_ns;
    } else {
        if (rule_bonus == PAY_SHARE_OF_TIME && pay_ns > delta_exec_ns)
            pay_ns = delta_exec_ns;
        pay_ns = share_of(q, pay_ns, q->curr_weight, limit_ns);
    }
    if (pay_ns > bonus_ns)
        pay_ns = bonus_ns;
    q->sleeper_bonus = bonus_ns - pay_ns;
    q->bonus_paid_ns += pay_ns;
    return pay_ns;
}

/* Unpaid bonus below this is not collected. */
static __always_inline u64 bonus_threshold(void)
{
    if (rule_latency)
        return min_granularity();
    return rule_bonus == PAY_SHARE_OF_BONUS ? sched_stat_granularity_ns : fixed_granularity();
}

static __always_inline void refresh_inverse(struct cfs2623_queue *q, u64 load)
{
    if (q->inverse_load != load) {
        q->inverse_load = load;
        q->inverse = inverse_of_load(load, rule_rounds);
    }
}

/* __update_curr: the current task ran for delta_ns. It was entitled to its share of that; the fair clock advances. */
SEPARATE void charge_curr(struct cfs2623_queue *q, u32 cpu, u64 delta_ns)
{
    u64 load = READ_ONCE(tasks_of(cpu)->weight), fair_ns, mine_ns;
    s64 limit_ns;

    if (!q)
        return;
    q->exec_clock += delta_ns;
    if (unlikely(!load))
        return;
    limit_ns = runtime_limit();
    refresh_inverse(q, load);
    fair_ns = share_of(q, delta_ns, NICE_0_WEIGHT, limit_ns);
    mine_ns = q->curr_weight == NICE_0_WEIGHT ? fair_ns : share_of(q, delta_ns, q->curr_weight, limit_ns);
    if (q->sleeper_bonus && q->sleeper_bonus > bonus_threshold())
        mine_ns -= pay_bonus(q, delta_ns, mine_ns, limit_ns);
    q->fair_clock += fair_ns;
    q->curr_wait_runtime = add_wait_runtime(q, q->curr_wait_runtime, (s64)(mine_ns - delta_ns), limit_ns);
}

/*
 * update_curr where the kernel has just updated sum_exec_runtime (tick, dispatch, stopping, yield). If the clock
 * charged more than the task has run, the rest is deducted from the next charge: nothing is ever subtracted.
 */
static __always_inline void update_curr(struct cfs2623_queue *q, u32 cpu, const struct task_struct *p)
{
    u64 sum_exec = p->se.sum_exec_runtime;
    s64 delta_ns = (s64)(sum_exec - q->curr_sum_exec - q->curr_ahead_ns);

    if (delta_ns < 0 || (u64)delta_ns <= sched_stat_granularity_ns)
        return;
    charge_curr(q, cpu, (u64)delta_ns);
    q->curr_sum_exec = sum_exec;
    q->curr_ahead_ns = 0;
    q->curr_clock_ns = scx_bpf_now();
}

/* update_curr from other callbacks: a wake-up charges the current task up to now by the clock. */
static __always_inline void update_curr_by_clock(struct cfs2623_queue *q, u32 cpu)
{
    s64 delta_ns;

    if (!q->curr_pid)
        return;
    delta_ns = (s64)(scx_bpf_now() - q->curr_clock_ns - q->curr_ahead_ns);
    if (delta_ns < 0 || (u64)delta_ns <= sched_stat_granularity_ns)
        return;
    charge_curr(q, cpu, (u64)delta_ns);
    q->curr_ahead_ns += (u64)delta_ns;
}

/* Another CPU's fair clock as it would be after update_curr; without its lock, changes nothing. */
SEPARATE u64 fair_clock_of_other(u32 cpu)
{
    const struct cfs2623_queue *q = queue_of(cpu);
    u64 load = READ_ONCE(tasks_of(cpu)->weight), fair_clock = READ_ONCE(q->fair_clock);
    s64 delta_ns = (s64)(scx_bpf_now() - READ_ONCE(q->curr_clock_ns) - READ_ONCE(q->curr_ahead_ns));

    if (!READ_ONCE(q->curr_pid) || !load || delta_ns <= 0)
        return fair_clock;
    return fair_clock +
           calc_delta_mine((u64)delta_ns, NICE_0_WEIGHT, inverse_of_load(load, rule_rounds), rule_rounds);
}

/*
 * PRECISE_CPU_LOAD, at a tick after update_curr: the load that corresponds to the advance of the fair clock in the
 * time that tasks ran, times the busy part of the tick. With a constant load W it is nearly W.
 */
SEPARATE u64 precise_load(u32 cpu)
{
    struct cfs2623_queue *q = queue_of(cpu);
    u64 now_ns = scx_bpf_now(), tick_ns = ticks_ns(1), interval_ns = now_ns - q->seen_ns;
    u64 fair_ns = q->fair_clock - q->seen_fair_clock + 1, exec_ns = q->exec_clock - q->seen_exec_clock + 1;

    q->seen_ns = now_ns;
    q->seen_fair_clock = q->fair_clock;
    q->seen_exec_clock = q->exec_clock;
    if (!PRECISE_CPU_LOAD)
        return cpu_weight(cpu);
    /* After an idle time: the balancer makes up for the idle ticks that the kernel would have had. */
    if (interval_ns < tick_ns || interval_ns > 2 * tick_ns)
        interval_ns = tick_ns;
    if (exec_ns > interval_ns)
        exec_ns = interval_ns;
    return NICE_0_WEIGHT * exec_ns / fair_ns * exec_ns / interval_ns;
}

/* Wall ns that the current task has run since it was picked. */
static __always_inline u64 curr_ran(const struct cfs2623_queue *q)
{
    return q->curr_sum_exec + q->curr_ahead_ns - q->curr_prev_sum_exec;
}

SEPARATE u64 key_of(u64 fair_clock, s64 wait_runtime, u32 weight, u32 inverse)
{
    return fair_clock - (u64)key_distance(wait_runtime, weight, inverse, rule_key_multiplies);
}

/* Re-insertion of the current task: its key is brought up to date. */
static __always_inline void refresh_curr_key(struct cfs2623_queue *q)
{
    q->curr_key = key_of(q->fair_clock, q->curr_wait_runtime, q->curr_weight, q->curr_inverse);
}

static __always_inline void wait_start(const struct cfs2623_queue *q, struct cfs2623_task *t)
{
    t->wait_start_fair = q->fair_clock;
    t->waiting = true;
}

/* min(2 * limit, now - start) of two readings of one fair clock. */
static __always_inline u64 fair_since(u64 fair_clock, u64 start, s64 limit_ns)
{
    s64 delta_ns = time_diff(fair_clock, start), most_ns = 2 * limit_ns;

    if (delta_ns < 0)
        return 0;
    return (u64)(delta_ns > most_ns ? most_ns : delta_ns);
}

/* The wait_runtime that a wait up to `fair_clock` adds, ns. */
static __always_inline u64 waited(const struct cfs2623_task *t, u64 fair_clock)
{
    if (!t->waiting || (rule_wait_needs_start && !t->wait_start_fair))
        return 0;
    return calc_weighted(fair_since(fair_clock, t->wait_start_fair, runtime_limit()), t->weight);
}

/* update_stats_wait_end: it is picked, or leaves while it waits. */
static __always_inline void wait_end(struct cfs2623_queue *q, struct cfs2623_task *t)
{
    s64 limit_ns;
    u64 fair_ns;

    if (!t->waiting)
        return;
    t->waiting = false;
    if (rule_wait_needs_start && !t->wait_start_fair)
        return;
    limit_ns = runtime_limit();
    fair_ns = fair_since(q->fair_clock, t->wait_start_fair, limit_ns) + t->delta_fair_run;
    t->wait_start_fair = 0;
    if (fair_ns < sched_stat_granularity_ns) {
        t->delta_fair_run = fair_ns;
        return;
    }
    t->delta_fair_run = 0;
    t->wait_runtime = add_wait_runtime(q, t->wait_runtime, (s64)calc_weighted(fair_ns, t->weight), limit_ns);
}

/* enqueue_sleeper: as if it had waited while it slept. `load` is without the task, load_avg is cpu_load[2]. */
static __always_inline void end_sleep(struct cfs2623_queue *q, struct cfs2623_task *t, u32 policy, u64 load,
                                      u64 load_avg)
{
    s64 before_ns = t->wait_runtime, limit_ns;
    u64 fair_ns;

    if (policy == SCHED_BATCH || !FAIR_SLEEPERS)
        return;
    limit_ns = runtime_limit();
    fair_ns = fair_since(q->fair_clock, t->sleep_start_fair, limit_ns) + t->delta_fair_sleep;
    t->sleep_start_fair = 0;
    t->delta_fair_sleep = 0;
    if (fair_ns < sched_stat_granularity_ns) {
        t->delta_fair_sleep = fair_ns;
        return;
    }
    if (rule_bonus_limit && q->sleeper_bonus > (u64)limit_ns)
        return;
    if (SLEEPER_AVG) {
        if (SLEEPER_LOAD_AVG)
            load = load_avg;
        fair_ns = fair_ns * load / (load + t->weight);
    }
    t->wait_runtime = add_wait_runtime(q, before_ns, (s64)calc_weighted(fair_ns, t->weight), limit_ns);
    q->sleeper_bonus += (u64)(t->wait_runtime - before_ns);
    q->bonus_granted_ns += (u64)(t->wait_runtime - before_ns);
}

#endif
