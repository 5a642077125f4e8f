//! `load`: a scheduler in charge of the running kernel, for a while.

use std::fs;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use fairground_bpf::Global;
use fairground_machine::is_number;
use fairground_realkernel::job::{GlobalWrite, Patch, SchedulerExit, SchedulerJob};
use fairground_realkernel::sched_ext::{Attached, KernelState, asks_for_restart};
use fairground_realkernel::signals::EndSignals;
use fairground_report::{Cell, Column, Document, Table};
use fairground_session::{
    Failure, SchedulerObject, at_settings, exit_code, global_writes, host_topology, one_variant,
    parse_time, read_profiles, resize_writes,
};

use super::sched::{tag, value_text};
use crate::args::{Cli, Format, LoadArgs};
use crate::{present, talk};

/// How often the kernel is asked whether the scheduler is still there.
const WATCH: Duration = Duration::from_millis(100);
/// How often the programs run that a scheduler's own loader runs each second.
const SECOND: Duration = Duration::from_secs(1);
/// Limit of attachments after CPUs went off line or came on line; more point to a fault.
const RESTARTS_MAX: u32 = 1000;
/// Rows that are kept for JSON, CSV and Markdown, which are printed at the end; the newest count.
const ROWS_MAX: usize = 10_000;
/// A scheduler, and what to do with it.
struct Session<'a> {
    cli: &'a Cli,
    scheduler: SchedulerObject,
    job: SchedulerJob,
    /// Constants that are not set, in words.
    unset: Option<String>,
    length: Option<Duration>,
    stats: Duration,
    signals: EndSignals,
}

enum End {
    /// Its user, or `--for`.
    Asked,
    /// The kernel, or the scheduler itself.
    Exited(SchedulerExit),
}

pub(super) fn load(cli: &Cli, args: &LoadArgs) -> Result<ExitCode, Failure> {
    let given = one_variant(&args.set)?.settings;
    let profiles = read_profiles(args.profile.as_slice(), &[&args.sched])?;
    for profile in &profiles {
        profile.check(&args.sched, &given)?;
    }
    let topology = host_topology();
    let profile = profiles.first().map(|profile| (profile, &topology));
    let scheduler = SchedulerObject::find(&args.sched, profile)?;
    let mut settings = scheduler.settings.clone();
    settings.extend(given);
    settings.extend(at_settings(&args.at)?);
    let mut writes = resize_writes(&scheduler);
    writes.extend(global_writes(&scheduler.object, &settings, &topology)?);
    writes.sort_by_key(|write| write.at_ns);
    let time = |flag, text: &str| match parse_time(flag, text)? {
        0 => Err(Failure::new(format_args!("{flag} 0 leaves nothing to see"))),
        ns => Ok(Duration::from_nanos(ns)),
    };
    let unset = scheduler.left_at_zero(&settings);
    let (name, setup) = (scheduler.label.clone(), scheduler.setup.clone());
    let session = Session {
        cli,
        scheduler,
        job: SchedulerJob { name, writes, setup },
        unset,
        length: args.length.as_deref().map(|text| time("--for", text)).transpose()?,
        stats: time("--stats", &args.stats)?,
        signals: EndSignals::hold().map_err(|e| Failure::io("<signals>", &e))?,
    };
    session.run()
}

