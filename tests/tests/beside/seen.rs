//! The observations of one run, and the comparison of two.

use fairground_analysis::{Analysis, Options, TaskMetrics};
use fairground_trace::{EventKind, Trace};

/// The observations of the tasks of one run.
pub(crate) struct Seen {
    /// The tasks that ran, by number: in the order of their creation.
    pub(crate) tasks: Vec<TaskMetrics>,
    /// The output of the program.
    pub(crate) text: String,
    trace: Trace,
}

impl Seen {
    /// The selected tasks of a recording that ran.
    pub(crate) fn of(trace: Trace, text: String, is_its: impl Fn(&TaskMetrics) -> bool) -> Seen {
        let analysis = Analysis::of(&trace, &Options::default());
        let ran = analysis.tasks.into_iter().filter(|task| task.figures.switch_ins > 0);
        let mut tasks: Vec<_> = ran.filter(|task| is_its(task)).collect();
        tasks.sort_by_key(|task| task.pid);
        Seen { tasks, text, trace }
    }

    /// The tasks with this prefix.
    pub(crate) fn group(&self, start: &str) -> Vec<TaskMetrics> {
        self.tasks.iter().filter(|task| task.name.starts_with(start)).cloned().collect()
    }

    /// CPU time of some of the tasks, in % of all.
    pub(crate) fn share(&self, some: &[TaskMetrics]) -> f64 {
        100.0 * run_ns(some) / run_ns(&self.tasks)
    }

    /// Time between the first of one mark and the first of another, s.
    pub(crate) fn between_marks(&self, first: &str, second: &str) -> f64 {
        let time_ns = |wanted: &str| {
            let mut events = self.trace.events();
            let found = events.find(|event| match event.kind {
                EventKind::Mark { label, .. } => self.trace.label(label) == wanted,
                _ => false,
            });
            found.unwrap_or_else(|| panic!("no mark {wanted:?}")).time_ns
        };
        (time_ns(second) - time_ns(first)) as f64 / 1e9
    }

    /// Time from the first to the last wake-up of one of the tasks, ns.
    pub(crate) fn busy_ns(&self) -> f64 {
        let is_its = |event: &fairground_trace::Event| match event.kind {
            EventKind::Wakeup { task, .. } => self.tasks.iter().any(|own| own.task == task),
            _ => false,
        };
        let times: Vec<u64> = self.trace.events().filter(is_its).map(|e| e.time_ns).collect();
        (times.last().expect("wake-ups") - times[0]) as f64
    }
}

/// CPU time, ns.
pub(crate) fn run_ns(tasks: &[TaskMetrics]) -> f64 {
    tasks.iter().map(|task| task.figures.run_ns as f64).sum()
}

/// Wake-ups.
pub(crate) fn wakeups(tasks: &[TaskMetrics]) -> f64 {
    tasks.iter().map(|task| task.figures.wakeups.expect("they are recorded") as f64).sum()
}

/// Number of times that they were switched in.
pub(crate) fn switches(tasks: &[TaskMetrics]) -> f64 {
    tasks.iter().map(|task| task.figures.switch_ins as f64).sum()
}

/// Collects differences that are too large and reports them at the end: a run that fails shows all of its figures.
pub(crate) struct Verdict {
    pair: &'static str,
    problems: Vec<String>,
}

impl Verdict {
    /// An empty collection.
    pub(crate) fn of(pair: &'static str) -> Verdict {
        Verdict { pair, problems: Vec::new() }
    }

    /// Two figures that may differ by a factor.
    pub(crate) fn alike(&mut self, what: &str, real: f64, ours: f64, factor: f64) {
        let ratio = ours / real;
        let holds = (1.0 / factor..=factor).contains(&ratio);
        self.line(holds, format!("{what}: {real:.4}, ours {ours:.4} (x {ratio:.3})"));
    }

    /// Two percentages that may differ by some points.
    pub(crate) fn points(&mut self, what: &str, real: f64, ours: f64, most: f64) {
        let holds = (ours - real).abs() <= most;
        self.line(holds, format!("{what}: {real:.1} %, ours {ours:.1} %"));
    }

    fn line(&mut self, holds: bool, text: String) {
        eprintln!("{}: {text}", self.pair);
        if !holds {
            self.problems.push(text);
        }
    }

    /// Fails if a difference is too large.
    pub(crate) fn say(self) {
        assert!(self.problems.is_empty(), "{}:\n{}", self.pair, self.problems.join("\n"));
    }
}
