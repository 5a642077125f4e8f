//! `scx_bpf_events` (6.15): what the core counts.

use fairground_bpf::Memory;

use super::Ret;
use crate::interface::events;
use crate::kernel::Kernel;

/// `scx_bpf_events(events, events__sz)`: the counts, in the order of the kernel's `struct scx_event_stats`; as many as
/// there is room for.
pub(super) fn read(k: &mut Kernel, mem: &Memory, [into, bytes, ..]: [u64; 5]) -> Ret {
    let names: Vec<&str> = events::of(k.abi).collect();
    let room = (bytes / 8) as usize;
    for (at, name) in names.into_iter().enumerate().take(room) {
        mem.store_u64(into + 8 * at as u64, k.counters.event(name))?;
    }
    Ok(0)
}
