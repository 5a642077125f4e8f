//! Programs that pass single bytes through pipes: David Kastrup's reports of May 2007 on the kernel list.
//!
//! `dd if=/dev/zero bs=1 | cat > /dev/null` writes a million bytes with as many system calls; whether the reader is
//! woken for each byte, or finds thousands at once, is the scheduler's decision, and so is the throughput. In `xterm
//! -e "hexdump -v /dev/zero | dd obs=1"` the reader is a terminal that draws after each read: beside a hog the
//! terminal ran later, found more, drew less often, and the whole finished sooner.

use super::spec::Call;
use super::{Entry, Parameter, group, independent};
use crate::model::{Carrier, Duration, Op, Pipe, TaskSpec, Workload};

/// Capacity of a pipe, bytes.
const PIPE_BYTES: u64 = 65_536;
/// A read of cat, bytes.
const CAT_BYTES: u64 = 131_072;
/// A read of a terminal, bytes.
const XTERM_BYTES: u64 = 4_096;
/// A block of dd, bytes.
const BLOCK_BYTES: u64 = 512;
/// A write of hexdump, bytes.
const STDIO_BYTES: u64 = 4_096;
/// Blocks of the xterm's command (`count=50`).
const BLOCKS: u64 = 50;
/// Writes of dd between two marks.
const WRITES_PER_MARK: u64 = 1_024;

/// The entry `pipe-chain`.
pub(super) const PIPE_CHAIN: Entry = Entry {
    name: "pipe-chain",
    arguments: "dd|xterm",
    summary: "dd bs=1 | cat, or hexdump | dd obs=1 with a terminal that reads: bytes one by one \
              through pipes, for ever",
    source: "David Kastrup's reports of May 2007: times of dd and of an xterm, idle and beside a hog (`+ hogs:1`)",
    limits: "a terminal is a reader with a cost for each read; what a byte costs it, and the \
             pseudo terminal, are left out",
    parameters: &[
        Parameter { name: "bs", default: "1", help: "bytes that dd writes at once" },
        Parameter { name: "zero", default: "200ns", help: "what dd computes before a write" },
        Parameter {
            name: "draw",
            default: "1us",
            help: "what the reader computes after a read; a terminal takes 100us",
        },
    ],
    build: pipe_chain,
};

fn pipe_chain(call: &mut Call<'_, '_>) -> Workload {
    let bs = match call.value("bs") {
        Some(piece) => call.number("the bytes of a write", &piece, 1, PIPE_BYTES as i64),
        None => 1,
    };
    let bs = u64::try_from(bs).unwrap_or(1);
    let zero_ns = call.time("zero", 200);
    let is_xterm = match call.arguments.clone() {
        None => false,
        Some(piece) if piece.text == "dd" => false,
        Some(piece) if piece.text == "xterm" => true,
        Some(piece) => {
            let message = format!("no chain is called {:?}", piece.text);
            call.problem(
                piece.span,
                message,
                "write `pipe-chain:dd` or `pipe-chain:xterm`".to_owned(),
            );
            false
        }
    };
    let draw_ns = call.time("draw", if is_xterm { 100_000 } else { 1_000 });
    if is_xterm { xterm(bs, zero_ns, draw_ns) } else { dd(bs, zero_ns, draw_ns) }
}

fn pipes(count: usize) -> Vec<Pipe> {
    (0..count)
        .map(|at| Pipe { name: format!("pipe-{at}"), capacity: PIPE_BYTES, carrier: Carrier::Pipe })
        .collect()
}

/// A run; nothing for 0.
fn run(ns: u64) -> Option<Op> {
    (ns > 0).then_some(Op::Run(Duration::Fixed(ns)))
}

/// Reads what is available, computes, and writes a mark.
fn reader(name: &str, pipe: usize, bytes: u64, draw_ns: u64) -> TaskSpec {
    let read = [Op::PipeRead(pipe, bytes)].into_iter().chain(run(draw_ns));
    let read = read.chain([Op::Mark("read".to_owned())]).collect();
    group(name, 1, vec![Op::Loop(None, read)])
}

fn dd(bs: u64, zero_ns: u64, draw_ns: u64) -> Workload {
    let write = run(zero_ns).into_iter().chain([Op::PipeWrite(0, bs)]).collect();
    let writes = Op::Loop(Some(WRITES_PER_MARK), write);
    let round = vec![writes, Op::Mark(format!("{WRITES_PER_MARK} writes"))];
    let tasks =
        vec![group("dd", 1, vec![Op::Loop(None, round)]), reader("cat", 0, CAT_BYTES, draw_ns)];
    let mut workload = independent(format!("dd bs={bs} | cat"), tasks);
    workload.pipes = pipes(1);
    workload.duration_ns = 1_000_000_000;
    workload
}

fn xterm(bs: u64, zero_ns: u64, draw_ns: u64) -> Workload {
    let line = vec![Op::Run(Duration::Fixed(20_000)), Op::PipeWrite(0, STDIO_BYTES)];
    let write = run(zero_ns).into_iter().chain([Op::PipeWrite(1, bs)]).collect();
    let block = vec![Op::PipeRead(0, BLOCK_BYTES), Op::Loop(Some(BLOCK_BYTES.div_ceil(bs)), write)];
    let blocks = vec![Op::Loop(Some(BLOCKS), block), Op::Mark(format!("{BLOCKS} blocks"))];
    let tasks = vec![
        group("hexdump", 1, vec![Op::Loop(None, line)]),
        group("dd", 1, vec![Op::Loop(None, blocks)]),
        reader("xterm", 1, XTERM_BYTES, draw_ns),
    ];
    let mut workload = independent(format!("hexdump | dd obs={bs} in an xterm"), tasks);
    workload.pipes = pipes(2);
    workload.duration_ns = 1_000_000_000;
    workload
}
