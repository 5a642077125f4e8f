//! Timers of the program (`bpf_timer`).

use std::collections::BTreeMap;

use fairground_bpf::FuncRef;

use super::Kernel;
use crate::abi::errno;
use crate::events::{EventHandle, TIMER_SLOTS};

/// How the message of a timer that keeps expiring begins.
pub(crate) const TIMER_LIMIT: &str = "timers expire without end";

/// `BPF_F_TIMER_ABS`: the time is a point, not a delay.
const ABS: u64 = 1;
/// Expiries of timers at one instant of simulated time, at most: more come from a timer that is armed again with no
/// delay.
const EXPIRIES_AT_ONCE_MAX: u32 = 1 << 16;
const _: () = assert!(EXPIRIES_AT_ONCE_MAX > TIMER_SLOTS);
/// `BPF_F_TIMER_CPU_PIN`: accepted; timers never move between CPUs here.
const CPU_PIN: u64 = 2;

/// An armed timer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// Guest address of its `struct bpf_timer`.
    pub(crate) addr: u64,
    pub(crate) callback: FuncRef,
    pub(crate) args: [u64; 5],
    /// The CPU that armed it, and on which it fires.
    pub(crate) cpu: u32,
}

/// All timers: numbers for the event queue.
#[derive(Debug, Default)]
pub(crate) struct Timers {
    by_addr: BTreeMap<u64, u32>,
    armed: Vec<Option<Timer>>,
    free: Vec<u32>,
    /// The instant of the last expiry, and the expiries at it.
    last_ns: u64,
    at_once: u32,
}

impl Timers {
    fn number(&mut self, addr: u64) -> Option<u32> {
        if let Some(number) = self.by_addr.get(&addr) {
            return Some(*number);
        }
        let number = match self.free.pop() {
            Some(number) => number,
            None if self.armed.len() < TIMER_SLOTS as usize => {
                self.armed.push(None);
                self.armed.len() as u32 - 1
            }
            None => return None,
        };
        self.by_addr.insert(addr, number);
        Some(number)
    }

    /// Takes the timer of a number that expires.
    pub(crate) fn expire(&mut self, number: u32, now_ns: u64) -> Option<Timer> {
        self.at_once = if self.last_ns == now_ns { self.at_once + 1 } else { 1 };
        self.last_ns = now_ns;
        self.take(number)
    }

    /// Whether the expiries of this instant lead to new ones without end.
    fn is_endless(&self, now_ns: u64) -> bool {
        self.last_ns == now_ns && self.at_once > EXPIRIES_AT_ONCE_MAX
    }

    /// Timers that expire on one CPU expire on another from now on.
    pub(crate) fn leave(&mut self, cpu: u32, to: u32) {
        for timer in self.armed.iter_mut().flatten().filter(|timer| timer.cpu == cpu) {
            timer.cpu = to;
        }
    }

    /// Takes the timer of a number that is due or cancelled.
    pub(crate) fn take(&mut self, number: u32) -> Option<Timer> {
        let timer = self.armed.get_mut(number as usize)?.take()?;
        self.by_addr.remove(&timer.addr);
        self.free.push(number);
        Some(timer)
    }
}

impl Kernel {
    /// `bpf_timer_start`: arms, or arms anew. At most [`TIMER_SLOTS`] may be armed.
    pub(crate) fn start_timer(&mut self, timer: Timer, time_ns: u64, flags: u64) -> i64 {
        if flags & !(ABS | CPU_PIN) != 0 {
            return errno::EINVAL;
        }
        let Some(number) = self.timers.number(timer.addr) else { return errno::ENOMEM };
        let at = if flags & ABS != 0 {
            time_ns.max(self.clock.now_ns())
        } else {
            self.clock.now_ns().saturating_add(time_ns)
        };
        if at <= self.clock.now_ns() && self.timers.is_endless(self.clock.now_ns()) {
            self.error(format!(
                "{TIMER_LIMIT}: more than {EXPIRIES_AT_ONCE_MAX} at one instant, each armed again with no delay"
            ));
        }
        self.timers.armed[number as usize] = Some(timer);
        self.events.arm(EventHandle::Timer(number), at);
        0
    }

    /// `bpf_timer_cancel`: whether it was armed.
    pub(crate) fn cancel_timer(&mut self, addr: u64) -> bool {
        let Some(number) = self.timers.by_addr.get(&addr).copied() else { return false };
        self.events.cancel(EventHandle::Timer(number));
        self.timers.take(number).is_some()
    }
}
