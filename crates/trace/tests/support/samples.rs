//! Small recordings in forms that the project itself does not write.

use super::perf_file::PerfFile;
use super::proto::{Proto, bundle, compact, file};
use super::{ctf_2, ctf_file};

/// The binary samples: each with its path below `tests/samples`.
pub(crate) fn all() -> Vec<(String, Vec<u8>)> {
    let ctf = ctf_file::small(false);
    let mut all = vec![
        ("perfetto/columns.pftrace".to_owned(), android()),
        ("perfetto/events.pftrace".to_owned(), events_file()),
        ("perfetto/blocked.pftrace".to_owned(), blocked()),
        ("text/fairground.txt".to_owned(), own_text()),
        ("ctf/kernel.tar".to_owned(), ctf_file::tar("session/kernel", &ctf)),
        ("ctf/session.tar".to_owned(), session()),
    ];
    let (head, [first, second]) = perf_threads();
    all.extend([
        ("perf/pipe.data".to_owned(), perf_sample().pipe()),
        ("perf/simpleperf.data".to_owned(), simpleperf(64).bytes()),
        ("perf/threads/data".to_owned(), head.bytes()),
        ("perf/threads/data.0".to_owned(), first.records),
        ("perf/threads/data.1".to_owned(), second.records),
    ]);
    let described_in_2 = ctf.iter().map(|(name, bytes)| match name.as_str() {
        "metadata" => (name.clone(), ctf_2::metadata(false).into_bytes()),
        _ => (name.clone(), bytes.clone()),
    });
    all.extend(described_in_2.map(|(name, bytes)| (format!("ctf/kernel-2/{name}"), bytes)));
    all.extend(ctf.into_iter().map(|(name, bytes)| (format!("ctf/kernel/{name}"), bytes)));
    all
}

/// A session of LTTng: the kernel and a program.
fn session() -> Vec<u8> {
    ctf_file::tars(&[
        ("session/kernel", ctf_file::dumped()),
        ("session/ust/uid/1000/64-bit", ctf_file::of_program()),
    ])
}

fn own_text() -> Vec<u8> {
    let trace = fairground_trace::read("sample", &events_file()[..]).expect("a trace");
    let mut text = Vec::new();
    fairground_trace::write_ftrace(&trace, &mut text).expect("a vector takes it");
    text
}

/// Switches of two CPUs, with a loss.
pub(crate) fn perf_sample() -> PerfFile {
    let mut file = PerfFile::default();
    file.comm(500, 7, "seven");
    file.switch(1_000, 0, (0, b"swap", 0), (7, b"sev\0"));
    file.switch(1_500, 1, (0, b"swap", 0), (8, b"eig\0"));
    file.lost(1_800, 1, 3);
    file.round();
    file.switch(2_000, 0, (7, b"sev\0", 1), (0, b"swap"));
    file.switch(2_500, 1, (8, b"eig\0", 2), (0, b"swap"));
    file.round();
    file
}

/// The same without the loss, as `perf record --threads` writes it: the head, and records for each CPU.
pub(crate) fn perf_threads() -> (PerfFile, [PerfFile; 2]) {
    let mut threads = [PerfFile::default(), PerfFile::default()];
    threads[0].switch(1_000, 0, (0, b"swap", 0), (7, b"sev\0"));
    threads[0].switch(2_000, 0, (7, b"sev\0", 1), (0, b"swap"));
    threads[1].switch(1_500, 1, (0, b"swap", 0), (8, b"eig\0"));
    threads[1].switch(2_500, 1, (8, b"eig\0", 2), (0, b"swap"));
    let mut head = PerfFile::default();
    head.comm(500, 7, "seven");
    (head, threads)
}

/// As simpleperf writes: its own records, one of them with so many bytes, and a sample of cycles.
pub(crate) fn simpleperf(symbol_bytes: usize) -> PerfFile {
    /// `KERNEL_SYMBOL` and `EVENT_ID`.
    const OTHERS: [u32; 2] = [1, 6];
    let mut file = PerfFile::default();
    file.own_of_simpleperf(OTHERS[0], &vec![0; symbol_bytes]);
    file.described_in_record();
    file.switch(1_000, 0, (0, b"swap", 0), (7, b"sev\0"));
    file.cycles(1_500, 0, 7);
    file.switch(2_000, 0, (7, b"sev\0", 1), (0, b"swap"));
    file.own_of_simpleperf(OTHERS[1], &[0; 16]);
    file.switch(2_500, 0, (0, b"swap", 0), (7, b"sev\0"));
    file
}

