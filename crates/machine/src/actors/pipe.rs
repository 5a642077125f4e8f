//! Pipes: which tasks wait for one, and which are woken (`fs/pipe.c` of Linux 7.2).
//!
//! * What a page holds, and when a pipe is full: [`fairground_workload::PipeRing`].
//! * A write to an empty pipe wakes a reader; a writer that has waited and leaves room wakes the next writer.
//! * A read that empties a page of a full pipe wakes a writer; a reader that has waited and leaves something wakes the
//!   next reader. (In Linux 5.5 to 6.14 each read of a full pipe wakes a writer, which goes back to sleep: not
//!   modelled.)
//!
//! All of these wake-ups are synchronous ones, and for one task each. Before Linux 5.5 they were for all: not modelled.

use super::engine::Actors;
use super::{Effect, Need};

impl Actors {
    pub(super) fn pipe_write(
        &mut self,
        id: u32,
        pipe: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        if self.shared.streams[pipe as usize].is_some() {
            return self.stream_write(id, pipe, bytes, effects);
        }
        let state = &mut self.shared.pipes[pipe as usize];
        let frame = self.actors[id as usize].frame();
        let (was_empty, has_waited) = (state.is_empty(), frame.has_waited);
        frame.progress += state.put(bytes - frame.progress, !has_waited);
        let (done, full) = (frame.progress == bytes, state.is_full());
        if was_empty && bytes > 0 {
            self.wake_first(self.shared.readers(pipe), effects);
        }
        if !done {
            return self.block(id, self.shared.writers(pipe));
        }
        if has_waited && !full {
            self.wake_first(self.shared.writers(pipe), effects);
        }
        self.finish(id)
    }

    pub(super) fn pipe_read(
        &mut self,
        id: u32,
        pipe: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        if self.shared.streams[pipe as usize].is_some() {
            return self.stream_read(id, pipe, bytes, effects);
        }
        let state = &mut self.shared.pipes[pipe as usize];
        if state.is_empty() && bytes > 0 {
            return self.block(id, self.shared.readers(pipe));
        }
        let taken = state.take(bytes);
        let more = !state.is_empty();
        self.owe_copy(id, taken.bytes);
        if taken.wakes_writer {
            self.wake_first(self.shared.writers(pipe), effects);
        }
        if more && self.actors[id as usize].frame().has_waited {
            self.wake_first(self.shared.readers(pipe), effects);
        }
        self.finish(id)
    }
}
