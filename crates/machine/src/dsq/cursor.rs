//! Iterations over a dispatch queue that changes meanwhile (`bpf_iter_scx_dsq_*`).
//!
//! The kernel keeps its cursor as an element of the list. Here a cursor holds the task after which it is, and a task
//! that leaves passes its cursors to its neighbour: the same position, without an element that every walk must skip.

use super::{DispatchQueues, Dsq, DsqError, NONE, some};

/// Iterations that may be under way at the same time.
pub(crate) const MAX_CURSORS: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(super) struct CursorState {
    pub(super) dsq: u32,
    /// The task behind which the iteration stands; [`NONE`]: before the first.
    pub(super) at: u32,
    /// The queue's insertions when the iteration began.
    pub(super) limit: u32,
    pub(super) reverse: bool,
    /// It has met a task and not come to the end since: in the kernel, the cursor is an element of the list.
    pub(super) in_list: bool,
    pub(super) live: bool,
}

/// An iteration that is under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor(pub(crate) u32);

impl DispatchQueues {
    /// Begins an iteration over the tasks that are on the queue now, from the head or, reversed, from the tail. Tasks
    /// may come and go meanwhile: those that come later are not visited (`bpf_iter_scx_dsq_new`).
    pub(crate) fn begin(&mut self, dsq: Dsq, reverse: bool) -> Result<Cursor, DsqError> {
        let queue = &mut self.queues[dsq.0 as usize];
        let state = CursorState {
            dsq: dsq.0,
            at: NONE,
            limit: queue.seq,
            reverse,
            in_list: false,
            live: true,
        };
        let free = self.cursors.iter().position(|c| !c.live);
        let index = match free {
            Some(index) => {
                self.cursors[index] = state;
                index
            }
            None if self.cursors.len() < MAX_CURSORS => {
                self.cursors.push(state);
                self.cursors.len() - 1
            }
            None => return Err(DsqError::TooManyCursors),
        };
        queue.cursors += 1;
        Ok(Cursor(index as u32))
    }

    /// The next task of an iteration; at its end `None`, and the one after that begins anew, as in the kernel
    /// (`bpf_iter_scx_dsq_next`). `None` for a cursor that is not under way.
    pub(crate) fn advance(&mut self, cursor: Cursor) -> Option<u32> {
        let state = *self.cursors.get(cursor.0 as usize).filter(|c| c.live)?;
        let queue = &self.queues[state.dsq as usize];
        let mut at = state.at;
        let task = loop {
            at = match (at, state.reverse) {
                (NONE, false) => queue.head,
                (NONE, true) => queue.tail,
                (at, false) => self.nodes[at as usize].next,
                (at, true) => self.nodes[at as usize].prev,
            };
            if at == NONE || !younger(state.limit, self.nodes[at as usize].seq) {
                break at;
            }
        };
        let state = &mut self.cursors[cursor.0 as usize];
        state.at = task;
        state.in_list = task != NONE;
        some(task)
    }

    /// The queue of an iteration that is under way, and whether `task` is one of those that it visits: on that queue
    /// since before the iteration began (what `scx_bpf_dsq_move` checks).
    pub(crate) fn visits(&self, cursor: Cursor, task: u32) -> Option<(Dsq, bool)> {
        let state = self.cursors.get(cursor.0 as usize).filter(|c| c.live)?;
        let seen = self
            .nodes
            .get(task as usize)
            .is_some_and(|n| n.dsq == state.dsq && !younger(state.limit, n.seq));
        Some((Dsq(state.dsq), seen))
    }

    /// Ends an iteration (`bpf_iter_scx_dsq_destroy`).
    pub(crate) fn end(&mut self, cursor: Cursor) {
        if let Some(state) = self.cursors.get_mut(cursor.0 as usize).filter(|c| c.live) {
            state.live = false;
            self.queues[state.dsq as usize].cursors -= 1;
        }
    }

    /// Ends all iterations: for a program that was stopped during one.
    pub(crate) fn end_all(&mut self) {
        for index in 0..self.cursors.len() {
            self.end(Cursor(index as u32));
        }
    }
}

/// Whether `seq` was given out after `limit` (`u32_before`).
#[inline]
fn younger(limit: u32, seq: u32) -> bool {
    (limit.wrapping_sub(seq) as i32) < 0
}
