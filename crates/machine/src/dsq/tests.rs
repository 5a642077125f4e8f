use proptest::prelude::*;

use super::*;

impl DispatchQueues {
    /// The task that is last to be dispatched.
    fn last(&self, dsq: Dsq) -> Option<u32> {
        some(self.queues[dsq.0 as usize].tail)
    }

    /// Whether the queued task is ordered by vtime.
    fn is_on_tree(&self, task: u32) -> bool {
        self.nodes.get(task as usize).is_some_and(|node| node.on_tree)
    }

    /// The tasks of a queue in dispatch order.
    fn iter(&self, dsq: Dsq) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.first(dsq), |task| self.next(*task))
    }

    /// Takes the first task off a queue.
    fn pop_front(&mut self, dsq: Dsq) -> Option<u32> {
        let task = self.first(dsq)?;
        self.remove(task);
        Some(task)
    }
}

/// The same queue as a plain list.
#[derive(Default)]
struct Model {
    list: Vec<(u32, u64, bool, u64)>,
    seq: u64,
}

impl Model {
    fn insert_at(&mut self, place: usize, task: u32, vtime: u64, by_vtime: bool) {
        self.seq += 1;
        self.list.insert(place, (task, vtime, by_vtime, self.seq));
    }

    fn tasks(&self) -> Vec<u32> {
        self.list.iter().map(|entry| entry.0).collect()
    }

    fn insert_vtime(&mut self, task: u32, vtime: u64) {
        let place =
            self.list.iter().position(|entry| before(vtime, entry.1)).unwrap_or(self.list.len());
        self.insert_at(place, task, vtime, true);
    }
}

/// The in-order walk of the tree is the list, children know their parents, and ranks fall along every path.
fn check_tree(queues: &DispatchQueues, dsq: Dsq) {
    fn walk(queues: &DispatchQueues, task: u32, parent: u32, out: &mut Vec<u32>) -> usize {
        if task == NONE {
            return 0;
        }
        let node = queues.nodes[task as usize];
        assert_eq!(node.parent, parent);
        assert!(parent == NONE || rank(parent) <= rank(task));
        let left = walk(queues, node.left, task, out);
        out.push(task);
        1 + left.max(walk(queues, node.right, task, out))
    }
    let mut walked = Vec::new();
    walk(queues, queues.queues[dsq.0 as usize].root, NONE, &mut walked);
    assert_eq!(
        walked,
        queues.iter(dsq).filter(|task| queues.is_on_tree(*task)).collect::<Vec<_>>()
    );
}

fn check(queues: &DispatchQueues, dsq: Dsq, model: &Model) {
    let forward: Vec<u32> = queues.iter(dsq).collect();
    assert_eq!(forward, model.tasks());
    assert_eq!(queues.len(dsq) as usize, model.list.len());
    assert_eq!(
        (queues.first(dsq), queues.last(dsq)),
        (forward.first().copied(), forward.last().copied())
    );
    let mut backward: Vec<u32> =
        std::iter::successors(queues.last(dsq), |task| some(queues.nodes[*task as usize].prev))
            .collect();
    backward.reverse();
    assert_eq!(backward, forward);
    check_tree(queues, dsq);
}

/// Times around the point where the clock wraps, so close to each other that "before" is an order.
fn vtimes() -> impl Strategy<Value = u64> {
    (0u64..40).prop_map(|n| u64::MAX.wrapping_sub(20).wrapping_add(n))
}

proptest! {
    #[test]
    fn a_vtime_queue_is_a_stable_sort(steps in prop::collection::vec((0u32..3, 0u32..40, vtimes()), 1..300)) {
        let mut queues = DispatchQueues::new(4);
        let (dsq, mut model) = (queues.create(), Model::default());
        for (what, task, vtime) in steps {
            if what == 0 {
                let found = queues.remove(task);
                prop_assert_eq!(found.is_some(), model.list.iter().any(|entry| entry.0 == task));
                model.list.retain(|entry| entry.0 != task);
            } else if queues.queue_of(task).is_none() {
                prop_assert_eq!(queues.insert_vtime(dsq, task, vtime), Ok(()));
                model.insert_vtime(task, vtime);
            }
            check(&queues, dsq, &model);
        }
        while let Some(task) = queues.pop_front(dsq) {
            prop_assert_eq!(task, model.list.remove(0).0);
        }
        prop_assert!(model.list.is_empty());
    }

    #[test]
    fn a_fifo_queue_is_a_deque(steps in prop::collection::vec((0u32..4, 0u32..20), 1..200)) {
        let mut queues = DispatchQueues::new(4);
        let (dsq, mut model) = (queues.create(), Model::default());
        for (what, task) in steps {
            match (what, queues.queue_of(task)) {
                (0, _) => {
                    queues.remove(task);
                    model.list.retain(|entry| entry.0 != task);
                }
                (1, None) => {
                    prop_assert_eq!(queues.push_front(dsq, task), Ok(()));
                    model.insert_at(0, task, 0, false);
                }
                (_, None) => {
                    prop_assert_eq!(queues.push_back(dsq, task), Ok(()));
                    model.insert_at(model.list.len(), task, 0, false);
                }
                _ => {}
            }
            check(&queues, dsq, &model);
        }
    }

    /// The kernel's cursor is itself an element of the list; here the model keeps one there, too.
    #[test]
    fn iterations_see_what_the_kernels_see(
        steps in prop::collection::vec((0u32..4, 0u32..16, vtimes()), 1..200),
        reverse: bool,
    ) {
        const CURSOR: u32 = 1_000;
        let mut queues = DispatchQueues::new(4);
        let (dsq, mut model) = (queues.create(), Model::default());
        for task in 0..12 {
            queues.insert_vtime(dsq, task, u64::from(task * 7 % 5)).unwrap();
            model.insert_vtime(task, u64::from(task * 7 % 5));
        }
        let (cursor, limit) = (queues.begin(dsq, reverse).unwrap(), model.seq);
        for (what, task, vtime) in steps {
            match what {
                0 => {
                    queues.remove(task);
                    model.list.retain(|entry| entry.0 != task);
                }
                1 if queues.queue_of(task).is_none() => {
                    queues.insert_vtime(dsq, task, vtime).unwrap();
                    let place = model.list.iter().position(|e| e.0 != CURSOR && before(vtime, e.1));
                    // As the kernel: directly behind the predecessor, so before a cursor that stands behind that one.
                    let after = model.list[..place.unwrap_or(model.list.len())].iter().rposition(|e| e.0 != CURSOR);
                    model.insert_at(after.map_or(0, |p| p + 1), task, vtime, true);
                }
                1 => {}
                _ => prop_assert_eq!(queues.advance(cursor), model_next(&mut model, CURSOR, limit, reverse)),
            }
            let seen: Vec<u32> = queues.iter(dsq).collect();
            prop_assert_eq!(seen, model.tasks().into_iter().filter(|t| *t != CURSOR).collect::<Vec<_>>());
        }
        queues.end(cursor);
        prop_assert_eq!(queues.advance(cursor), None);
    }
}

