//! What the simulated kernel's own work costs: parameters of the machine, never of a scheduler.
//!
//! A scheduler pays for the instructions that it executed ([`CostModel::policy_insn_ps`]); everything around it costs what
//! this table says, whichever scheduler runs. A figure that was measured names its measurement, one that was derived says
//! from what, and one that is a guess says "assumed". None was chosen to meet a published result. The table is printed with
//! each result.

pub(crate) mod calls;
mod names;
mod presets;

pub use calls::CallCosts;
use names::{MACHINE, NAMES, unit};
use presets::PRESETS;

/// Times of the steps of the kernel. All in ns of the CPU that does the step, unless a field says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// Leaving one task and starting another, without the scheduler's own decision.
    pub context_switch_ns: u64,
    /// Waking a task, on the CPU that wakes it, without the scheduler's own decision; the blocking of the task is in it.
    pub wakeup_ns: u64,
    /// From the sending of a reschedule interrupt until the other CPU reacts to it. Delay, not work.
    pub ipi_ns: u64,
    /// The periodic tick, without the scheduler's callback.
    pub tick_ns: u64,
    /// A system call of a task (pipe, message, sleep, signal, fork …), without what it makes the scheduler do.
    pub syscall_ns: u64,
    /// The part of `syscall_ns` that comes after the call's effect, and after a sleep in it: the way out, in one piece before the task makes
    /// room for one that the call has woken.
    pub syscall_return_ns: u64,
    /// The interrupt of a high-resolution timer, without the wake-up that it causes.
    pub timer_irq_ns: u64,
    /// From an interrupt at an idle CPU until it can schedule. Delay, not work.
    pub idle_exit_ns: u64,
    /// Moving a task to another CPU's queue: charged to the CPU that wakes it up there, or pulls it.
    pub migration_ns: u64,
    /// CPU time that a task needs more after it moved to another CPU, to fill the caches again.
    pub cache_refill_ns: u64,
    /// Picoseconds per instruction of the scheduler's program.
    pub policy_insn_ps: u64,
    /// The cache that each CPU has for itself, bytes. With 0 every line that a task touches is fetched anew.
    pub cache_bytes: u64,
    /// Reading a line of 64 bytes that the CPU's cache holds, with the work on it, picoseconds.
    pub line_hit_ps: u64,
    /// Reading one that it does not hold, picoseconds.
    pub line_miss_ps: u64,
    /// How much later than asked for a normal task's sleep may end: its timer is set for the end of this interval.
    pub timer_slack_ns: u64,
    /// What it takes a task to block and to come back, beyond the system call that does it: leaving the run queue, standing on a
    /// wait list, leaving that again. Charged before it leaves its CPU, with interrupts off; a task that ends pays it too.
    pub block_ns: u64,
    /// Making a process, beyond the system call and until the new one may run: copying what its parent has.
    pub fork_ns: u64,
    /// What the parent pays when it goes on afterwards: the pages that it writes first, now shared with the child.
    pub fork_return_ns: u64,
    /// What a process that another has made pays before its program: its first page faults.
    pub child_ns: u64,
    /// The end of such a process, beyond the system call and until its parent hears of it: giving back what it had.
    pub exit_ns: u64,
    /// The last part of `exit_ns`, from where the kernel takes the process out of its autogroup (`sched_autogroup_exit_task`). With that move it
    /// asks for a scheduling pass, and may lose the CPU before its parent hears of its end. 0: there is no such pass.
    pub exit_move_ns: u64,
    /// Waiting for a child that has ended, beyond the system call.
    pub reap_ns: u64,
    /// How long the kernel may go on with `fork_ns` and `exit_ns` before it looks whether another task shall have the CPU. 0:
    /// it looks all the time.
    pub fork_stretch_ns: u64,
    /// What RCU's thread computes each time that it wakes up, beyond what any task does that sleeps. 0: there is no such thread.
    pub rcu_ns: u64,
    /// What the kernel's own threads compute each time that they wake up, a worker on each CPU once in a second and `kcompactd` twice, beyond what
    /// any task does that sleeps. 0: there are no such threads.
    pub housekeeping_ns: u64,
    /// The first tick of a CPU that has gone idle, with its interrupt; it has no more then (`idle_call_stop_or_retain_tick`, 6.1.y and 7.x).
    /// 0: one that goes idle stops its tick at once.
    pub tick_kept_ns: u64,
    /// What a task that was forked before the run, in its lead-in, executes before its first operation: pages that its program writes
    /// first, which are copied then.
    pub first_pages_ns: u64,
    /// What preempting costs when the scheduler kicks CPUs (`scx_bpf_kick_cpu`), and under sched_ext the interrupt that a CPU sends
    /// itself for it: the kicks of one operation share it.
    pub kick_ns: u64,
    /// Waking a task on the own CPU while it is idle: nobody has to make room. 0: as `wakeup_ns`.
    pub wakeup_idle_ns: u64,
    /// Waking a task on another CPU that is idle, on the CPU that wakes it. 0: as `wakeup_ns`.
    pub wakeup_remote_ns: u64,
    /// What that other CPU does then, from its interrupt until it can schedule.
    pub enqueue_remote_ns: u64,
    /// The same, where it puts the task into its queue itself (`ttwu_queue_wakelist`). 0: who wakes it does that, as under sched_ext.
    pub wake_list_ns: u64,
    /// As `block_ns`, when nothing else is there to run: choosing the idle task is quickly done. 0: as `block_ns`.
    pub block_idle_ns: u64,
    /// From the switch to the idle task until the CPU rests. 0: as `context_switch_ns`.
    pub idle_enter_ns: u64,
    /// What leaving idleness takes more after a time in which a tick was left out (NO_HZ): the tick is set up again.
    pub idle_tick_ns: u64,
    /// The clock of a run queue stands still between two updates. How much more of its turn a task has been charged when it wakes
    /// another up on its CPU than from its switch to the wake-up's event: a switch reads the clock before its event, a wake-up
    /// after. A switch from the idle task does not read it anew, but goes by the wake-up that asked for it (`rq_clock_skip_update`). At
    /// most `wakeup_ns`. 0: read at the events.
    pub wakeup_clock_ns: u64,
    /// 0: each CPU executes by itself. Else they are virtual and execute in turns on one thread, while the clock goes on for all: work of the
    /// kernel on two of them goes on one after the other, and so do computations up to this long; longer ones give their turn away.
    pub turn_ns: u64,
    /// How much of the oldest page of a full pipe must have been read until each further read wakes one who waits to write: in vain, for there
    /// is room only when a page is empty (`pipe_read` of Linux 5.5 to 6.14: 1). 0: only the read that empties it wakes one.
    pub pipe_wake_bytes: u64,
    /// As `block_ns`, where a task waits at a pipe. 0: as `block_ns`.
    pub pipe_block_ns: u64,
    /// The part of `timer_irq_ns` that comes with each timer that has expired, behind its wake-up; the rest comes once, at the interrupt's
    /// end.
    pub timer_each_ns: u64,
    /// The part of a switch that is left when the CPU's timer is set again, where a timer's interrupt leaves that to the switch which it asks
    /// for (`__hrtimer_rearm_deferred`, Linux 7.1 and newer). 0: the interrupt does it. Seen only where CPUs execute in turns.
    pub timer_set_ns: u64,
    /// How much longer before its event a switch reads the clock when the task that leaves goes to sleep, for it is taken off its queue
    /// first, than when it is preempted. At most `block_ns`.
    pub block_clock_ns: u64,
    /// The ways between the kernel and the scheduler's program.
    pub calls: CallCosts,
    preset: usize,
}

