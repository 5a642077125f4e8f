//! `bpf_timer`: which callback belongs to which timer. When it expires is the host's business.

use std::collections::BTreeMap;

use super::map;
use crate::env::{FuncRef, Host};
use crate::exec::Call;
use crate::layout;
use crate::maps::{EINVAL, KeyAt};
use crate::trap::Trap;

const EBUSY: i64 = -16;

/// The timers of an instance, by guest address.
#[derive(Debug, Default)]
pub(crate) struct Timers(BTreeMap<u64, Timer>);

#[derive(Debug)]
struct Timer {
    callback: Option<usize>,
    /// Map, key pointer, value pointer.
    args: [u64; 5],
}

/// `bpf_timer_init(timer, map, flags)`.
pub(super) fn init<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = u64::from(args[0] as u32);
    let index = map(args[1])?;
    let core = call.core();
    if core.timers.0.contains_key(&timer) {
        return Ok(EBUSY as u64);
    }
    let Some((key, value)) = core.maps.element_at(index, timer) else {
        return Err(Trap::helper(format!("the timer at {timer:#x} lies in no value of its map")));
    };
    let key = match key {
        KeyAt::Address(key) => key,
        KeyAt::Index(key) => {
            let at = core.memory.alloc(8, 8).map_err(|error| Trap::helper(error.to_string()))?;
            core.memory.store_u32(at, key)?;
            at
        }
    };
    let args = [layout::map_handle(index), key, value, 0, 0];
    core.timers.0.insert(timer, Timer { callback: None, args });
    Ok(0)
}

/// `bpf_timer_set_callback(timer, callback)`.
pub(super) fn set_callback<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let callback = super::function(args[1])?;
    match call.core().timers.0.get_mut(&u64::from(args[0] as u32)) {
        Some(timer) => {
            timer.callback = Some(callback);
            Ok(0)
        }
        None => Ok(EINVAL as u64),
    }
}

/// `bpf_timer_start(timer, nsecs, flags)`.
pub(super) fn start<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = u64::from(args[0] as u32);
    let Some(Timer { callback: Some(callback), args: with }) = call.core().timers.0.get(&timer)
    else {
        return Ok(EINVAL as u64);
    };
    let (callback, with) = (FuncRef(*callback), *with);
    let (_, host) = call.host();
    Ok(host.timer_start(timer, callback, with, args[1], args[2]) as u64)
}

/// `bpf_timer_cancel(timer)`.
pub(super) fn cancel<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = u64::from(args[0] as u32);
    if !call.core().timers.0.contains_key(&timer) {
        return Ok(EINVAL as u64);
    }
    Ok(call.host().1.timer_cancel(timer) as u64)
}
