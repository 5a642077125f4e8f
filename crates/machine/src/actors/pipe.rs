//! Pipes and sockets: which tasks wait for one, and which are woken (`fs/pipe.c` of Linux 7.2, `net/unix/af_unix.c` of
//! 6.12).
//!
//! * A write to an empty pipe wakes a reader; a writer that has waited and leaves room wakes the next writer.
//! * A read that empties a page of a full pipe wakes a writer; a reader that has waited and leaves something wakes the
//!   next reader. (In Linux 5.5 to 6.14 each read of a full pipe wakes a writer, which goes back to sleep: not
//!   modelled.)
//! * Each message into a socket wakes all readers that sleep (`sock_def_readable`). A read after which at most a
//!   quarter of the buffer is charged wakes all writers that sleep (`unix_write_space`).
//!
//! All of these wake-ups are synchronous ones. Those of a pipe are for one task each; before Linux 5.5 they were for
//! all: not modelled.

use super::actor::ListId;
use super::channel::Wakes;
use super::effect::{Effect, Need};
use super::state::Actors;

impl Actors {
    fn wake(&mut self, wakes: Wakes, list: ListId, effects: &mut Vec<Effect>) {
        if wakes == Wakes::None {
            return;
        }
        // Ends: no actor joins the list meanwhile.
        while self.wake_first(list, true, effects) && wakes == Wakes::All {}
    }

    pub(super) fn pipe_write(
        &mut self,
        id: u32,
        pipe: u32,
        bytes: u64,
        effects: &mut Vec<Effect>,
    ) -> Option<Need> {
        if let Some(need) = self.lock_pipe(id, pipe, self.write_ns(pipe, bytes)) {
            return Some(need);
        }
        let frame = self.actors[id as usize].frame();
        let has_waited = frame.has_waited;
        let channel = &mut self.shared.channels[pipe as usize];
        let written = channel.write(bytes - frame.progress, !has_waited);
        frame.progress += written.bytes;
        let done = frame.progress == bytes;
        self.unlock_pipe(id, pipe, effects);
        self.wake(written.wakes, self.shared.readers(pipe), effects);
        if !done {
            return self.block(id, self.shared.writers(pipe));
        }
        self.call_returns(id, bytes);
        if has_waited && written.wakes_next {
            self.wake_first(self.shared.writers(pipe), true, effects);
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
        if let Some(need) = self.lock_pipe(id, pipe, 0) {
            return Some(need);
        }
        let channel = &mut self.shared.channels[pipe as usize];
        if channel.is_empty() && bytes > 0 {
            self.unlock_pipe(id, pipe, effects);
            return self.block(id, self.shared.readers(pipe));
        }
        let read = channel.read(bytes);
        self.unlock_pipe(id, pipe, effects);
        self.owe_copy(id, read.bytes, read.messages);
        self.call_returns(id, read.bytes);
        self.wake(read.wakes, self.shared.writers(pipe), effects);
        if read.wakes_next && self.actors[id as usize].frame().has_waited {
            self.wake_first(self.shared.readers(pipe), true, effects);
        }
        self.finish(id)
    }
}
