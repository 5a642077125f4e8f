/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Control groups, for schedulers that support them.
 *
 * What a scheduler may call, and when (6.12): scx_bpf_task_cgroup() only for the task of the present callback, and
 * neither in dispatch nor in init_task (which gets the cgroup as an argument) nor in the cgroup callbacks (likewise).
 * The cgroups that it and the two functions below it return must be released. p->scx.weight stays the task's own: a
 * cgroup's weight comes with cgroup_init and cgroup_set_weight.
 */
#ifndef FAIRGROUND_CGROUP_BPF_H
#define FAIRGROUND_CGROUP_BPF_H

#include "scx.bpf.h"

struct cgroup *scx_bpf_task_cgroup(struct task_struct *p) __ksym __weak;
struct cgroup *bpf_cgroup_ancestor(struct cgroup *cgrp, int level) __ksym;
struct cgroup *bpf_cgroup_from_id(u64 cgid) __ksym;
void bpf_cgroup_release(struct cgroup *cgrp) __ksym;

#endif
