//! Which CPUs are online, and where a task may run because of that.

use std::collections::VecDeque;

use fairground_bpf::{Memory, Trap};
use fairground_trace::EventKind;

use super::{Kernel, Slot, write_mask};
use crate::cpuset::CpuMask;
use crate::events::{CpuEvent, EventHandle};

/// A CPU that is to come or to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Hotplug {
    pub(crate) cpu: u32,
    pub(crate) online: bool,
}

impl Hotplug {
    /// As a setting: `cpu.1.online=off`.
    pub(crate) fn label(self) -> String {
        format!("cpu.{}.online={}", self.cpu, if self.online { "on" } else { "off" })
    }
}

/// The state of CPU hotplug.
#[derive(Debug)]
pub(crate) struct Online {
    /// `cpu_online_mask`, which is `cpu_active_mask` too: a CPU comes or goes at one instant.
    pub(crate) mask: CpuMask,
    /// Pending changes, one after the other.
    pub(crate) requests: VecDeque<Hotplug>,
    /// `scx_hotplug_seq`: CPUs that came or went since the boot, where each of them came.
    pub(crate) seq: u64,
}

impl Online {
    /// All CPUs have come.
    pub(crate) fn new(cpus: CpuMask) -> Online {
        Online { mask: cpus, requests: VecDeque::new(), seq: u64::from(cpus.count()) }
    }
}

impl Kernel {
    /// `cpu_online`.
    #[inline]
    pub(crate) fn is_online(&self, cpu: u32) -> bool {
        self.online.mask.test(cpu)
    }

    /// A CPU comes or goes: the masks of the kernel follow.
    pub(crate) fn set_online(&mut self, mem: &Memory, change: Hotplug) -> Result<(), Trap> {
        let Hotplug { cpu, online } = change;
        match online {
            true => self.online.mask.set(cpu),
            false => self.online.mask.clear(cpu),
        }
        self.online.seq += 1;
        self.idle.set_online(cpu, online);
        let now_ns = self.clock.now_ns();
        self.rq(cpu).online_since_ns = now_ns;
        write_mask(mem, self.masks.online, &self.online.mask)?;
        self.idle_masks_changed(mem)
    }

    /// Writes into the trace that a CPU has come or gone, as it writes changed settings.
    pub(crate) fn tell_hotplug(&mut self, change: Hotplug) {
        let label = self.trace.intern(&change.label());
        self.emit(change.cpu, 0, EventKind::Param { label });
    }

    /// `is_cpu_allowed`: whether a task may be put on a CPU.
    #[inline]
    pub(crate) fn may_be_on(&self, slot: Slot, cpu: u32) -> bool {
        self.task(slot).allows(cpu) && self.is_online(cpu)
    }

    /// The online CPUs on which a task may run.
    #[inline]
    pub(crate) fn usable(&self, slot: Slot) -> CpuMask {
        match self.task(slot).allowed.as_deref() {
            Some(allowed) => allowed.and(&self.online.mask),
            None => self.online.mask,
        }
    }

    /// `select_fallback_rq` without its last resort: a CPU for a task, on the node of its last one if there is one.
    /// `None`: none of those on which it may run is online.
    pub(crate) fn fallback_cpu(&self, slot: Slot) -> Option<u32> {
        let usable = self.usable(slot);
        usable.first_and(self.topology.node(self.task(slot).cpu)).or_else(|| usable.first())
    }

    /// The CPU that gets the interrupts of a device or a timer that belongs to a CPU: the first one that is online when
    /// that one is not.
    #[inline]
    pub(crate) fn interrupted_cpu(&self, cpu: u32) -> u32 {
        if self.is_online(cpu) { cpu } else { self.online.mask.first().unwrap_or(0) }
    }

    /// `hrtimers_cpu_dying`, and the other things that nothing happens to any more on a CPU that goes: its timers are
    /// those of the first CPU now.
    pub(crate) fn silence(&mut self, cpu: u32) {
        let to = self.interrupted_cpu(cpu);
        self.move_sleeps(cpu, to);
        for event in [CpuEvent::Resched, CpuEvent::Signal, CpuEvent::Timer, CpuEvent::Server] {
            self.events.cancel(EventHandle::Cpu(cpu, event));
        }
        if self.rt.is_used() {
            self.rt.stop_server(cpu);
        }
        let rq = self.rq(cpu);
        (rq.need_resched, rq.signalled, rq.wake_list_ns) = (false, false, 0);
        self.timers.leave(cpu, to);
    }
}
