//! The objects that tasks share: `[[pipe]]` and the like, `[sockets.NAME]`, `[locks.NAME]`, `[cgroups.PATH]`.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{Parser, Section, Value};
use crate::bandwidth::Bandwidth;
use crate::cgroups::{self, Cgroup, path_problem};
use crate::diagnostic::suggestion;
use crate::limits::{
    AMOUNT_MAX, CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX, CGROUPS_MAX, OBJECTS_MAX,
    SOCKET_BUFFER_MIN, TASKS_MAX,
};
use crate::model::{
    Barrier, Carrier, Condition, Lock, LockKind, PIPE_CAPACITY_DEFAULT, Pipe, Queue,
    SOCKET_BUFFER_DEFAULT, Timer, Workload,
};
use crate::objects::ObjectKind;
use crate::spans::Spans;

/// A kind of `[[table]]`: its key, the kind of object that it makes, and the keys in it.
type Kind = (&'static str, ObjectKind, &'static [&'static str]);

impl<'s> Parser<'s> {
    /// Reads all objects into the workload.
    pub(super) fn objects(&mut self, top: &DeTable<'_>, all: &mut Workload, spans: &mut Spans) {
        let kind: Kind = ("pipe", ObjectKind::Pipe, &["name", "capacity", "socket"]);
        self.declare(top, kind, &mut all.pipes, spans, pipe);
        self.sockets(top, &mut all.pipes, spans);
        let kind: Kind = ("queue", ObjectKind::Queue, &["name", "capacity", "initial", "sync"]);
        self.declare(top, kind, &mut all.queues, spans, |section, name| Queue {
            name,
            capacity: section.amount("capacity", 0..=AMOUNT_MAX),
            initial: section.amount("initial", 0..=AMOUNT_MAX).unwrap_or(0),
            sync: section.truth("sync").unwrap_or(false),
        });
        // A semaphore is a queue without a limit, its value the number of messages.
        let kind: Kind = ("semaphore", ObjectKind::Queue, &["name", "initial"]);
        self.declare(top, kind, &mut all.queues, spans, |section, name| Queue {
            initial: section.amount("initial", 0..=AMOUNT_MAX).unwrap_or(0),
            ..Queue::unlimited(name)
        });
        let kind: Kind = ("condition", ObjectKind::Condition, &["name"]);
        self.declare(top, kind, &mut all.conditions, spans, |_, name| Condition { name });
        let kind: Kind = ("barrier", ObjectKind::Barrier, &["name", "count"]);
        self.declare(top, kind, &mut all.barriers, spans, |section, name| {
            section.require("count", "say how many tasks meet there, as in `count = 4`");
            let count = section.integer("count", 1..=TASKS_MAX as i64).unwrap_or(1);
            Barrier { name, count }
        });
        let kind: Kind = ("timer", ObjectKind::Timer, &["name", "period", "mode", "shared"]);
        self.declare(top, kind, &mut all.timers, spans, timer);
        self.periods.extend(all.timers.iter().map(|timer| timer.period_ns));
        self.locks(top, &mut all.locks, spans);
        all.cgroups = self.cgroups(top, spans);
    }

    fn declare<T>(
        &mut self,
        top: &DeTable<'_>,
        (key, object, keys): Kind,
        list: &mut Vec<T>,
        spans: &mut Spans,
        make: impl Fn(&mut Section<'_, 's, '_, '_>, String) -> T,
    ) {
        for (table, span) in self.tables(top, key, OBJECTS_MAX) {
            spans.push(object, span.clone());
            let mut section = Section::new(self, table, span, format!("[[{key}]]"), keys);
            let name = section.name();
            let made = make(&mut section, name.clone());
            self.names.entry(key).or_default().entry(name).or_insert(list.len());
            list.push(made);
        }
    }

    /// The entries of `[key.NAME]`, in the order of the file: name, location of the name, value. `already`: how many
    /// exist without being declared.
    fn entries<'t, 'i>(
        &mut self,
        top: &'t DeTable<'i>,
        key: &str,
        help: &str,
        (already, limit, limit_name): (usize, usize, &str),
    ) -> Vec<(&'t str, Range<usize>, Value<'t, 'i>)> {
        let Some(value) = top.get(key) else { return Vec::new() };
        let bad = |kind: &str| format!("`{key}` is {kind}, not a table");
        let Some(table) = self.table(value, bad, help) else { return Vec::new() };
        let count = table.len() + already;
        if count > limit {
            let message = format!("{count} {key} is more than {limit_name}, {limit}");
            self.problem(value.span(), message, "share them between tasks");
            return Vec::new();
        }
        let entries = table.iter().map(|(key, value)| (key.get_ref().as_ref(), key.span(), value));
        let mut entries: Vec<_> = entries.collect();
        entries.sort_by_key(|(_, span, _)| span.start);
        entries
    }

    /// The tables `[sockets.NAME]`, each a pair of connected sockets: two directed buffers, `NAME/a` for the writes of
    /// end a and `NAME/b` for those of end b.
    fn sockets(&mut self, top: &DeTable<'_>, pipes: &mut Vec<Pipe>, spans: &mut Spans) {
        let limit = (0, OBJECTS_MAX, "OBJECTS_MAX");
        for (name, span, value) in self.entries(top, "sockets", "write `[sockets.chat]`", limit) {
            let bad = |kind: &str| format!("the socket `{name}` is {kind}");
            let table = self.table(value, bad, format!("write `[sockets.{name}]`"));
            let buffer = table.and_then(|table| {
                let mut section =
                    Section::new(self, table, value.span(), "[sockets]".into(), &["buffer"]);
                section.amount("buffer", SOCKET_BUFFER_MIN..=AMOUNT_MAX)
            });
            let capacity = buffer.unwrap_or(SOCKET_BUFFER_DEFAULT);
            for end in ["a", "b"] {
                let name = format!("{name}/{end}");
                spans.push(ObjectKind::Pipe, span.clone());
                let names = self.names.entry("pipe").or_default();
                names.entry(name.clone()).or_insert(pipes.len());
                pipes.push(Pipe { name, capacity, carrier: Carrier::Socket });
            }
        }
    }

    fn locks(&mut self, top: &DeTable<'_>, locks: &mut Vec<Lock>, spans: &mut Spans) {
        let help = "write `[locks.table]` with `kind = \"mutex\"`";
        let limit = (0, OBJECTS_MAX, "OBJECTS_MAX");
        for (name, span, value) in self.entries(top, "locks", help, limit) {
            self.names.entry("lock").or_default().insert(name.to_owned(), locks.len());
            spans.push(ObjectKind::Lock, span);
            locks.push(self.lock(name, value));
        }
    }

    fn lock(&mut self, name: &str, value: Value<'_, '_>) -> Lock {
        let mut lock = Lock::new(name, LockKind::Mutex);
        let bad = |kind: &str| format!("the lock `{name}` is {kind}");
        let help = format!("write `[locks.{name}]` with `kind = \"mutex\"`");
        let Some(table) = self.table(value, bad, help) else { return lock };
        let keys = ["kind", "adaptive", "steal"];
        let mut section = Section::new(self, table, value.span(), "[locks]".into(), &keys);
        section.require("kind", "say what kind it is, as in `kind = \"mutex\"`");
        let kind = section.read("kind", |parser, value| {
            let word = parser.text("kind", value)?;
            let known = LockKind::ALL.into_iter().find(|(_, known)| *known == word);
            if known.is_none() {
                let help = suggestion(word, LockKind::ALL.iter().map(|(_, word)| *word), "kinds");
                parser.problem(value.span(), format!("there is no lock kind `{word}`"), help);
            }
            known
        });
        lock.kind = kind.map_or(lock.kind, |(kind, _)| kind);
        lock.adaptive = section.truth("adaptive").unwrap_or(lock.adaptive);
        lock.steal = section.truth("steal").unwrap_or(lock.steal);
        lock
    }

    /// All cgroups of the file, including undeclared parents.
    fn cgroups(&mut self, top: &DeTable<'_>, spans: &mut Spans) -> Vec<Cgroup> {
        let (mut declared, mut locations) = (Vec::new(), BTreeMap::new());
        let limit = (1, CGROUPS_MAX, "CGROUPS_MAX");
        for (path, span, value) in self.entries(top, "cgroups", "write `[cgroups.web]`", limit) {
            if let Some((message, help)) = path_problem(path) {
                self.problem(span, message, help);
                continue;
            }
            locations.insert(path, span);
            declared.push(self.cgroup(path, value));
        }
        let list = cgroups::tree(declared);
        let whole = top.get("cgroups").map_or(0..0, |value| value.span());
        for (index, cgroup) in list.iter().enumerate() {
            self.names.entry("cgroup").or_default().insert(cgroup.path.clone(), index);
            let location = locations.get(cgroup.path.as_str());
            spans.push(ObjectKind::Cgroup, location.unwrap_or(&whole).clone());
        }
        list
    }

    /// The table of one cgroup.
    fn cgroup(&mut self, path: &str, value: Value<'_, '_>) -> Cgroup {
        const KEYS: [&str; 3] = ["weight", "max", "idle"];
        let mut cgroup = Cgroup::new(path, CGROUP_WEIGHT_DEFAULT);
        let bad = |kind: &str| format!("the cgroup `{path}` is {kind}");
        let Some(table) = self.table(value, bad, format!("write `[cgroups.{path}]`")) else {
            return cgroup;
        };
        let nested = table.iter().find(|(key, value)| {
            !KEYS.contains(&key.get_ref().as_ref()) && matches!(value.get_ref(), DeValue::Table(_))
        });
        if let Some((key, _)) = nested {
            let message = format!("`{}` is a table inside the cgroup `{path}`", key.get_ref());
            let help = format!("a cgroup below it is [cgroups.\"{path}/{}\"]", key.get_ref());
            self.problem(key.span(), message, help);
            return cgroup;
        }
        let mut section = Section::new(self, table, value.span(), "[cgroups]".into(), &KEYS);
        let weight = section.integer("weight", 1..=i64::from(CGROUP_WEIGHT_MAX));
        cgroup.weight = weight.unwrap_or(cgroup.weight);
        cgroup.max = section.converted("max", Bandwidth::parse).unwrap_or(cgroup.max);
        cgroup.idle = section.truth("idle").unwrap_or(cgroup.idle);
        cgroup
    }
}

fn pipe(section: &mut Section<'_, '_, '_, '_>, name: String) -> Pipe {
    let (carrier, usual) = match section.truth("socket") {
        Some(true) => (Carrier::Socket, SOCKET_BUFFER_DEFAULT),
        _ => (Carrier::Pipe, PIPE_CAPACITY_DEFAULT),
    };
    let capacity = section.amount("capacity", 1..=AMOUNT_MAX).unwrap_or(usual);
    Pipe { name, capacity, carrier }
}

fn timer(section: &mut Section<'_, '_, '_, '_>, name: String) -> Timer {
    let mode = section.read("mode", |parser, value| {
        let mode = parser.text("mode", value)?;
        if mode != "relative" && mode != "absolute" {
            let message = format!("`{mode}` is not a timer mode");
            parser.problem(value.span(), message, "write \"relative\" or \"absolute\"");
        }
        Some(mode)
    });
    let shared = section.truth("shared").unwrap_or(false);
    section.require("period", "say how often it expires, as in `period = \"1ms\"`");
    let help = "write a period above 0, as in `period = \"1ms\"`";
    let period_ns = section.positive("period", "a timer cannot have the period 0", help);
    Timer { relative: mode == Some("relative"), shared, ..Timer::new(name, period_ns.unwrap_or(1)) }
}
