//! Dispatch queues.
//!
//! All queues of a machine share one arena with one node per task, for a task is on one queue at most. Each queue is a
//! doubly linked list in dispatch order; tasks that are ordered by vtime are also in a tree whose in-order walk is that
//! list (`dispatch_enqueue` in `kernel/sched/ext.c` of Linux 6.12 links both, too). The tree is a treap: its shape
//! follows from a fixed hash of the task's number, so that insertion and removal cost O(log n) on average whatever the
//! vtimes are, and equal histories give equal trees. The first task is the list's head: O(1).

mod cursor;

use std::collections::BTreeMap;

use cursor::CursorState;
pub(crate) use cursor::{Cursor, MAX_CURSORS};

const NONE: u32 = u32::MAX;

/// User queue numbers below this are found by an index, others in a tree.
const DIRECT_IDS: u64 = 4096;

/// The target of a dispatch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DsqRef {
    /// The local queue of a CPU.
    Local(u32),
    /// The global queue of a node.
    Global(u32),
    /// A queue that the program made, with its identifier.
    User(Dsq, u64),
}

/// A queue of the arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Dsq(pub(crate) u32);

/// The rule that an insertion broke. The task is queued anyway, as in the kernel, which then ejects the scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum MixedOrder {
    /// A FIFO insertion found tasks that are ordered by vtime.
    #[error("already had PRIQ-enqueued tasks")]
    FifoOnPriq,
    /// An insertion by vtime found FIFO tasks only.
    #[error("already had FIFO-enqueued tasks")]
    PriqOnFifo,
}

/// Why a user queue cannot be created or destroyed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum DsqError {
    /// There is a queue of that number.
    #[error("a queue of that number exists")]
    Exists,
    /// There is no queue of that number.
    #[error("no queue has that number")]
    Missing,
    /// Tasks are still on it.
    #[error("attempting to destroy in-use dsq")]
    InUse,
    /// [`MAX_CURSORS`] iterations are under way.
    #[error("more than {MAX_CURSORS} iterations over dispatch queues at the same time")]
    TooManyCursors,
}

/// A task's place, in one cache line.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Node {
    vtime: u64,
    prev: u32,
    next: u32,
    left: u32,
    right: u32,
    parent: u32,
    dsq: u32,
    seq: u32,
    on_tree: bool,
}

const FREE: Node = Node {
    vtime: 0,
    prev: NONE,
    next: NONE,
    left: NONE,
    right: NONE,
    parent: NONE,
    dsq: NONE,
    seq: 0,
    on_tree: false,
};

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    root: u32,
    len: u32,
    /// Counts insertions; wraps, as the kernel's does.
    seq: u32,
    /// Iterations under way.
    cursors: u32,
    live: bool,
}

const EMPTY: Queue =
    Queue { head: NONE, tail: NONE, root: NONE, len: 0, seq: 0, cursors: 0, live: true };

/// All dispatch queues of a machine.
#[derive(Clone, Debug, Default)]
pub(crate) struct DispatchQueues {
    nodes: Vec<Node>,
    queues: Vec<Queue>,
    free: Vec<u32>,
    cursors: Vec<CursorState>,
    direct: Vec<u32>,
    sparse: BTreeMap<u64, u32>,
    /// By node.
    globals: Vec<Dsq>,
}

/// `a` comes before `b` on a clock that wraps (`time_before64`).
#[inline]
pub(crate) fn before(a: u64, b: u64) -> bool {
    (a.wrapping_sub(b) as i64) < 0
}

/// The heap order of the treap: a fixed hash of the task's number (the finalizer of MurmurHash3).
#[inline]
fn rank(task: u32) -> u32 {
    let mut h = task ^ (task >> 16);
    h = h.wrapping_mul(0x85eb_ca6b);
    h = (h ^ (h >> 13)).wrapping_mul(0xc2b2_ae35);
    h ^ (h >> 16)
}

impl DispatchQueues {
    /// Without queues; initial capacity for `tasks` tasks.
    pub(crate) fn new(tasks: usize) -> DispatchQueues {
        DispatchQueues { nodes: Vec::with_capacity(tasks), ..DispatchQueues::default() }
    }

    /// Creates a queue without a user number.
    pub(crate) fn create(&mut self) -> Dsq {
        if let Some(free) = self.free.pop() {
            self.queues[free as usize] = EMPTY;
            return Dsq(free);
        }
        self.queues.push(EMPTY);
        Dsq(self.queues.len() as u32 - 1)
    }

    /// Creates the global queue of the next node (`global_dsqs`).
    pub(crate) fn create_global(&mut self) {
        let dsq = self.create();
        self.globals.push(dsq);
    }

    /// The global queue of a node.
    #[inline]
    pub(crate) fn global(&self, node: u32) -> Dsq {
        self.globals[node as usize]
    }

