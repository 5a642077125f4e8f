//! The order of events of several CPUs at one time, where a recording states it. A format with a buffer for each CPU
//! does not have it in its events.

use std::collections::{BTreeMap, HashMap, VecDeque};

use crate::packed::Packed;

/// Events of a CPU that stand together: the CPU and their number.
pub(super) type CpuRun = (u32, u32);

/// Puts events of one time into the stated order.
#[derive(Debug, Default)]
pub(super) struct TieOrder {
    stated: HashMap<u64, Vec<CpuRun>>,
    /// Events of a time with an order, until the next time.
    held: Vec<Packed>,
}

impl TieOrder {
    /// States the order of a time's events.
    pub(super) fn state(&mut self, time_ns: u64, runs: Vec<CpuRun>) {
        self.stated.insert(time_ns, runs);
    }

    /// Takes the next event in order of time, and passes on what is in order.
    #[inline]
    pub(super) fn take(&mut self, event: Packed, mut pass: impl FnMut(Packed)) {
        if self.stated.is_empty() {
            return pass(event);
        }
        if self.held.first().is_some_and(|held| held.time_ns != event.time_ns) {
            self.release(&mut pass);
        }
        match self.stated.contains_key(&event.time_ns) {
            true => self.held.push(event),
            false => pass(event),
        }
    }

    /// Passes on the events that are held. Those that the order does not name come last.
    pub(super) fn release(&mut self, mut pass: impl FnMut(Packed)) {
        let held = std::mem::take(&mut self.held);
        let time_ns = held.first().map_or(0, |event| event.time_ns);
        let mut of_cpu: BTreeMap<u32, VecDeque<usize>> = BTreeMap::new();
        for (at, event) in held.iter().enumerate() {
            of_cpu.entry(event.cpu).or_default().push_back(at);
        }
        let mut rest = vec![true; held.len()];
        for (cpu, count) in self.stated.get(&time_ns).into_iter().flatten() {
            let Some(waiting) = of_cpu.get_mut(cpu) else { continue };
            for at in waiting.drain(..waiting.len().min(*count as usize)) {
                rest[at] = false;
                pass(held[at]);
            }
        }
        held.into_iter().zip(rest).filter(|(_, rest)| *rest).for_each(|(event, _)| pass(event));
    }
}
