/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether a new task starts on its parent's CPU (sched_fork until 2.6.25).
 *
 * sched_balance_self looks for another CPU in domains with SD_BALANCE_FORK, which until 2.6.25 only those between
 * nodes have; the smaller ones have SD_BALANCE_EXEC alone. So a process that forks without execve keeps all its children on
 * its CPU, until the load balancer moves some of them. A task that was started from outside of the machine is placed
 * as at execve: its parent is process 0.
 *
 * Example: a program on CPU 0 of two forks 16 hogs and then a sleeper. The balancer pulls hogs to CPU 1 as they wait.
 * The sleeper, which hardly ever waits, stays on CPU 0.
 */
#ifndef FAIRGROUND_FORK_STAYS_BPF_H
#define FAIRGROUND_FORK_STAYS_BPF_H

#include "domains.bpf.h"

/* In ops.select_cpu, on the parent's CPU. The program defines rule_fork_stays. */
static __always_inline bool stays_at_fork(struct task_struct *p, u64 wake_flags)
{
    struct task_struct *parent = wake_flags & SCX_WAKE_FORK && rule_fork_stays ? p->real_parent : NULL;

    return parent && parent->pid && !has_domain(this_cpu(), DOMAIN_NODE) &&
           bpf_cpumask_test_cpu(this_cpu(), p->cpus_ptr);
}

#endif
