//! Programs that a person hears and sees: `audio` must not skip, and `drag` must follow the mouse, beside whatever else
//! runs. After the comments of September 2007 on the announcement of the Really Fair Scheduler: sound "skipping when
//! you drag a window around".

use super::parts::{COUNT_MAX, group, looping, mark, pipe, run, seconds};
use super::spec::{Call, Entry, NICE, parameter};
use crate::model::{Op, Program, Timer, Workload};

/// Limit of the periods of a buffer.
const BUFFER_MAX: u64 = 1_000;
/// A request to the display server, and its answer, bytes.
const REQUEST_BYTES: u64 = 4_096;

/// A player of sound.
pub(super) const AUDIO: Entry = Entry {
    name: "audio",
    arguments: "[N]",
    summary: "N players of sound, each with a buffer that the card empties period by period, and that must not run \
              empty",
    source: "readers' comments of September 2007 on the announcement of the Really Fair Scheduler: sound that skips \
             when a window is dragged",
    limits: "the card is a timer; a player decodes as long for each period",
    parameters: &[
        parameter("period", "10ms", "what the card plays between two interrupts"),
        parameter("buffer", "3", "periods of the buffer, 2 at least"),
        parameter("decode", "500us", "what a player computes for a period"),
        NICE,
    ],
    build: audio,
};

/// A window that is dragged.
pub(super) const DRAG: Entry = Entry {
    name: "drag",
    arguments: "",
    summary: "a window that is dragged: for each movement of the mouse its program draws, and a display server shows it",
    source: "readers' comments of September 2007 on the announcement of the Really Fair Scheduler",
    limits: "one window and one server; no other window is uncovered; movements while a frame is late are one",
    parameters: &[
        parameter("period", "16666667ns", "from one movement to the next: 60 a second"),
        parameter("draw", "4ms", "what the program computes for a frame"),
        parameter("show", "2ms", "what the display server computes for it"),
        NICE,
        parameter("server_nice", "0", "the nice value of the display server"),
    ],
    build: drag,
};

fn audio(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count_or("the number of players", 1..=COUNT_MAX, 1);
    let period_ns = call.positive("period");
    let buffer = call.integer("buffer", "the periods of the buffer", 2..=BUFFER_MAX);
    let decode_ns = call.time("decode");
    let nice = call.nice();
    let decode: Program = (decode_ns > 0).then(|| run(decode_ns)).into_iter().collect();
    let round =
        [vec![Op::TimerWait(0, period_ns)], decode.clone(), vec![mark("audio period")]].concat();
    let mut program: Program =
        if decode.is_empty() { Vec::new() } else { vec![Op::Loop(Some(buffer), decode)] };
    program.extend([
        mark(format!("audio start/{period_ns}/{buffer}")),
        Op::TimerStart(0),
        Op::Loop(None, round),
    ]);
    let mut player = group("player", count, program);
    player.nice = nice;
    Workload {
        timers: vec![Timer::new("card", period_ns)],
        ..seconds(10, "players of sound, each with a buffer that must not run empty", vec![player])
    }
}

fn drag(call: &mut Call<'_, '_>) -> Workload {
    let period_ns = call.positive("period");
    let (draw_ns, show_ns) = (call.positive("draw"), call.positive("show"));
    let (nice, server_nice) =
        (call.nice(), call.integer("server_nice", "the nice value", -20..=19_i8));
    let (to_server, to_window) = (0, 1);
    let frame = vec![
        Op::TimerWait(0, period_ns),
        run(draw_ns),
        Op::PipeWrite(to_server, REQUEST_BYTES),
        Op::PipeRead(to_window, REQUEST_BYTES),
        mark("frame"),
    ];
    let start = vec![mark(format!("frame start/{period_ns}")), Op::TimerStart(0)];
    let mut window = group("window", 1, [start, vec![Op::Loop(None, frame)]].concat());
    window.nice = nice;
    let serve = vec![
        Op::PipeRead(to_server, REQUEST_BYTES),
        run(show_ns),
        Op::PipeWrite(to_window, REQUEST_BYTES),
    ];
    let mut server = looping("xserver", 1, serve);
    server.nice = server_nice;
    Workload {
        timers: vec![Timer { relative: true, ..Timer::new("mouse", period_ns) }],
        pipes: ["requests", "answers"].map(pipe).to_vec(),
        ..seconds(10, "a window that is dragged, and its display server", vec![window, server])
    }
}
