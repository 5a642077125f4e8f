//! Arenas: pages that a program allocates and frees.

use crate::memory::Memory;
use crate::region::PAGE;
use crate::trap::Trap;

/// The pages of an arena.
pub(super) struct Arena {
    /// Guest address of page 0.
    addr: u64,
    /// By page: whether it is in use.
    used: Vec<bool>,
    /// No page before this one is free.
    first_free: usize,
    /// Pages that were never in use begin here: they are zero.
    fresh: usize,
}

impl Arena {
    /// An arena of so many pages from an address on, of which the first ones hold the object's variables.
    pub(super) fn new(addr: u64, pages: u64, own: u64) -> Arena {
        let used = (0..pages).map(|page| page < own).collect();
        Arena { addr, used, first_free: own as usize, fresh: own as usize }
    }

    /// The guest address of the first run of `pages` free pages, now in use and zero; 0 if there is none.
    pub(super) fn alloc(&mut self, memory: &Memory, pages: u32) -> Result<u64, Trap> {
        let Some(first) = self.free_run(pages as usize) else { return Ok(0) };
        let (end, addr) = (first + pages as usize, self.addr + first as u64 * PAGE);
        self.used[first..end].fill(true);
        if first == self.first_free {
            self.first_free = end;
        }
        for page in first..end.min(self.fresh) {
            memory.write(self.addr + page as u64 * PAGE, &[0; PAGE as usize])?;
        }
        self.fresh = self.fresh.max(end);
        Ok(addr)
    }

    fn free_run(&self, pages: usize) -> Option<usize> {
        let mut run = 0;
        let rest = self.used.get(self.first_free..).filter(|_| pages > 0)?;
        let end = rest.iter().position(|used| {
            run = if *used { 0 } else { run + 1 };
            run == pages
        })?;
        Some(self.first_free + end + 1 - pages)
    }

    /// Frees `pages` pages from `addr` on; pages outside of the arena are ignored.
    pub(super) fn free(&mut self, addr: u64, pages: u32) {
        let first = (u64::from(addr as u32).wrapping_sub(self.addr) / PAGE) as usize;
        for used in self.used.iter_mut().skip(first).take(pages as usize) {
            *used = false;
        }
        self.first_free = self.first_free.min(first);
    }
}
