/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The busiest group and queue, and the load to take: find_busiest_group and find_busiest_queue.
 *
 * A CPU searches for itself. It takes from the group with the highest load that has more tasks than power, when that
 * one is imbalance_pct above its own group and its own group is below the average:
 *
 *     imbalance = min(max - avg, max - lpt, avg - this)        lpt: mean load of a task of the busiest group
 *
 * Example, 10 tasks of nice 0 on 8 CPUs of one domain: loads 2048 twice and 1024 six times, average 1280. A CPU with
 * one task finds min(768, 1024, 256) = 256: a quarter of a task. Whether that moves a task is decided by the
 * small-imbalance rule, the subject of the patch of July 2007: see rule_small_imbalance, sched_load_scale_fuzz and
 * docs/explanation/balancing.md.
 *
 * The cost of a search: it reads the load of every CPU of the domain, as the kernel's does, at each switch to idle
 * while any CPU has two tasks. The kernel computes everything on the way. Where each group is a single CPU this code
 * keeps only a sum and a maximum, and where these CPUs are neighbours in memory it takes eight of them at a time
 * (scan_neighbours). Where loads are weights it caches the result for each eight until a task joins or leaves one of
 * them. The outcome is the same with fewer instructions, so this balancer is cheaper on a large machine than the
 * kernel's. `sched show --cost` counts its own.
 */
#ifndef FAIRGROUND_BALANCE_GROUP_BPF_H
#define FAIRGROUND_BALANCE_GROUP_BPF_H

#include "balance_kinds.bpf.h"

/* CPUs in one iteration of the scan of neighbours, which share the cost of the iteration. */
#define SCAN_STEP 8

#define FINDS(verdict) ((verdict) >= NORMAL)

#define SAY_BALANCE(verdict, text)                                                                                   \
    case verdict:                                                                                                    \
        bpf_printk("balance " text ": cpu %d level %d busiest %d imbalance %d max %d this %d avg %d lpt %d", cpu,    \
                   level, (s32)s->busiest_cpu, (u32)s->imbalance, (u32)s->max_load, (u32)s->this_load,               \
                   (u32)s->avg_load, (u32)s->lpt);                                                                   \
        break

/* One line for the trace. */
SEPARATE void say_verdict(u32 cpu, u32 level)
{
    struct group_scan *s = &balance_of(cpu)->scan;

    switch (s->rule) {
        SAY_BALANCE(NO_BUSIEST, "nobody");
        SAY_BALANCE(NOT_BUSIER, "even");
        SAY_BALANCE(ONE_TASK, "one-task");
        SAY_BALANCE(SMALL_NO_GAIN, "small-no-gain");
        SAY_BALANCE(NO_QUEUE, "no-queue");
        SAY_BALANCE(NORMAL, "normal");
        SAY_BALANCE(SMALL_DIFFERENCE, "small-difference");
        SAY_BALANCE(SMALL_GAIN, "small-gain");
        SAY_BALANCE(SMALL_KEPT, "small-kept");
        SAY_BALANCE(SPARE, "spare");
    }
}

static __always_inline u64 least(u64 a, u64 b)
{
    return a < b ? a : b;
}

/* Adds a CPU to the sums of the present group. */
static __always_inline void add_cpu(struct group_scan *s, u32 cpu, u32 other, bool local, u32 idx)
{
    u64 load = local ? target_load(other, idx) : source_load(other, idx);
    u64 weight = cpu_weight(other);
    u32 nr = nr_running(other);

    if (local) {
        if (!nr && s->balance_cpu == ~0u)
            s->balance_cpu = other;
    } else {
        if (load > s->max_cpu_load)
            s->max_cpu_load = load;
        if (load < s->min_cpu_load)
            s->min_cpu_load = load;
    }
    if (nr && other != cpu)
        s->sibling_busy = true;
    if (!nr)
        s->sum_idle++;
    s->sum_load += load;
    s->sum_weight += weight;
    s->sum_nr += nr;
    if (rule_group_imb == GROUP_IMB_TWO_TASKS)
        s->sum_per_task += nr > 1 ? weight / nr : weight;
}

