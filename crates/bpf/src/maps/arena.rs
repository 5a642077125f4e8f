//! Arenas: pages that a program allocates and frees.

use crate::region::PAGE;

/// The pages of an arena.
pub(super) struct Arena {
    /// Guest address of page 0.
    pub(super) addr: u64,
    /// By page: whether it is in use.
    pub(super) used: Vec<bool>,
}

impl Arena {
    /// The guest address of the first run of `pages` free pages, now in use; 0 if there is none.
    pub(super) fn alloc(&mut self, pages: u32) -> u64 {
        if pages == 0 {
            return 0;
        }
        let pages = pages as usize;
        let mut run = 0;
        let end = self.used.iter().position(|used| {
            run = if *used { 0 } else { run + 1 };
            run == pages
        });
        let Some(end) = end else { return 0 };
        let first = end + 1 - pages;
        self.used[first..first + pages].fill(true);
        self.addr + first as u64 * PAGE
    }

    /// Frees `pages` pages from `addr` on; pages outside of the arena are ignored.
    pub(super) fn free(&mut self, addr: u64, pages: u32) {
        let first = (u64::from(addr as u32).wrapping_sub(self.addr) / PAGE) as usize;
        for used in self.used.iter_mut().skip(first).take(pages as usize) {
            *used = false;
        }
    }
}
