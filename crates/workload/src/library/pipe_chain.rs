//! Programs that pass single bytes through pipes, after readers' comments of 2 September 2007 on the announcement of
//! the Really Fair Scheduler (David Kastrup and others).
//!
//! `dd if=/dev/zero bs=1 | cat > /dev/null` writes a million bytes with as many system calls; whether the reader is
//! woken for each byte, or finds thousands at once, is the scheduler's decision, and so is the throughput. In `xterm
//! -e "hexdump -v /dev/zero | dd obs=1"` the reader is a terminal that draws after each read: beside a hog the
//! terminal ran later, found more, drew less often, and the whole finished sooner.

use super::parts::{looping, mark, pipe, seconds};
use super::spec::{Call, Entry, parameter};
use crate::model::{Op, PIPE_CAPACITY_DEFAULT, Program, TaskSpec, Workload};
use crate::units::Duration;

/// A read of cat, bytes.
const CAT_BYTES: u64 = 131_072;
/// A read of a terminal, bytes.
const XTERM_BYTES: u64 = 4_096;
/// The computation of a terminal after a read, ns.
const XTERM_DRAW_NS: u64 = 100_000;
/// A block of dd, bytes.
const BLOCK_BYTES: u64 = 512;
/// A write of hexdump, bytes.
const STDIO_BYTES: u64 = 4_096;
/// Blocks of the xterm's command (`count=50`).
const BLOCKS: u64 = 50;
/// Limit of the writes, and of the blocks, between two marks.
const COUNT_MAX: u64 = 1 << 30;

/// The entry `pipe-chain`.
pub(super) const PIPE_CHAIN: Entry = Entry {
    name: "pipe-chain",
    arguments: "dd|xterm",
    summary: "dd bs=1 | cat, or hexdump | dd obs=1 with a terminal that reads: bytes one by one \
              through pipes, for ever",
    source: "readers' comments of 2 September 2007 on the announcement of the Really Fair Scheduler (David Kastrup and \
             others): times of dd and of an xterm, idle and beside a hog (`+ hogs:1`)",
    limits: "a terminal is a reader with a cost for each read; what a byte costs it, and the \
             pseudo terminal, are left out",
    parameters: &[
        parameter("bs", "1", "bytes that dd writes at once"),
        parameter(
            "count",
            "1024",
            "writes of dd between two marks, as dd's count; of the terminal's dd blocks of 512 bytes, 50",
        ),
        parameter("zero", "200ns", "what dd computes before a write"),
        parameter("draw", "1us", "what the reader computes after a read; a terminal takes 100us"),
    ],
    build: pipe_chain,
};

fn pipe_chain(call: &mut Call<'_, '_>) -> Workload {
    let bs = call.integer("bs", "the bytes of a write", 1..=PIPE_CAPACITY_DEFAULT);
    let zero_ns = call.time("zero");
    let kind = call.arguments.clone();
    let count = call.integer("count", "the writes between two marks", 1..=COUNT_MAX);
    let is_xterm = kind.as_ref().is_some_and(|piece| piece.text == "xterm");
    if let Some(piece) = kind
        && !matches!(piece.text, "dd" | "xterm")
    {
        let message = format!("no chain is called {:?}", piece.text);
        let help = "write `pipe-chain:dd` or `pipe-chain:xterm`".to_owned();
        call.problem(piece.span, message, help);
    }
    let draw_ns = call.time("draw");
    let given = |key: &str, value, usual| if call.value(key).is_some() { value } else { usual };
    match is_xterm {
        true => {
            let (draw_ns, blocks) =
                (given("draw", draw_ns, XTERM_DRAW_NS), given("count", count, BLOCKS));
            xterm(bs, zero_ns, draw_ns, blocks)
        }
        false => dd(bs, zero_ns, draw_ns, count),
    }
}

/// Computes, unless for 0 ns, and then does the operation.
fn after_run(ns: u64, op: Op) -> Program {
    let run = (ns > 0).then_some(Op::Run(Duration::Fixed(ns)));
    run.into_iter().chain([op]).collect()
}

/// Reads what is available, computes, and writes a mark.
fn reader(name: &str, pipe: usize, bytes: u64, draw_ns: u64) -> TaskSpec {
    let read = vec![Op::PipeRead(pipe, bytes)];
    looping(name, 1, [read, after_run(draw_ns, mark("read"))].concat())
}

fn dd(bs: u64, zero_ns: u64, draw_ns: u64, count: u64) -> Workload {
    let writes = Op::Loop(Some(count), after_run(zero_ns, Op::PipeWrite(0, bs)));
    let round = vec![writes, mark(format!("{count} writes"))];
    let tasks = vec![looping("dd", 1, round), reader("cat", 0, CAT_BYTES, draw_ns)];
    Workload { pipes: vec![pipe("pipe-0")], ..seconds(1, format!("dd bs={bs} | cat"), tasks) }
}

fn xterm(bs: u64, zero_ns: u64, draw_ns: u64, blocks: u64) -> Workload {
    let write = after_run(zero_ns, Op::PipeWrite(1, bs));
    let block = vec![Op::PipeRead(0, BLOCK_BYTES), Op::Loop(Some(BLOCK_BYTES.div_ceil(bs)), write)];
    let command = vec![Op::Loop(Some(blocks), block), mark(format!("{blocks} blocks"))];
    let tasks = vec![
        looping("hexdump", 1, after_run(20_000, Op::PipeWrite(0, STDIO_BYTES))),
        looping("dd", 1, command),
        reader("xterm", 1, XTERM_BYTES, draw_ns),
    ];
    let description = format!("hexdump | dd obs={bs} in an xterm");
    Workload { pipes: ["pipe-0", "pipe-1"].map(pipe).to_vec(), ..seconds(1, description, tasks) }
}
