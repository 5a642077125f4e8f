//! Which task ran on which CPU at which time, small enough for a page.
//!
//! Each CPU is a lane of slices in order of time. In a page a lane is a base64 text of variable-length numbers
//! (LEB128), per slice: the ns since the end of the one before, its length in ns, and twice the task's index, plus
//! one where the slice represents several short ones, of which that task had the most time. Idle time is what lies
//! between slices.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use serde_json::json;

/// Slices that one timeline keeps. Beyond that the shortest are merged.
pub const SLICES_MAX: usize = 400_000;

/// The shortest length below which slices are merged, ns; where that is not enough, twice as much, and so on.
const TOGETHER_MIN_NS: u64 = 64;

/// One uninterrupted time of a task on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// Its begin, ns.
    pub start_ns: u64,
    /// Its end, ns.
    pub end_ns: u64,
    /// Which of the timeline's tasks.
    pub task: u32,
}

/// Which task ran on which CPU at which time.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Timeline {
    start_ns: u64,
    end_ns: u64,
    tasks: Vec<String>,
    /// Per CPU: slices in order, and whether each represents several.
    lanes: Vec<Vec<(Slice, bool)>>,
    /// Slices shorter than this were merged, ns; 0: nothing was.
    together_below_ns: u64,
}

impl Timeline {
    /// Of the time between two moments, with these task names. A lane's slices must be in order and not overlap.
    pub fn new(
        start_ns: u64,
        end_ns: u64,
        tasks: Vec<String>,
        lanes: Vec<Vec<Slice>>,
        slices_max: usize,
    ) -> Self {
        let mut timeline = Self { start_ns, end_ns, tasks, ..Self::default() };
        let draw = |below_ns| -> Vec<Vec<(Slice, bool)>> {
            lanes.iter().map(|lane| put_together(lane, below_ns)).collect()
        };
        timeline.lanes = draw(0);
        while timeline.slices() > slices_max.max(lanes.len()) {
            timeline.together_below_ns = (2 * timeline.together_below_ns).max(TOGETHER_MIN_NS);
            timeline.lanes = draw(timeline.together_below_ns);
        }
        timeline
    }

    /// Slices shorter than this were merged, ns; `None`: nothing was merged.
    pub fn together_below_ns(&self) -> Option<u64> {
        (self.together_below_ns > 0).then_some(self.together_below_ns)
    }

    /// The slices that are drawn.
    pub fn slices(&self) -> usize {
        self.lanes.iter().map(Vec::len).sum()
    }

    fn encode(&self, lane: &[(Slice, bool)]) -> String {
        let mut bytes = Vec::with_capacity(lane.len() * 8);
        let mut last_ns = self.start_ns;
        for (slice, is_several) in lane {
            put(&mut bytes, slice.start_ns.saturating_sub(last_ns));
            put(&mut bytes, slice.end_ns.saturating_sub(slice.start_ns));
            put(&mut bytes, u64::from(slice.task) << 1 | u64::from(*is_several));
            last_ns = slice.end_ns;
        }
        STANDARD.encode(bytes)
    }
}

impl Serialize for Timeline {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let lanes: Vec<String> = self.lanes.iter().map(|lane| self.encode(lane)).collect();
        let drawn = json!({
            "start_ns": self.start_ns,
            "end_ns": self.end_ns,
            "together_below_ns": self.together_below_ns,
            "tasks": self.tasks,
            "lanes": lanes,
        });
        drawn.serialize(serializer)
    }
}

/// Appends a number, seven bits a byte, the lowest first.
fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Makes one of neighbours that are shorter than `below_ns`, up to that length together.
fn put_together(lane: &[Slice], below_ns: u64) -> Vec<(Slice, bool)> {
    let mut kept = Vec::new();
    let mut open = Open::default();
    for slice in lane {
        if slice.end_ns - slice.start_ns >= below_ns {
            open.close(&mut kept);
            kept.push((*slice, false));
            continue;
        }
        if open.start_ns.is_some_and(|start| slice.end_ns - start > below_ns) {
            open.close(&mut kept);
        }
        open.add(slice);
    }
    open.close(&mut kept);
    kept
}

/// Short slices on their way to become one.
#[derive(Default)]
struct Open {
    start_ns: Option<u64>,
    end_ns: u64,
    /// The time of each task among them, ns.
    times: Vec<(u32, u64)>,
    slices: usize,
}

impl Open {
    fn add(&mut self, slice: &Slice) {
        self.start_ns.get_or_insert(slice.start_ns);
        self.end_ns = slice.end_ns;
        self.slices += 1;
        let ns = slice.end_ns - slice.start_ns;
        match self.times.iter_mut().find(|(task, _)| *task == slice.task) {
            Some((_, time)) => *time += ns,
            None => self.times.push((slice.task, ns)),
        }
    }

    fn close(&mut self, kept: &mut Vec<(Slice, bool)>) {
        let Some(start_ns) = self.start_ns.take() else { return };
        // The first of those with the most time.
        let most = self.times.iter().map(|(_, ns)| *ns).max().unwrap_or(0);
        let task = self.times.iter().find(|(_, ns)| *ns == most).map_or(0, |(task, _)| *task);
        kept.push((Slice { start_ns, end_ns: self.end_ns, task }, self.slices > 1));
        self.times.clear();
        self.slices = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(start_ns: u64, end_ns: u64, task: u32) -> Slice {
        Slice { start_ns, end_ns, task }
    }

    #[test]
    fn few_slices_stay_as_they_are() {
        let lane = vec![slice(5, 6, 0), slice(6, 300, 1)];
        let timeline = Timeline::new(0, 300, vec!["a".into(), "b".into()], vec![lane], 2);
        assert_eq!((timeline.slices(), timeline.together_below_ns()), (2, None));
        // 5, 1, task 0; 0, 294 = 0x126, task 1.
        assert_eq!(
            STANDARD.decode(timeline.encode(&timeline.lanes[0])).unwrap(),
            [5, 1, 0, 0, 0xa6, 2, 2]
        );
    }

    #[test]
    fn many_short_ones_become_few_and_keep_the_time_of_the_longest() {
        let lane: Vec<Slice> =
            (0..1000).map(|i| slice(i * 10, i * 10 + 4 + i % 2, (i % 2) as u32)).collect();
        let timeline = Timeline::new(0, 10_000, vec!["a".into(), "b".into()], vec![lane], 100);
        assert_eq!(timeline.together_below_ns(), Some(128));
        assert!(timeline.slices() <= 100, "{}", timeline.slices());
        assert!(timeline.lanes[0].iter().all(|(s, several)| *several && s.task == 1));
        assert_eq!(timeline.lanes[0].last().unwrap().0.end_ns, 9_995);
    }

    #[test]
    fn a_long_slice_among_short_ones_is_kept() {
        let mut lane: Vec<Slice> = (0..50).map(|i| slice(i * 10, i * 10 + 9, 0)).collect();
        lane.push(slice(500, 900, 1));
        let timeline = Timeline::new(0, 1000, vec!["a".into(), "b".into()], vec![lane], 10);
        assert!(timeline.lanes[0].contains(&(slice(500, 900, 1), false)));
    }
}