/// One parameter as it is printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostParameter {
    /// The name, as [`CostModel::set`] takes it.
    pub name: &'static str,
    /// The value.
    pub value: u64,
    /// The unit of the value.
    pub unit: &'static str,
    /// Where the value comes from.
    pub source: String,
}

/// Why a cost cannot be set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CostError {
    /// No parameter has that name.
    #[error(
        "the cost model has no parameter `{name}`; did you mean `{nearest}`? It has {}",
        all_names()
    )]
    UnknownParameter {
        /// The name that was asked for.
        name: String,
        /// The most similar one.
        nearest: &'static str,
    },
    /// No preset has that name.
    #[error(
        "there is no cost model `{name}`; did you mean `{nearest}`? There are {}",
        all_presets()
    )]
    UnknownPreset {
        /// The name that was asked for.
        name: String,
        /// The most similar one.
        nearest: &'static str,
    },
    /// The value is too large to be the cost of one step.
    #[error("{name}={value}: at most {MAX_COST} {unit} are possible (give a smaller number)")]
    TooLarge {
        /// The parameter.
        name: &'static str,
        /// The value.
        value: u64,
        /// Its unit.
        unit: &'static str,
    },
}

/// The largest value of a parameter: a second in ns, a GB in bytes.
pub(crate) const MAX_COST: u64 = 1_000_000_000;

fn all_names() -> String {
    NAMES.join(", ")
}

fn all_presets() -> String {
    PRESETS.map(|preset| preset.name).join(", ")
}

