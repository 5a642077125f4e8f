//! Tasks that contend for one lock: the example of the mail of 2006.

use super::spec::Call;
use super::{COUNT_MAX, Entry, Parameter, group, independent, lock};
use crate::diagnostic::suggestion;
use crate::model::{Duration, LockKind, Op, Workload};

/// The entry `critical`.
pub(super) const CRITICAL: Entry = Entry {
    name: "critical",
    arguments: "TASKS",
    summary: "TASKS that work and then need the one lock of all of them, in turn, for ever",
    source: "the mail of December 2006 on PREEMPT_RT: \"128 threads\" that need one lock",
    limits: "one lock, and nothing else that is shared; no line of memory moves between caches when the lock does",
    parameters: &[
        Parameter {
            name: "work",
            default: "0s..40us",
            help: "computing without the lock, fixed or from..to",
        },
        Parameter { name: "hold", default: "0s..4us", help: "computing with it" },
        Parameter {
            name: "kind",
            default: "spin",
            help: "of the lock: mutex, spin, rt_mutex or rt_spin",
        },
    ],
    build: critical,
};

fn critical(call: &mut Call<'_, '_>) -> Workload {
    let count = call.count("the number of tasks", COUNT_MAX);
    let work = call.duration_or("work", Duration::Uniform { low: 0, high: 40_000 });
    let hold = call.duration_or("hold", Duration::Uniform { low: 0, high: 4_000 });
    let kinds = LockKind::ALL.into_iter().filter(|(kind, _)| *kind != LockKind::RwLock);
    let mut kind = LockKind::Spin;
    if let Some(piece) = call.value("kind") {
        match kinds.clone().find(|(_, word)| *word == piece.text) {
            Some((known, _)) => kind = known,
            None => {
                let message = format!("there is no lock kind `{}`", piece.text);
                let help = suggestion(piece.text, kinds.map(|(_, word)| word), "kinds");
                call.problem(piece.span, message, help);
            }
        }
    }
    let section = [Op::Lock(0), Op::Run(hold), Op::Unlock(0), Op::Mark("section".to_owned())];
    let program = [Op::Run(work)].into_iter().chain(section).collect();
    let tasks = vec![group("task", count, vec![Op::Loop(None, program)])];
    let mut workload = independent(format!("{count} tasks that need one lock"), tasks);
    workload.locks = vec![lock("lock", kind)];
    workload.duration_ns = 1_000_000_000;
    workload
}
