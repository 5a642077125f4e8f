//! Recordings without wake-ups.

use super::{Recording, finished, lap};
use fairground_workload::{Duration, Op};

/// No event tells that they wake, and on a CPU that idles nothing is runnable.
#[test]
fn a_task_that_ends_the_idling_of_a_cpu_was_asleep() {
    let mut replay = Recording::new(1);
    replay.switch(0, 0, 0, false, false, 1).switch(1_000, 0, 1, true, false, 0);
    replay.switch(3_000, 0, 0, false, false, 2).switch(4_000, 0, 2, true, false, 0);
    let (workload, notes) = finished(replay);
    let sleep = Op::Sleep(Duration::Fixed(3_000));
    assert_eq!(lap(&workload, 1)[..2], [sleep, Op::Run(Duration::Fixed(1_000))]);
    assert_eq!(notes.missing_wakes, 1);
}
