//! A `perf.data` from a pipe, of simpleperf, with guests, and the folder of `perf record --threads`.

use std::fs::{self, File};

use fairground_trace::{Trace, read, read_file};

use crate::support::perf_file::PerfFile;
use crate::support::samples::{perf_sample, perf_threads, simpleperf};
use crate::support::words;

fn trace(bytes: &[u8]) -> Trace {
    read("perf.data", bytes).expect("a recording")
}

#[test]
fn from_a_pipe_it_is_the_same_recording() {
    let file = perf_sample();
    let (of_file, of_pipe) = (trace(&file.bytes()), trace(&file.pipe()));
    assert_eq!((of_file.len(), of_file.tasks()), (of_pipe.len(), of_pipe.tasks()));
    assert!(of_file.events().eq(of_pipe.events()));
    assert_eq!(of_pipe.origin.kernel.as_deref(), Some("6.1.0"));
    assert_eq!((of_pipe.loss.lost_events, of_pipe.loss.truncated), (3, false));
    // Cut off in a record, the whole ones are kept; before the descriptions, it is refused.
    let pipe = file.pipe();
    let cut = trace(&pipe[..pipe.len() - 20]);
    assert!(cut.loss.truncated && cut.len() + 1 == of_pipe.len());
    for end in 0..pipe.len() {
        if let Err(error) = read("cut", &pipe[..end]) {
            assert!(!error.to_string().is_empty());
        }
    }
    let said = read("cut", &pipe[..400]).expect_err("no descriptions").to_string();
    assert!(said.contains("cut off"), "{said}");
}

#[test]
fn a_folder_with_a_file_for_each_thread() {
    let whole = perf_sample();
    let (head, threads) = perf_threads();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("data"), head.bytes()).unwrap();
    for (number, thread) in threads.iter().enumerate() {
        fs::write(folder.path().join(format!("data.{number}")), &thread.records).unwrap();
    }
    let of_folder =
        read_file("perf.data", File::open(folder.path()).unwrap()).expect("a recording");
    let of_file = trace(&whole.bytes());
    // The loss of the file is the only difference.
    assert_eq!((of_folder.len(), of_folder.tasks()), (of_file.len() - 1, of_file.tasks()));
    assert_eq!(of_folder.loss.clock_jumps, 0);
}

/// simpleperf has the kernel's descriptions in a record of its own, beside others that may be long.
#[test]
fn of_simpleperf() {
    let wanted = [
        "1000 0 swapper:0 R -> sev:7",
        "2000 0 sev:7 S -> swapper:0",
        "2500 0 swapper:0 R -> sev:7",
    ];
    // Longer than any record of perf.
    let bytes = simpleperf(1 << 17).bytes();
    let trace = trace(&bytes);
    assert_eq!(words(&trace), wanted);
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 1), "{:?}", trace.loss.first);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("perf.data");
    fs::write(&path, &bytes).unwrap();
    assert_eq!(words(&read_file("perf.data", File::open(&path).unwrap()).unwrap()), wanted);
    for end in (0..bytes.len()).step_by(97) {
        if let Err(error) = read("cut", &bytes[..end]) {
            assert!(!error.to_string().is_empty());
        }
    }
}

/// What a guest's tasks are called says nothing of the host's tasks with their numbers. A tracepoint in an interrupt
/// that arrived while a guest ran is the host's.
#[test]
fn guests_beside_the_host() {
    const GUEST_KERNEL: u16 = 4;
    const GUEST_USER: u16 = 5;
    let mut file = PerfFile::default();
    file.comm(500, 7, "vcpu");
    file.switch(1_000, 0, (0, b"swap", 0), (7, b"vcpu"));
    file.misc = GUEST_USER;
    file.comm(1_200, 7, "init");
    file.cycles(1_300, 0, 7);
    file.misc = GUEST_KERNEL;
    file.cycles(1_400, 0, 7);
    file.switch(2_000, 0, (7, b"vcpu", 1), (0, b"swap"));
    let trace = trace(&file.bytes());
    assert_eq!(words(&trace), ["1000 0 swapper:0 R -> vcpu:7", "2000 0 vcpu:7 S -> swapper:0"]);
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 2));
}
