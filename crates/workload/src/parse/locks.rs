//! Locks: the tables `[locks.NAME]`.

use super::fields::{Section, kind_of};
use super::{Parser, Value};
use crate::diagnostic::suggestion;
use crate::limits::OBJECTS_MAX;
use crate::model::{Lock, LockKind};
use crate::spans::Spans;

impl Parser<'_> {
    /// All locks of the file, in the order of the file.
    pub(super) fn locks(&mut self, value: Option<Value<'_, '_>>, spans: &mut Spans) -> Vec<Lock> {
        let Some(value) = value else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`locks` is {}, not a table", kind_of(value.get_ref()));
            self.problem(value.span(), message, "write `[locks.table]` with `kind = \"mutex\"`");
            return Vec::new();
        };
        if table.len() > OBJECTS_MAX {
            let message = format!("{} locks is more than OBJECTS_MAX, {OBJECTS_MAX}", table.len());
            self.problem(value.span(), message, "share them between tasks");
            return Vec::new();
        }
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut locks = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let name = key.get_ref().as_ref().to_owned();
            self.names.locks.insert(name.clone(), locks.len());
            spans.locks.push(key.span());
            locks.push(self.lock(name, value));
        }
        locks
    }

    fn lock(&mut self, name: String, value: Value<'_, '_>) -> Lock {
        let mut lock = Lock { name, kind: LockKind::Mutex, adaptive: true, steal: true };
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("the lock `{}` is {}", lock.name, kind_of(value.get_ref()));
            let help = format!("write `[locks.{}]` with `kind = \"mutex\"`", lock.name);
            self.problem(value.span(), message, help);
            return lock;
        };
        let keys = ["kind", "adaptive", "steal"];
        let mut section = Section::new(self, table, value.span(), "[locks]", &keys);
        if section.value("kind").is_none() {
            section.missing("kind", "say what kind it is, as in `kind = \"mutex\"`");
        }
        if let Some((word, span)) = section.text("kind") {
            match LockKind::ALL.iter().find(|(_, known)| *known == word) {
                Some((kind, _)) => lock.kind = *kind,
                None => {
                    let words = LockKind::ALL.iter().map(|(_, word)| *word);
                    let help = suggestion(word, words, "kinds");
                    let message = format!("there is no lock kind `{word}`");
                    section.parser.problem(span, message, help);
                }
            }
        }
        if let Some(adaptive) = section.truth("adaptive") {
            lock.adaptive = adaptive;
        }
        if let Some(steal) = section.truth("steal") {
            lock.steal = steal;
        }
        lock
    }
}
