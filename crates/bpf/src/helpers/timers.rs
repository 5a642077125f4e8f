//! `bpf_timer` helpers. The host keeps the expiry times and calls the callback.

use super::handles::{function, map};
use crate::call::Call;
use crate::env::{FuncRef, Host};
use crate::errno::{EBUSY, EINVAL};
use crate::layout;
use crate::maps::ElementKey;
use crate::state::Timer;
use crate::trap::Trap;

/// The guest address of the `struct bpf_timer` that r1 points to.
fn timer_addr(args: [u64; 5]) -> u64 {
    u64::from(args[0] as u32)
}

/// `bpf_timer_init(timer, map, flags)`.
pub(super) fn init<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = timer_addr(args);
    let index = map(args[1])?;
    let state = call.state();
    if state.timers.contains_key(&timer) {
        return Ok(EBUSY as u64);
    }
    let Some((key, value)) = state.maps.element_at(index, timer) else {
        return Err(Trap::helper(format!("the timer at {timer:#x} is in no value of its map")));
    };
    let key = match key {
        ElementKey::Address(key) => key,
        ElementKey::Index(key) => {
            let at = state.memory.alloc(8, 8).map_err(|error| Trap::helper(error.to_string()))?;
            state.memory.store_u32(at, key)?;
            at
        }
    };
    let args = [layout::map_handle(index), key, value, 0, 0];
    state.timers.insert(timer, Timer { callback: None, args });
    Ok(0)
}

/// `bpf_timer_set_callback(timer, callback)`.
pub(super) fn set_callback<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let callback = function(args[1])?;
    match call.state().timers.get_mut(&timer_addr(args)) {
        Some(timer) => {
            timer.callback = Some(callback);
            Ok(0)
        }
        None => Ok(EINVAL as u64),
    }
}

/// `bpf_timer_start(timer, nsecs, flags)`.
pub(super) fn start<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = timer_addr(args);
    let Some(&Timer { callback: Some(callback), args: with }) = call.state().timers.get(&timer)
    else {
        return Ok(EINVAL as u64);
    };
    let (_, host) = call.host();
    Ok(host.timer_start(timer, FuncRef(callback), with, args[1], args[2]) as u64)
}

/// `bpf_timer_cancel(timer)`.
pub(super) fn cancel<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let timer = timer_addr(args);
    if !call.state().timers.contains_key(&timer) {
        return Ok(EINVAL as u64);
    }
    Ok(call.host().1.timer_cancel(timer) as u64)
}