impl Session<'_> {
    fn run(&self) -> Result<ExitCode, Failure> {
        let name = &self.scheduler.label;
        let mut watch = Watch::new(self);
        let mut restarts = 0;
        let end = loop {
            let mut attached = self.attach()?;
            if restarts == 0 {
                // The kernel's verifier may have taken seconds: all times count from here.
                watch.start = Instant::now();
                self.say(&format!("{name} is in charge of this machine; Ctrl-C gives it back"));
            }
            match self.stay(&mut attached, &mut watch)? {
                End::Exited(exit) if asks_for_restart(&exit) && restarts < RESTARTS_MAX => {
                    drop(attached);
                    restarts += 1;
                    self.say(&format!("{name}: {}: {}; attached again", exit.reason, exit.message));
                }
                End::Asked => break attached.detach(),
                End::Exited(exit) => {
                    attached.detach();
                    break exit;
                }
            }
        };
        self.finish(&end, watch)
    }

    fn attach(&self) -> Result<Attached, Failure> {
        Attached::attach(&self.job, &self.scheduler.bytes)
            .map_err(|error| Failure::new(error).help_if(self.unset.as_ref()))
    }

    /// Watches until it ends. A signal is seen at once.
    fn stay(&self, attached: &mut Attached, watch: &mut Watch) -> Result<End, Failure> {
        watch.attached(attached, &self.job.writes);
        loop {
            let elapsed = watch.start.elapsed();
            if self.length.is_some_and(|length| elapsed >= length) {
                return Ok(End::Asked);
            }
            let change = watch.next_change(&self.job.writes);
            let programs = attached.has_each_second().then_some(watch.next_second);
            let next = [Some(watch.next_row), self.length, change, programs];
            let until = next.into_iter().flatten().min().unwrap_or(WATCH);
            let pause = until.saturating_sub(elapsed).min(WATCH);
            if self.signals.wait(pause).is_some() {
                return Ok(End::Asked);
            }
            if let Some(exit) = attached.exited() {
                return Ok(End::Exited(exit));
            }
            watch.change(attached, &self.job.writes)?;
            watch.second(attached)?;
            watch.look(self, attached)?;
        }
    }

    fn finish(&self, exit: &SchedulerExit, watch: Watch) -> Result<ExitCode, Failure> {
        if let Some(state) = KernelState::read().filter(|state| !state.is_disabled()) {
            return Err(Failure::new(format_args!(
                "the kernel has not taken its own scheduler back: sched_ext is `{}`",
                state.state
            ))
            .help("`echo S > /proc/sysrq-trigger` removes a scheduler by force"));
        }
        if self.cli.format != Format::Table {
            let mut document = Document::new(format!("{} in charge", self.scheduler.label));
            document.set("scheduler", "exit_kind", Cell::known(exit.kind, Cell::count));
            document.set("scheduler", "exit_code", Cell::known(exit.code, Cell::Int));
            document.set("scheduler", "exit_reason", Cell::text(&exit.reason));
            document.set("scheduler", "exit_message", Cell::text(&exit.message));
            document.tables.push(watch.table());
            present::print(&document, self.cli)?;
        }
        let message = if exit.message.is_empty() { "" } else { ": " };
        self.say(&format!(
            "{}: {}{message}{}; the kernel's own scheduler is in charge again",
            self.scheduler.label, exit.reason, exit.message
        ));
        Ok(ExitCode::from(exit.kind.map_or(0, exit_code)))
    }

    fn say(&self, text: &str) {
        if !self.cli.quiet {
            talk::say(format!("fairground: {text}"));
        }
    }
}

/// State of a scheduler, row by row.
struct Watch {
    /// When it was attached first.
    start: Instant,
    /// When the next row is due, after the start.
    next_row: Duration,
    /// When the programs are due that its loader runs each second, after the start.
    next_second: Duration,
    /// Switches of the whole machine when the last row was made, and when that was.
    before: Option<(u64, Duration)>,
    /// The next setting of `--at`.
    change: usize,
    /// Documented numbers of the scheduler, with their value when it was attached.
    variables: Vec<(Variable, Vec<u8>)>,
    rows: Vec<Row>,
}

/// A variable of the scheduler that explains itself.
struct Variable {
    global: Global,
    section: String,
}

struct Row {
    time: Duration,
    state: KernelState,
    switches_per_s: Option<f64>,
    /// Variables that the scheduler has changed since it was attached, `NAME=VALUE`.
    counters: Vec<String>,
}

impl Watch {
    fn new(session: &Session<'_>) -> Watch {
        let object = &session.scheduler.object;
        let shown = object
            .globals()
            .iter()
            .filter(|g| !g.read_only && is_number(&g.ty) && !tag(g, "doc:").is_empty());
        let variables = shown.map(|global| {
            let section = object.section_of(global).to_owned();
            (Variable { global: global.clone(), section }, Vec::new())
        });
        Watch {
            start: Instant::now(),
            next_row: session.stats,
            next_second: SECOND,
            before: None,
            change: initial(&session.job.writes),
            variables: variables.collect(),
            rows: Vec::new(),
        }
    }

    fn attached(&mut self, attached: &Attached, writes: &[GlobalWrite]) {
        // A scheduler that is attached again needs the changes that were made meanwhile.
        self.change = initial(writes);
        for (variable, value) in &mut self.variables {
            *value = variable.read(attached).unwrap_or_default();
        }
        self.before = switches().map(|count| (count, self.start.elapsed()));
    }

    fn next_change(&self, writes: &[GlobalWrite]) -> Option<Duration> {
        writes.get(self.change)?.at_ns.map(Duration::from_nanos)
    }

