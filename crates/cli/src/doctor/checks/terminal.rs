//! The terminal.

use super::super::{Check, Finding, World};

pub(in super::super) const TERMINAL: Check =
    Check { name: "terminal", test: terminal, boots: false };

fn terminal(world: &World) -> Finding {
    let remedy = "run it in a terminal that moves its cursor (TERM=xterm-256color)";
    match (&world.term, world.terminal) {
        (_, false) => Finding::not_measured("neither results nor talk go to a terminal now"),
        (None, true) => Finding::missing("TERM is not set", remedy),
        (Some(term), true) if term == "dumb" || term.is_empty() => {
            Finding::missing(format!("TERM={term}"), remedy)
        }
        (Some(term), true) => Finding::ready(term.clone()),
    }
}
