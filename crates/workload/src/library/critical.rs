//! Tasks that contend for one lock: the example of the mail of 2006.

use super::parts::{COUNT_MAX, looping, mark, seconds};
use super::spec::{Call, Entry, parameter};
use crate::diagnostic::suggestion;
use crate::model::{Lock, LockKind, Op, Workload};

/// The entry `critical`.
pub(super) const CRITICAL: Entry = Entry {
    name: "critical",
    arguments: "TASKS",
    summary: "TASKS that alternately work and hold the one lock that all share, for ever",
    source: "the mail of December 2006 on PREEMPT_RT: \"128 threads\" that need one lock",
    limits: "one lock, and nothing else that is shared; no line of memory moves between caches when the lock does",
    parameters: &[
        parameter("work", "0s..40us", "computing without the lock, fixed or from..to"),
        parameter("hold", "0s..4us", "computing with it"),
        parameter("kind", "spin", "of the lock: mutex, spin, rt_mutex or rt_spin"),
    ],
    build: critical,
};

fn critical(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", 1..=COUNT_MAX);
    let (work, hold) = (call.duration("work"), call.duration("hold"));
    let kinds = LockKind::ALL.into_iter().filter(|(kind, _)| *kind != LockKind::RwLock);
    let piece = call.setting("kind");
    let known = kinds.clone().find(|(_, word)| *word == piece.text);
    if known.is_none() {
        let message = format!("there is no lock kind `{}`", piece.text);
        let help = suggestion(piece.text, kinds.map(|(_, word)| word), "kinds");
        call.problem(piece.span, message, help);
    }
    let kind = known.map_or(LockKind::Spin, |(kind, _)| kind);
    let program = vec![Op::Run(work), Op::Lock(0), Op::Run(hold), Op::Unlock(0), mark("section")];
    let description = format!("{count} tasks that need one lock");
    Workload {
        locks: vec![Lock::new("lock", kind)],
        ..seconds(1, description, vec![looping("task", count, program)])
    }
}
