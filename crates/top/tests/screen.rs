//! The screen and the keys, on a terminal in memory, with a run written by hand.

use std::cell::Cell;
use std::time::Duration;

use fairground_analysis::Options;
use fairground_top::{About, App, Follower, Problem, Source, Speed, Tunable, View, draw};
use fairground_trace::{Event, EventKind, TaskId, TaskInfo, TaskState, Trace};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

const MS: u64 = 1_000_000;
const HOG: [TaskId; 3] = [TaskId(1), TaskId(2), TaskId(3)];

/// Two CPUs. On CPU 0 two hogs alternate in slices of 4 ms; on CPU 1 a heavier one runs all the time. The rest depends
/// on the keys.
struct Alternating {
    trace: Trace,
    follower: Follower,
    now_ns: u64,
    slice_ns: u64,
    which: usize,
    log: Vec<String>,
    notes: Vec<String>,
}

impl Alternating {
    fn new() -> Alternating {
        let mut trace = Trace::new(2);
        for (pid, name, nice) in [(1001, "hog/0", 0), (1002, "hog/1", 0), (1003, "heavy", -5)] {
            trace.add_task(TaskInfo { nice: Some(nice), ..TaskInfo::new(pid, name) });
        }
        let follower = Follower::new(&trace, &Options::simulated(), 100 * MS);
        let (log, notes) = (Vec::new(), Vec::new());
        let mut source =
            Alternating { trace, follower, now_ns: 0, slice_ns: 4 * MS, which: 0, log, notes };
        source.begin();
        source
    }

    fn push(&mut self, time_ns: u64, cpu: u32, kind: EventKind) {
        self.trace.push(Event { time_ns, cpu, insns: 0, kind });
    }

    fn begin(&mut self) {
        for (task, target_cpu) in HOG.into_iter().zip([0, 0, 1]) {
            self.push(0, target_cpu, EventKind::WakeupNew { task, target_cpu });
        }
        for (cpu, next) in [(0, HOG[0]), (1, HOG[2])] {
            let kind =
                EventKind::Switch { prev: TaskId::IDLE, prev_state: TaskState::Runnable, next };
            self.push(0, cpu, kind);
        }
        self.take();
    }

    fn next_ns(&self) -> u64 {
        (self.now_ns / self.slice_ns + 1) * self.slice_ns
    }

    fn take(&mut self) {
        self.follower.take(&self.trace, self.now_ns);
        self.trace.clear_events();
    }
}

impl Source for Alternating {
    fn about(&self) -> About {
        About {
            what: "hogs:2 + heavy".to_owned(),
            scheduler: ["slices", "other slices"][self.which].to_owned(),
            made: "2 CPUs, seed 1".to_owned(),
            is_real: false,
            length_ns: Some(1_000 * MS),
        }
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn advance(&mut self, to_ns: u64) -> Result<(), Problem> {
        while self.next_ns() <= to_ns {
            self.now_ns = self.next_ns();
            let nth = (self.now_ns / self.slice_ns) as usize;
            let (prev, next) = (HOG[(nth + 1) % 2], HOG[nth % 2]);
            let kind = EventKind::Switch { prev, prev_state: TaskState::Runnable, next };
            self.push(self.now_ns, 0, kind);
        }
        self.now_ns = to_ns;
        self.take();
        Ok(())
    }

    fn view(&self) -> View {
        let mut view = self.follower.view(&self.trace, self.now_ns);
        view.notes.clone_from(&self.notes);
        view.number_names = vec!["vruntime".to_owned()];
        view.numbers = HOG.into_iter().map(|id| (id, vec![Some(-5 + i64::from(id.0))])).collect();
        view
    }

    fn step(&mut self) -> Result<(), Problem> {
        self.advance(self.next_ns())
    }

    fn restart(&mut self) -> Result<(), Problem> {
        self.log.push("restart".to_owned());
        let (log, which) = (std::mem::take(&mut self.log), self.which);
        *self = Alternating { log, which, ..Alternating::new() };
        Ok(())
    }

    fn next_scheduler(&mut self) -> Result<(), Problem> {
        let (log, which) = (std::mem::take(&mut self.log), 1 - self.which);
        *self = Alternating { log, which, ..Alternating::new() };
        Ok(())
    }

    fn tunables(&self) -> Vec<Tunable> {
        let tunable =
            |name: &str, value: &str, unit: &str, what: &str, fixed: Option<&str>| Tunable {
                name: name.to_owned(),
                value: value.to_owned(),
                unit: unit.to_owned(),
                what: what.to_owned(),
                fixed: fixed.map(str::to_owned),
            };
        vec![
            tunable("SLEEPERS", "on", "switch", "sleepers get credit", None),
            tunable("slice_ns", &self.slice_ns.to_string(), "ns", "length of a slice", None),
            tunable("cpus_max", "8", "", "room for CPUs", Some("`cpus_max` is fixed")),
        ]
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), Problem> {
        if value == "bad" {
            return Err(format!("`{name}={value}`: no number"));
        }
        self.log.push(format!("{} ms {name}={value}", self.now_ns / MS));
        Ok(())
    }
}

fn shot(app: &App, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    terminal.draw(|frame| draw(frame, app)).expect("it can be drawn on");
    terminal.backend().to_string()
}

fn pass(app: &mut App, source: &mut Alternating, ms: u64) {
    app.pass(source, Duration::from_millis(ms), || true).expect("it goes on");
}

fn press(app: &mut App, source: &mut Alternating, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '↓' => KeyCode::Down,
            '⌫' => KeyCode::Backspace,
            '⎋' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        app.press(KeyEvent::new(code, KeyModifiers::NONE), source);
    }
}