/* Whether the loads of a group's CPUs differ so much that it counts as overloaded whatever its number of tasks. */
static __always_inline bool group_imbalanced(const struct group_scan *s, u32 cpus)
{
    u64 difference = s->max_cpu_load - s->min_cpu_load;

    if (cpus < 2 || s->max_cpu_load < s->min_cpu_load)
        return false;
    if (rule_group_imb == GROUP_IMB_SCALE)
        return difference > BALANCE_SCALE;
    return rule_group_imb == GROUP_IMB_TWO_TASKS && difference > 2 * (s->sum_per_task / cpus);
}

/* The last CPU of a group has been added. */
static __always_inline void close_group(struct group_scan *s, u32 level, u32 place, bool local)
{
    const struct unit *group = unit_at(level, place);
    u64 power = group_power(level, place), load = s->sum_load;

    s->total_load += load;
    s->total_power += power;
    if (power != BALANCE_SCALE)
        load = load * BALANCE_SCALE / (power ?: 1);
    if (local) {
        s->this_load = load;
        s->this_nr = s->sum_nr;
        s->this_weight = s->sum_weight;
        s->this_power = power;
        s->this_idle = s->sum_idle;
        if (s->balance_cpu == ~0u)
            s->balance_cpu = cpu_at(group->first);
    } else {
        bool imbalanced = rule_imbalance == IMBALANCE_BY_LOAD && group_imbalanced(s, group->end - group->first);
        bool busier = rule_imbalance == IMBALANCE_BY_KIND
                          ? is_busier(s, load, group->end - group->first)
                          : load > s->max_load && (s->sum_nr > power / BALANCE_SCALE || imbalanced);

        if (busier) {
            s->max_load = load;
            s->busiest_nr = s->sum_nr;
            s->busiest_idle = s->sum_idle;
            s->busiest_weight = s->sum_weight;
            s->busiest_power = power;
            s->busiest_first = group->first;
            s->busiest_end = group->end;
            s->busiest_imb = imbalanced;
            s->found = true;
        }
    }
    s->sum_load = s->sum_weight = s->sum_nr = s->sum_per_task = s->max_cpu_load = s->sum_idle = 0;
    s->min_cpu_load = ~0ULL;
}

/*
 * Scans a group of a single CPU: it is the busiest if it has the highest load of those with two tasks. Returns the
 * load, for the sum. The state is in memory, where the verifier does not track its value: in a register each
 * comparison would make the iterations of a loop differ.
 */
static __always_inline u64 pass_cpu(struct group_scan *s, u32 place, u64 load, const u32 *nr)
{
    if (load > READ_ONCE(s->max_load) && *nr > 1) {
        WRITE_ONCE(s->max_load, load);
        WRITE_ONCE(s->busiest_first, place);
    }
    return load;
}

/* The result of such a scan as groups. `others`: the load of all other CPUs together. */
static __always_inline void close_cpus(u32 cpu, u32 level, u32 idx, u64 others)
{
    struct group_scan *s = &balance_of(cpu)->scan;
    const struct unit *span = unit_at(level + 1, place_of(cpu));
    u32 busiest = cpu_at(s->busiest_first);

    s->this_load = target_load(cpu, idx);
    s->total_load = s->this_load + others;
    s->total_power = (span->end - span->first) * BALANCE_SCALE;
    s->balance_cpu = cpu;
    s->this_nr = nr_running(cpu);
    s->this_idle = !s->this_nr;
    s->this_weight = cpu_weight(cpu);
    s->this_power = s->busiest_power = BALANCE_SCALE;
    s->busiest_end = s->busiest_first + 1;
    s->busiest_nr = cpu_tasks[busiest].nr;
    s->busiest_weight = cpu_tasks[busiest].weight;
    s->found = s->max_load > 0;
}

