/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The interactivity estimator of `o1`: sleep_avg, the bonus that follows from it, time slices, and the credit for a
 * sleep.
 *
 * sleep_avg is at most one second: sleep increases it, run time decreases it, and the higher the bonus the slower the
 * decrease. A tenth of a second is one bonus point; five points are neutral. The constants are those of
 * kernel/sched.c in 2.6.22, where they depend on HZ: a "jiffy" is a tick, and slices are whole jiffies. At HZ 1000,
 * 250 and 100 a slice at nice 0 is 100, 25 and 10 jiffies, always 100 ms; the smallest one is 5, 1 and 1, that is 5,
 * 4 and 10 ms.
 *
 * Example: a task with sleep_avg 900 ms has bonus 9. Running for 90 ms takes 90 / 9 = 10 ms from it.
 */
#ifndef FAIRGROUND_O1_ESTIMATOR_BPF_H
#define FAIRGROUND_O1_ESTIMATOR_BPF_H

#include "cpus.bpf.h"

/* Priorities: 100 for nice -20 to 139 for nice 19; the smaller the better. 0 to 99 are those of real-time tasks. */
#define MAX_RT_PRIO   100
#define MAX_PRIO      140
#define NICE_0_PRIO   120
#define MAX_BONUS     10
#define NEUTRAL_BONUS (MAX_BONUS / 2)
#define MS_PER_SECOND 1000

TUNABLE(s32, INTERACTIVE_DELTA, 2, UNIT("bonus points"),
        DOC("bonus above neutral that rates a task of nice 0 interactive; nice shifts it by -5 to +4"));
TUNABLE(u32, CHILD_PENALTY, 95, UNIT("percent"), DOC("part of its bonus that a new task starts with"));
TUNABLE(u32, PARENT_PENALTY, 100, UNIT("percent"), DOC("part of its bonus that a task keeps when it forks"));
TUNABLE(u32, EXIT_WEIGHT, 3, UNIT("count"),
        DOC("a child that exits with the lower sleep_avg lowers its parent's: parent : child = this : 1"));
TUNABLE(u32, ON_RUNQUEUE_WEIGHT, 30, UNIT("percent"),
        DOC("part of the wait for a CPU that counts as sleep after a wake-up by another task; by an interrupt: all"));

TUNABLE(
    bool, rule_launcher_slept, true, UNIT("bool"),
    DOC("a task that starts from outside of the machine inherits from a launcher that one long sleep has made just "
        "interactive, a shell that waited for its user; off: it starts with no sleep_avg"));

/* The kernel's HZ. 0 where the loader found no configuration: it is then measured (o1.bpf.c, measure_hz). */
extern unsigned int CONFIG_HZ __kconfig __weak;

#define HZ_FALLBACK 250

/* Values derived from HZ. Times are in ticks unless their names end in _ns. */
struct o1_times {
    u64 tick_ns;
    u64 bonus_ns;         /* sleep_avg per bonus point: a tenth of max_sleep_avg */
    u64 max_sleep_avg_ns; /* one second */
    u32 hz;
    u32 def_timeslice;
    u32 min_timeslice;
    u32 granularity;
};

struct o1_times o1_times;

/* The kind of sleep before the present wake-up; NORMAL once the task has run. */
enum sleep_type { SLEEP_NORMAL, SLEEP_NONINTERACTIVE, SLEEP_INTERACTIVE, SLEEP_INTERRUPTED };

/* Whether a task that is enqueued preempts the current one. */
enum preempts { PREEMPTS_NOT, PREEMPTS_IF_BETTER, PREEMPTS_ALWAYS };

