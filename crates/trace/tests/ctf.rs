//! CTF traces of LTTng are read: folders, and tar archives of them.

use std::fs::File;
use std::path::Path;

use fairground_trace::{ReadError, Trace, read, read_file, read_machine, read_machine_file};
use proptest::prelude::*;

use crate::support::ctf_2;
use crate::support::ctf_file::{
    CtfStream, WAKEUP, dumped, metadata, of_program, small, tar, tars, write,
};
use crate::support::words;

fn of_folder(folder: &Path) -> Result<Trace, ReadError> {
    read_file("folder", File::open(folder).expect("a folder"))
}

fn of_files(files: &[(String, Vec<u8>)]) -> Result<Trace, ReadError> {
    read("trace.tar", &tar("session/kernel", files)[..])
}

#[test]
fn a_folder_and_an_archive_in_both_byte_orders() {
    let wanted = [
        "1000 0 swapper:0 R -> app:7",
        "2000 0 app:7 wakes other:8 on 1",
        "2100 1 other:8 on 1",
        "2200 1 swapper:0 R -> other:8",
        "2200 1 lost 9",
        "2500 0 app:7 forks app:9",
        // In an interrupt.
        "2700 0 swapper:0 wakes late:10 on 0",
        "9000 1 other:8 D -> swapper:0",
        "134217733 0 app:7 S -> swapper:0",
    ];
    for big in [false, true] {
        let files = small(big);
        let folder = tempfile::tempdir().unwrap();
        write(&folder.path().join("kernel"), &files);
        let trace = of_folder(folder.path()).expect("a trace");
        assert_eq!(words(&trace), wanted);
        assert_eq!((trace.cpus, trace.loss.lost_events, trace.loss.unreadable), (2, 9, 0));
        assert_eq!(trace.origin.kernel.as_deref(), Some("6.1.0-test"));
        assert_eq!(trace.tasks()[1].nice, Some(0));
        assert_eq!(words(&of_files(&files).expect("a trace")), wanted);
        // The description may be plain, too.
        let mut plain = files;
        plain[0].1 = metadata(big).into_bytes();
        assert_eq!(words(&of_files(&plain).expect("a trace")), wanted);
        // The same streams described in version 2.
        plain[0].1 = ctf_2::metadata(big).into_bytes();
        let trace = of_files(&plain).expect("a trace");
        assert_eq!(words(&trace), wanted);
        assert_eq!(trace.origin.kernel.as_deref(), Some("6.1.0-test"));
    }
}

/// Two channels of a CPU are one sequence of events.
#[test]
fn channels_of_a_cpu_are_merged() {
    let mut files = small(false);
    let mut other = CtfStream::new(0, false);
    other.wake(1_500, WAKEUP, (8, "other"), 1);
    other.wake(2_650, WAKEUP, (8, "other"), 1);
    other.packet();
    let mut bytes = other.bytes();
    // Another stream instance.
    bytes[24] = 9;
    files.push(("channel1_0".to_owned(), bytes));
    let trace = of_files(&files).expect("a trace");
    assert_eq!((trace.loss.clock_jumps, trace.len()), (0, 11));
}

#[test]
fn a_packet_that_is_missing_is_a_loss() {
    let mut stream = CtfStream::new(0, false);
    stream.switch(1_000, (0, "swapper/0"), 0, (7, "app"));
    stream.packet();
    stream.number += 2;
    stream.switch(5_000, (7, "app"), 1, (0, "swapper/0"));
    stream.packet();
    let files = [
        ("metadata".to_owned(), metadata(false).into_bytes()),
        ("channel0_0".to_owned(), stream.bytes()),
    ];
    let trace = of_files(&files).expect("a trace");
    assert_eq!(words(&trace)[1], "1000 0 lost 2");
}

/// The tracer lists the tasks when it begins: those that no switch names are called as there.
#[test]
fn the_state_dump_names_tasks() {
    let trace = of_files(&dumped()).expect("a trace");
    let wanted = ["1000 0 early:7 wakes other:8 on 0", "2000 0 swapper:0 R -> other:8"];
    assert_eq!(words(&trace), wanted);
    assert_eq!((trace.loss.unreadable, trace.loss.skipped), (0, 0));
}

/// The trace of a kernel is known by what it says, not by the name of its folder.
#[test]
fn of_a_session_the_trace_of_the_kernel_is_read() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("a/ust/uid/1000/64-bit"), &of_program());
    write(&folder.path().join("domain-k"), &small(false));
    let trace = of_folder(folder.path()).expect("a trace");
    assert_eq!(trace.len(), 9);
    let note =
        "beside the trace of the kernel, domain-k, these were left out: a/ust/uid/1000/64-bit";
    assert_eq!(trace.loss.first.as_deref(), Some(note));
    // perf's conversion names no domain.
    let mut converted = small(false);
    let text = metadata(false).replace("domain = \"kernel\";", "");
    converted[0].1 = text.replace("\"sched_switch\"", "\"sched:sched_switch\"").into_bytes();
    write(&folder.path().join("domain-k"), &converted);
    assert_eq!(of_folder(folder.path()).expect("a trace").loss.first.as_deref(), Some(note));
}

