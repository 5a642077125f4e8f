//! Parts whose tasks pass data or messages to each other.

use super::draft::Draft;
use crate::model::{Op, Program};

/// Two tasks that pass a message there and back through two pipes, the first one with a pause.
pub(super) fn ping_pong(draft: &mut Draft, permille: u64) {
    let pace = draft.pace(permille);
    let (there, back) = (draft.pipe(), draft.pipe());
    let bytes = draft.magnitude(1, 2_048);
    let half_ns = pace.run_ns / 2;
    let mut ping = draft.work(half_ns);
    ping.extend([Op::PipeWrite(there, bytes), Op::PipeRead(back, bytes)]);
    // Without a pause one of the two is always runnable.
    if !draft.one_in(4) {
        ping.push(draft.sleep(pace.sleep_ns));
    }
    let mut pong = vec![Op::PipeRead(there, bytes)];
    pong.extend(draft.work(half_ns));
    pong.push(Op::PipeWrite(back, bytes));
    draft.add_loop("ping", 1, pace.cycle_ns(), ping);
    draft.add_loop("pong", 1, pace.cycle_ns(), pong);
}

/// Writers that fill a pipe, and readers that empty it.
pub(super) fn stream(draft: &mut Draft, permille: u64) {
    let pipe = draft.pipe();
    let (writers, readers) = (draft.number(1, 4), draft.number(1, 2));
    let pace = draft.pace(permille / u64::from(writers));
    let bytes = draft.magnitude(64, 16_384);
    let half_ns = pace.run_ns / 2;
    let mut write = draft.work(half_ns);
    write.push(Op::PipeWrite(pipe, bytes));
    write.push(draft.sleep(pace.sleep_ns));
    let mut read = vec![Op::PipeRead(pipe, bytes)];
    read.extend(draft.work(half_ns));
    draft.add_loop("writer", writers, pace.cycle_ns(), write);
    draft.add_loop("reader", readers, pace.cycle_ns(), read);
}

/// Stages that hand data on, each with some work.
pub(super) fn chain(draft: &mut Draft, permille: u64) {
    let stages = draft.number(3, 6);
    let pace = draft.pace(permille);
    let each_ns = pace.run_ns / u64::from(stages);
    let bytes = draft.magnitude(1, 4_096);
    let mut from = draft.pipe();
    let mut first = draft.work(each_ns);
    first.push(Op::PipeWrite(from, bytes));
    first.push(draft.sleep(pace.sleep_ns));
    draft.add_loop("source", 1, pace.cycle_ns(), first);
    for _ in 2..stages {
        let to = draft.pipe();
        let mut stage = vec![Op::PipeRead(from, bytes)];
        stage.extend(draft.work(each_ns));
        stage.push(Op::PipeWrite(to, bytes));
        draft.add_loop("stage", 1, pace.cycle_ns(), stage);
        from = to;
    }
    let mut last = vec![Op::PipeRead(from, bytes)];
    last.extend(draft.work(each_ns));
    draft.add_loop("sink", 1, pace.cycle_ns(), last);
}

/// Clients that ask and wait for an answer, and the workers that answer.
pub(super) fn server(draft: &mut Draft, permille: u64) {
    let (clients, workers) = (draft.number(1, 6), draft.number(1, 3));
    let pace = draft.pace(permille / u64::from(clients));
    let (requests, answers) = (draft.queue(None, 0), draft.queue(None, 0));
    let at_once = draft.prng.between(1, 4) as u32;
    let mut client = vec![draft.sleep(pace.sleep_ns)];
    client.extend(draft.work(pace.run_ns / 4));
    match at_once {
        1 => client.push(Op::Send(requests)),
        times => client.push(Op::Loop(Some(u64::from(times)), vec![Op::Send(requests)])),
    }
    client.push(Op::Receive(answers, at_once));
    let mut worker = vec![Op::Receive(requests, 1)];
    worker.extend(draft.work(pace.run_ns * 3 / 4 / u64::from(at_once)));
    worker.push(Op::Send(answers));
    draft.add_loop("client", clients, pace.cycle_ns(), client);
    draft.add_loop("server", workers, pace.cycle_ns(), worker);
}

/// Producers and consumers with a queue between them, limited or not.
pub(super) fn producers(draft: &mut Draft, permille: u64) {
    let (producers, consumers) = (draft.number(1, 4), draft.number(1, 4));
    let pace = draft.pace(permille / u64::from(producers));
    let capacity = draft.pick(&[None, Some(1), Some(4), Some(64)]);
    let queue = draft.queue(capacity, 0);
    let together = draft.prng.between(1, 3) as u32;
    let mut produce = draft.work(pace.run_ns / 2);
    produce.extend((0..together).map(|_| Op::Send(queue)));
    produce.push(draft.sleep(pace.sleep_ns));
    let mut consume = vec![Op::Receive(queue, together)];
    consume.extend(draft.work(pace.run_ns / 2));
    draft.add_loop("producer", producers, pace.cycle_ns(), produce);
    draft.add_loop("consumer", consumers, pace.cycle_ns(), consume);
}

/// Tasks of which a semaphore lets a few compute at a time.
pub(super) fn semaphore(draft: &mut Draft, permille: u64) {
    let count = draft.number(2, 8);
    let pace = draft.pace(permille / u64::from(count));
    let slots = draft.prng.between(1, u64::from(count) - 1);
    let semaphore = draft.queue(None, slots);
    let mut body: Program = vec![Op::Receive(semaphore, 1)];
    body.extend(draft.work(pace.run_ns));
    body.push(Op::Send(semaphore));
    body.push(draft.sleep(pace.sleep_ns));
    draft.add_loop("visitor", count, pace.cycle_ns(), body);
}
