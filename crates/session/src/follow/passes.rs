//! The begin of each pass, in a simulated recording with its callbacks.
//!
//! A switch is in the recording when its decision has been paid for; the callbacks of the pass are at its begin, one
//! behind the other on their CPU. So such a recording says when each decision was made, and of passes that left the
//! running task where it was.

use fairground_trace::{CallbackKind, Event, EventKind};

/// A switch comes so long after the first callback of its pass at most, ns.
const PASS_NS_MAX: u64 = 100_000;

/// A pass of a CPU, by the indices of its first event and of its switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PassSeen {
    pub(super) first: usize,
    /// `None`: the running task went on.
    pub(super) switch: Option<usize>,
}

/// Callbacks of one CPU that may belong to a pass.
#[derive(Clone, Copy, Debug)]
struct Chain {
    first: usize,
    time_ns: u64,
    /// The first `dispatch` in it.
    dispatch: Option<usize>,
}

/// Finds the passes of a recording.
#[derive(Debug)]
pub(super) struct PassFinder {
    chains: Vec<Option<Chain>>,
    passes: Vec<PassSeen>,
}

impl PassFinder {
    pub(super) fn new(cpus: usize) -> PassFinder {
        PassFinder { chains: vec![None; cpus], passes: Vec::new() }
    }

    /// Takes an event. Of a switch: the index and the time of its decision, if callbacks show it.
    pub(super) fn take(&mut self, index: usize, event: &Event) -> Option<(usize, u64)> {
        let chain = &mut self.chains[event.cpu as usize];
        match event.kind {
            EventKind::Callback { kind, .. } if is_of_pass(kind) => {
                if let Some(old) = chain.take_if(|chain| chain.time_ns != event.time_ns) {
                    self.passes.extend(old.without_switch());
                }
                let chain = chain.get_or_insert(Chain {
                    first: index,
                    time_ns: event.time_ns,
                    dispatch: None,
                });
                if kind == CallbackKind::Dispatch {
                    chain.dispatch.get_or_insert(index);
                }
                None
            }
            EventKind::Switch { .. } => {
                let chain = chain.take()?;
                if event.time_ns - chain.time_ns > PASS_NS_MAX {
                    self.passes.extend(chain.without_switch());
                    return None;
                }
                self.passes.push(PassSeen { first: chain.first, switch: Some(index) });
                Some((chain.first, chain.time_ns))
            }
            EventKind::Migrate { .. } | EventKind::Print { .. } => None,
            _ => {
                self.passes.extend(chain.take().and_then(Chain::without_switch));
                None
            }
        }
    }

    /// The passes by their first events.
    pub(super) fn finish(mut self) -> Vec<PassSeen> {
        self.passes.extend(self.chains.into_iter().flatten().filter_map(Chain::without_switch));
        self.passes.sort_unstable();
        self.passes
    }
}

impl Chain {
    /// The pass, if it was one.
    fn without_switch(self) -> Option<PassSeen> {
        self.dispatch.map(|first| PassSeen { first, switch: None })
    }
}

/// Whether a callback may come in a pass.
fn is_of_pass(kind: CallbackKind) -> bool {
    matches!(
        kind,
        CallbackKind::Dispatch
            | CallbackKind::Stopping
            | CallbackKind::Quiescent
            | CallbackKind::Dequeue
            | CallbackKind::Enqueue
            | CallbackKind::Running
            | CallbackKind::UpdateIdle
    )
}
