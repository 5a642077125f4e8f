//! Which task ran on which CPU at which time.

use fairground_report::page::{Chart, Drawing, SLICES_MAX, Shape, Slice, Timeline};
use fairground_trace::{EventKind, TaskId, Trace};

use super::{Pictured, grouped};

pub(super) fn timeline(runs: &[Pictured<'_>]) -> Option<Chart> {
    let of_each = SLICES_MAX / runs.len().max(1);
    let timelines: Vec<(usize, Timeline)> =
        runs.iter().map(|run| timeline_of(run, of_each)).collect();
    if timelines.iter().all(|(slices, _)| *slices == 0) {
        return None;
    }
    let counts = runs.iter().zip(&timelines).map(|(run, (slices, drawn))| {
        let together = drawn.together_below_ns().map_or_else(String::new, |ns| {
            format!(" (neighbours shorter than {:.1} µs are drawn as one)", ns as f64 / 1e3)
        });
        format!("{}: {} slices{together}", run.label, grouped(*slices as u64))
    });
    let samples = format!("{}.", counts.collect::<Vec<_>>().join("; "));
    let drawing = |(run, (_, timeline)): (&Pictured<'_>, (usize, Timeline))| Drawing {
        of: run.label.to_owned(),
        shape: Shape::Timeline(timeline),
    };
    Some(Chart {
        id: "timeline".to_owned(),
        title: "Who ran where".to_owned(),
        definition: "Each row is a CPU, each colour a task; what is empty is idle. Turn the wheel \
                     to look closer, drag to move, point at a slice to read it. Pale: several short \
                     slices, the colour is that of the task with the most time among them."
            .to_owned(),
        samples,
        drawings: runs.iter().zip(timelines).map(drawing).collect(),
        table: None,
    })
}

/// The number of slices, and what is drawn of them.
fn timeline_of(run: &Pictured<'_>, slices_max: usize) -> (usize, Timeline) {
    let (start_ns, end_ns) = (run.analysis.start_ns, run.analysis.end_ns);
    let lanes = lanes(run.trace, start_ns, end_ns);
    let slices = lanes.iter().map(Vec::len).sum();
    let name = |task: &fairground_trace::TaskInfo| format!("{} [{}]", task.comm, task.pid);
    let tasks = run.trace.tasks().iter().map(name).collect();
    (slices, Timeline::new(start_ns, end_ns, tasks, lanes, slices_max))
}

/// Each CPU's slices within a window.
fn lanes(trace: &Trace, start_ns: u64, end_ns: u64) -> Vec<Vec<Slice>> {
    let mut lanes: Vec<Vec<Slice>> = vec![Vec::new(); trace.cpus as usize];
    let mut running: Vec<Option<(TaskId, u64)>> = vec![None; trace.cpus as usize];
    let mut close = |cpu: usize, slice: Option<(TaskId, u64)>, now_ns: u64| {
        let Some((task, since_ns)) = slice.filter(|(task, _)| *task != TaskId::IDLE) else {
            return;
        };
        let (from, to) = (since_ns.max(start_ns), now_ns.min(end_ns));
        if from < to {
            lanes[cpu].push(Slice { start_ns: from, end_ns: to, task: task.0 });
        }
    };
    for event in trace.events() {
        let cpu = event.cpu as usize;
        if let EventKind::Switch { next, .. } = event.kind
            && cpu < running.len()
        {
            close(cpu, running[cpu].replace((next, event.time_ns)), event.time_ns);
        }
    }
    for (cpu, slice) in running.into_iter().enumerate() {
        close(cpu, slice, trace.end_ns);
    }
    lanes
}

#[cfg(test)]
mod tests {
    use fairground_trace::{Event, TaskInfo, TaskState};

    use super::*;

    #[test]
    fn turns_end_at_switches_and_with_the_window() {
        let mut trace = Trace::new(2);
        let (a, b) = (trace.add_task(TaskInfo::new(7, "a")), trace.add_task(TaskInfo::new(8, "b")));
        for (time_ns, cpu, prev, next) in [
            (10, 0, TaskId::IDLE, a),
            (20, 1, TaskId::IDLE, b),
            (30, 0, a, TaskId::IDLE),
            (40, 0, TaskId::IDLE, b),
        ] {
            let kind = EventKind::Switch { prev, prev_state: TaskState::Sleeping, next };
            trace.push(Event { time_ns, cpu, insns: 0, kind });
        }
        trace.end_ns = 100;
        let slice = |start_ns, end_ns, task: TaskId| Slice { start_ns, end_ns, task: task.0 };
        assert_eq!(
            lanes(&trace, 15, 90),
            [vec![slice(15, 30, a), slice(40, 90, b)], vec![slice(20, 90, b)]]
        );
    }
}
