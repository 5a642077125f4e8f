//! `trace.dat`: files that trace-cmd 3.1 wrote of one recording of a real kernel (6.18), and small ones made here.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::support::{Dat, MISSED, PAGE, STORED, small};
use fairground_trace::{
    CgroupId, CgroupInfo, EventKind, Policy, ReadError, StartState, TaskId, TaskInfo, TaskState,
    Trace, read, read_machine,
};
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

fn file(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name);
    fs::read(path).expect("a recording")
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(&file(name)[..]).read_to_end(&mut bytes).expect("gzip");
    bytes
}

fn trace(bytes: &[u8]) -> Trace {
    read("small", bytes).expect("a trace")
}

#[test]
fn every_version_gives_the_same_trace() {
    let packed = read("version-6.dat.gz", &file("version-6.dat.gz")[..]).unwrap();
    // trace-cmd's own report of the file has 598 lines of events.
    assert_eq!((packed.len(), packed.cpus), (598, 2));
    assert_eq!((packed.loss.unreadable, packed.loss.lost_events, packed.loss.skipped), (0, 0, 0));
    assert_eq!(packed.origin.kernel.as_deref().map(|release| &release[..4]), Some("6.18"));
    assert!(!packed.loss.truncated && packed.loss.first.is_none(), "{:?}", packed.loss);
    assert_eq!(trace(&unpacked("version-6.dat.gz")), packed);
    assert_eq!(trace(&unpacked("version-7.dat.gz")), packed);
    assert_eq!(trace(&file("version-7-zstd.dat")), packed);
}

#[test]
fn the_small_file_in_both_byte_orders() {
    let little = trace(&small(false).bytes());
    assert_eq!(trace(&small(true).bytes()), little);
    let events: Vec<_> = little.events().map(|e| (e.time_ns, e.cpu, e.kind)).collect();
    let switch = |prev, prev_state, next| EventKind::Switch {
        prev: TaskId(prev),
        prev_state,
        next: TaskId(next),
    };
    let wanted = [
        (1000, 0, switch(0, TaskState::Runnable, 1)),
        (1010, 1, switch(0, TaskState::Runnable, 2)),
        (1015, 0, switch(1, TaskState::Sleeping, 3)),
        (2000, 0, switch(3, TaskState::Uninterruptible, 0)),
    ];
    assert_eq!(events, wanted);
    assert_eq!(little.loss.skipped, 1);
    let names: Vec<_> = little.tasks().iter().map(|task| task.comm.as_str()).collect();
    assert_eq!(names, ["swapper", "one", "tri", "two"]);
}

#[test]
fn what_the_kernel_lost_is_counted_where_it_is_missing() {
    let mut dat = small(false);
    let late = vec![dat.switch(0, (0, b"swap", 0), (1, b"one\0"))];
    dat.add(0, dat.page(3000, &late, MISSED | STORED, 35));
    dat.add(1, dat.page(4000, &[dat.other(0, 9)], MISSED, 0));
    dat.stats = vec![
        // 35 of the overwritten ones are those before the last page.
        "CPU: 0\nentries: 0\noverrun: 39\ncommit overrun: 0\ndropped events: 0\n".to_owned(),
        "CPU: 1\nentries: 0\noverrun: 0\ncommit overrun: 0\ndropped events: 12\n".to_owned(),
    ];
    let trace = trace(&dat.bytes());
    let lost: Vec<_> = trace
        .events()
        .filter_map(|e| match e.kind {
            EventKind::Lost { count } => Some((e.time_ns, e.cpu, count)),
            _ => None,
        })
        .collect();
    assert_eq!(lost, [(1010, 1, 1), (2000, 0, 35), (4000, 1, 12)]);
    assert_eq!(trace.loss.lost_events, 4 + 35 + 1 + 12);
    assert_eq!(
        trace.loss.first.as_deref().map(|first| first.contains("CPU 0 lost 35 events")),
        Some(true)
    );
}

#[test]
fn what_cannot_be_understood_is_counted() {
    let mut dat = small(false);
    let events = vec![dat.other(0, 1234), dat.switch(1, (0, b"swap", 0), (1, b"one\0"))];
    dat.add(0, dat.page(3000, &events, 0, 0));
    let trace = trace(&dat.bytes());
    assert_eq!((trace.len(), trace.loss.unreadable), (5, 1));
    let first = trace.loss.first.unwrap();
    assert!(first.ends_with("an event of type 1234, which the file does not describe"), "{first}");
}

fn error(bytes: &[u8]) -> String {
    read("odd.dat", bytes).expect_err("this cannot be read").to_string()
}

