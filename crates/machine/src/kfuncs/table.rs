//! The one table of kernel functions: since which kernel each exists, what a call costs, and what carries it out.
//!
//! The names that an object finds when it is linked, the prices of its calls and the reference
//! (`docs/reference/sched-ext.md`) follow from it.

use fairground_bpf::HostFn;

use super::{cid, cpumask, dispatch, events, exit, idle, idle_node, iter, kick, queue, task, walk};
use crate::cgroup::kfuncs as cgroup;
use crate::cost::Price;
use crate::interface::Feature;
use crate::kernel::Kernel;

/// One kernel function.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kfunc {
    /// Its name, and the kernels that have it.
    pub(crate) feature: Feature,
    /// Price of a call.
    pub(crate) price: Price,
    /// Its implementation; `None`: `fairground_bpf` does, or nothing where it is absent.
    pub(crate) call: Option<HostFn<Kernel>>,
}

/// A function of the machine.
const fn kfunc(name: &'static str, price: Price, call: HostFn<Kernel>) -> Kfunc {
    Kfunc { feature: Feature::new(name), price, call: Some(call) }
}

/// A function that every environment of programs has (`fairground_bpf::builtin_kfuncs`).
const fn built_in(name: &'static str, price: Price) -> Kfunc {
    Kfunc { feature: Feature::new(name), price, call: None }
}

/// A function of the kernel that does not exist here.
const fn absent(name: &'static str, why: &'static str) -> Kfunc {
    Kfunc { feature: Feature::new(name).absent(why), price: Price::Instruction, call: None }
}

impl Kfunc {
    /// Came with a release.
    const fn since(self, major: u8, minor: u8) -> Kfunc {
        Kfunc { feature: self.feature.since(major, minor), ..self }
    }

    /// Exists in a release, and perhaps in earlier ones.
    const fn by(self, major: u8, minor: u8) -> Kfunc {
        Kfunc { feature: self.feature.by(major, minor), ..self }
    }

    /// Does not exist in a release any more.
    const fn gone(self, major: u8, minor: u8) -> Kfunc {
        Kfunc { feature: self.feature.gone(major, minor), ..self }
    }

    /// Differs from the kernel's.
    const fn but(self, how: &'static str) -> Kfunc {
        Kfunc { feature: self.feature.but(how), ..self }
    }
}

/// Reads or writes a word, or is translated in line.
const INSN: Price = Price::Instruction;
/// Works on a dispatch queue, looks for a task, a cgroup or idle CPUs, or kicks a CPU.
const CALL: Price = Price::Call;

/// The speed of CPUs.
const FULL_SPEED: &str = "every CPU runs at full speed, 1024";
/// References to tasks, cgroups and masks.
const NOT_COUNTED: &str = "references are not counted: what a program may see lives as long";
/// Sub-schedulers.
const NO_SUB: &str = "there are no sub-schedulers: false, as for a cgroup without one";
/// Searches beyond a node.
const NODES: &str = "all other nodes are equally far, in the order of their numbers";
/// Reason of an absent function.
const CALL_ENDS: &str = "a call that is reached ends the run";

