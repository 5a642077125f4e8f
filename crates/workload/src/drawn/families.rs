//! Parts whose tasks fork and signal.

use super::draft::Draft;
use crate::model::{Op, Role};

/// A parent that forks children and waits for them, again and again; some children fork, too, or signal the parent.
pub(super) fn forks(draft: &mut Draft, permille: u64) {
    let children = draft.number(1, 4);
    let pace = draft.pace(permille);
    let each_ns = pace.run_ns / u64::from(children + 1);
    let mut child = draft.work(each_ns);
    if draft.one_in(3) {
        child.push(draft.sleep(pace.sleep_ns / 4));
        child.extend(draft.work(each_ns / 4));
    }
    if draft.one_in(4) {
        let work = draft.work(each_ns / 2);
        let grandchild = draft.add_forked("grandchild", 1, work);
        // One for each child; the first is counted.
        draft.tasks += children - 1;
        child.extend([Op::Fork(grandchild), Op::WaitChildren]);
    }
    let signals = draft.one_in(4);
    if signals {
        child.push(Op::Signal(Role::Parent));
    }
    let forked = draft.add_forked("child", children, child);
    let mut body = vec![Op::Fork(forked)];
    body.extend(draft.work(each_ns));
    body.push(Op::WaitChildren);
    body.push(draft.sleep(pace.sleep_ns));
    let parent = draft.add_loop("parent-task", 1, pace.cycle_ns(), body);
    if signals {
        draft.workload.tasks[parent].on_signal = draft.work(each_ns / 4);
    }
}

/// Tasks that sleep until they are signalled, and one that signals one or all of them.
pub(super) fn signals(draft: &mut Draft, permille: u64) {
    let receivers = draft.number(1, 5);
    let pace = draft.pace(permille / u64::from(receivers));
    let sleep = draft.sleep(4 * pace.cycle_ns());
    let receiver = draft.add_loop("receiver", receivers, 4 * pace.cycle_ns(), vec![sleep]);
    draft.workload.tasks[receiver].on_signal = draft.work(pace.run_ns);
    let role = match draft.one_in(2) {
        true => Role::All(receiver),
        false => Role::One(receiver, draft.prng.below(u64::from(receivers)) as u32),
    };
    let mut body = vec![draft.sleep(pace.sleep_ns), Op::Signal(role)];
    body.extend(draft.work(pace.run_ns / 4));
    draft.add_loop("signaller", 1, pace.cycle_ns(), body);
}