#[test]
fn one_of_several_kernels_is_chosen_by_name() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("web/kernel"), &small(false));
    write(&folder.path().join("db/kernel"), &small(true)[..2]);
    write(&folder.path().join("db/ust"), &of_program());
    let of = |machine| {
        let file = File::open(folder.path()).expect("a folder");
        read_machine_file("folder", file, machine)
    };
    let trace = of(None).expect("a trace");
    let note = "there are several traces, db/kernel, web/kernel, which may be of several machines: \
                only db/kernel is read (--machine NAME reads another)";
    assert_eq!((trace.cpus, trace.loss.first.as_deref()), (2, Some(note)));
    assert!(trace.len() < 9);
    let trace = of(Some("web/kernel")).expect("a trace");
    assert_eq!(
        (trace.len(), trace.loss.first.as_deref()),
        (9, Some("event 0: CPU 1 lost 9 events"))
    );
    let why = of(Some("x")).expect_err("there is none").to_string();
    assert!(why.contains("no machine or buffer `x`"), "{why}");
    assert!(why.contains("it has db/kernel, web/kernel"), "{why}");
    // The same in an archive.
    let archive = tars(&[("web/kernel", small(false)), ("db/kernel", small(true)[..2].to_vec())]);
    let trace = read_machine("t.tar", &archive[..], Some("web/kernel")).expect("a trace");
    assert_eq!(trace.len(), 9);
    let trace = read("t.tar", &archive[..]).expect("a trace");
    assert_eq!(trace.loss.first.as_deref(), Some(note));
}

#[test]
fn what_is_cut_off_keeps_its_whole_packets() {
    let mut files = small(false);
    let len = files[1].1.len();
    files[1].1.truncate(len - 70);
    let trace = of_files(&files).expect("a trace");
    assert!(trace.loss.truncated || trace.loss.unreadable > 0, "{:?}", trace.loss);
    assert!(words(&trace).contains(&"2000 0 app:7 wakes other:8 on 1".to_owned()));
}

#[test]
fn what_is_no_trace_is_said() {
    let said =
        |files: &[(String, Vec<u8>)]| of_files(files).expect_err("it is refused").to_string();
    let described = |text: &str| said(&[("metadata".to_owned(), text.as_bytes().to_vec())]);
    let preamble = "\u{1e}{\"type\": \"preamble\", \"version\": ";
    let later = described(&format!("{preamble}3}}"));
    assert!(later.contains("object 1 of its metadata: a version of CTF"), "{later}");
    let unknown = format!(
        "{preamble}2}}\u{1e}{{\"type\": \"event-record-class\", \"payload-field-class\": \"x\"}}"
    );
    let unknown = described(&unknown);
    assert!(
        unknown.contains("object 2 of its metadata: a field class that is not known"),
        "{unknown}"
    );
    let wrong = [("metadata".to_owned(), b"/* CTF 1.8 */\n\nevent { id = ; };".to_vec())];
    assert!(said(&wrong).contains("line 3 of its metadata"), "{}", said(&wrong));
    let other = [("notes.txt".to_owned(), b"hello".to_vec())];
    assert!(said(&other).contains("this is a tar archive"), "{}", said(&other));
    let folder = tempfile::tempdir().unwrap();
    let empty = of_folder(folder.path()).expect_err("nothing in it").to_string();
    assert!(empty.contains("this is a folder"), "{empty}");
    let stream = read("channel0_0", &small(false)[1].1[..]).expect_err("a part").to_string();
    assert!(stream.contains("a stream of a CTF trace"), "{stream}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// Damage anywhere is counted or refused, in bounded time.
    #[test]
    fn damage_is_no_panic(
        file in 0..3_usize,
        version in 1..3,
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        end in any::<prop::sample::Index>(),
    ) {
        let mut files = small(false);
        if file == 0 {
            let text = if version == 1 { metadata(false) } else { ctf_2::metadata(false) };
            files[0].1 = text.into_bytes();
        }
        let bytes = &mut files[file].1;
        let (at, end) = (at.index(bytes.len()), end.index(bytes.len()));
        bytes[at] = byte;
        if let Err(error) = of_files(&files) {
            prop_assert!(!error.to_string().is_empty());
        }
        files[file].1.truncate(end);
        if let Err(error) = of_files(&files) {
            prop_assert!(!error.to_string().is_empty());
        }
    }
}
