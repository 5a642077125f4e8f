//! Compressed input: what it may become, and what atrace compresses.

use std::io::Write;

use fairground_trace::{EventKind, ReadError, read};
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

const LINE: &str = "          <idle>-0     [000] d..2. 1.000001: sched_switch: prev_comm=swapper/0 \
                    prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=cat next_pid=7 next_prio=120\n";

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
    gzip.write_all(text).unwrap();
    gzip.finish().unwrap()
}

/// 64 MiB of zeros behind the first event become 64 KiB of gzip.
#[test]
fn a_file_that_is_made_to_fill_the_memory_is_refused() {
    let zeros = vec![0; 64 << 20];
    let lines = LINE.repeat(4);
    let starts =
        [lines.as_bytes(), b"\x17\x08\x44tracing6\0", b"\x0a\x02\x08\x01\x0a\xff\xff\xff\x1f"];
    for start in starts {
        let bomb = gzip(&[start, &zeros].concat());
        assert!(bomb.len() < 128 << 10);
        let error = read("bomb.gz", &bomb[..]).expect_err("it is refused");
        assert!(matches!(error, ReadError::Expands { .. }), "{error}");
        assert!(error.to_string().starts_with("bomb.gz: it becomes more than 256 times as long"));
    }
}

/// A recording in which nothing changes but the time.
#[test]
fn a_very_regular_recording_is_read() {
    let lines: String = (0..200_000)
        .map(|i| LINE.replace("1.000001", &format!("{}.{:06}", i / 1_000_000, i % 1_000_000)))
        .collect();
    let packed = gzip(lines.as_bytes());
    assert!(lines.len() > 16 << 20 && lines.len() / packed.len() > 20);
    assert_eq!(read("regular.gz", &packed[..]).expect("a recording").len(), 200_000);
}

#[test]
fn atrace_compressed_and_plain() {
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::default());
    zlib.write_all(LINE.as_bytes()).unwrap();
    for body in [LINE.as_bytes().to_vec(), zlib.finish().unwrap()] {
        let file = [b"TRACE:\n".to_vec(), body].concat();
        let trace = read("atrace", &file[..]).expect("a recording");
        assert!(matches!(trace.get(0).expect("an event").kind, EventKind::Switch { .. }));
        assert_eq!((trace.len(), trace.loss.unreadable), (1, 0));
    }
}

/// A message of protobuf with one field of bytes.
fn sized(field: u8, bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![field << 3 | 2];
    if field > 15 {
        out = vec![(field & 15) << 3 | 0x82, field >> 4];
    }
    let mut size = bytes.len();
    while size >= 0x80 {
        out.push(size as u8 | 0x80);
        size >>= 7;
    }
    out.push(size as u8);
    [&out[..], bytes].concat()
}

/// Each layer stays within its own limit; both together multiply.
#[test]
fn limits_multiply_through_nesting() {
    let packets = sized(1, &[8; 1 << 10]).repeat(4 << 10);
    let mut zlib = ZlibEncoder::new(Vec::new(), Compression::best());
    zlib.write_all(&packets).unwrap();
    let compressed = sized(1, &sized(50, &zlib.finish().unwrap()));
    let bomb = gzip(&compressed.repeat(64));
    assert!(bomb.len() < 64 << 10 && packets.len() * 64 > 250 << 20, "{}", bomb.len());
    let error = read("bomb.gz", &bomb[..]).expect_err("it is refused");
    assert!(matches!(error, ReadError::Expands { .. }), "{error}");
}