#[test]
fn tasks_cpus_and_the_machine() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 250);
    insta::assert_snapshot!("wide", shot(&app, 132, 14));
    insta::assert_snapshot!("narrow", shot(&app, 60, 12));
    press(&mut app, &mut source, "es");
    insta::assert_snapshot!("events", shot(&app, 100, 18));
}

#[test]
fn panels_lie_over_the_tasks() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 150);
    press(&mut app, &mut source, "t");
    insta::assert_snapshot!("tunables", shot(&app, 100, 14));
    press(&mut app, &mut source, "⎋h");
    insta::assert_snapshot!("help", shot(&app, 100, 20));
}

#[test]
fn time_passes_by_the_speed_and_stands_still_when_held() {
    let mut source = Alternating::new();
    let mut app = App::new(&source).at_speed(Speed::new(1));
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 20 * MS);
    press(&mut app, &mut source, "-");
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 30 * MS);
    press(&mut app, &mut source, " ");
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 30 * MS);
    press(&mut app, &mut source, "ss");
    assert_eq!(source.now_ns, 36 * MS, "two events further");
    assert!(shot(&app, 100, 10).contains("0.036000000  CPU 0   hog/0 (preempted) → hog/1"));
}

#[test]
fn a_slow_machine_is_left_behind_and_never_waits_for_a_key() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    let mut chunks = 0;
    let has_time = || {
        chunks += 1;
        chunks <= 3
    };
    app.pass(&mut source, Duration::from_millis(100), has_time).expect("it goes on");
    assert_eq!(source.now_ns, 3 * MS);
}

#[test]
fn a_jump_goes_there_and_holds() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    press(&mut app, &mut source, "g0.4s\n");
    assert!(shot(&app, 100, 10).contains("goes to 0.400000000 s"));
    pass(&mut app, &mut source, 1);
    assert_eq!(source.now_ns, 400 * MS);
    pass(&mut app, &mut source, 50);
    assert_eq!(source.now_ns, 400 * MS, "held there");
    press(&mut app, &mut source, "g100ms\n");
    pass(&mut app, &mut source, 1);
    assert_eq!(
        (source.now_ns, source.log.as_slice()),
        (100 * MS, ["restart".to_owned()].as_slice())
    );
    press(&mut app, &mut source, "g5\n");
    assert!(shot(&app, 100, 10).contains("`5` has no unit"));
}

#[test]
fn the_end_of_the_workload_holds_once() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 5_000);
    assert_eq!(source.now_ns, 1_000 * MS);
    assert!(shot(&app, 100, 10).contains("the workload's length is over"));
    press(&mut app, &mut source, " ");
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 1_010 * MS);
}

#[test]
fn a_run_begun_again_is_held_at_the_end_again() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 5_000);
    // Back to an earlier time, from the end.
    press(&mut app, &mut source, "g100ms\n");
    pass(&mut app, &mut source, 1);
    assert_eq!(source.now_ns, 100 * MS);
    press(&mut app, &mut source, " ");
    pass(&mut app, &mut source, 5_000);
    assert_eq!(source.now_ns, 1_000 * MS, "the run of a jump back");
    assert!(shot(&app, 100, 10).contains("HELD"));
    // Another scheduler, let go before it is as far as the first.
    press(&mut app, &mut source, "\t ");
    pass(&mut app, &mut source, 5_000);
    assert_eq!(source.now_ns, 1_000 * MS, "the run of another scheduler");
    assert!(shot(&app, 100, 10).contains("HELD"));
    // Beyond the end, to which it was advanced already, it continues.
    press(&mut app, &mut source, " ");
    pass(&mut app, &mut source, 10);
    press(&mut app, &mut source, "\t");
    pass(&mut app, &mut source, 1);
    assert_eq!(source.now_ns, 1_010 * MS);
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 1_020 * MS);
}