impl CostModel {
    /// A named set of costs: `modern` (the default), `zero`, `icount8`, `icount8-6.1`, `icount8-6.1-recorded`,
    /// `icount8-7.2-recorded`, `icount8-7.2-scx-recorded`.
    pub fn preset(name: &str) -> Result<CostModel, CostError> {
        match PRESETS.iter().position(|preset| preset.name == name) {
            Some(index) => Ok(CostModel::from_preset(index)),
            None => Err(CostError::UnknownPreset {
                name: name.to_owned(),
                nearest: nearest(name, PRESETS.iter().map(|preset| preset.name)),
            }),
        }
    }

    /// The names of the presets, each with what it stands for; the default first.
    pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
        PRESETS.iter().map(|preset| (preset.name, preset.about))
    }

    /// The preset that the model started from.
    pub fn preset_name(&self) -> &'static str {
        PRESETS[self.preset].name
    }

    fn from_preset(index: usize) -> CostModel {
        let values = PRESETS[index].values;
        let mut model = CostModel {
            context_switch_ns: 0,
            wakeup_ns: 0,
            ipi_ns: 0,
            tick_ns: 0,
            syscall_ns: 0,
            timer_irq_ns: 0,
            idle_exit_ns: 0,
            migration_ns: 0,
            cache_refill_ns: 0,
            policy_insn_ps: 0,
            cache_bytes: 0,
            line_hit_ps: 0,
            line_miss_ps: 0,
            timer_slack_ns: 0,
            block_ns: 0,
            fork_ns: 0,
            fork_return_ns: 0,
            child_ns: 0,
            exit_ns: 0,
            exit_move_ns: 0,
            reap_ns: 0,
            fork_stretch_ns: 0,
            rcu_ns: 0,
            kick_ns: 0,
            wakeup_idle_ns: 0,
            wakeup_remote_ns: 0,
            enqueue_remote_ns: 0,
            block_idle_ns: 0,
            idle_enter_ns: 0,
            idle_tick_ns: 0,
            turn_ns: 0,
            syscall_return_ns: 0,
            wakeup_clock_ns: 0,
            housekeeping_ns: 0,
            tick_kept_ns: 0,
            first_pages_ns: 0,
            wake_list_ns: 0,
            pipe_wake_bytes: 0,
            pipe_block_ns: 0,
            timer_each_ns: 0,
            timer_set_ns: 0,
            block_clock_ns: 0,
            calls: CallCosts::default(),
            preset: index,
        };
        for (field, (value, _)) in model.fields().into_iter().zip(values) {
            *field = value;
        }
        model
    }

    /// The fields in the order of [`NAMES`].
    fn fields(&mut self) -> Vec<&mut u64> {
        let of_machine: [&mut u64; MACHINE.len()] = [
            &mut self.context_switch_ns,
            &mut self.wakeup_ns,
            &mut self.ipi_ns,
            &mut self.tick_ns,
            &mut self.syscall_ns,
            &mut self.timer_irq_ns,
            &mut self.idle_exit_ns,
            &mut self.migration_ns,
            &mut self.cache_refill_ns,
            &mut self.policy_insn_ps,
            &mut self.cache_bytes,
            &mut self.line_hit_ps,
            &mut self.line_miss_ps,
            &mut self.timer_slack_ns,
            &mut self.block_ns,
            &mut self.fork_ns,
            &mut self.fork_return_ns,
            &mut self.child_ns,
            &mut self.exit_ns,
            &mut self.reap_ns,
            &mut self.fork_stretch_ns,
            &mut self.rcu_ns,
            &mut self.kick_ns,
            &mut self.wakeup_idle_ns,
            &mut self.wakeup_remote_ns,
            &mut self.enqueue_remote_ns,
            &mut self.block_idle_ns,
            &mut self.idle_enter_ns,
            &mut self.idle_tick_ns,
            &mut self.turn_ns,
            &mut self.syscall_return_ns,
            &mut self.exit_move_ns,
            &mut self.wakeup_clock_ns,
            &mut self.housekeeping_ns,
            &mut self.tick_kept_ns,
            &mut self.first_pages_ns,
            &mut self.wake_list_ns,
            &mut self.pipe_wake_bytes,
            &mut self.pipe_block_ns,
            &mut self.timer_each_ns,
            &mut self.timer_set_ns,
            &mut self.block_clock_ns,
        ];
        of_machine.into_iter().chain(self.calls.fields()).collect()
    }

    /// Sets a parameter by name, in the unit at the end of the name: at most 1,000,000,000.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), CostError> {
        let Some(index) = NAMES.iter().position(|known| *known == name) else {
            let nearest = nearest(name, NAMES.into_iter());
            return Err(CostError::UnknownParameter { name: name.to_owned(), nearest });
        };
        if value > MAX_COST {
            return Err(CostError::TooLarge {
                name: NAMES[index],
                value,
                unit: unit(NAMES[index]),
            });
        }
        *self.fields()[index] = value;
        Ok(())
    }

    /// All parameters, each with its unit and its source. One that differs from its preset was set for this run.
    pub fn parameters(&self) -> Vec<CostParameter> {
        let preset = &PRESETS[self.preset];
        let mut model = self.clone();
        let rows = NAMES.into_iter().zip(model.fields()).zip(preset.values);
        rows.map(|((name, value), (usual, source))| CostParameter {
            name,
            value: *value,
            unit: unit(name),
            source: if *value == usual {
                source.to_owned()
            } else {
                format!("set for this run ({} has {usual})", preset.name)
            },
        })
        .collect()
    }

    /// What a step costs where an idle CPU has a part in it.
    #[inline]
    pub(crate) fn idle_or(idle_ns: u64, usual_ns: u64) -> u64 {
        if idle_ns == 0 { usual_ns } else { idle_ns }
    }

    /// The time of `insns` instructions of the scheduler's program, ns, together with `carry_ps`, the part of a nanosecond
    /// that earlier ones left over and that is updated.
    #[inline]
    pub(crate) fn policy_ns(&self, insns: u64, carry_ps: &mut u64) -> u64 {
        let total_ps = u128::from(insns) * u128::from(self.policy_insn_ps) + u128::from(*carry_ps);
        if let Ok(ps) = u64::try_from(total_ps) {
            *carry_ps = ps % 1_000;
            return ps / 1_000;
        }
        *carry_ps = (total_ps % 1_000) as u64;
        u64::try_from(total_ps / 1_000).unwrap_or(u64::MAX)
    }
}

