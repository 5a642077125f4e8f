//! Parts whose tasks share nothing but the CPUs.

use super::draft::Draft;
use crate::model::{Op, Program};

/// The smallest load of a part that has hogs, thousandths of a CPU.
const HOG_PERMILLE_MIN: u64 = 500;

/// Tasks that always compute; under a small load, sleepers.
pub(super) fn hogs(draft: &mut Draft, permille: u64) {
    if permille < HOG_PERMILLE_MIN {
        return sleepers(draft, permille);
    }
    let count = draft.number(1, permille.div_ceil(1_000).clamp(1, 8));
    if draft.one_in(3) {
        let piece_ns = draft.magnitude(200_000, 50_000_000);
        let body = draft.work(piece_ns);
        draft.add_loop("hog", count, piece_ns, body);
    } else {
        draft.add("hog", count, 0, vec![Op::RunForever]);
    }
}

/// Tasks that compute and sleep, of equal length each time or of random ones.
pub(super) fn sleepers(draft: &mut Draft, permille: u64) {
    let count = draft.number(1, 6);
    let pace = draft.pace(permille / u64::from(count));
    let mut body = draft.work(pace.run_ns);
    body.push(draft.sleep(pace.sleep_ns));
    draft.add_loop("sleeper", count, pace.cycle_ns(), body);
}

/// Tasks that compute and sleep in short turns, then compute and sleep for long: two phases in turn.
pub(super) fn spurts(draft: &mut Draft, permille: u64) {
    let count = draft.number(1, 4);
    let (short, long) = (draft.pace(permille / u64::from(count)), draft.pace(permille));
    let turns = draft.prng.between(2, 20);
    let mut turn = draft.work(short.run_ns);
    turn.push(draft.sleep(short.sleep_ns));
    let mut body = vec![Op::Loop(Some(turns), turn)];
    body.extend(draft.work(long.run_ns));
    body.push(draft.sleep(long.sleep_ns));
    draft.add_loop("spurt", count, turns * short.cycle_ns() + long.cycle_ns(), body);
}

/// Tasks that compute at each expiry of a timer, their own or a shared one.
pub(super) fn periodic(draft: &mut Draft, permille: u64) {
    let count = draft.number(1, 4);
    let pace = draft.pace(permille / u64::from(count));
    let period_ns = pace.cycle_ns();
    let (relative, shared) = (draft.one_in(2), draft.one_in(4));
    let timer = draft.timer(period_ns, relative, shared);
    let own_ns = if draft.one_in(4) { period_ns + period_ns / 2 } else { period_ns };
    let mut body = vec![Op::TimerWait(timer, own_ns)];
    body.extend(draft.work(pace.run_ns));
    let mut program = Program::new();
    if draft.one_in(2) {
        program.push(Op::TimerStart(timer));
    }
    program.push(Op::Loop(None, body));
    draft.add("periodic", count, own_ns, program);
}

/// Tasks with a random sequence of computations, sleeps and yields.
pub(super) fn mixture(draft: &mut Draft, permille: u64) {
    let count = draft.number(1, 4);
    let (mut body, mut cycle_ns) = (Program::new(), 0);
    for _ in 0..draft.prng.between(2, 5) {
        let pace = draft.pace(permille / u64::from(count));
        let mut step = draft.work(pace.run_ns);
        match draft.prng.below(3) {
            0 => step.push(Op::Yield),
            _ => step.push(draft.sleep(pace.sleep_ns)),
        }
        let times = draft.prng.between(1, 4);
        cycle_ns += times * pace.cycle_ns();
        match times {
            1 => body.extend(step),
            times => body.push(Op::Loop(Some(times), step)),
        }
    }
    draft.add_loop("mixture", count, cycle_ns, body);
}

/// Tasks that end during the run, some with a sleep between two computations.
pub(super) fn jobs(draft: &mut Draft, permille: u64) {
    let count = draft.number(1, 6);
    let pace = draft.pace(permille / u64::from(count));
    let length_ns = draft.moment(5, 60);
    let times = (length_ns / pace.cycle_ns()).max(1);
    let mut body = draft.work(pace.run_ns);
    body.push(draft.sleep(pace.sleep_ns));
    let mut program = vec![Op::Loop(Some(times), body)];
    if draft.one_in(2) {
        program.push(Op::Exit);
    }
    draft.add("job", count, 0, program);
}