#[test]
fn what_is_no_recording_of_times_is_refused() {
    let dat = Dat { clock: "local [x86-tsc]".to_owned(), ..small(false) };
    let said = error(&dat.bytes());
    assert!(said.contains("its clock x86-tsc does not count nanoseconds"), "{said}");
    assert!(said.contains("trace-cmd record -C mono"), "{said}");
    let said = error(b"\x17\x08\x44tracing5\0\0\x08\0\x10\0\0");
    assert!(said.contains("its version is \"5\"; 6 and 7 are known"), "{said}");
    let said = error(b"\x17\x08\x44tracing7\0\0\x08\0\x10\0\0lzma\x001\0");
    assert!(said.contains("compressed with \"lzma\""), "{said}");
    let empty = Dat { cpus: vec![vec![]], ..small(false) };
    assert!(matches!(read("x", &empty.bytes()[..]), Err(ReadError::NoEvents { read: 0, .. })));
}

#[test]
fn cut_off_at_every_byte() {
    let bytes = small(false).bytes();
    let whole = trace(&bytes);
    let data_from = bytes.len() - 3 * PAGE;
    let mut most = 0;
    for end in 0..bytes.len() {
        match read("cut", &bytes[..end]) {
            Ok(part) => {
                assert!(end > data_from && part.loss.truncated, "{end}: {:?}", part.loss);
                assert!(part.len() >= most && part.len() <= whole.len(), "{end}");
                most = part.len();
            }
            Err(ReadError::Empty { .. }) => assert_eq!(end, 0),
            Err(ReadError::Damaged { why, .. }) => assert!(why.contains("cut off"), "{end}: {why}"),
            // So short that it could be a text; or nothing of the data is left.
            Err(ReadError::NoEvents { .. }) => assert!(end < 11 || end >= data_from, "{end}"),
            Err(other) => panic!("{end}: {other}"),
        }
    }
    // The last page is half empty: all events are there long before the end.
    assert_eq!(most, whole.len());
}