/* The scan of a domain whose groups are single CPUs, the usual kind: from the next CPU on, round. */
SEPARATE void scan_cpus(u32 cpu, u32 level, u32 idx)
{
    struct balance_cpu *b = balance_of(cpu);
    u32 own = place_of(cpu), i;
    const struct unit *span = unit_at(level + 1, own);
    u32 end = span->end, cpus = end - span->first;
    u64 others = 0;

    for_range (i, cpus - 1) {
        u32 ahead = own + 1 + i, place = ahead < end ? ahead : ahead - cpus, other = cpu_at(place);

        if (!is_left_out(b, other))
            others += pass_cpu(&b->scan, place, source_load(other, idx), &cpu_tasks[other].nr);
    }
    close_cpus(cpu, level, idx, others);
}

/* The averages of the CPUs from `at` on. */
static __always_inline u64 pass_averages(struct group_scan *s, const u64 *averages, u32 at)
{
    const struct cpu_tasks *tasks = &cpu_tasks[at];
    u64 sum = 0;
    u32 j;

    averages += at;
    /* One address each for all of them. */
    barrier_var(tasks);
    barrier_var(averages);
#pragma unroll
    for (j = 0; j < SCAN_STEP; j++)
        sum += pass_cpu(s, at + j, least(tasks[j].weight, averages[j]), &tasks[j].nr);
    return sum;
}

/* The CPUs of a step as of the last search; initially without tasks. */
struct step_sums {
    u64 weight;   /* sum over them */
    u64 most;     /* maximum over those with two tasks; 0: none */
    u64 most_cpu; /* the first CPU with that maximum */
};

struct step_sums step_sums[MAX_CPUS / SCAN_STEP];

/*
 * Scans the CPUs of a step. A change during the scan is seen by it or by the next one. Other CPUs may scan at the
 * same time, so the state belongs to the CPU that searches.
 */
static __noinline void sum_step(u32 cpu, u32 at)
{
    u32 first = BOUNDED(at, MAX_CPUS) & -SCAN_STEP, j;
    struct group_scan *s = &balance_of(cpu)->scan;
    struct step_sums *step = &step_sums[first / SCAN_STEP];

    WRITE_ONCE(*(u64 *)&cpu_changed[first], 0);
    s->sum_weight = s->max_cpu_load = 0;
    for_range (j, SCAN_STEP) {
        u32 other = first + (j & (SCAN_STEP - 1));

        s->sum_weight += cpu_tasks[other].weight;
        if (cpu_tasks[other].nr > 1 && cpu_tasks[other].weight > s->max_cpu_load) {
            s->max_cpu_load = cpu_tasks[other].weight;
            step->most_cpu = other;
        }
    }
    WRITE_ONCE(step->weight, s->sum_weight);
    WRITE_ONCE(step->most, s->max_cpu_load);
}

/* The weights of the CPUs from `at` on: at index 0 these are their loads. */
static __always_inline u64 pass_weights(u32 cpu, struct group_scan *s, u32 at)
{
    struct step_sums *step = &step_sums[at / SCAN_STEP];

    if (READ_ONCE(*(u64 *)&cpu_changed[at & -SCAN_STEP]))
        sum_step(cpu, at);
    if (READ_ONCE(step->most) > READ_ONCE(s->max_load)) {
        WRITE_ONCE(s->max_load, step->most);
        WRITE_ONCE(s->busiest_first, step->most_cpu);
    }
    return step->weight;
}

/* CPUs one by one, from `first` to before `end`. */
static __always_inline u64 pass_part(struct group_scan *s, u32 idx, u32 first, u32 end)
{
    u64 sum = 0;
    u32 i;

    for_range (i, end - first) {
        u32 cpu = (first + i) & (MAX_CPUS - 1);

        sum += pass_cpu(s, cpu, source_load(cpu, idx), &cpu_tasks[cpu].nr);
    }
    return sum;
}

/* The steps after the CPU's own one, round. */
static __always_inline u64 pass_steps(u32 cpu, u32 idx, u32 own, const struct unit *span, struct group_scan *s)
{
    const u64 *averages = cpu_load_of(0, load_index(idx));
    u32 end = span->end, cpus = end - span->first, i;
    u64 sum = 0;

    for_range (i, cpus / SCAN_STEP - 1) {
        u32 ahead = own + (i + 1) * SCAN_STEP, place = ahead < end ? ahead : ahead - cpus;

        place = BOUNDED(place, MAX_CPUS) & -SCAN_STEP;
        sum += idx ? pass_averages(s, averages, place) : pass_weights(cpu, s, place);
    }
    return sum;
}

