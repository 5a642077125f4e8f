//! Losses and contradictions of a trace.

use fairground_trace::Loss;

/// Contradictions and gaps in the trace, and losses of the recorder. All counts are over the events
/// read, from the trace's begin to the window's end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Irregularities {
    /// Losses of the recorder and the reader.
    pub loss: Loss,
    /// The recording has no `sched_switch`: nothing that follows from switches was measured.
    pub no_switches: bool,
    /// Where events were lost: the part of the window's CPU time of which nothing is known, in millionths.
    pub unknown_ppm: u64,
    /// Switches whose `prev` was not the task that the CPU was known to run.
    pub broken_switches: u64,
    /// Switch-ins of a task that was running on another CPU.
    pub doubly_running: u64,
    /// Switch-ins of a task that was asleep: its wake-up is missing, and its time since then is unknown.
    pub missed_wakeups: u64,
    /// Events that name a CPU or a task that the trace does not have; they were ignored.
    pub out_of_range: u64,
    /// Events whose time lay before that of an earlier event; they were taken to happen at that time.
    pub clock_jumps: u64,
    /// Events of a task after its end.
    pub after_exit: u64,
    /// Tasks whose nice value the trace does not know; the fluid schedule gives them the weight of nice 0.
    pub assumed_nice: u64,
}

impl Irregularities {
    /// The losses and contradictions in words, a sentence each without its end; nothing when nothing is.
    pub fn notes(&self) -> Vec<String> {
        let loss = &self.loss;
        let missing = match loss.unreadable {
            0 => "events were lost by the recorder",
            _ => "events are missing: lost by the recorder, or in lines that could not be read",
        };
        let counted = [
            (loss.lost_events, missing),
            (loss.unreadable, "lines could not be read"),
            (loss.prints, "printed lines were left out: there were too many different ones"),
            (
                loss.stacks,
                "stacks and waits for locks were left out: there were too many different ones",
            ),
            (loss.clock_jumps.max(self.clock_jumps), "events lay before an earlier one"),
            (loss.pid_reuses, "pids were reused"),
            (self.broken_switches, "switches left a task that was not known to run"),
            (self.doubly_running, "switches started a task that ran elsewhere"),
            (
                self.missed_wakeups,
                "switches started a task that was asleep: its wake-up is missing",
            ),
            (self.out_of_range, "events name an unknown CPU or task"),
            (self.after_exit, "events came after their task's end"),
            (self.assumed_nice, "tasks have no known nice value; the fair share takes 0"),
        ];
        let counted = counted.iter().filter(|(count, _)| *count > 0);
        let mut notes: Vec<String> =
            counted.map(|(count, what)| format!("{count} {what}")).collect();
        notes.extend(self.unknown_time());
        if self.no_switches {
            notes.push(
                "no sched_switch in this recording: CPU times, waits and what follows from them \
                 were not measured; record sched_switch, too"
                    .to_owned(),
            );
        }
        if loss.truncated {
            notes.push(
                "the recording ends in the middle of an event; what came before is analysed"
                    .to_owned(),
            );
        }
        notes.extend(loss.first.as_ref().map(|first| format!("the first problem: {first}")));
        notes
    }

    /// How much of the CPU time is not known, in words, where events were lost.
    pub fn unknown_time(&self) -> Option<String> {
        let percent = self.unknown_ppm as f64 / 1e4;
        (self.unknown_ppm > 0)
            .then(|| format!("what ran is not known for {percent:.2} % of the CPU time"))
    }
}
