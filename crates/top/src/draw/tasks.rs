//! The table of tasks. Where the screen is narrow, the last columns are left out.

use ratatui::Frame;
use ratatui::layout::{Constraint, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Cell, Row, Table};

use super::text;
use crate::app::{App, Column};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let columns = fitting(&Column::all(&app.view), area.width);
    let heading = columns.iter().map(|column| {
        let heading = Line::from(column.heading(&app.view).to_owned());
        let heading = if column.is_text() { heading } else { heading.right_aligned() };
        let chosen = *column == app.column;
        Cell::new(if chosen { heading.bold().underlined() } else { heading })
    });
    let room = usize::from(area.height.saturating_sub(1));
    let order = app.order();
    let shown = order.iter().skip(app.scrolled.min(order.len().saturating_sub(1))).take(room);
    let rows = shown.map(|task| {
        Row::new(columns.iter().map(|column| {
            let line = Line::from(text::plain(&column.cell(&app.view, *task)));
            Cell::new(Text::from(if column.is_text() { line } else { line.right_aligned() }))
        }))
    });
    let widths = columns.iter().map(|column| Constraint::Length(column.width()));
    let heading = Row::new(heading).style(Style::new().reversed());
    frame.render_widget(Table::new(rows, widths).header(heading).column_spacing(1), area);
}

/// The columns that fit.
fn fitting(columns: &[Column], width: u16) -> Vec<Column> {
    let mut left = width;
    let fits = |column: &&Column| {
        let fits = column.width() <= left;
        left = left.saturating_sub(column.width() + 1);
        fits
    };
    columns.iter().take_while(fits).copied().collect()
}
