//! Any bytes as a recording; a trace can be written in every format, and our own format gives the same trace again.
#![no_main]

mod fixed_hash_seed;

use fairground_trace::{
    EventKind, Trace, read, write_chrome, write_ftrace, write_perfetto, write_trace_dat,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(trace) = read("fuzz", bytes) else { return };
    let (mut text, mut other) = (Vec::new(), Vec::new());
    write_perfetto(&trace, &[], &mut other).expect("a vector takes everything");
    write_chrome(&trace, &[], &mut other).expect("a vector takes everything");
    other.clear();
    write_trace_dat(&trace, &mut other).expect("a vector takes everything");
    read("again", &other[..]).expect("what we wrote can be read");
    write_ftrace(&trace, &mut text).expect("a vector takes everything");
    let again = read("again", &text[..]).expect("what we wrote can be read");
    // A stack is written below its event, and names may be changed for display.
    let count = |trace: &Trace| {
        let stacks =
            |event: &fairground_trace::Event| matches!(event.kind, EventKind::Stack { .. });
        trace.events().filter(|event| !stacks(event)).count()
    };
    assert_eq!(count(&again), count(&trace));
});
