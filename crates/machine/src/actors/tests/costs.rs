//! What the operations of actors cost.

use fairground_workload::{Carrier, Op, Workload};

use super::toy::{State, Toy, group, mark, run, workload};
use crate::actors::{ActorId, Need};

/// The times of what marks a program leaves where system calls cost 100 ns, and these costs are set, ns.
fn priced(workload: &Workload, costs: &[(&str, u64)]) -> Vec<u64> {
    let mut toy = Toy::new(workload, 100, 8);
    for (name, ns) in costs {
        toy.actors.cost.set(name, *ns).unwrap();
    }
    toy.until(30_000).unwrap();
    toy.log.iter().filter(|(_, text)| text.contains(": ")).map(|(time_ns, _)| *time_ns).collect()
}

#[test]
fn a_message_costs_a_system_call_where_a_task_waits_for_it() {
    let costs = [("queue_ns", 3)];
    let alone = vec![Op::Send(0), mark("sent"), Op::Receive(0, 1), mark("got")];
    assert_eq!(priced(&workload(vec![group("a", 1, alone)]), &costs), [3, 6]);
    let mut w = workload(vec![group("r", 1, vec![Op::Receive(0, 1), run(1), mark("got")])]);
    w.tasks.push(group("s", 1, vec![run(500), Op::Send(0), mark("sent")]));
    // The receiver, woken at 600, takes the message in 3 and computes for 1.
    assert_eq!(priced(&w, &costs), [600, 604]);
}

#[test]
fn a_yield_has_a_cost_of_its_own() {
    let w = workload(vec![group("a", 1, vec![Op::Yield, mark("m")])]);
    assert_eq!(priced(&w, &[("yield_ns", 9)]), [9]);
}

#[test]
fn sockets_and_further_pages_cost_more_than_bytes() {
    let through = |carrier, bytes| {
        let program = vec![
            Op::PipeWrite(0, bytes),
            mark("written"),
            Op::PipeRead(0, bytes),
            run(1),
            mark("read"),
        ];
        let mut w = workload(vec![group("a", 1, program)]);
        w.pipes[0].carrier = carrier;
        w.pipes[0].capacity = 65_536;
        priced(&w, &[("copy_byte_ps", 1_000), ("pipe_page_ns", 7), ("socket_ns", 30)])
    };
    // The pipe keeps a page.
    assert_eq!(through(Carrier::Pipe, 10), [110, 221]);
    assert_eq!(through(Carrier::Pipe, 10_000), [10_114, 20_215]);
    // A message is allocated, and freed for half as much.
    assert_eq!(through(Carrier::Socket, 10), [140, 266]);
}

/// Writers that come at once, each with its own CPU.
fn writers(count: u32, carrier: Carrier) -> Workload {
    let mut w = workload(vec![group("w", count, vec![Op::PipeWrite(0, 10), mark("written")])]);
    (w.pipes[0].carrier, w.pipes[0].capacity) = (carrier, 65_536);
    w
}

/// Of a call of 100, 60 are with the mutex of the pipe: the writers have it one after the other.
#[test]
fn a_pipe_is_written_by_one_at_a_time() {
    let costs = [("pipe_lock_ns", 60)];
    assert_eq!(priced(&writers(3, Carrier::Pipe), &costs), [100, 160, 220]);
    assert_eq!(priced(&writers(3, Carrier::Pipe), &[]), [100, 100, 100]);
    assert_eq!(priced(&writers(3, Carrier::Socket), &costs), [100, 100, 100]);
    // A reader that finds the pipe empty does not keep it, and has paid for its call when there is something.
    let mut w = writers(1, Carrier::Pipe);
    w.tasks.insert(0, group("r", 1, vec![Op::PipeRead(0, 10), mark("read")]));
    w.tasks[1].program.insert(0, run(200));
    assert_eq!(priced(&w, &costs), [300, 300]);
}

/// The first that waits spins while the owner runs, and sleeps when it does not; the release wakes it.
#[test]
fn who_waits_for_the_mutex_of_a_pipe_sleeps_while_its_owner_does_not_run() {
    let mut toy = Toy::new(&writers(2, Carrier::Pipe), 100, 8);
    toy.actors.cost.set("pipe_lock_ns", 60).unwrap();
    toy.until(50).unwrap();
    assert_eq!(toy.states[1], State::Computing(None));
    assert_eq!(toy.actors.stop_spinning(ActorId(1)), Some(Need::BlockHard));
    toy.states[1] = State::Blocked(None);
    toy.until(1_000).unwrap();
    let log: Vec<&str> = toy.log.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(log[..2], ["w/0: written 0", "w/1: written 0"]);
    assert_eq!((toy.log[0].0, toy.log[1].0), (100, 160));
}