    /// Creates the user queue of a number (`scx_bpf_create_dsq`).
    pub(crate) fn create_user(&mut self, id: u64) -> Result<Dsq, DsqError> {
        if self.user(id).is_some() {
            return Err(DsqError::Exists);
        }
        let dsq = self.create();
        if id < DIRECT_IDS {
            if self.direct.len() <= id as usize {
                self.direct.resize(id as usize + 1, NONE);
            }
            self.direct[id as usize] = dsq.0;
        } else {
            self.sparse.insert(id, dsq.0);
        }
        Ok(dsq)
    }

    /// The user queue of a number.
    #[inline]
    pub(crate) fn user(&self, id: u64) -> Option<Dsq> {
        let found = if id < DIRECT_IDS {
            self.direct.get(id as usize).copied().filter(|dsq| *dsq != NONE)
        } else {
            self.sparse.get(&id).copied()
        };
        found.map(Dsq)
    }

    /// The number of a user queue; `None`: it has none.
    pub(crate) fn user_id(&self, dsq: Dsq) -> Option<u64> {
        let direct = self.direct.iter().position(|known| *known == dsq.0);
        let sparse = || self.sparse.iter().find(|(_, known)| **known == dsq.0).map(|(id, _)| *id);
        direct.map(|id| id as u64).or_else(sparse)
    }

    /// Destroys the user queue of a number (`scx_bpf_destroy_dsq`); iterations over it end.
    pub(crate) fn destroy_user(&mut self, id: u64) -> Result<(), DsqError> {
        let dsq = self.user(id).ok_or(DsqError::Missing)?;
        if self.queues[dsq.0 as usize].len > 0 {
            return Err(DsqError::InUse);
        }
        if id < DIRECT_IDS {
            self.direct[id as usize] = NONE;
        } else {
            self.sparse.remove(&id);
        }
        self.queues[dsq.0 as usize].live = false;
        self.cursors.iter_mut().filter(|c| c.dsq == dsq.0).for_each(|c| c.live = false);
        self.free.push(dsq.0);
        Ok(())
    }

    /// Prefetches a task's place in a queue.
    #[inline]
    pub(crate) fn prefetch(&self, task: u32) {
        if let Some(node) = self.nodes.get(task as usize) {
            fairground_bpf::prefetch(node);
        }
    }

    /// Tasks on the queue.
    #[inline]
    pub(crate) fn len(&self, dsq: Dsq) -> u32 {
        self.queues[dsq.0 as usize].len
    }

    /// Whether no task is on the queue.
    #[inline]
    pub(crate) fn is_empty(&self, dsq: Dsq) -> bool {
        self.len(dsq) == 0
    }

    /// The task that is next to be dispatched.
    #[inline]
    pub(crate) fn first(&self, dsq: Dsq) -> Option<u32> {
        some(self.queues[dsq.0 as usize].head)
    }

    /// The task behind a queued one.
    #[inline]
    pub(crate) fn next(&self, task: u32) -> Option<u32> {
        some(self.nodes.get(task as usize)?.next)
    }

    /// The queue that a task is on.
    #[inline]
    pub(crate) fn queue_of(&self, task: u32) -> Option<Dsq> {
        some(self.nodes.get(task as usize)?.dsq).map(Dsq)
    }

    /// Whether a task is ordered by vtime in its queue.
    pub(crate) fn is_by_vtime(&self, task: u32) -> bool {
        self.nodes.get(task as usize).is_some_and(|node| node.on_tree)
    }

    /// Appends a task. The task must be on no queue.
    #[inline]
    pub(crate) fn push_back(&mut self, dsq: Dsq, task: u32) -> Result<(), MixedOrder> {
        let tail = self.queues[dsq.0 as usize].tail;
        self.link_fifo(dsq, task, tail)
    }

    /// Prepends a task. The task must be on no queue.
    #[inline]
    pub(crate) fn push_front(&mut self, dsq: Dsq, task: u32) -> Result<(), MixedOrder> {
        self.link_fifo(dsq, task, NONE)
    }

    fn link_fifo(&mut self, dsq: Dsq, task: u32, after: u32) -> Result<(), MixedOrder> {
        let mixed = self.queues[dsq.0 as usize].root != NONE;
        self.adopt(dsq, task, 0);
        self.link(dsq, task, after);
        if mixed { Err(MixedOrder::FifoOnPriq) } else { Ok(()) }
    }