#[test]
fn every_bit_flipped() {
    for big in [false, true] {
        let mut bytes = small(big).bytes();
        for at in 0..bytes.len() {
            for bit in 0..8 {
                bytes[at] ^= 1 << bit;
                if let Ok(trace) = read("flipped", &bytes[..]) {
                    assert!(trace.len() < 100);
                }
                bytes[at] ^= 1 << bit;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn damage_in_real_files(
        version in 0..3_usize,
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = match version {
            0 => unpacked("version-6.dat.gz"),
            1 => unpacked("version-7.dat.gz"),
            _ => file("version-7-zstd.dat"),
        };
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() / 2 + cut.index(bytes.len()));
        let _ = read("damaged", &bytes[..]);
    }

    /// Any switches on any CPUs, at any distance that a page can hold, come back in order of time.
    #[test]
    fn what_was_written_is_read(
        cpus in prop::collection::vec(
            prop::collection::vec((0..1_u64 << 27, 1..50_u32), 1..4),
            1..4,
        ),
        big in any::<bool>(),
    ) {
        let mut dat = Dat { big, clock: "[mono]".to_owned(), ..Dat::default() };
        let mut wanted = Vec::new();
        for (cpu, events) in cpus.iter().enumerate() {
            let mut time_ns = 5_000_000_000;
            let mut data = Vec::new();
            for (delta, pid) in events {
                time_ns += delta;
                data.push(dat.switch(*delta, (0, b"swap", 0), (*pid, b"a\0\0\0")));
                wanted.push((time_ns, cpu as u32, *pid));
            }
            dat.cpus.push(vec![dat.page(5_000_000_000, &data, 0, 0)]);
        }
        wanted.sort_by_key(|(time_ns, ..)| *time_ns);
        let trace = read("made", &dat.bytes()[..]).unwrap();
        let got: Vec<_> = trace.events().map(|event| {
            let EventKind::Switch { next, .. } = event.kind else { panic!("{event:?}") };
            (event.time_ns, event.cpu, trace.tasks()[next.index()].pid)
        }).collect();
        prop_assert_eq!(got, wanted);
    }
}

/// Task 1 runs, and forks task 5; task 3 is in no cgroup of the beginning. Task 9 does not appear.
#[test]
fn the_state_at_the_beginning_is_taken_over() {
    let mut state = StartState::default();
    state.origin.hz = Some(250);
    state.origin.tunables = vec![("base_slice_ns".to_owned(), "3000000".to_owned())];
    for (path, weight) in [("/", None), ("/web/front end", Some(300))] {
        state.cgroups.push(CgroupInfo { path: path.to_owned(), parent: None, weight });
    }
    let one = TaskInfo {
        nice: Some(-5),
        policy: Some(Policy::Batch),
        slice_ns: Some(3_000_000),
        allowed_cpus: Some(vec![(0, 0), (3, 5)]),
        cgroup: Some(CgroupId(1)),
        ..TaskInfo::new(1, "one")
    };
    let three = TaskInfo { cgroup: Some(CgroupId(7)), ..TaskInfo::new(3, "three") };
    state.tasks = vec![one.clone(), three, TaskInfo::new(9, "absent")];
    for big in [false, true] {
        let mut dat = small(big);
        dat.options.push((StartState::OPTION, state.to_text()));
        let trace = trace(&dat.bytes());
        assert_eq!((trace.loss.unreadable, &trace.origin.tunables), (0, &state.origin.tunables));
        let info = trace.tasks().iter().find(|task| task.pid == 1).expect("task 1");
        let cgroup = info.cgroup.expect("it is in a cgroup");
        let group = &trace.cgroups()[cgroup.index()];
        assert_eq!((group.path.as_str(), group.weight), ("web/front end", Some(300)));
        assert_eq!(info, &TaskInfo { cgroup: Some(cgroup), ..one.clone() });
        let other = trace.tasks().iter().find(|task| task.pid == 3).expect("task 3");
        assert_eq!((other.cgroup, &other.allowed_cpus), (None, &None));
        assert!(trace.tasks().iter().all(|task| task.pid != 9));
    }
}

#[test]
fn a_damaged_state_is_counted() {
    let mut dat = small(false);
    let text =
        "task pid=1 nice=3 comm=one\ntask without\norigin hz 0\nwindow start_ns=0 end_ns=1\n";
    dat.options.push((StartState::OPTION, text.to_owned()));
    let trace = trace(&dat.bytes());
    assert_eq!(trace.loss.unreadable, 3, "{:?}", trace.loss);
    assert_eq!(trace.origin.hz, None);
}

/// A file of version 6 with a second buffer, `guest`, that has the pages of the first CPU.
fn with_an_instance(bytes: &[u8]) -> Vec<u8> {
    let behind = |what: &[u8]| {
        let at = bytes.windows(what.len()).position(|window| window == what);
        at.expect("a section") + what.len()
    };
    let (options_at, table_at) = (behind(b"options  \0"), behind(b"flyrecord\0"));
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
    let cpus_at = options_at - 10 - 4;
    let cpus = u32::from_le_bytes(bytes[cpus_at..cpus_at + 4].try_into().expect("four bytes"));
    let mut option =
        [&3_u16.to_le_bytes()[..], &14_u32.to_le_bytes(), &[0; 8], b"guest\0"].concat();
    let shift = option.len() as u64;
    option[6..14].copy_from_slice(&(bytes.len() as u64 + shift).to_le_bytes());
    let entries: Vec<(u64, u64)> = (0..cpus as usize)
        .map(|cpu| (number(table_at + 16 * cpu) + shift, number(table_at + 16 * cpu + 8)))
        .collect();
    let table = |entries: &[(u64, u64)]| -> Vec<u8> {
        entries
            .iter()
            .flat_map(|(at, size)| [at.to_le_bytes(), size.to_le_bytes()].concat())
            .collect()
    };
    let of_guest: Vec<(u64, u64)> = entries
        .iter()
        .enumerate()
        .map(|(cpu, entry)| if cpu == 0 { *entry } else { (0, 0) })
        .collect();
    [
        &bytes[..options_at],
        &option,
        &bytes[options_at..table_at],
        &table(&entries),
        &bytes[table_at + 16 * entries.len()..],
        b"flyrecord\0",
        &table(&of_guest),
    ]
    .concat()
}

#[test]
fn of_several_buffers_the_largest_is_read_unless_one_is_chosen() {
    let plain = unpacked("version-6.dat.gz");
    let both = with_an_instance(&plain);
    let of = |machine| read_machine("trace.dat", &both[..], machine);
    let (alone, largest) = (trace(&plain), trace(&both));
    assert_eq!(largest.digest(), alone.digest());
    let first = largest.loss.first.unwrap_or_default();
    assert!(first.contains("--machine NAME chooses: top, guest"), "{first}");
    let top = of(Some("top")).expect("the tracer's own");
    assert_eq!((top.digest(), &top.loss.first), (alone.digest(), &alone.loss.first));
    let guest = of(Some("guest")).expect("the instance");
    assert!(!guest.is_empty() && guest.len() < alone.len(), "{}", guest.len());
    assert!(guest.events().all(|event| event.cpu == 0));
    let said = of(Some("host")).expect_err("there is none").to_string();
    assert!(said.contains("`host`") && said.contains("it has top, guest"), "{said}");
}
