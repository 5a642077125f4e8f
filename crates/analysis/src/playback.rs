//! Programs that must keep up with a clock: a player of sound whose buffer must not run empty, and a window that is
//! redrawn while it is dragged. From the marks of their tasks.
//!
//! A player fills a buffer of N periods, marks `audio start/PERIOD_NS/N`, and from then on is woken by a timer each
//! period, refills what was played, and marks `audio period`. The round at the k-th expiry fills the place of the k-th
//! period; the card plays it when the other N - 1 are played. A round that ends later than N - 1 periods after its
//! expiry lets the card fall silent: a skip. The sound goes on when the round has ended, so what follows is due later
//! by the length of the silence.
//!
//! A window marks `frame start/PERIOD_NS` and, after each frame, `frame`. The frame of an expiry is late if it ends
//! after the next one. The movements of the mouse meanwhile are one: the next frame begins when the late one has ended,
//! and the periods count from there.

use std::collections::BTreeMap;

use fairground_trace::{EventKind, TaskId, Trace};

use crate::metric::value::{Metric, Unit, int, metric};

/// The start of the label of a player's start; the period in ns and the periods of the buffer follow.
pub const AUDIO_START: &str = "audio start/";
/// The label of a player's round.
pub const AUDIO_PERIOD: &str = "audio period";
/// The start of the label of a window's start; the period in ns follows.
pub const FRAME_START: &str = "frame start/";
/// The label of a frame.
pub const FRAME: &str = "frame";

/// Rounds that were due at times of a clock, of all tasks that have such rounds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Due {
    /// Rounds that ended, or were due before the end of the trace.
    pub rounds: u64,
    /// Of them, those that ended after they were due, or had not ended when they were due.
    pub late: u64,
    /// How much later than due, in all, ns.
    pub late_ns: u64,
    /// The latest, ns.
    pub latest_ns: u64,
}

/// The results of players and windows of a trace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Playback {
    /// Periods of sound; `None`: nothing played.
    pub audio: Option<Due>,
    /// Frames; `None`: nothing was drawn.
    pub frames: Option<Due>,
}

/// The metrics of players and windows.
pub const PLAYBACK_PROGRAM: &[Metric<Playback>] = &[
    metric("skips", "", Unit::Count, |p| int(p.audio.as_ref()?.late)),
    metric("skip_time", "", Unit::Ns, |p| int(p.audio.as_ref()?.late_ns)),
    metric("frames", "", Unit::Count, |p| int(p.frames.as_ref()?.rounds)),
    metric("late_frames", "", Unit::Count, |p| int(p.frames.as_ref()?.late)),
    metric("frame_delay", "", Unit::Ns, |p| int(p.frames.as_ref()?.latest_ns)),
];

/// The rounds of one task.
#[derive(Clone, Copy, Debug)]
struct PlaybackTask {
    is_audio: bool,
    start_ns: u64,
    period_ns: u64,
    /// From a timer's expiry until its round is due, ns.
    allowed_ns: u64,
    /// Rounds that ended.
    ended: u64,
    /// How much later than planned rounds are due since earlier ones were late, ns.
    shift_ns: u64,
}

impl PlaybackTask {
    /// Reads the label of a start.
    fn of(label: &str, start_ns: u64) -> Option<PlaybackTask> {
        let stream = |is_audio, period_ns, allowed_ns| PlaybackTask {
            is_audio,
            start_ns,
            period_ns,
            allowed_ns,
            ended: 0,
            shift_ns: 0,
        };
        if let Some(text) = label.strip_prefix(AUDIO_START) {
            let (period, buffer) = text.split_once('/')?;
            let period_ns: u64 = period.parse().ok().filter(|ns| *ns > 0)?;
            let others = buffer.parse::<u64>().ok()?.saturating_sub(1);
            return Some(stream(true, period_ns, period_ns.checked_mul(others)?));
        }
        let period_ns: u64 = label.strip_prefix(FRAME_START)?.parse().ok().filter(|ns| *ns > 0)?;
        Some(stream(false, period_ns, period_ns))
    }

    /// When the next round is due, ns.
    fn due_ns(&self) -> u64 {
        let expiries = (self.ended + 1).saturating_mul(self.period_ns);
        [expiries, self.allowed_ns, self.shift_ns]
            .into_iter()
            .fold(self.start_ns, u64::saturating_add)
    }

