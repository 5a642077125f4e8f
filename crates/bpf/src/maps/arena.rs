//! Arenas: pages that a program takes and returns.

use super::{Kind, Maps};
use crate::region::PAGE;
use crate::trap::Trap;

/// Pages of an arena in use.
pub(super) struct Arena {
    pub(super) addr: u64,
    pub(super) used: Vec<bool>,
}

impl Maps {
    /// `bpf_arena_alloc_pages`: the first run of `pages` free pages, or 0.
    pub(crate) fn arena_alloc(&mut self, index: usize, pages: u32) -> Result<u64, Trap> {
        let map = self.map(index)?;
        let Kind::Arena(arena) = &mut map.kind else {
            return Err(map.refuse("allocate pages in"));
        };
        if pages == 0 {
            return Ok(0);
        }
        let pages = pages as usize;
        let mut run = 0;
        let end = arena.used.iter().position(|used| {
            run = if *used { 0 } else { run + 1 };
            run == pages
        });
        let Some(end) = end else { return Ok(0) };
        let at = end + 1 - pages;
        arena.used[at..at + pages].fill(true);
        Ok(arena.addr + at as u64 * PAGE)
    }

    /// `bpf_arena_free_pages`.
    pub(crate) fn arena_free(&mut self, index: usize, addr: u64, pages: u32) -> Result<(), Trap> {
        let map = self.map(index)?;
        let Kind::Arena(arena) = &mut map.kind else { return Err(map.refuse("free pages in")) };
        let first = (u64::from(addr as u32).wrapping_sub(arena.addr) / PAGE) as usize;
        for used in arena.used.iter_mut().skip(first).take(pages as usize) {
            *used = false;
        }
        Ok(())
    }
}
