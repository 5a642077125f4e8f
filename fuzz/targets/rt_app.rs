//! Any text as a file of rt-app: an accepted one is a valid workload; as far as rt-app can express it, it is written,
//! accepted again, and equal.
#![no_main]

use fairground_workload::{parse, parse_rt_app, to_rt_app, to_toml};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(read) = parse_rt_app("fuzz", text) else { return };
    let toml = to_toml(&read.workload);
    assert_eq!(parse("toml", &toml).as_ref(), Ok(&read.workload), "{toml}");
    if let Ok(written) = to_rt_app(&read.workload) {
        let again = parse_rt_app("fuzz", &written.text).map(|read| read.workload);
        assert_eq!(again.as_ref(), Ok(&read.workload), "{}", written.text);
    }
});