/// As Android's `traced` writes: the kernel's release, columns of switches and wake-ups, the process tree.
pub(crate) fn android() -> Vec<u8> {
    let names = Proto::default().bytes(3, "5.10.43-android12");
    let system = Proto::default().bytes(1, names).number(8, 2);
    let first = compact(
        &[(1_000, 1, 11, 120, "app"), (3_000, 1, 12, 97, "audio"), (5_000, 256, 11, 120, "app")],
        &[(2_000, 12, 1, 97, "audio"), (4_000, 11, 0, 120, "app")],
    )
    .packed(12, &[1, 9]);
    let second = compact(&[(7_000, 64, 0, 120, "swapper/0")], &[]);
    let other = compact(&[(2_500, 0, 0, 120, "swapper/1"), (6_000, 0, 13, 120, "late")], &[]);
    let tree = Proto::default()
        .bytes(1, Proto::default().number(1, 11).bytes(3, "/system/bin/app"))
        .bytes(2, Proto::default().number(1, 12).bytes(2, "audio"));
    file(&[
        Proto::default().bytes(45, system),
        bundle(Proto::default().number(1, 0).bytes(4, first)),
        bundle(Proto::default().number(1, 1).bytes(4, other)),
        bundle(Proto::default().number(1, 0).bytes(4, second)),
        Proto::default().bytes(2, tree),
    ])
}

/// Whole events, without the kernel's release, with a printed counter and a wake-up in an interrupt.
fn events_file() -> Vec<u8> {
    let (idle, app) = ((0, "swapper/0"), (7, "app"));
    let woken = Proto::default().bytes(1, "app").number(2, 7).number(3, 120).number(5, 0);
    let print = Proto::default().number(1, 0).bytes(2, "C|7|frames|3\n");
    let fork = Proto::default().number(1, 8).bytes(2, "app").number(3, 0);
    let all = [
        Proto::default().number(1, 900).number(2, 0).number(5, 9).bytes(20, &woken),
        Proto::default().number(1, 950).number(2, 0).number(5, 9).bytes(17, woken.number(4, 1)),
        switch(1_000, idle, 0, app),
        Proto::default().number(1, 1_500).number(2, 7).bytes(235, fork),
        Proto::default().number(1, 2_000).number(2, 7).bytes(3, print),
        switch(3_000, app, 1, idle),
    ];
    file(&[bundle(events(0, &all))])
}

/// As Android writes with `symbolize_ksyms`: functions have numbers, and their names stand behind the bundle.
pub(crate) fn blocked() -> Vec<u8> {
    let (idle, app) = ((0, "swapper/0"), (7, "app"));
    let reason = |pid, caller| Proto::default().number(1, pid).number(2, caller).number(3, 1);
    let woken = Proto::default().bytes(1, "app").number(2, 7).number(3, 120).number(5, 0);
    let all = [
        switch(1_000, idle, 0, app),
        switch(2_000, app, 2, idle),
        event(2_900, 0, 20, woken),
        event(3_000, 0, 18, reason(7, 4)),
        event(3_100, 0, 18, reason(7, 5)),
        switch(4_000, idle, 0, app),
    ];
    let function = Proto::default().number(1, 4).bytes(2, "folio_wait_bit_common");
    file(&[bundle(events(0, &all)).bytes(12, Proto::default().bytes(26, function))])
}

/// An event of the kernel: time, pid, number of its field, its fields.
pub(crate) fn event(time_ns: u64, pid: u64, kind: u32, fields: Proto) -> Proto {
    Proto::default().number(1, time_ns).number(2, pid).bytes(kind, fields)
}

/// A switch, both tasks of nice 0.
pub(crate) fn switch(time_ns: u64, prev: (u64, &str), state: u64, next: (u64, &str)) -> Proto {
    let fields = Proto::default().bytes(1, prev.1).number(2, prev.0).number(3, 120);
    let fields = fields.number(4, state).bytes(5, next.1).number(6, next.0).number(7, 120);
    event(time_ns, prev.0, 4, fields)
}

/// A bundle of whole events.
pub(crate) fn events(cpu: u64, events: &[Proto]) -> Proto {
    events.iter().fold(Proto::default().number(1, cpu), |bundle, event| bundle.bytes(2, event))
}