/*
 * The same scan where indexes are CPU numbers: the CPUs of its own step after the CPU come first, those before it
 * last.
 */
SEPARATE void scan_neighbours(u32 cpu, u32 level, u32 idx)
{
    struct group_scan *s = &balance_of(cpu)->scan;
    const struct unit *span = unit_at(level + 1, place_of(cpu));
    u32 own = BOUNDED(cpu, MAX_CPUS) & -SCAN_STEP;
    u64 others = pass_part(s, idx, cpu + 1, own + SCAN_STEP);

    others += idx ? pass_steps(cpu, idx, own, span, s) : pass_steps(cpu, 0, own, span, s);
    others += pass_part(s, idx, own, cpu);
    close_cpus(cpu, level, idx, others);
}

/* Scans the groups of a CPU's domain, from its own one on, round: of equal groups the next one counts as busiest. */
SEPARATE void scan_groups(u32 cpu, u32 level, u32 idx)
{
    struct balance_cpu *b = balance_of(cpu);
    struct group_scan *s = &b->scan;
    const struct unit *own = unit_at(level, place_of(cpu)), *span = unit_at(level + 1, place_of(cpu));
    u32 i, cpus = span->end - span->first;

    for_range (i, cpus) {
        u32 ahead = own->first + i, place = ahead < span->end ? ahead : ahead - cpus, other = cpu_at(place);
        bool local = place >= own->first && place < own->end;

        if (!is_left_out(b, other))
            add_cpu(s, cpu, other, local, idx);
        if (place + 1 == unit_at(level, place)->end)
            close_group(s, level, place, local);
    }
}

/* The second test: is the imbalance so small that moving a task only swaps the roles? */
static __always_inline bool is_small(u64 imbalance, u64 lpt)
{
    switch (rule_small_imbalance) {
    case SMALL_HALF_LPT_FUZZ:
        return imbalance + sched_load_scale_fuzz < lpt / 2;
    case SMALL_LPT_FUZZ:
        return imbalance + sched_load_scale_fuzz < lpt;
    default:
        return imbalance < lpt;
    }
}

/* Throughput of both groups, in loads that fit their power, before and after one task has moved. */
static __always_inline bool move_gains(const struct group_scan *s, u64 this_lpt)
{
    u64 now = s->busiest_power * least(s->lpt, s->max_load) + s->this_power * least(this_lpt, s->this_load);
    u64 off = s->lpt * BALANCE_SCALE / (s->busiest_power ?: 1);
    u64 onto = least(s->max_load * s->busiest_power, s->lpt * BALANCE_SCALE) / (s->this_power ?: 1);
    u64 moved = s->this_power * least(this_lpt, s->this_load + onto);

    if (s->max_load > off)
        moved += s->busiest_power * least(s->lpt, s->max_load - off);
    return moved / BALANCE_SCALE > now / BALANCE_SCALE;
}

static __always_inline u32 small_imbalance(struct group_scan *s)
{
    u64 tasks = 2, this_lpt = BALANCE_SCALE, extra;

    if (s->this_nr) {
        this_lpt = s->this_weight / s->this_nr;
        if (s->lpt > this_lpt)
            tasks = 1;
    }
    extra = rule_difference_tasks ? rule_difference_tasks * s->lpt : sched_load_scale_fuzz;
    if (s->max_load - s->this_load + extra >= s->lpt * tasks) {
        s->imbalance = s->lpt;
        return SMALL_DIFFERENCE;
    }
    if (move_gains(s, this_lpt)) {
        s->imbalance = s->lpt;
        return SMALL_GAIN;
    }
    return rule_small_no_gain_moves ? SMALL_KEPT : SMALL_NO_GAIN;
}