    /// Does what `--at` asked for, when its time has come.
    fn change(&mut self, attached: &mut Attached, writes: &[GlobalWrite]) -> Result<(), Failure> {
        while self.next_change(writes).is_some_and(|at| self.start.elapsed() >= at) {
            let write = &writes[self.change];
            attached.write(write).map_err(Failure::new)?;
            self.change += 1;
            // What its user changes is no counter.
            for (variable, value) in &mut self.variables {
                if variable.is_written_by(write) {
                    *value = variable.read(attached).unwrap_or_default();
                }
            }
        }
        Ok(())
    }

    /// At a full second: what its loader does then.
    fn second(&mut self, attached: &mut Attached) -> Result<(), Failure> {
        let time = self.start.elapsed();
        if time < self.next_second {
            return Ok(());
        }
        while self.next_second <= time {
            self.next_second += SECOND;
        }
        attached.each_second().map_err(Failure::new)
    }

    fn look(&mut self, session: &Session<'_>, attached: &Attached) -> Result<(), Failure> {
        let time = self.start.elapsed();
        if time < self.next_row {
            return Ok(());
        }
        while self.next_row <= time {
            self.next_row += session.stats;
        }
        let now = switches().map(|count| (count, time));
        let rate = |((from, then), (to, now)): ((u64, Duration), (u64, Duration))| {
            to.saturating_sub(from) as f64 / (now - then).as_secs_f64()
        };
        let switches_per_s = self.before.zip(now).map(rate).filter(|rate| rate.is_finite());
        self.before = now;
        let row = Row {
            time,
            state: KernelState::read().unwrap_or_default(),
            switches_per_s,
            counters: self.counters(attached),
        };
        if session.cli.format == Format::Table {
            return present::write_stdout(&row.line());
        }
        if self.rows.len() == ROWS_MAX {
            self.rows.remove(0);
        }
        self.rows.push(row);
        Ok(())
    }

    fn counters(&self, attached: &Attached) -> Vec<String> {
        let changed = self.variables.iter().filter_map(|(variable, before)| {
            let now = variable.read(attached).filter(|now| now != before)?;
            Some(format!("{}={}", variable.global.name, value_text(&variable.global, &now)))
        });
        changed.collect()
    }

    fn table(self) -> Table {
        Table::of("seconds", "In charge", self.rows)
            .column(Column::number_in("time", "s"), |row| Cell::float(row.time.as_secs_f64(), 1))
            .text("scheduler", |row| row.state.ops.clone().unwrap_or_default())
            .text("state", |row| row.state.state.clone())
            .column(Column::number_in("switches", "1/s"), |row| {
                Cell::known(row.switches_per_s, |rate| Cell::float(rate, 0))
            })
            .column(Column::number("rejected_tasks"), |row| {
                Cell::known(row.state.nr_rejected, Cell::count)
            })
            .text("counters", |row| row.counters.join(" "))
            .table()
    }
}

impl Variable {
    fn is_written_by(&self, write: &GlobalWrite) -> bool {
        let own = self.global.offset..self.global.offset + self.global.size;
        let overlaps = |patch: &Patch| {
            patch.offset < own.end && own.start < patch.offset + patch.bytes.len() as u64
        };
        self.section == write.section && write.patches.iter().any(overlaps)
    }

    fn read(&self, attached: &Attached) -> Option<Vec<u8>> {
        attached.read(&self.section, self.global.offset, self.global.size)
    }
}

impl Row {
    fn line(&self) -> String {
        let ops = self.state.ops.as_deref().unwrap_or("no scheduler");
        let rate = |rate: f64| format!("{rate:.0} switches/s");
        let switches = self.switches_per_s.map_or("switches not measured".to_owned(), rate);
        let rejected = self.state.nr_rejected;
        let rejected = rejected.map_or("not measured".to_owned(), |number| number.to_string());
        let mut line = format!(
            "{:8.1} s  {ops} {}  {switches:>20}  rejected tasks: {rejected}",
            self.time.as_secs_f64(),
            self.state.state
        );
        for counter in &self.counters {
            line += &format!("  {counter}");
        }
        line + "\n"
    }
}

/// How many settings come before the object is loaded; they are the first ones.
fn initial(writes: &[GlobalWrite]) -> usize {
    writes.iter().filter(|write| write.at_ns.is_none()).count()
}

/// Switches of all CPUs since the machine started (`ctxt` of `/proc/stat`).
fn switches() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    stat.lines().find_map(|line| line.strip_prefix("ctxt "))?.trim().parse().ok()
}
