//! What a simulated scheduler says of each task, read at every tick: its own virtual time, the slice that it gave.

use std::collections::BTreeMap;

use fairground_bpf::Object;
use fairground_machine::Machine;
use fairground_trace::{Counter, CounterOf, CounterUnit, TaskId};

/// Values that are kept of a run; then no more are read.
const VALUES_MAX: usize = 1 << 22;

/// Members of what a scheduler keeps for a task that are drawn where there are 64-bit ones of that name. They are names
/// that Linux's schedulers have for them, in ns.
const MEMBERS: [&str; 5] = ["vruntime", "vlag", "lag", "deadline", "wait_runtime"];
const MEMBER_BYTES: u64 = 8;

/// What a scheduler keeps for a task, and where.
#[derive(Clone, Debug, Default)]
pub struct TaskNumbers {
    /// Task-storage maps, and bytes from the start of their values.
    pub places: Vec<(String, u64)>,
    /// What stands there.
    pub names: Vec<String>,
}

impl TaskNumbers {
    /// Looks them up in an object.
    pub fn of(object: &Object) -> TaskNumbers {
        let maps = object.maps();
        let mut numbers = TaskNumbers::default();
        for map in maps.iter().filter(|map| map.kind == "task_storage") {
            for name in MEMBERS {
                let Some((offset, MEMBER_BYTES)) = object.map_member(&map.name, name) else {
                    continue;
                };
                numbers.places.push((map.name.clone(), offset));
                numbers.names.push(name.to_owned());
            }
        }
        numbers
    }
}

/// Reads a machine's tasks.
#[derive(Debug)]
pub(crate) struct Sampler {
    numbers: TaskNumbers,
    tasks: BTreeMap<TaskId, Vec<Counter>>,
    values: usize,
}

impl Sampler {
    /// Looks up what the scheduler keeps for a task.
    pub(crate) fn new(object: &Object) -> Self {
        Self { numbers: TaskNumbers::of(object), tasks: BTreeMap::new(), values: 0 }
    }

    /// Reads every task as it is now.
    pub(crate) fn read(&mut self, machine: &Machine) {
        if self.values >= VALUES_MAX {
            return;
        }
        let now_ns = machine.now_ns();
        for (id, view, words) in machine.tasks(&self.numbers.places) {
            let counters = self.tasks.entry(id).or_insert_with(|| {
                let of = CounterOf::Task(id);
                let mut counters = vec![
                    Counter::new(of, "slice", CounterUnit::Ns),
                    Counter::new(of, "dsq_vtime", CounterUnit::Own),
                ];
                counters.extend(
                    self.numbers.names.iter().map(|name| Counter::new(of, name, CounterUnit::Ns)),
                );
                counters
            });
            // Virtual times wrap around: near the wrap they are small negative numbers.
            let values = [view.slice_ns, view.dsq_vtime].into_iter().map(Some).chain(words);
            for (counter, value) in counters.iter_mut().zip(values) {
                let before = counter.points.len();
                if let Some(value) = value {
                    counter.set(now_ns, value as i64);
                }
                self.values += counter.points.len() - before;
            }
        }
    }

    /// The counters, without those that were 0 all the time: a scheduler that never sets a number does not use it. And
    /// why they end early, if they do.
    pub(crate) fn finish(self) -> (Vec<Counter>, Option<String>) {
        let note = (self.values >= VALUES_MAX).then(|| {
            format!(
                "the scheduler's own numbers end early in the trace: more than {VALUES_MAX} values"
            )
        });
        let used = |counter: &Counter| counter.points.iter().any(|(_, value)| *value != 0);
        (self.tasks.into_values().flatten().filter(used).collect(), note)
    }
}
