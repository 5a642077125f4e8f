//! The state of a running program: its memory, maps, timers, locks and owned objects.
//!
//! Maps, helpers and both engines work on this state and depend on neither the image's host functions nor the instance.

mod owned;

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::config::InstanceConfig;
use crate::maps::Maps;
use crate::memory::Memory;
use crate::program::Program;
use crate::trap::{Trap, TrapKind};

pub(crate) use owned::{MAX_HELD_LOCKS, MAX_OBJECTS, OBJECT_ALIGN, OwnedObject, OwnedObjects};

/// A `bpf_timer`. The host keeps the expiry times.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timer {
    /// Index of the callback's function, once `bpf_timer_set_callback` has set it.
    pub(crate) callback: Option<usize>,
    /// The callback's arguments: map handle, key pointer, value pointer.
    pub(crate) args: [u64; 5],
}

/// The state of one instance. Helpers reach it through the control block ([`crate::vm::Vm::state`]).
pub(crate) struct State {
    pub(crate) program: Arc<Program>,
    pub(crate) memory: Memory,
    pub(crate) maps: Maps,
    pub(crate) config: InstanceConfig,
    /// The trap with which generated code is being left.
    pub(crate) pending: Option<Trap>,
    /// `bpf_spin_lock`s held: 0 or 1.
    pub(crate) spin_locks: u32,
    /// The initialised timers, by the guest address of their `struct bpf_timer`.
    pub(crate) timers: BTreeMap<u64, Timer>,
    pub(crate) owned: OwnedObjects,
    /// By function and slot: how often the interpreter executed it. Empty under the JIT.
    pub(crate) executed: Vec<Vec<u64>>,
}

impl State {
    /// The state before the first call.
    pub(crate) fn new(
        program: Arc<Program>,
        memory: Memory,
        maps: Maps,
        config: InstanceConfig,
    ) -> State {
        State {
            program,
            memory,
            maps,
            config,
            pending: None,
            spin_locks: 0,
            timers: BTreeMap::new(),
            owned: OwnedObjects::default(),
            executed: Vec::new(),
        }
    }

    /// The trap of a call that used up its fuel.
    #[cold]
    pub(crate) fn out_of_fuel(&self) -> Trap {
        Trap::new(TrapKind::OutOfFuel { limit: self.config.fuel_per_call })
    }

    /// Drops a reference to the object at an address. Its last one frees it; what it owns is
    /// [dropped](Maps::dropped) then. False: no object of the program is there.
    pub(crate) fn drop_object(&mut self, addr: u64) -> bool {
        let Some(object) = self.owned.objects.get_mut(&addr) else { return false };
        object.references -= 1;
        if object.references > 0 {
            return true;
        }
        let OwnedObject { number, bytes, .. } = *object;
        let structure = self.program.linked.objects.get(&number);
        for offset in structure.map_or(&[][..], |structure| &structure.kptrs) {
            // Objects are in committed memory.
            let owned = self.memory.load_u64(addr + u64::from(*offset)).unwrap_or(0);
            self.maps.dropped.extend((owned != 0).then_some(owned));
        }
        self.owned.objects.remove(&addr);
        self.memory.free(addr, u64::from(bytes), OBJECT_ALIGN);
        true
    }

    /// Drops the references of values that are gone; those to objects of the host with `release`.
    pub(crate) fn drop_references(&mut self, mut release: impl FnMut(&Memory, u64)) {
        while let Some(pointer) = self.maps.dropped.pop() {
            if !self.drop_object(u64::from(pointer as u32)) {
                release(&self.memory, pointer);
            }
        }
    }

    /// Releases the locks that a trapped call still held.
    pub(crate) fn release_locks(&mut self) {
        self.spin_locks = 0;
        self.owned.held.clear();
    }
}
