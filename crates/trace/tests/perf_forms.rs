//! A `perf.data` from a pipe, and the folder of `perf record --threads`.

use std::fs::{self, File};

use fairground_trace::{Trace, read, read_file};

use crate::support::samples::{perf_sample, perf_threads};

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
