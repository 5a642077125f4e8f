//! Bytes as the description of a CTF trace, and as a stream of one: refused with an error, or a trace with its losses
//! counted.
#![no_main]

mod fixed_hash_seed;

use fairground_trace::{ReadError, read};
use libfuzzer_sys::fuzz_target;

const METADATA: &[u8] = include_bytes!("../../crates/trace/tests/samples/ctf/kernel/metadata");
const STREAM: &[u8] = include_bytes!("../../crates/trace/tests/samples/ctf/kernel/channel0_0");

/// A tar archive of both.
fn archive(metadata: &[u8], stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in [("t/metadata", metadata), ("t/channel0_0", stream)] {
        let mut head = vec![0; 512];
        head[..name.len()].copy_from_slice(name.as_bytes());
        head[124..135].copy_from_slice(format!("{:011o}", bytes.len()).as_bytes());
        head[156] = b'0';
        head[257..262].copy_from_slice(b"ustar");
        out.extend(head);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out
}

fuzz_target!(|bytes: &[u8]| {
    for file in [archive(bytes, STREAM), archive(METADATA, bytes)] {
        match read("fuzz", &file[..]) {
            // An event takes at least a bit.
            Ok(trace) => assert!(trace.len() <= 64 * file.len()),
            Err(error @ ReadError::Io { .. }) => {
                panic!("there is no input that could fail: {error}")
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
