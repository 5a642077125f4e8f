/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * CPUs that come and go: migration_call and update_sched_domains of 2.6.22 to 2.6.27, sched_cpu_activate and
 * sched_cpu_deactivate since 4.7.
 *
 * Rule: the domains are built again, from the CPUs that are online. A CPU that has gone balances no more, and no other
 * one takes it for a place with room. The kernel has already put the tasks of the CPU that goes into the CPU's own queue,
 * and moves each of them to another one, where it comes to ops.enqueue. What it does not see are tasks that this CPU
 * has taken from others and not run yet: for the kernel they are still those of the others. They go back.
 *
 * Example: CPU 3 goes while A, which ran there, and B, taken from CPU 1, wait in its queue. The kernel moves A, say to
 * CPU 0; B goes back to the queue of CPU 1.
 *
 * A search that is going on elsewhere while the arrays are built sees some of the old and some of the new: it may find
 * less than there is, as before each index is within the arrays. A scheduler that is attached while a CPU is offline
 * finds it in cpu_online_mask.
 *
 * `BALANCE_HOTPLUG(mine)` defines the callbacks `mine_cpu_online` and `mine_cpu_offline`, to be named in the callback
 * table. Without them the kernel detaches a scheduler when a CPU comes or goes, and asks its loader to attach it again.
 */
#ifndef FAIRGROUND_BALANCE_HOTPLUG_BPF_H
#define FAIRGROUND_BALANCE_HOTPLUG_BPF_H

/* The next search of a CPU that is offline: never. As far ahead as a comparison of times reaches. */
#define NEVER_NS (1ULL << 62)

static __always_inline void balance_offline(u32 cpu)
{
    u32 other;

    set_cpu_bit(offline_cpus, cpu);
    some_left = true;
    make_domains();
    for_range (other, nr_cpus) {
        /* It has asked for a task, and will not take it. */
        if (balance_of(other)->push_to == cpu + 1)
            balance_of(other)->push_to = 0;
    }
    give_back(cpu);
    balance_of(cpu)->next_balance_ns = scx_bpf_now() + NEVER_NS;
}

static __always_inline void balance_online(u32 cpu)
{
    struct balance_cpu *b = balance_of(cpu);

    clear_cpu_bit(offline_cpus, cpu);
    make_domains();
    b->push_to = 0;
    b->refused_until_ns = 0;
    b->load_jiffy = bpf_jiffies64();
    set_next_balance(cpu, true);
}

#define BALANCE_HOTPLUG(name)                                                                                        \
    void BPF_STRUCT_OPS(name##_cpu_online, s32 cpu)                                                                  \
    {                                                                                                                \
        balance_online((u32)cpu &(MAX_CPUS - 1));                                                                    \
    }                                                                                                                \
                                                                                                                     \
    void BPF_STRUCT_OPS(name##_cpu_offline, s32 cpu)                                                                 \
    {                                                                                                                \
        balance_offline((u32)cpu &(MAX_CPUS - 1));                                                                   \
    }

#endif
