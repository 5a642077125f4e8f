//! Optional parts: the last events, the foot, the help, the tunables.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::Line;
use ratatui::widgets::{Block, Clear, Paragraph, Row, Table, TableState};

use super::text;
use crate::app::keys::KEYS;
use crate::app::{App, Mode};

pub(super) fn events(frame: &mut Frame<'_>, area: Rect, app: &App) {
    if area.height == 0 {
        return;
    }
    let block = Block::bordered().title("The last events");
    let room = usize::from(area.height.saturating_sub(2));
    let skipped = app.view.events.len().saturating_sub(room);
    let lines: Vec<Line<'_>> =
        app.view.events[skipped..].iter().map(|event| Line::from(text::plain(event))).collect();
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Number of lines of notes.
pub(super) fn notes_lines(app: &App) -> u16 {
    u16::try_from(app.view.notes.len()).unwrap_or(u16::MAX)
}

/// Notes on missing or doubtful data, one per line; if there are too few lines, the last one has the rest.
pub(super) fn notes(frame: &mut Frame<'_>, area: Rect, app: &App) {
    if area.height == 0 {
        return;
    }
    let alone = usize::from(area.height) - 1;
    let (alone, rest) = app.view.notes.split_at(alone.min(app.view.notes.len()));
    let lines = alone.iter().cloned().chain([rest.join("; ")]);
    let lines: Vec<Line<'_>> = lines.map(|line| Line::from(text::plain(&line))).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

/// A prompt, a message, or the keys.
pub(super) fn foot(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let line = match (&app.mode, &app.message) {
        (Mode::Jump(typed), _) => Line::from(format!("Go to time: {typed}█")).bold(),
        (Mode::Edit(chosen, typed), _) => {
            let name = app.tunables.get(*chosen).map_or("", |tunable| &tunable.name);
            Line::from(format!("{name} = {typed}█")).bold()
        }
        (_, Some(message)) => Line::from(text::plain(message)).bold(),
        (_, None) if app.about.is_real => {
            Line::from("space hold  < > sort  R reverse  e events  h help  q leave").dim()
        }
        (_, None) => Line::from(
            "space hold  + - speed  s step  g go to  t tunables  < > sort  e events  h help  q leave",
        )
        .dim(),
    };
    frame.render_widget(Paragraph::new(line), area);
}

pub(super) fn help(frame: &mut Frame<'_>, area: Rect) {
    let lines: Vec<Line<'_>> =
        KEYS.iter().map(|(key, what)| Line::from(format!(" {key:<14} {what}"))).collect();
    let height = (lines.len() as u16 + 2).min(area.height);
    let width = 84.min(area.width);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    frame.render_widget(Clear, place);
    frame.render_widget(Paragraph::new(lines).block(Block::bordered().title("Keys")), place);
}

pub(super) fn tunables(frame: &mut Frame<'_>, area: Rect, app: &App, chosen: usize) {
    let rows = app.tunables.iter().map(|tunable| {
        let what = tunable.fixed.as_ref().map_or(tunable.what.clone(), |_| {
            format!("(fixed when it is loaded) {}", tunable.what)
        });
        let cells = [&tunable.name, &tunable.value, &tunable.unit, &what];
        Row::new(cells.map(|cell| text::plain(cell)))
    });
    let widths = [
        Constraint::Length(26),
        Constraint::Length(14),
        Constraint::Length(7),
        Constraint::Fill(1),
    ];
    let table = Table::new(rows, widths)
        .block(Block::bordered().title("Tunables: ↑ ↓ choose, enter changes, esc closes"))
        .row_highlight_style(Style::new().reversed());
    frame.render_widget(Clear, area);
    let mut state = TableState::new().with_selected(chosen);
    frame.render_stateful_widget(table, area, &mut state);
}