/* The arithmetic of find_busiest_group, from the sums. Sets avg_load, lpt and imbalance. */
SEPARATE u32 weigh_groups(u32 cpu, u32 level)
{
    struct group_scan *s = &balance_of(cpu)->scan;
    u64 off, onto;

    if (!s->found || !s->busiest_nr)
        return NO_BUSIEST;
    s->avg_load = BALANCE_SCALE * s->total_load / (s->total_power ?: 1);
    s->lpt = s->busiest_weight / s->busiest_nr;
    if (s->busiest_imb)
        s->lpt = least(s->lpt, s->avg_load);
    if (s->this_load >= s->max_load || s->this_load >= s->avg_load ||
        100 * s->max_load <= params_of(level)->imbalance_pct * s->this_load)
        return NOT_BUSIER;
    if (s->max_load <= s->lpt)
        return ONE_TASK;
    if (s->max_load < s->avg_load)
        return small_imbalance(s);
    off = least(s->max_load - s->avg_load, s->max_load - s->lpt) * s->busiest_power;
    onto = (s->avg_load - s->this_load) * s->this_power;
    s->imbalance = least(off, onto) / BALANCE_SCALE;
    return is_small(s->imbalance, s->lpt) ? small_imbalance(s) : NORMAL;
}

/*
 * find_busiest_queue: the CPU of the busiest group with the highest load, or with the most tasks; not one that runs
 * its only task.
 */
SEPARATE u32 find_busiest_queue(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);
    struct group_scan *s = &b->scan;
    u32 i, busiest = ~0u, first = s->busiest_first;
    u64 max_load = 0;

    for_range (i, s->busiest_end - first) {
        u32 other = cpu_at(first + i);
        u64 load = s->by_tasks ? cpu_tasks[other].nr : cpu_tasks[other].weight;

        if (is_left_out(b, other) || (cpu_tasks[other].nr == 1 && !s->by_tasks && load > s->imbalance))
            continue;
        if (load > max_load) {
            max_load = load;
            busiest = other;
        }
    }
    return busiest;
}

/* Whether a domain's CPUs are neighbours in memory, in whole steps, none of them excluded. */
static __always_inline bool are_neighbours(const struct balance_cpu *b, const struct unit *span)
{
    return cpus_in_order && !b->left_out_count && !((span->first | span->end) & (SCAN_STEP - 1));
}

/*
 * Searches one domain of a CPU for work. scan.rule is the rule that decided; the rest of scan is from where, and how
 * much.
 */
SEPARATE bool find_work(u32 cpu, u32 level, u32 idle)
{
    struct balance_cpu *b = balance_of(cpu);
    struct group_scan *s = &b->scan;
    const struct domain_params *params = params_of(level);
    u32 idx = idle == NOT_IDLE ? params->busy_idx : idle == NEWLY_IDLE ? params->newidle_idx : params->idle_idx;
    /* Whether a sibling has work is checked at the lowest level only. */
    bool of_cpus = level > DOMAIN_SMT && groups_are_cpus[level & (DOMAIN_LEVELS - 1)];

    __builtin_memset(s, 0, sizeof(*s));
    s->min_cpu_load = ~0ULL;
    s->balance_cpu = s->busiest_cpu = ~0u;
    s->one_only = rule_imbalance == IMBALANCE_BY_KIND && idle == NEWLY_IDLE;
    if (of_cpus && idx != LOAD_OVER_TIME && are_neighbours(b, unit_at(level + 1, place_of(cpu))))
        scan_neighbours(cpu, level, idx);
    else if (of_cpus)
        scan_cpus(cpu, level, idx);
    else
        scan_groups(cpu, level, idx);
    if (idle != NEWLY_IDLE && s->balance_cpu != cpu) {
        s->rule = NOT_OURS;
        return false;
    }
    s->rule = rule_imbalance == IMBALANCE_BY_KIND ? weigh_kinds(cpu, level, idle) : weigh_groups(cpu, level);
    if (FINDS(s->rule)) {
        s->busiest_cpu = find_busiest_queue(cpu);
        if (s->busiest_cpu == ~0u)
            s->rule = NO_QUEUE;
    }
    if (trace_balance)
        say_verdict(cpu, level);
    return FINDS(s->rule);
}

#endif
