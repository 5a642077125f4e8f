//! The numbers that a scheduler keeps for a task, and the candidates that are equals by them.

use fairground_bpf::Object;
use fairground_machine::{Driven, Topology};
use fairground_trace::{TaskId, Trace};

use super::resolution::OrderKeys;
use super::tally::CandidateState;
use crate::samples::TaskNumbers;

/// The numbers by which schedulers order tasks, the decisive one first.
const ORDERED_BY: [&str; 2] = ["deadline", "vruntime"];

/// Reads a scheduler's numbers.
#[derive(Debug)]
pub(super) struct Knowledge<'a> {
    numbers: TaskNumbers,
    topology: &'a Topology,
    /// The resolution of the recording's clock, ns.
    pub(super) clock_ns: u64,
}

impl<'a> Knowledge<'a> {
    pub(super) fn new(object: &Object, topology: &'a Topology, trace: &Trace) -> Knowledge<'a> {
        let is_us = trace.events().all(|event| event.time_ns.is_multiple_of(1000));
        let clock_ns = if is_us { 1000 } else { 1 };
        Knowledge { numbers: TaskNumbers::of(object), topology, clock_ns }
    }

    /// A task as the scheduler keeps it; `None` if it does not exist.
    pub(super) fn of(&self, driven: &Driven, task: TaskId) -> Option<CandidateState> {
        let (view, words) = driven.read(task, &self.numbers.places)?;
        let mut numbers = vec![("slice".to_owned(), view.slice_ns as i64)];
        if view.dsq_vtime != 0 {
            numbers.push(("dsq_vtime".to_owned(), view.dsq_vtime as i64));
        }
        let named = self.numbers.names.iter().zip(words);
        // Virtual times wrap around: near the wrap they are small negative numbers.
        numbers.extend(named.filter_map(|(name, word)| Some((name.clone(), word? as i64))));
        Some(CandidateState { task, numbers })
    }

    /// The numbers by which the scheduler may order a task in time; `None`: the task does not exist.
    pub(super) fn order_keys(&self, driven: &Driven, task: TaskId) -> Option<OrderKeys> {
        let (view, words) = driven.read(task, &self.numbers.places)?;
        let [deadline_ns, run_time_ns] = ORDERED_BY.map(|wanted| {
            let at = self.numbers.names.iter().position(|name| name == wanted)?;
            words.get(at).copied().flatten().map(|word| word as i64)
        });
        Some(OrderKeys { run_time_ns: run_time_ns.unwrap_or(view.dsq_vtime as i64), deadline_ns })
    }

    /// Whether two tasks have the same place in the scheduler's order, as far as the clock can tell.
    pub(super) fn are_equal(&self, driven: &Driven, one: TaskId, other: TaskId) -> bool {
        let (Some(one), Some(other)) = (self.of(driven, one), self.of(driven, other)) else {
            return false;
        };
        let key = |known: &CandidateState| {
            let named = |name: &str| known.numbers.iter().find(|(own, _)| own == name);
            let key = ORDERED_BY.iter().find_map(|name| named(name)).or_else(|| named("dsq_vtime"));
            key.map(|(_, number)| *number)
        };
        match (key(&one), key(&other)) {
            (Some(one), Some(other)) => one.wrapping_sub(other).unsigned_abs() < self.clock_ns,
            _ => false,
        }
    }

    /// Whether two CPUs have one last-level cache, and no sibling thread that makes a difference.
    pub(super) fn share_cache(&self, one: u32, other: u32) -> bool {
        let llc = |cpu| self.topology.place(cpu).map(|place| place.llc);
        !self.topology.has_smt() && llc(one) == llc(other)
    }
}