fn model_next(model: &mut Model, cursor: u32, limit: u64, reverse: bool) -> Option<u32> {
    let stands = model.list.iter().position(|entry| entry.0 == cursor);
    let visible = |entry: &&(u32, u64, bool, u64)| entry.0 != cursor && entry.3 <= limit;
    let found = if reverse {
        model.list[..stands.unwrap_or(model.list.len())].iter().rfind(visible).map(|entry| entry.0)
    } else {
        model.list[stands.map_or(0, |p| p + 1)..].iter().find(visible).map(|entry| entry.0)
    };
    model.list.retain(|entry| entry.0 != cursor);
    if let Some(task) = found {
        let place = model.list.iter().position(|entry| entry.0 == task)?;
        model.list.insert(if reverse { place } else { place + 1 }, (cursor, 0, false, 0));
    }
    found
}

#[test]
fn mixing_orders_is_reported_and_loses_no_task() {
    let mut queues = DispatchQueues::new(4);
    let dsq = queues.create();
    queues.push_back(dsq, 0).unwrap();
    assert_eq!(queues.insert_vtime(dsq, 1, 5), Err(MixedOrder::PriqOnFifo));
    assert_eq!(queues.insert_vtime(dsq, 2, 4), Ok(()), "the kernel looks at the first only");
    assert_eq!(queues.push_back(dsq, 3), Err(MixedOrder::FifoOnPriq));
    assert_eq!(queues.push_front(dsq, 4), Err(MixedOrder::FifoOnPriq));
    assert_eq!(queues.iter(dsq).collect::<Vec<_>>(), [4, 2, 1, 0, 3]);
    check_tree(&queues, dsq);
    (0..5).for_each(|task| assert_eq!(queues.remove(task), Some(dsq)));
    assert!(queues.is_empty(dsq));
    assert_eq!(queues.insert_vtime(dsq, 1, 5), Ok(()));
}

#[test]
fn user_queues_come_and_go() {
    let mut queues = DispatchQueues::new(0);
    for id in [0, 5, DIRECT_IDS, u64::MAX >> 1] {
        let dsq = queues.create_user(id).unwrap();
        assert_eq!(queues.user(id), Some(dsq));
        assert_eq!(queues.create_user(id), Err(DsqError::Exists));
        queues.push_back(dsq, 7).unwrap();
        assert_eq!(queues.destroy_user(id), Err(DsqError::InUse));
        queues.remove(7);
        let cursor = queues.begin(dsq, false).unwrap();
        assert_eq!(queues.destroy_user(id), Ok(()));
        assert_eq!(queues.advance(cursor), None);
        assert_eq!((queues.user(id), queues.destroy_user(id)), (None, Err(DsqError::Missing)));
    }
    assert_eq!(queues.queues.len(), 1, "the place of a queue that is gone is used again");
}

#[test]
fn iterations_are_limited_and_end() {
    let mut queues = DispatchQueues::new(0);
    let dsq = queues.create();
    let cursors: Vec<Cursor> =
        (0..MAX_CURSORS).map(|_| queues.begin(dsq, false).unwrap()).collect();
    assert_eq!(queues.begin(dsq, false), Err(DsqError::TooManyCursors));
    queues.end(cursors[3]);
    assert_eq!(queues.begin(dsq, true), Ok(cursors[3]));
    queues.end_all();
    assert_eq!(queues.queues[dsq.0 as usize].cursors, 0);
    queues.push_back(dsq, 1).unwrap();
    let cursor = queues.begin(dsq, false).unwrap();
    queues.push_back(dsq, 2).unwrap();
    assert_eq!(queues.visits(cursor, 1), Some((dsq, true)));
    assert_eq!(queues.visits(cursor, 2), Some((dsq, false)));
    assert_eq!((queues.advance(cursor), queues.advance(cursor)), (Some(1), None));
    queues.end(cursor);
    assert_eq!(queues.advance(cursor), None);
    assert_eq!(queues.queues[dsq.0 as usize].cursors, 0);
}
