//! When the groups of the workload start.

use fairground_workload::Workload;

/// A group of the workload that starts at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    at_ns: u64,
    pub(crate) spec: usize,
    pub(crate) count: u32,
}

/// The starts that are still to come.
#[derive(Debug)]
pub(crate) struct Starts {
    /// The earliest last.
    list: Vec<Start>,
    /// How long before their time the tasks of the workload are made, ns.
    pub(crate) lead_in_ns: u64,
}

impl Starts {
    /// The groups that start by themselves, behind a lead-in; groups of one time in the workload's order.
    pub(crate) fn new(workload: &Workload, lead_in_ns: u64) -> Starts {
        let start = |(spec, task): (usize, &fairground_workload::TaskSpec)| {
            let at_ns = task.start_ns?.saturating_add(lead_in_ns);
            Some(Start { at_ns, spec, count: task.count })
        };
        let mut list: Vec<Start> = workload.tasks.iter().enumerate().filter_map(start).collect();
        list.sort_by_key(|start| (start.at_ns, start.spec));
        list.reverse();
        Starts { list, lead_in_ns }
    }

    /// The earliest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Start> {
        self.list.iter().rev().copied()
    }

    /// When the next one comes, ns.
    pub(crate) fn next_ns(&self) -> Option<u64> {
        self.list.last().map(|start| start.at_ns)
    }

    /// Takes the next one that is due.
    pub(crate) fn take_due(&mut self, now_ns: u64) -> Option<Start> {
        self.list.pop_if(|start| start.at_ns <= now_ns)
    }

    /// Whether the tasks of a group exist and sleep until it starts.
    pub(crate) fn holds_back(&self, spec: usize) -> bool {
        self.lead_in_ns > 0 && self.list.iter().any(|start| start.spec == spec)
    }
}
