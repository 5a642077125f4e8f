//! `bpf_timer`s: the callback and its arguments. The host keeps the expiry times.

use std::collections::BTreeMap;

/// The initialised timers of an instance, by the guest address of their `struct bpf_timer`.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeMap<u64, Timer>);

/// One timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// Index of the callback's function, once `bpf_timer_set_callback` has set it.
    pub(crate) callback: Option<usize>,
    /// The callback's arguments: map handle, key pointer, value pointer.
    pub(crate) args: [u64; 5],
}

impl Timers {
    /// Adds a timer without a callback.
    pub(crate) fn insert(&mut self, addr: u64, args: [u64; 5]) {
        self.0.insert(addr, Timer { callback: None, args });
    }

    /// The timer at `addr`, if `bpf_timer_init` initialised it.
    pub(crate) fn get(&self, addr: u64) -> Option<Timer> {
        self.0.get(&addr).copied()
    }

    /// As [`Timers::get`], to change it.
    pub(crate) fn get_mut(&mut self, addr: u64) -> Option<&mut Timer> {
        self.0.get_mut(&addr)
    }
}
