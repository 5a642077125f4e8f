//! The CPUs: utilization in the last interval, the running task, the number of waiting tasks.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;
use ratatui::widgets::Paragraph;

use super::text;
use crate::app::App;

/// Characters of a CPU, with the spaces after it.
const WIDTH: u16 = 50;
/// Characters of the bar of 100 %.
const BAR: usize = 10;
/// Characters of a task's name.
const NAME: usize = 16;

/// CPUs in a row.
fn across(width: u16) -> u16 {
    (width / WIDTH).max(1)
}

/// Lines for all of them.
pub(super) fn lines(app: &App, width: u16) -> u16 {
    u16::try_from(app.view.cpus.len().div_ceil(across(width).into())).unwrap_or(u16::MAX)
}

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let across = usize::from(across(area.width));
    let room = usize::from(area.height) * across;
    if room == 0 {
        return;
    }
    let count = app.view.cpus.len();
    // The last cell shows the number of CPUs without room.
    let shown = if count > room { room - 1 } else { count };
    let mut places: Vec<String> = (0..shown).map(|cpu| one(app, cpu)).collect();
    if shown < count {
        places.push(rest(app, shown));
    }
    let lines: Vec<Line<'_>> =
        places.chunks(across).map(|line| Line::from(line.concat())).collect();
    frame.render_widget(Paragraph::new(lines), area);
}

fn one(app: &App, cpu: usize) -> String {
    let view = &app.view;
    let busy = view.recent.cpus.get(cpu).and_then(|metrics| metrics.run_percent());
    let filled = (busy.unwrap_or(0.0) / 100.0 * BAR as f64).round() as usize;
    let bar = format!("{}{}", "|".repeat(filled.min(BAR)), " ".repeat(BAR - filled.min(BAR)));
    let now = view.cpus[cpu];
    let name = match now.running {
        None => "?".to_owned(),
        Some(task) if task.is_idle() => "idle".to_owned(),
        Some(task) => {
            view.tasks.get(task.index() - 1).map_or("?".to_owned(), |task| task.1.clone())
        }
    };
    let name: String = text::plain(&name).chars().take(NAME).collect();
    let queue = if now.queue == 0 { String::new() } else { format!("+{}", now.queue) };
    format!("{cpu:>4} [{bar}] {:>5} {name:<NAME$} {queue:<7}  ", text::percent(busy))
}

/// The CPUs without room, in one cell.
fn rest(app: &App, from: usize) -> String {
    let cpus = &app.view.cpus[from..];
    let busy = cpus.iter().filter(|cpu| cpu.running.is_some_and(|task| !task.is_idle())).count();
    let waiting: u64 = cpus.iter().map(|cpu| cpu.queue).sum();
    format!(" … and {} more: {busy} busy, {waiting} wait", cpus.len())
}
