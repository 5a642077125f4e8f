//! The times of the samples of a piece, each CPU's by themselves.

use super::super::collect::Span;
use super::super::line::CPUS_MAX;

/// The times of a piece; those of one CPU are in hand.
pub(super) struct Stamps<'p> {
    spans: &'p mut Vec<Span>,
    in_hand: Span,
}

impl<'p> Stamps<'p> {
    pub(super) fn new(spans: &'p mut Vec<Span>) -> Self {
        // No CPU's.
        Self { spans, in_hand: Span { cpu: u32::MAX, first_ns: 0, last_ns: 0 } }
    }

    /// Notes the time of a sample; `None` when the clock of its CPU goes back. False: there is no such CPU.
    #[inline(always)]
    pub(super) fn note(&mut self, cpu: u32, time_ns: u64) -> Option<bool> {
        if cpu != self.in_hand.cpu {
            if cpu >= CPUS_MAX {
                return Some(false);
            }
            self.turn_to(cpu, time_ns);
        }
        if time_ns < self.in_hand.last_ns {
            return None;
        }
        self.in_hand.last_ns = time_ns;
        Some(true)
    }

    #[cold]
    fn turn_to(&mut self, cpu: u32, time_ns: u64) {
        self.put_back();
        let known = self.spans.iter().find(|span| span.cpu == cpu).copied();
        self.in_hand = known.unwrap_or_else(|| {
            let span = Span { cpu, first_ns: time_ns, last_ns: time_ns };
            self.spans.push(span);
            span
        });
    }

    /// To be called in the end.
    pub(super) fn put_back(&mut self) {
        let known = self.spans.iter_mut().find(|span| span.cpu == self.in_hand.cpu);
        known.into_iter().for_each(|span| *span = self.in_hand);
    }
}
