//! Helpers on maps.

use super::handles::{function, map};
use crate::call::Call;
use crate::env::Host;
use crate::errno::{EAGAIN, EINVAL, ENOMEM};
use crate::maps::ElementKey;
use crate::trap::Trap;

/// `BPF_LOCAL_STORAGE_GET_F_CREATE`.
const CREATE: u64 = 1;

/// Calls a method of the maps with the instance's memory.
macro_rules! on_maps {
    ($call:ident, $method:ident, $($arg:expr),*) => {{
        let state = $call.state();
        state.maps.$method(&state.memory, $($arg),*)
    }};
}

pub(super) fn lookup<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let cpu = call.context().cpu;
    on_maps!(call, lookup, map(args[0])?, args[1], cpu)
}

pub(super) fn lookup_percpu<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let cpu = args[2] as u32;
    if cpu >= call.state().config.cpus {
        return Ok(0);
    }
    on_maps!(call, lookup, map(args[0])?, args[1], cpu)
}

pub(super) fn update<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let cpu = call.context().cpu;
    let code = on_maps!(call, update, map(args[0])?, args[1], args[2], args[3], cpu)?;
    call.drop_references();
    Ok(code as u64)
}

pub(super) fn delete<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let code = on_maps!(call, delete, map(args[0])?, args[1])?;
    call.drop_references();
    Ok(code as u64)
}

pub(super) fn push<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let queue = state.maps.queue(map(args[0])?)?;
    queue.push(&state.memory, args[1], args[2] == 2).map(|code| code as u64)
}

pub(super) fn pop<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let queue = state.maps.queue(map(args[0])?)?;
    queue.peek(&state.memory, args[1], true).map(|code| code as u64)
}

pub(super) fn peek<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let queue = state.maps.queue(map(args[0])?)?;
    queue.peek(&state.memory, args[1], false).map(|code| code as u64)
}

pub(super) fn task_storage_get<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [handle, task, initial, flags, _] = args;
    let Some(task) = call.task_number(task) else { return Ok(0) };
    on_maps!(call, task_storage, map(handle)?, task, flags & CREATE != 0, initial)
}

pub(super) fn task_storage_delete<H: Host>(
    call: &mut Call<H>,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let Some(task) = call.task_number(args[1]) else { return Ok(EINVAL as u64) };
    let code = on_maps!(call, task_storage_delete, map(args[0])?, task)?;
    call.drop_references();
    Ok(code as u64)
}

pub(super) fn cgroup_storage_get<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [handle, cgroup, initial, flags, _] = args;
    if cgroup == 0 {
        return Ok(0);
    }
    on_maps!(call, cgroup_storage, map(handle)?, cgroup, flags & CREATE != 0, initial)
}

pub(super) fn cgroup_storage_delete<H: Host>(
    call: &mut Call<H>,
    args: [u64; 5],
) -> Result<u64, Trap> {
    let code = on_maps!(call, cgroup_storage_delete, map(args[0])?, args[1])?;
    call.drop_references();
    Ok(code as u64)
}

/// `bpf_for_each_map_elem(map, callback, ctx, flags)`: the number of elements visited.
pub(super) fn for_each<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [handle, callback, context, flags, _] = args;
    let (index, callback) = (map(handle)?, function(callback)?);
    if flags != 0 {
        return Ok(EINVAL as u64);
    }
    let cpu = call.context().cpu;
    call.with_scratch(|call, scratch| {
        let (mut from, mut visited) = (0, 0);
        while let Some((at, key, value)) = call.state().maps.next(index, from, cpu)? {
            let key = match key {
                ElementKey::Address(key) => key,
                ElementKey::Index(key) => {
                    call.memory().store_u32(scratch, key)?;
                    scratch
                }
            };
            visited += 1;
            if call.callback(callback, [handle, key, value, context, 0])? != 0 {
                break;
            }
            from = at + 1;
        }
        Ok(visited)
    })
}

pub(super) fn ringbuf_reserve<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let (ring, _) = call.state().maps.ring(map(args[0])?)?;
    Ok(ring.reserve(args[1]))
}

pub(super) fn ringbuf_submit<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let Some((index, ring, records)) = state.maps.ring_of(args[0]) else {
        return Err(not_reserved(args[0]));
    };
    let bytes = ring.close(args[0]).unwrap_or(0);
    records.push(index, state.memory.read_vec(args[0], bytes as usize)?);
    Ok(0)
}

pub(super) fn ringbuf_discard<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    match call.state().maps.ring_of(args[0]) {
        Some((_, ring, _)) => Ok(ring.close(args[0]).map_or(0, |_| 0)),
        None => Err(not_reserved(args[0])),
    }
}

#[cold]
fn not_reserved(sample: u64) -> Trap {
    Trap::helper(format!("no ring buffer has a reservation at {sample:#x}"))
}

pub(super) fn ringbuf_output<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let index = map(args[0])?;
    let (_, records) = state.maps.ring(index)?;
    let kept = records.push(index, state.memory.read_vec(args[1], args[2] as usize)?);
    Ok(if kept { 0 } else { EAGAIN as u64 })
}

/// `bpf_perf_event_output(ctx, map, flags, data, size)`.
pub(super) fn perf_event_output<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let state = call.state();
    let bytes = state.memory.read_vec(args[3], args[4] as usize)?;
    let kept = state.maps.perf_event(map(args[1])?, bytes)?;
    Ok(if kept { 0 } else { ENOMEM as u64 })
}
