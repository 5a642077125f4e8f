//! A live view of a CPU scheduler, on a terminal.
//!
//! ```text
//! Source (a simulated run, a recording) ──look──► View ─┐
//! keys ──► App (display, speed) ────────────────────────┴─► draw ──► any ratatui backend
//! ```
//!
//! The caller provides a [`Source`]; a [`Follower`] makes a view of its events, with the figures of
//! [`fairground_analysis`] and none of its own. [`App`] is the state that keys change, [`draw`] draws both, and
//! [`show`] does so on a real terminal until the user quits. Only [`show`] reads a clock and uses the terminal.

mod app;
mod draw;
mod follow;
mod pace;
mod source;
mod terminal;
mod words;

pub use app::{App, Column};
pub use draw::draw;
pub use follow::Follower;
pub use pace::Speed;
pub use source::{About, Problem, Source, Tunable, View};
pub use terminal::show;