    /// Inserts a task after all whose vtime is not after its own. The task must be on no queue.
    pub(crate) fn insert_vtime(
        &mut self,
        dsq: Dsq,
        task: u32,
        vtime: u64,
    ) -> Result<(), MixedOrder> {
        let queue = self.queues[dsq.0 as usize];
        self.adopt(dsq, task, vtime);
        self.nodes[task as usize].on_tree = true;
        if queue.root == NONE {
            self.queues[dsq.0 as usize].root = task;
            self.link(dsq, task, NONE);
            return if queue.len > 0 { Err(MixedOrder::PriqOnFifo) } else { Ok(()) };
        }
        let (mut at, mut went_left) = (queue.root, false);
        let mut child = at;
        while child != NONE {
            at = child;
            let node = &self.nodes[at as usize];
            went_left = before(vtime, node.vtime);
            child = if went_left { node.left } else { node.right };
        }
        // The in-order neighbour of a new leaf is its parent.
        let parent = &mut self.nodes[at as usize];
        let after = if went_left {
            parent.left = task;
            parent.prev
        } else {
            parent.right = task;
            at
        };
        self.nodes[task as usize].parent = at;
        self.link(dsq, task, after);
        self.rise(dsq, task);
        Ok(())
    }

    /// Takes a task off its queue; `None` when it is on none.
    #[inline]
    pub(crate) fn remove(&mut self, task: u32) -> Option<Dsq> {
        let dsq = self.queue_of(task)?;
        let index = dsq.0 as usize;
        if self.nodes[task as usize].on_tree {
            self.unhang(dsq, task);
        }
        let Node { prev, next, .. } = self.nodes[task as usize];
        if self.queues[index].cursors > 0 {
            for cursor in self.cursors.iter_mut().filter(|c| c.live && c.at == task) {
                cursor.at = if cursor.reverse { next } else { prev };
            }
        }
        match prev {
            NONE => self.queues[index].head = next,
            prev => self.nodes[prev as usize].next = next,
        }
        match next {
            NONE => self.queues[index].tail = prev,
            next => self.nodes[next as usize].prev = prev,
        }
        self.queues[index].len -= 1;
        self.nodes[task as usize] = FREE;
        Some(dsq)
    }

    fn adopt(&mut self, dsq: Dsq, task: u32, vtime: u64) {
        if self.nodes.len() <= task as usize {
            self.nodes.resize(task as usize + 1, FREE);
        }
        assert!(
            self.nodes[task as usize].dsq == NONE,
            "task {task} is on a dispatch queue already"
        );
        let queue = &mut self.queues[dsq.0 as usize];
        queue.seq = queue.seq.wrapping_add(1);
        queue.len += 1;
        self.nodes[task as usize] = Node { vtime, dsq: dsq.0, seq: queue.seq, ..FREE };
    }

    #[inline]
    fn link(&mut self, dsq: Dsq, task: u32, after: u32) {
        let queue = &mut self.queues[dsq.0 as usize];
        let next = match after {
            NONE => std::mem::replace(&mut queue.head, task),
            after => std::mem::replace(&mut self.nodes[after as usize].next, task),
        };
        match next {
            NONE => queue.tail = task,
            next => self.nodes[next as usize].prev = task,
        }
        let node = &mut self.nodes[task as usize];
        (node.prev, node.next) = (after, next);
    }

    /// Rotates a new leaf up until the heap order of the ranks holds.
    fn rise(&mut self, dsq: Dsq, task: u32) {
        loop {
            let parent = self.nodes[task as usize].parent;
            if parent == NONE || rank(parent) <= rank(task) {
                return;
            }
            self.rotate_up(dsq, task);
        }
    }

    /// Exchanges a task with its parent, keeping the in-order walk.
    fn rotate_up(&mut self, dsq: Dsq, task: u32) {
        let parent = self.nodes[task as usize].parent;
        let above = self.nodes[parent as usize].parent;
        let inner = if self.nodes[parent as usize].left == task {
            let inner = std::mem::replace(&mut self.nodes[task as usize].right, parent);
            self.nodes[parent as usize].left = inner;
            inner
        } else {
            let inner = std::mem::replace(&mut self.nodes[task as usize].left, parent);
            self.nodes[parent as usize].right = inner;
            inner
        };
        if inner != NONE {
            self.nodes[inner as usize].parent = parent;
        }
        self.nodes[parent as usize].parent = task;
        self.replace_child(dsq, above, parent, task);
    }

    fn replace_child(&mut self, dsq: Dsq, above: u32, old: u32, new: u32) {
        match above {
            NONE => self.queues[dsq.0 as usize].root = new,
            above if self.nodes[above as usize].left == old => {
                self.nodes[above as usize].left = new
            }
            above => self.nodes[above as usize].right = new,
        }
        if new != NONE {
            self.nodes[new as usize].parent = above;
        }
    }

    /// Removes a task from the tree: rotates it below both children, then unlinks it.
    fn unhang(&mut self, dsq: Dsq, task: u32) {
        loop {
            let Node { left, right, parent, .. } = self.nodes[task as usize];
            let lift = match (left, right) {
                (NONE, only) | (only, NONE) => return self.replace_child(dsq, parent, task, only),
                (left, right) if rank(left) <= rank(right) => left,
                (_, right) => right,
            };
            self.rotate_up(dsq, lift);
        }
    }
}

#[inline]
fn some(index: u32) -> Option<u32> {
    (index != NONE).then_some(index)
}

#[cfg(test)]
mod tests;
