//! What the operations of actors cost.

use fairground_workload::{Carrier, Op, Workload};

use super::toy::{Toy, group, mark, run, workload};

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
