//! Draws the state. It reads no clock and no source: the same state gives the same characters.

mod cpus;
mod head;
mod panels;
mod tasks;
pub(crate) mod text;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout};

use crate::app::{App, Mode};

/// Lines of the last events.
const EVENTS_LINES: u16 = 10;
/// CPUs take at most one of this many lines of the screen.
const CPUS_PART: u16 = 3;
/// Notes take at most one of this many lines of the screen.
const NOTES_PART: u16 = 4;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, app: &App) {
    let area = frame.area();
    let cpus = cpus::lines(app, area.width).min(area.height / CPUS_PART).max(1);
    let events = if app.shows_events { EVENTS_LINES.min(area.height / 3) } else { 0 };
    let notes = panels::notes_lines(app).min(area.height / NOTES_PART);
    let heights = [
        Constraint::Length(head::LINES),
        Constraint::Length(cpus),
        Constraint::Min(2),
        Constraint::Length(events),
        Constraint::Length(notes),
        Constraint::Length(1),
    ];
    let [head_area, cpus_area, tasks_area, events_area, notes_area, foot_area] =
        Layout::vertical(heights).areas(area);
    head::draw(frame, head_area, app);
    cpus::draw(frame, cpus_area, app);
    tasks::draw(frame, tasks_area, app);
    panels::events(frame, events_area, app);
    panels::notes(frame, notes_area, app);
    panels::foot(frame, foot_area, app);
    match &app.mode {
        Mode::Help => panels::help(frame, area),
        Mode::Tunables(chosen) | Mode::Edit(chosen, _) => {
            panels::tunables(frame, tasks_area, app, *chosen);
        }
        Mode::Tasks | Mode::Jump(_) => {}
    }
}