/// Functions of sched_ext (`kernel/sched/ext/`).
pub(crate) const SCX: &[Kfunc] = &[
    kfunc("scx_bpf_create_dsq", CALL, queue::create),
    kfunc("scx_bpf_destroy_dsq", CALL, queue::destroy),
    kfunc("scx_bpf_dsq_nr_queued", CALL, queue::nr_queued),
    kfunc("scx_bpf_dsq_peek", CALL, queue::peek).since(6, 19),
    kfunc("scx_bpf_dsq_reenq", CALL, queue::reenqueue).since(7, 1),
    kfunc("scx_bpf_dispatch", CALL, dispatch::insert).gone(6, 18),
    kfunc("scx_bpf_dispatch_vtime", CALL, dispatch::insert_vtime).gone(6, 18),
    kfunc("scx_bpf_dsq_insert", CALL, dispatch::insert).since(6, 13),
    kfunc("scx_bpf_dsq_insert_vtime", CALL, dispatch::insert_vtime).since(6, 13),
    kfunc("scx_bpf_dsq_insert___v2", CALL, dispatch::insert).since(6, 19),
    kfunc("__scx_bpf_dsq_insert_vtime", CALL, dispatch::insert_vtime_args).since(6, 19),
    kfunc("scx_bpf_dispatch_nr_slots", INSN, dispatch::nr_slots),
    kfunc("scx_bpf_dispatch_cancel", INSN, dispatch::cancel),
    kfunc("scx_bpf_consume", CALL, dispatch::move_to_local).gone(6, 18),
    kfunc("scx_bpf_dsq_move_to_local", CALL, dispatch::move_to_local).since(6, 13),
    kfunc("scx_bpf_dsq_move_to_local___v2", CALL, dispatch::move_to_local_with).since(7, 1),
    kfunc("bpf_iter_scx_dsq_new", CALL, iter::new),
    kfunc("bpf_iter_scx_dsq_next", CALL, iter::next),
    kfunc("bpf_iter_scx_dsq_destroy", INSN, iter::destroy),
    kfunc("scx_bpf_dispatch_from_dsq", CALL, iter::move_fifo).gone(6, 18),
    kfunc("scx_bpf_dispatch_vtime_from_dsq", CALL, iter::move_vtime).gone(6, 18),
    kfunc("scx_bpf_dispatch_from_dsq_set_slice", INSN, iter::set_slice).gone(6, 18),
    kfunc("scx_bpf_dispatch_from_dsq_set_vtime", INSN, iter::set_vtime).gone(6, 18),
    kfunc("scx_bpf_dsq_move", CALL, iter::move_fifo).since(6, 13),
    kfunc("scx_bpf_dsq_move_vtime", CALL, iter::move_vtime).since(6, 13),
    kfunc("scx_bpf_dsq_move_set_slice", INSN, iter::set_slice).since(6, 13),
    kfunc("scx_bpf_dsq_move_set_vtime", INSN, iter::set_vtime).since(6, 13),
    kfunc("scx_bpf_reenqueue_local", CALL, dispatch::reenqueue_local),
    kfunc("scx_bpf_reenqueue_local___v2", CALL, dispatch::reenqueue_local_anywhere).since(6, 19),
    kfunc("scx_bpf_sub_dispatch", INSN, dispatch::sub_dispatch).since(7, 1).but(NO_SUB),
    kfunc("scx_bpf_select_cpu_dfl", CALL, idle::select_cpu_dfl),
    kfunc("scx_bpf_select_cpu_and", CALL, idle::select_cpu_and).since(6, 16),
    kfunc("__scx_bpf_select_cpu_and", CALL, idle::select_cpu_and_args).since(6, 19),
    kfunc("scx_bpf_pick_idle_cpu", CALL, idle::pick_idle_cpu),
    kfunc("scx_bpf_pick_any_cpu", CALL, idle::pick_any_cpu),
    kfunc("scx_bpf_pick_idle_cpu_node", CALL, idle_node::pick_idle_cpu_node)
        .since(6, 15)
        .but(NODES),
    kfunc("scx_bpf_pick_any_cpu_node", CALL, idle_node::pick_any_cpu_node).since(6, 15).but(NODES),
    kfunc("scx_bpf_test_and_clear_cpu_idle", CALL, idle::test_and_clear),
    kfunc("scx_bpf_get_idle_cpumask", INSN, idle::get_idle_cpumask),
    kfunc("scx_bpf_get_idle_smtmask", INSN, idle::get_idle_smtmask),
    kfunc("scx_bpf_get_idle_cpumask_node", INSN, idle_node::get_idle_cpumask_node).since(6, 15),
    kfunc("scx_bpf_get_idle_smtmask_node", INSN, idle_node::get_idle_smtmask_node).since(6, 15),
    kfunc("scx_bpf_put_idle_cpumask", INSN, idle::put).but(NOT_COUNTED),
    kfunc("scx_bpf_get_possible_cpumask", INSN, idle::possible),
    kfunc("scx_bpf_get_online_cpumask", INSN, idle::online),
    kfunc("scx_bpf_put_cpumask", INSN, idle::put).but(NOT_COUNTED),
    kfunc("scx_bpf_kick_cpu", CALL, kick::kick_cpu),
    kfunc("scx_bpf_cpuperf_cap", INSN, kick::cpuperf_cap).but(FULL_SPEED),
    kfunc("scx_bpf_cpuperf_cur", INSN, kick::cpuperf_cap).but(FULL_SPEED),
    kfunc("scx_bpf_cpuperf_set", INSN, kick::cpuperf_set)
        .but("checked; the speed of a CPU does not change"),
    kfunc("scx_bpf_nr_cpu_ids", INSN, task::nr_cpu_ids),
    kfunc("scx_bpf_nr_node_ids", INSN, task::nr_node_ids).since(6, 15),
    kfunc("scx_bpf_cpu_node", INSN, task::cpu_node).since(6, 15),
    kfunc("scx_bpf_task_running", INSN, task::running),
    kfunc("scx_bpf_task_cpu", INSN, task::cpu),
    kfunc("scx_bpf_task_cgroup", INSN, cgroup::task_cgroup).but(NOT_COUNTED),
    kfunc("scx_bpf_task_set_slice", INSN, task::set_slice).since(6, 19),
    kfunc("scx_bpf_task_set_dsq_vtime", INSN, task::set_vtime).since(6, 19),
    kfunc("scx_bpf_cpu_rq", INSN, task::cpu_rq),
    kfunc("scx_bpf_cpu_curr", INSN, task::cpu_curr).since(6, 18),
    kfunc("scx_bpf_locked_rq", INSN, task::locked_rq).since(6, 18),
    kfunc("scx_bpf_now", INSN, task::now).since(6, 14),
    kfunc("scx_bpf_events", INSN, events::read).since(6, 15),
    kfunc("scx_bpf_exit_bstr", INSN, exit::exit),
    kfunc("scx_bpf_error_bstr", INSN, exit::error),
    kfunc("scx_bpf_dump_bstr", INSN, exit::dump),
    kfunc("scx_bpf_cpu_to_cid", INSN, cid::cpu_to_cid).since(7, 2),
    kfunc("scx_bpf_cid_to_cpu", INSN, cid::cid_to_cpu).since(7, 2),
    kfunc("scx_bpf_cid_topo", INSN, cid::cid_topo).since(7, 2),
    kfunc("scx_bpf_cid_override", INSN, cid::cid_override).since(7, 2),
    kfunc("scx_bpf_task_cid", INSN, cid::task_cid).since(7, 2),
    kfunc("scx_bpf_this_cid", INSN, cid::this_cid).since(7, 2),
    kfunc("scx_bpf_nr_cids", INSN, cid::nr_cids).since(7, 2),
    kfunc("scx_bpf_nr_online_cids", INSN, cid::nr_online_cids).since(7, 2),
    kfunc("scx_bpf_kick_cid", CALL, cid::kick_cid).since(7, 2),
    kfunc("scx_bpf_cid_curr", INSN, cid::cid_curr).since(7, 2),
    kfunc("scx_bpf_cidperf_cap", INSN, cid::cidperf_cap).since(7, 2).but(FULL_SPEED),
    kfunc("scx_bpf_cidperf_cur", INSN, cid::cidperf_cap).since(7, 2).but(FULL_SPEED),
    kfunc("scx_bpf_cidperf_set", INSN, cid::cidperf_set)
        .since(7, 2)
        .but("checked; the speed of a CPU does not change"),
    kfunc("scx_bpf_tid_to_task", CALL, cid::tid_to_task).since(7, 2),
];

