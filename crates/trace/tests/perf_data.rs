//! `perf.data` against the text that perf itself prints of the same file: perf 6.1 on Linux 6.18, a shell's pipes,
//! forks, a renamed process and a niced one.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fairground_trace::{EventKind, ReadError, TaskId, read, read_file};
use flate2::read::MultiGzDecoder;
use proptest::prelude::*;

fn packed(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recordings").join(name);
    fs::read(path).expect("a recording")
}

fn unpacked(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    MultiGzDecoder::new(&packed(name)[..]).read_to_end(&mut bytes).expect("gzip");
    bytes
}

/// `perf sched script --ns` prints whole nanoseconds: nothing may differ, but that its text does not tell interrupts.
#[test]
fn the_file_and_perfs_text_give_the_same_trace() {
    let from_text = read("perf.txt.gz", &packed("perf.txt.gz")[..]).unwrap();
    let from_file = read("perf.data.gz", &packed("perf.data.gz")[..]).unwrap();
    assert!(from_text.len() > 300 && from_text.tasks().len() > 20);
    assert!(from_text.events().any(|event| matches!(event.kind, EventKind::Nice { nice: 5, .. })));
    assert_eq!((from_text.len(), from_text.cpus), (from_file.len(), from_file.cpus));
    assert_eq!(from_text.tasks(), from_file.tasks());
    let mut by_interrupts = 0;
    for (text, mut file) in from_text.events().zip(from_file.events()) {
        if let EventKind::Waking { waker: interrupted, .. } = text.kind
            && let EventKind::Waking { waker, .. } = &mut file.kind
            && *waker == TaskId::IDLE
            && interrupted != TaskId::IDLE
        {
            *waker = interrupted;
            by_interrupts += 1;
        }
        assert_eq!(text, file);
    }
    assert!(by_interrupts > 0);
    assert_eq!(read("perf.data", &unpacked("perf.data.gz")[..]).unwrap(), from_file);
}

/// The same samples behind the same head, as perf would have compressed them: one frame without an end.
#[test]
fn compressed_records_are_unpacked() {
    let bytes = unpacked("perf.data.gz");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (data_at, data_size) = (number(40), number(48));
    let data = &bytes[data_at..data_at + data_size];
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x78];
    let mut records = Vec::new();
    // Raw blocks: zstd's own way to keep what does not shrink.
    for block in data.chunks(30_000) {
        frame.extend(&((block.len() as u32) << 3).to_le_bytes()[..3]);
        frame.extend(block);
        for part in frame.chunks(60_000) {
            records.extend(81_u32.to_le_bytes());
            records.extend(0_u16.to_le_bytes());
            records.extend((part.len() as u16 + 8).to_le_bytes());
            records.extend(part);
        }
        frame.clear();
    }
    let grown = records.len() as u64 - data_size as u64;
    let mut file = bytes[..data_at].to_vec();
    file[48..56].copy_from_slice(&(records.len() as u64).to_le_bytes());
    file.extend(&records);
    // The sections of the features moved.
    let mut rest = bytes[data_at + data_size..].to_vec();
    let features = (72..104).map(|at| bytes[at].count_ones() as usize).sum::<usize>();
    for entry in rest[..16 * features].chunks_mut(16) {
        let at = u64::from_le_bytes(entry[..8].try_into().unwrap()) + grown;
        entry[..8].copy_from_slice(&at.to_le_bytes());
    }
    file.extend(rest);
    let plain = read("perf.data", &bytes[..]).unwrap();
    assert_eq!(read("compressed", &file[..]).unwrap(), plain);
}

fn error(bytes: &[u8]) -> String {
    read("odd.data", bytes).expect_err("this cannot be read").to_string()
}

#[test]
fn what_cannot_be_read_says_why() {
    let bytes = unpacked("perf.data.gz");
    let said = error(&bytes[..bytes.len() / 2]);
    assert!(said.contains("a perf.data that cannot be read: byte "), "{said}");
    assert!(said.contains("help: print it with the perf that recorded it"), "{said}");
    let mut pipe = bytes[..16].to_vec();
    pipe[8] = 16;
    assert!(error(&pipe).contains("written into a pipe"), "{}", error(&pipe));
    let mut no_attributes = bytes.clone();
    no_attributes[32..40].fill(0);
    assert!(error(&no_attributes).contains("no attributes"), "{}", error(&no_attributes));
    // Without the feature of the tracepoints' descriptions.
    let mut plain = bytes;
    plain[72] &= !2;
    let said = error(&plain);
    assert!(said.contains("it holds no tracepoints"), "{said}");
}

#[test]
fn cut_off_in_its_head() {
    let bytes = unpacked("perf.data.gz");
    for end in 8..200 {
        assert!(matches!(read("cut", &bytes[..end]), Err(ReadError::Damaged { .. })), "{end}");
    }
}

/// The file is truncated and rewritten while it is read: reading survives.
#[test]
fn a_file_that_is_cut_while_it_is_read() {
    const COPIES: usize = 16;
    const READINGS_MAX: u32 = 2000;
    let bytes = unpacked("perf.data.gz");
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
    let (data_at, data_size) = (number(40), number(48));
    let (head, data) = bytes[..data_at + data_size].split_at(data_at);
    // The same records many times, and behind them nothing: the descriptions go before them.
    let mut file = head.to_vec();
    file.extend(data.repeat(COPIES));
    let grown = ((COPIES - 1) * data_size) as u64;
    file[48..56].copy_from_slice(&(data_size as u64 + grown).to_le_bytes());
    let tail_at = file.len();
    file.extend(&bytes[data_at + data_size..]);
    // Each feature behind the data has its offset.
    let features = bytes[72..104].iter().map(|bits| bits.count_ones() as usize).sum::<usize>();
    for feature in 0..features {
        let at = tail_at + 16 * feature;
        let place = u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) + grown;
        file[at..at + 8].copy_from_slice(&place.to_le_bytes());
    }
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    fs::write(&path, &file).unwrap();
    let read = || read_file("cut", fs::File::open(&path).unwrap());
    let whole = read().unwrap();
    assert!(whole.len() > 300 * COPIES, "{}", whole.len());
    let is_over = AtomicBool::new(false);
    let (mut wholes, mut cuts) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                let cut = fs::OpenOptions::new().write(true).open(&path).unwrap();
                cut.set_len(file.len() as u64 / 3).unwrap();
                drop(cut);
                fs::write(&path, &file).unwrap();
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        while (wholes < 20 || cuts < 20) && wholes + cuts < READINGS_MAX {
            match read() {
                Ok(trace) if trace == whole => wholes += 1,
                _ => {
                    cuts += 1;
                    // The other thread may wait for a CPU while the file is short.
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    assert!(wholes > 0 && cuts > 0, "{wholes} read whole, {cuts} cut");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn damage(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..20),
        head in any::<bool>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = unpacked("perf.data.gz");
        for (at, value) in flips {
            let at = at.index(if head { 2048 } else { bytes.len() });
            bytes[at] = value;
        }
        bytes.truncate(bytes.len() / 2 + cut.index(bytes.len()));
        let _ = read("damaged", &bytes[..]);
    }
}