/* Per-task state of `o1`. Times in ns of the monotonic clock. */
struct o1_task {
    u64 key;           /* position in its array: see task_key() */
    u64 sleep_avg_ns;  /* 0 to one second */
    u64 timestamp_ns;  /* when it came onto or left a CPU, or woke up */
    u64 last_ran_ns;   /* when it came onto or left a CPU */
    u32 time_slice;    /* ticks left */
    u32 prio;          /* dynamic: static_prio less the bonus */
    u32 static_prio;   /* 120 + nice, as last read */
    u32 policy;        /* likewise */
    u32 sleep_type;    /* enum sleep_type */
    u32 cpu;           /* the CPU whose queue counts it */
    u32 weight;        /* for balancing, 128 at nice 0 */
    u8 array;          /* 0 or 1: which of the two arrays of that CPU it is in */
    bool is_new;       /* has not been woken up yet */
    bool has_parent;   /* forked by a task that shared its slice with it */
    bool first_slice;  /* in the slice that its parent shared */
    bool fork_expired; /* gave its last tick to a child: its slice is used up */
    u8 preempts;       /* enum preempts, while it is being enqueued */
};

static void set_times(u32 hz)
{
    struct o1_times *x = &o1_times;

    x->hz = hz;
    x->tick_ns = 1000000000 / hz;
    x->def_timeslice = 100 * hz / MS_PER_SECOND;
    x->min_timeslice = 5 * hz / MS_PER_SECOND;
    x->granularity = 10 * hz / MS_PER_SECOND;
    if (!x->def_timeslice)
        x->def_timeslice = 1;
    if (!x->min_timeslice)
        x->min_timeslice = 1;
    if (!x->granularity)
        x->granularity = 1;
    x->bonus_ns = x->tick_ns * x->def_timeslice;
    x->max_sleep_avg_ns = x->bonus_ns * MAX_BONUS;
}

/* SCHED_IDLE came with 2.6.23: here such a task is one of nice 19. */
static __always_inline u32 static_prio_of(const struct task_struct *p)
{
    u32 prio = (u32)p->static_prio;

    return p->policy == SCHED_IDLE || prio < MAX_RT_PRIO || prio >= MAX_PRIO ? MAX_PRIO - 1 : prio;
}

/* SCALE_PRIO: 5 ms less per nice level from 100 ms at nice 0 on, 20 ms more per level above it. */
static __always_inline u32 task_timeslice(u32 static_prio)
{
    u32 base = o1_times.def_timeslice * (static_prio < NICE_0_PRIO ? 4 : 1);
    u32 slice = base * (MAX_PRIO - static_prio) / 20;

    return slice > o1_times.min_timeslice ? slice : o1_times.min_timeslice;
}

/* A task's weight in balancing: 128 for a slice of 100 ms. */
static __always_inline u32 slice_weight(u32 static_prio)
{
    return task_timeslice(static_prio) * 128 / o1_times.def_timeslice;
}

/* Reads nice value and policy. True: one of them has changed. */
static __always_inline bool note_attributes(const struct task_struct *p, struct o1_task *t)
{
    u32 policy = p->policy, prio = static_prio_of(p);
    bool changed = prio != t->static_prio || policy != t->policy;

    t->static_prio = prio;
    t->policy = policy;
    if (!changed)
        return false;
    t->weight = slice_weight(prio);
    if (policy == SCHED_BATCH)
        t->sleep_avg_ns = 0;
    return true;
}

/* CURRENT_BONUS: 0 to 10. */
static __always_inline u32 current_bonus(const struct o1_task *t)
{
    return (u32)(t->sleep_avg_ns / o1_times.bonus_ns);
}

static __always_inline u32 effective_prio(const struct o1_task *t)
{
    u32 prio = t->static_prio + NEUTRAL_BONUS - current_bonus(t);

    if (prio < MAX_RT_PRIO)
        return MAX_RT_PRIO;
    return prio < MAX_PRIO ? prio : MAX_PRIO - 1;
}

/* DELTA: -3 at nice -20, 2 at nice 0, 6 at nice 19, which no bonus reaches. */
static __always_inline s32 interactive_delta(u32 static_prio)
{
    return (s32)((static_prio - MAX_RT_PRIO) / 4) - NEUTRAL_BONUS + INTERACTIVE_DELTA;
}

/* TASK_INTERACTIVE, for its present prio. */
static __always_inline bool is_interactive(const struct o1_task *t)
{
    return (s32)t->prio <= (s32)t->static_prio - interactive_delta(t->static_prio);
}