/// The order of walks.
const IN_PLACES: &str = "living tasks in the order of their places; each is its own thread group";
/// Critical sections: a program runs to its end before anything else happens.
const ALONE: &str = "nothing: one program runs at a time";

/// Functions of BPF itself that schedulers use (`kernel/bpf/`).
pub(crate) const BPF: &[Kfunc] = &[
    kfunc("bpf_cpumask_create", INSN, cpumask::create),
    kfunc("bpf_cpumask_acquire", INSN, cpumask::acquire),
    kfunc("bpf_cpumask_release", INSN, cpumask::release),
    kfunc("bpf_cpumask_first", INSN, cpumask::first),
    kfunc("bpf_cpumask_first_zero", INSN, cpumask::first_zero),
    kfunc("bpf_cpumask_first_and", INSN, cpumask::first_and),
    kfunc("bpf_cpumask_set_cpu", INSN, cpumask::set_cpu),
    kfunc("bpf_cpumask_clear_cpu", INSN, cpumask::clear_cpu),
    kfunc("bpf_cpumask_test_cpu", INSN, cpumask::test_cpu),
    kfunc("bpf_cpumask_test_and_set_cpu", INSN, cpumask::test_and_set),
    kfunc("bpf_cpumask_test_and_clear_cpu", INSN, cpumask::test_and_clear),
    kfunc("bpf_cpumask_setall", INSN, cpumask::setall),
    kfunc("bpf_cpumask_clear", INSN, cpumask::clear),
    kfunc("bpf_cpumask_and", INSN, cpumask::and),
    kfunc("bpf_cpumask_or", INSN, cpumask::or),
    kfunc("bpf_cpumask_xor", INSN, cpumask::xor),
    kfunc("bpf_cpumask_equal", INSN, cpumask::equal),
    kfunc("bpf_cpumask_intersects", INSN, cpumask::intersects),
    kfunc("bpf_cpumask_subset", INSN, cpumask::subset),
    kfunc("bpf_cpumask_empty", INSN, cpumask::empty),
    kfunc("bpf_cpumask_full", INSN, cpumask::full),
    kfunc("bpf_cpumask_copy", INSN, cpumask::copy),
    kfunc("bpf_cpumask_weight", INSN, cpumask::weight),
    kfunc("bpf_cpumask_any_distribute", INSN, cpumask::any_distribute),
    kfunc("bpf_cpumask_any_and_distribute", INSN, cpumask::any_and_distribute),
    kfunc("bpf_cpumask_populate", INSN, cpumask::populate).since(6, 15),
    kfunc("bpf_task_from_pid", CALL, task::from_pid).but(NOT_COUNTED),
    kfunc("bpf_task_acquire", INSN, task::same).but(NOT_COUNTED),
    kfunc("bpf_task_release", INSN, task::nothing).but(NOT_COUNTED),
    kfunc("bpf_cgroup_acquire", INSN, cgroup::acquire).but(NOT_COUNTED),
    kfunc("bpf_cgroup_release", INSN, cgroup::release).but(NOT_COUNTED),
    kfunc("bpf_cgroup_ancestor", INSN, cgroup::ancestor).but(NOT_COUNTED),
    kfunc("bpf_cgroup_from_id", CALL, cgroup::from_id).but(NOT_COUNTED),
    kfunc("bpf_task_under_cgroup", INSN, cgroup::task_under),
    built_in("bpf_iter_num_new", INSN),
    built_in("bpf_iter_num_next", INSN),
    built_in("bpf_iter_num_destroy", INSN),
    kfunc("bpf_iter_css_new", INSN, walk::css_new),
    kfunc("bpf_iter_css_next", INSN, walk::css_next),
    kfunc("bpf_iter_css_destroy", INSN, walk::destroy),
    kfunc("bpf_iter_css_task_new", CALL, walk::css_task_new).but(IN_PLACES),
    kfunc("bpf_iter_css_task_next", CALL, walk::css_task_next).but(IN_PLACES),
    kfunc("bpf_iter_css_task_destroy", INSN, walk::destroy),
    kfunc("bpf_iter_task_new", CALL, walk::task_new).but(IN_PLACES),
    kfunc("bpf_iter_task_next", CALL, walk::task_next).but(IN_PLACES),
    kfunc("bpf_iter_task_destroy", INSN, walk::destroy),
    built_in("bpf_iter_bits_new", INSN).but("reads the words where they are, and makes no copy"),
    built_in("bpf_iter_bits_next", INSN),
    built_in("bpf_iter_bits_destroy", INSN),
    built_in("bpf_rcu_read_lock", INSN).but(ALONE),
    built_in("bpf_rcu_read_unlock", INSN).but(ALONE),
    built_in("bpf_preempt_disable", INSN).but(ALONE),
    built_in("bpf_preempt_enable", INSN).but(ALONE),
    built_in("bpf_local_irq_save", INSN).by(6, 15).but(ALONE),
    built_in("bpf_local_irq_restore", INSN).by(6, 15).but(ALONE),
    built_in("bpf_res_spin_lock", INSN).by(6, 16),
    built_in("bpf_res_spin_unlock", INSN).by(6, 16),
    built_in("bpf_res_spin_lock_irqsave", INSN).by(6, 16),
    built_in("bpf_res_spin_unlock_irqrestore", INSN).by(6, 16),
    built_in("bpf_throw", INSN).but("ends the run, with the cookie"),
    built_in("bpf_rdonly_cast", INSN),
    built_in("bpf_cast_to_kern_ctx", INSN),
    built_in("bpf_arena_alloc_pages", INSN),
    built_in("bpf_arena_free_pages", INSN),
    built_in("bpf_obj_new_impl", INSN),
    built_in("bpf_obj_drop_impl", INSN),
    built_in("bpf_refcount_acquire_impl", INSN),
    built_in("bpf_rbtree_add_impl", INSN),
    built_in("bpf_rbtree_remove", INSN),
    built_in("bpf_rbtree_first", INSN),
    absent("bpf_rbtree_root", CALL_ENDS).by(6, 18),
    absent("bpf_rbtree_left", CALL_ENDS).by(6, 18),
    absent("bpf_rbtree_right", CALL_ENDS).by(6, 18),
    built_in("bpf_list_push_front_impl", INSN),
    built_in("bpf_list_push_back_impl", INSN),
    built_in("bpf_list_pop_front", INSN),
    built_in("bpf_list_pop_back", INSN),
    built_in("bpf_list_front", INSN).by(6, 18),
    built_in("bpf_list_back", INSN).by(6, 18),
    built_in("bpf_obj_new", INSN).by(7, 2),
    built_in("bpf_obj_drop", INSN).by(7, 2),
    built_in("bpf_refcount_acquire", INSN).by(7, 2),
    built_in("bpf_rbtree_add", INSN).by(7, 2),
    built_in("bpf_list_push_front", INSN).by(7, 2),
    built_in("bpf_list_push_back", INSN).by(7, 2),
];
