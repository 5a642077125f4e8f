//! A live view of a CPU scheduler at work, on a terminal.
//!
//! ```text
//! Source (a simulated run, a recording) ──look──► View ─┐
//! keys ──► App (what is shown, how fast) ───────────────┴─► draw ──► any ratatui backend
//! ```
//!
//! Whoever has a run to show gives a [`Source`]; a [`Follower`] makes of its events what the view shows, with the figures of
//! [`fairground_analysis`] and none of its own. [`App`] is what the keys changed, [`draw`] makes a screen of both, and [`show`] does so on a
//! real terminal until somebody leaves. Only [`show`] reads a clock and touches the terminal.

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