    /// A round has ended, or is still under way at the end of the trace.
    fn end(&mut self, time_ns: u64, due: &mut Due) {
        let late_ns = time_ns.saturating_sub(self.due_ns());
        due.rounds += 1;
        due.late += u64::from(late_ns > 0);
        due.late_ns += late_ns;
        due.latest_ns = due.latest_ns.max(late_ns);
        self.ended += 1;
        self.shift_ns += late_ns;
    }
}

impl Playback {
    /// Finds them in a trace.
    pub fn of(trace: &Trace) -> Playback {
        let mut playback = Playback::default();
        let mut streams: BTreeMap<TaskId, PlaybackTask> = BTreeMap::new();
        for event in trace.events() {
            let EventKind::Mark { task, label, .. } = event.kind else { continue };
            let label = trace.label(label);
            if let Some(stream) = PlaybackTask::of(label, event.time_ns) {
                playback.due(stream.is_audio);
                streams.insert(task, stream);
            } else if [AUDIO_PERIOD, FRAME].contains(&label)
                && let Some(stream) = streams.get_mut(&task)
            {
                stream.end(event.time_ns, playback.due(stream.is_audio));
            }
        }
        // What is due and has not ended.
        for stream in streams.values_mut().filter(|stream| stream.due_ns() < trace.end_ns) {
            stream.end(trace.end_ns, playback.due(stream.is_audio));
        }
        playback
    }

    fn due(&mut self, is_audio: bool) -> &mut Due {
        let due = if is_audio { &mut self.audio } else { &mut self.frames };
        due.get_or_insert_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fairground_trace::{Event, TaskInfo};

    fn trace(marks: &[(u64, &str)], end_ns: u64) -> Trace {
        let mut trace = Trace::new(1);
        let task = trace.add_task(TaskInfo::new(1, "player"));
        for (time_ns, text) in marks {
            let label = trace.intern(text);
            let kind = EventKind::Mark { task, label, value: 0 };
            trace.push(Event { time_ns: *time_ns, cpu: 0, insns: 0, kind });
        }
        trace.end_ns = end_ns;
        trace
    }

    #[test]
    fn a_buffer_that_runs_empty_is_a_skip_and_shifts_what_follows() {
        // A buffer of 3 periods of 10: the rounds are due at 30, 40, 50 … after the start at 100.
        let marks = [
            (100, "audio start/10/3"),
            (112, "audio period"),
            (139, "audio period"),
            // Due at 150, 7 late: what follows is due at 167, 177.
            (157, "audio period"),
            (167, "audio period"),
            (178, "audio period"),
        ];
        let audio = Playback::of(&trace(&marks, 180)).audio.expect("sound");
        assert_eq!(audio, Due { rounds: 5, late: 2, late_ns: 8, latest_ns: 7 });
        // Then nothing more: the next one is due at 188, and the sound stops once.
        let audio = Playback::of(&trace(&marks, 300)).audio.expect("sound");
        assert_eq!(audio, Due { rounds: 6, late: 3, late_ns: 8 + 112, latest_ns: 112 });
        assert_eq!(Playback::of(&trace(&marks, 180)).frames, None);
    }

    #[test]
    fn after_a_late_frame_the_next_one_has_a_period() {
        // Frames are due at 20 and 30; the second ends at 45, so the third is due at 55 and the fourth at 65.
        let marks = [(0, "frame start/10"), (15, "frame"), (45, "frame"), (55, "frame")];
        let frames = Playback::of(&trace(&marks, 60)).frames.expect("frames");
        assert_eq!(frames, Due { rounds: 3, late: 1, late_ns: 15, latest_ns: 15 });
        let frames = Playback::of(&trace(&marks, 70)).frames.expect("frames");
        assert_eq!((frames.rounds, frames.late, frames.late_ns), (4, 2, 20));
    }

    #[test]
    fn other_marks_are_none() {
        for label in
            ["audio start/0/3", "audio start/x/3", "audio start/10", "frame start/", "frame"]
        {
            assert_eq!(
                Playback::of(&trace(&[(1, label), (2, "audio period")], 9)),
                Playback::default()
            );
        }
    }
}
