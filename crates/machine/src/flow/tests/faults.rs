//! Tests of the checker: one injected fault is detected soon, by the invariant for it.

use fairground_trace::{EventKind, TaskId, TaskState};
use fairground_workload::{CpuList, Op, TaskSpec, Workload};

use super::{MS, core_only, run, sleep, task, workload};
use crate::kernel::Slot;
use crate::{Invariant, Machine, MachineConfig, MachineError, Violation};

fn machine(cpus: u32, workload: &Workload) -> Machine {
    let mut config = MachineConfig::new(cpus);
    config.check = true;
    Machine::new(&config, &core_only(), &[], workload).expect("a machine")
}

/// Two hogs on CPU 0, another on CPU 1, a sleeper on CPU 2, a task that waits for a message.
fn load() -> Workload {
    let on = |cpu: u32, spec: TaskSpec| TaskSpec { cpus: Some(CpuList(vec![(cpu, cpu)])), ..spec };
    let mut workload = workload(vec![
        on(0, task("hog", 2, vec![Op::RunForever])),
        on(2, task("sleeper", 1, vec![Op::Loop(None, vec![run(MS / 10), sleep(3 * MS)])])),
        on(1, task("other", 1, vec![Op::RunForever])),
        task("receiver", 1, vec![Op::Receive(0, 1)]),
    ]);
    workload.queues.push(fairground_workload::Queue::unlimited("queue"));
    workload
}

/// Runs for a while, breaks something, and goes on until that is seen.
fn seen(fault: impl FnOnce(&mut Machine)) -> Violation {
    let mut machine = machine(3, &load());
    machine.run_until(50 * MS + MS / 2).expect("all is well so far");
    fault(&mut machine);
    for step in 0..300 {
        match machine.run_until((51 + step) * MS) {
            Ok(()) => {}
            Err(MachineError::Invariant(violation)) => return *violation,
            Err(other) => panic!("{other}"),
        }
    }
    panic!("the checker missed it")
}

/// The task of a name that waits in a queue, or sleeps.
fn find(machine: &Machine, name: &str, queued: bool) -> Slot {
    let found = machine.kernel.tasks.slots().find(|slot| {
        machine.kernel.describe(*slot).starts_with(name)
            && machine.kernel.queues.queue_of(slot.0).is_some() == queued
    });
    found.unwrap_or_else(|| panic!("there is a {name}"))
}

/// The sleeper, once it is asleep.
fn asleep(machine: &mut Machine) -> Slot {
    let slot = find(machine, "sleeper", false);
    while machine.kernel.task(slot).state != TaskState::Sleeping {
        let soon = machine.now_ns() + MS / 20;
        machine.run_until(soon).expect("all is well so far");
    }
    slot
}

fn assert_is(violation: &Violation, invariant: Invariant, task: Option<&str>, cpu: Option<u32>) {
    assert_eq!(violation.invariant, invariant, "{violation}");
    assert!(violation.time_ns >= 50 * MS, "{violation}");
    if let Some(name) = task {
        assert!(violation.task.as_ref().is_some_and(|t| t.starts_with(name)), "{violation}");
    }
    if cpu.is_some() {
        assert_eq!(violation.cpu, cpu, "{violation}");
    }
}

#[test]
fn a_lost_task() {
    let violation = seen(|machine| {
        let slot = find(machine, "hog", true);
        machine.kernel.queues.remove(slot.0);
    });
    assert_is(&violation, Invariant::TaskLost, Some("hog"), Some(0));
}

#[test]
fn a_task_in_two_places() {
    let violation = seen(|machine| {
        let slot = machine.kernel.cpus[0].curr().expect("a hog runs");
        let local = machine.kernel.cpus[1].local;
        machine.kernel.queues.push_back(local, slot.0).expect("it takes it");
    });
    assert_is(&violation, Invariant::TwoPlaces, Some("hog"), None);
}

#[test]
fn a_sleeper_in_a_queue() {
    let violation = seen(|machine| {
        let slot = find(machine, "receiver", false);
        // The queue's own functions say so, too.
        machine.kernel.checker.touch(slot.0);
        let local = machine.kernel.cpus[0].local;
        machine.kernel.queues.push_back(local, slot.0).expect("it takes it");
    });
    assert_is(&violation, Invariant::TwoPlaces, Some("receiver"), None);
}

#[test]
fn a_timer_that_is_forgotten() {
    let violation = seen(|machine| {
        let slot = asleep(machine);
        machine.kernel.cancel_sleep(slot);
    });
    assert_is(&violation, Invariant::LostWakeup, Some("sleeper"), None);
    assert!(violation.to_string().contains("its timer is not set"), "{violation}");
}

#[test]
fn a_count_that_is_off() {
    let violation = seen(|machine| machine.kernel.cpus[1].miscount());
    assert_is(&violation, Invariant::Count, None, Some(1));
    let violation = seen(|machine| machine.kernel.busy.clear(0));
    assert_is(&violation, Invariant::Count, None, Some(0));
}

#[test]
fn a_task_where_it_may_not_run() {
    let violation = seen(|machine| {
        let slot = machine.kernel.cpus[0].curr().expect("a hog runs");
        let only = Box::new(crate::cpuset::CpuMask::one(1));
        machine.kernel.tasks[slot].allowed = Some(only);
    });
    assert_is(&violation, Invariant::Affinity, Some("hog"), Some(0));
}

#[test]
fn a_switch_that_did_not_happen() {
    let violation = seen(|machine| {
        let prev = machine.kernel.current(1);
        let kind = EventKind::Switch { prev, prev_state: TaskState::Runnable, next: TaskId::IDLE };
        let now_ns = machine.kernel.clock.now_ns();
        machine.kernel.clock.move_to(now_ns + 1);
        machine.kernel.emit(0, 0, kind);
    });
    assert_is(&violation, Invariant::TwoPlaces, Some("other"), Some(0));
}

#[test]
fn time_that_is_lost() {
    let violation = seen(|machine| machine.kernel.cpus[0].time.lose_ns());
    assert_is(&violation, Invariant::CpuTime, None, Some(0));
    let violation = seen(|machine| {
        let slot = find(machine, "sleeper", false);
        machine.kernel.tasks[slot].sum_exec_ns += 1;
    });
    assert_is(&violation, Invariant::TaskTime, Some("sleeper"), None);
}

/// A hog that waits though another CPU rests: the bound is the test's.
#[test]
fn a_cpu_that_rests_while_a_task_waits() {
    let mut machine = machine(3, &load());
    machine.run_until(50 * MS).expect("all is well so far");
    // The two hogs share CPU 0; the other CPU's tasks go to sleep. The hogs may run there now, and are not told.
    for slot in machine.kernel.tasks.slots() {
        machine.kernel.tasks[slot].allowed = None;
    }
    machine.idle_bound_ns = Some(5 * MS);
    machine.kernel.checker.next_idle_look_ns = 0;
    let idle_since = machine.kernel.clock.now_ns();
    machine.kernel.checker.audit.cpus[1] =
        crate::check::OnCpu { task: TaskId::IDLE, since_ns: idle_since };
    let error = machine.run_until(60 * MS).expect_err("a task waits for 20 ms");
    let MachineError::Invariant(violation) = &error else { panic!("{error}") };
    assert_is(violation, Invariant::WorkConservation, Some(""), None);
    assert!(error.to_string().contains("the scheduler does not keep its promise"), "{error}");
    assert!(violation.time_ns <= 57 * MS, "{violation}");
}