impl Default for CostModel {
    /// The preset `modern`.
    fn default() -> CostModel {
        CostModel::from_preset(0)
    }
}

/// The known name with the fewest edits (Levenshtein).
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> &'static str {
    let distance = |other: &str| {
        let mut row: Vec<usize> = (0..=other.len()).collect();
        for (i, a) in name.bytes().enumerate() {
            let mut diagonal = std::mem::replace(&mut row[0], i + 1);
            for (j, b) in other.bytes().enumerate() {
                let replaced = diagonal + usize::from(a != b);
                diagonal = row[j + 1];
                row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
            }
        }
        row[other.len()]
    };
    known.min_by_key(|other| distance(other)).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_names_the_source_of_every_figure() {
        for (name, about) in CostModel::presets() {
            let model = CostModel::preset(name).unwrap();
            assert_eq!(model.preset_name(), name);
            assert!(!about.is_empty());
            for row in model.parameters() {
                assert!(
                    !row.source.is_empty() && row.name.ends_with(&format!("_{}", row.unit)),
                    "{row:?}"
                );
            }
        }
        assert_eq!(CostModel::default(), CostModel::preset("modern").unwrap());
        assert_eq!(CostModel::preset("icount8").unwrap().timer_slack_ns, 0);
        assert_eq!(CostModel::preset("icount8-6.1").unwrap().timer_slack_ns, 50_000);
    }

    #[test]
    fn a_changed_figure_says_so() {
        let mut model = CostModel::preset("icount8").unwrap();
        model.set("tick_ns", 7).unwrap();
        assert_eq!(model.tick_ns, 7);
        let row = model.parameters().into_iter().find(|row| row.name == "tick_ns").unwrap();
        assert_eq!(
            (row.value, row.unit, row.source.as_str()),
            (7, "ns", "set for this run (icount8 has 4000)")
        );
    }

    #[test]
    fn wrong_names_and_values_are_refused_with_a_remedy() {
        let mut model = CostModel::default();
        let error = model.set("tick_us", 1).unwrap_err().to_string();
        assert!(
            error.contains("did you mean `tick_ns`?") && error.contains("wakeup_ns"),
            "{error}"
        );
        assert!(
            model.set("tick_ns", MAX_COST + 1).unwrap_err().to_string().contains("1000000000 ns")
        );
        let error = CostModel::preset("moderm").unwrap_err().to_string();
        assert!(error.contains("did you mean `modern`?") && error.contains("icount8"), "{error}");
    }

    #[test]
    fn instructions_cost_whole_nanoseconds_without_loss() {
        let model = CostModel::default();
        let mut carry = 0;
        let total: u64 = (0..1_000).map(|_| model.policy_ns(1, &mut carry)).sum();
        assert_eq!((total, carry), (333, 0));
        let mut slow = CostModel::preset("zero").unwrap();
        slow.set("policy_insn_ps", MAX_COST).unwrap();
        assert_eq!(slow.policy_ns(u64::MAX, &mut carry), u64::MAX);
    }
}
