//! Parts whose tasks wait for each other's locks, notifications and arrivals.

use super::draft::Draft;
use crate::model::{LockKind, Op};

/// Locks that a process can have and hold while it sleeps.
const EXCLUSIVE: [LockKind; 2] = [LockKind::Mutex, LockKind::RtMutex];

/// Tasks that compute in turns under one lock, some under a second one inside it, some asleep while they hold it.
pub(super) fn shared(draft: &mut Draft, permille: u64) {
    let count = draft.number(2, 6);
    let pace = draft.pace(permille / u64::from(count));
    let kind = draft.pick(&EXCLUSIVE);
    let outer = draft.lock(kind);
    let inside_percent = draft.prng.between(5, 80);
    let inside_ns = pace.run_ns * inside_percent / 100;
    let mut body = draft.work(pace.run_ns - inside_ns);
    body.push(Op::Lock(outer));
    if draft.one_in(4) {
        let kind = draft.pick(&EXCLUSIVE);
        let inner = draft.lock(kind);
        body.extend(draft.work(inside_ns / 2));
        body.push(Op::Lock(inner));
        body.extend(draft.work(inside_ns / 2));
        body.push(Op::Unlock(inner));
    } else {
        body.extend(draft.work(inside_ns));
    }
    if draft.one_in(5) {
        body.push(draft.sleep(inside_ns));
    }
    body.push(Op::Unlock(outer));
    body.push(draft.sleep(pace.sleep_ns));
    draft.add_loop("holder", count, pace.cycle_ns(), body);
}

/// Readers and writers of an rwlock.
pub(super) fn readers(draft: &mut Draft, permille: u64) {
    let (readers, writers) = (draft.number(1, 5), draft.number(1, 2));
    let lock = draft.lock(LockKind::RwLock);
    let each = permille / u64::from(readers + writers);
    for (name, count, take) in
        [("reader", readers, Op::ReadLock(lock)), ("writer", writers, Op::WriteLock(lock))]
    {
        let pace = draft.pace(each);
        let mut body = draft.work(pace.run_ns / 2);
        body.push(take);
        body.extend(draft.work(pace.run_ns / 2));
        body.push(Op::Unlock(lock));
        body.push(draft.sleep(pace.sleep_ns));
        draft.add_loop(name, count, pace.cycle_ns(), body);
    }
}

/// Tasks that wait for a condition, and one that notifies one or all of them.
pub(super) fn condition(draft: &mut Draft, permille: u64) {
    let waiters = draft.number(1, 5);
    let pace = draft.pace(permille / u64::from(waiters));
    let kind = draft.pick(&EXCLUSIVE);
    let (lock, condition) = (draft.lock(kind), draft.condition());
    let mut wait = vec![Op::Lock(lock), Op::ConditionWait(condition, lock)];
    wait.extend(draft.work(pace.run_ns / 4));
    wait.push(Op::Unlock(lock));
    wait.extend(draft.work(pace.run_ns / 2));
    let mut notify = draft.work(pace.run_ns / 4);
    notify.push(Op::Lock(lock));
    notify.push(match draft.one_in(2) {
        true => Op::Notify(condition),
        false => Op::NotifyAll(condition),
    });
    notify.push(Op::Unlock(lock));
    notify.push(draft.sleep(pace.sleep_ns));
    draft.add_loop("waiter", waiters, pace.cycle_ns(), wait);
    draft.add_loop("notifier", 1, pace.cycle_ns(), notify);
}

/// Workers that meet after each round; one of two groups may also sleep in it.
pub(super) fn barrier(draft: &mut Draft, permille: u64) {
    let workers = draft.number(2, 6);
    let pace = draft.pace(permille / u64::from(workers));
    let barrier = draft.barrier(workers);
    let leaders = draft.prng.below(2) as u32;
    let mut work = draft.work(pace.run_ns);
    work.push(Op::Barrier(barrier));
    if leaders > 0 {
        let mut lead = draft.work(pace.run_ns);
        lead.push(draft.sleep(pace.sleep_ns));
        lead.push(Op::Barrier(barrier));
        draft.add_loop("leader", leaders, pace.cycle_ns(), lead);
    }
    draft.add_loop("worker", workers - leaders, pace.cycle_ns(), work);
}