/* INTERACTIVE_SLEEP: the ceiling of a single long sleep; one tick below the bonus after "interactive". */
static __always_inline u64 interactive_sleep_ns(u32 static_prio)
{
    s32 points = NEUTRAL_BONUS + interactive_delta(static_prio) + 1;

    return points > 0 ? (u32)points * o1_times.bonus_ns - o1_times.tick_ns : 0;
}

/* The part of a sleep that counts, where the ceiling may be reached. Longer than that, or not ended by itself: see above. */
static __noinline u64 credit_below_ceiling(struct o1_task *t, u64 slept_ns)
{
    u64 ceiling_ns = interactive_sleep_ns(t->static_prio), sleep_avg_ns = t->sleep_avg_ns;

    if (sleep_avg_ns >= ceiling_ns)
        return t->sleep_type == SLEEP_NONINTERACTIVE ? 0 : slept_ns;
    if (slept_ns > ceiling_ns)
        t->sleep_type = SLEEP_NONINTERACTIVE;
    else if (t->sleep_type != SLEEP_NONINTERACTIVE || sleep_avg_ns + slept_ns < ceiling_ns)
        return slept_ns;
    return ceiling_ns - sleep_avg_ns;
}

/* recalc_task_prio: `slept_ns` of sleep, or of waiting that counts as sleep. Sets sleep_avg, sleep_type and prio. */
static __noinline void account_sleep(struct o1_task *t, u64 slept_ns, bool is_user)
{
    u64 sleep_avg_ns;

    if (t->policy != SCHED_BATCH) {
        /* No ceiling but 0 is below that of one bonus point, and 0 limits nothing. */
        if (is_user && (slept_ns > o1_times.bonus_ns - o1_times.tick_ns || t->sleep_type == SLEEP_NONINTERACTIVE))
            slept_ns = credit_below_ceiling(t, slept_ns);
        sleep_avg_ns = t->sleep_avg_ns + slept_ns;
        t->sleep_avg_ns = sleep_avg_ns < o1_times.max_sleep_avg_ns ? sleep_avg_ns : o1_times.max_sleep_avg_ns;
    }
    t->prio = effective_prio(t);
}

/* The loss in schedule(): run time since the task came onto the CPU, divided by its bonus. */
static __always_inline void account_run(struct o1_task *t, u64 now_ns)
{
    u64 ran_ns = now_ns - t->timestamp_ns;
    s64 left_ns = (s64)t->sleep_avg_ns;
    u32 bonus;

    t->timestamp_ns = now_ns;
    t->last_ran_ns = now_ns;
    if (!left_ns || (s64)ran_ns <= 0)
        return;
    bonus = current_bonus(t);
    if (ran_ns > o1_times.max_sleep_avg_ns)
        ran_ns = o1_times.max_sleep_avg_ns;
    if (bonus > 1)
        ran_ns /= bonus;
    left_ns -= (s64)ran_ns;
    t->sleep_avg_ns = left_ns > 0 ? (u64)left_ns : 0;
}

/* The kinds of sleep after which schedule(), at the first pick, counts the wait for the CPU too. */
static __always_inline bool wait_counts(const struct o1_task *t)
{
    return t->sleep_type >= SLEEP_INTERACTIVE;
}

/* That wait. True: the task's prio changed. */
static __always_inline bool account_wait(struct o1_task *t, u64 now_ns, bool is_user)
{
    u64 waited_ns = now_ns - t->timestamp_ns;
    u32 before = t->prio;

    if ((s64)waited_ns < 0)
        waited_ns = 0;
    /* In 128ths, as the kernel does. */
    if (t->sleep_type == SLEEP_INTERACTIVE)
        waited_ns = waited_ns * (ON_RUNQUEUE_WEIGHT * 128 / 100) / 128;
    account_sleep(t, waited_ns, is_user);
    return t->prio != before;
}

/* A fork rounds both sides down to whole bonus points (wake_up_new_task). */
static __always_inline u64 penalised(const struct o1_task *t, u32 percent)
{
    u64 sleep_avg_ns = current_bonus(t) * percent / 100 * o1_times.bonus_ns;

    return sleep_avg_ns < o1_times.max_sleep_avg_ns ? sleep_avg_ns : o1_times.max_sleep_avg_ns;
}

#endif