/// A real machine arrives in parts; between them there is nothing new, and a read may be expensive.
#[test]
fn a_recording_is_looked_at_when_a_part_of_it_came() {
    struct Parts(Alternating, u32, Cell<u32>);
    impl Source for Parts {
        fn about(&self) -> About {
            About { is_real: true, length_ns: None, ..self.0.about() }
        }
        fn now_ns(&self) -> u64 {
            self.0.now_ns()
        }
        fn advance(&mut self, _: u64) -> Result<(), Problem> {
            self.1 += 1;
            if self.1.is_multiple_of(4) { self.0.advance(self.0.now_ns + 200 * MS) } else { Ok(()) }
        }
        fn view(&self) -> View {
            self.2.set(self.2.get() + 1);
            self.0.view()
        }
    }
    let mut parts = Parts(Alternating::new(), 0, Cell::new(0));
    let mut app = App::new(&parts);
    let mut frames = |app: &mut App, count: u32| {
        for _ in 0..count {
            app.pass(&mut parts, Duration::from_millis(50), || true).expect("it goes on");
        }
        parts.2.get()
    };
    assert_eq!(frames(&mut app, 40), 1 + 10);
    assert!(shot(&app, 100, 10).contains("at 2.000000000 s"));
    let space = KeyEvent::new(KeyCode::Char(' '), KeyModifiers::NONE);
    app.press(space, &mut Alternating::new());
    assert_eq!(frames(&mut app, 40), 1 + 10, "the picture is held");
    app.press(space, &mut Alternating::new());
    assert_eq!(frames(&mut app, 1), 1 + 10 + 1, "it is of now again");
    assert!(shot(&app, 100, 10).contains("at 4.000000000 s"));
}

#[test]
fn every_note_is_shown() {
    let mut source = Alternating::new();
    source.notes = ["first", "second", "third"].map(|note| format!("the {note} note")).to_vec();
    let app = App::new(&source);
    let large = shot(&app, 100, 16);
    let small = shot(&app, 100, 8);
    for note in &source.notes {
        assert!(large.contains(note) && small.contains(note), "{note}:\n{large}\n{small}");
    }
    assert!(large.contains("q leave"), "{large}");
    assert!(small.contains("the second note; the third note"), "{small}");
}

#[test]
fn any_terminal_is_large_enough() {
    let mut source = Alternating::new();
    source.notes = vec!["a note".to_owned(), "another".to_owned()];
    for keys in ["", "e", "h", "t", "t↓\n", "g"] {
        let mut app = App::new(&source);
        pass(&mut app, &mut source, 50);
        press(&mut app, &mut source, keys);
        for (width, height) in (1..=12).flat_map(|w| (1..=12).map(move |h| (w, h))) {
            shot(&app, width, height);
        }
    }
}

#[test]
fn tunables_are_changed_at_the_present_time() {
    let mut source = Alternating::new();
    let mut app = App::new(&source).paused();
    press(&mut app, &mut source, "g8ms\n");
    pass(&mut app, &mut source, 1);
    press(&mut app, &mut source, "t\n↓\n⌫⌫⌫⌫⌫⌫⌫9000000\n");
    assert_eq!(source.log, ["8 ms SLEEPERS=off", "8 ms slice_ns=9000000"]);
    press(&mut app, &mut source, "\n⌫⌫⌫⌫⌫⌫⌫bad\n");
    assert!(shot(&app, 100, 14).contains("`slice_ns=bad`: no number"));
    press(&mut app, &mut source, "↓\n");
    assert!(shot(&app, 100, 14).contains("`cpus_max` is fixed"));
    assert_eq!(source.log.len(), 2);
}

#[test]
fn another_scheduler_comes_as_far_as_the_first() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 90);
    press(&mut app, &mut source, "\t");
    assert_eq!(source.now_ns, 0, "it has not begun yet");
    pass(&mut app, &mut source, 1);
    assert_eq!(source.now_ns, 90 * MS);
    assert!(shot(&app, 100, 10).contains("under other slices"));
    pass(&mut app, &mut source, 10);
    assert_eq!(source.now_ns, 100 * MS, "it goes on");
}

#[test]
fn columns_sort() {
    let mut source = Alternating::new();
    let mut app = App::new(&source);
    pass(&mut app, &mut source, 250);
    let first = |app: &App| {
        let shot = shot(app, 100, 12);
        let table = shot.split("PID").nth(1).expect("a table").to_owned();
        ["hog/0", "hog/1", "heavy"]
            .into_iter()
            .min_by_key(|name| table.find(name).unwrap_or(usize::MAX))
            .map(str::to_owned)
    };
    assert_eq!(first(&app).as_deref(), Some("heavy"), "by share");
    press(&mut app, &mut source, "R");
    assert_eq!(first(&app).as_deref(), Some("hog/0"));
    press(&mut app, &mut source, "<<<<");
    assert_eq!(first(&app).as_deref(), Some("heavy"), "by pid, the largest first");
}

#[test]
fn leaving() {
    let mut source = Alternating::new();
    for leave in ["q", "h⎋q"] {
        let mut app = App::new(&source);
        press(&mut app, &mut source, leave);
        assert!(app.has_left(), "{leave}");
    }
    let mut app = App::new(&source);
    app.press(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL), &mut source);
    assert!(app.has_left());
}
