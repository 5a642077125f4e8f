//! The head: the run, its time, the machine's figures.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;

use super::text;
use crate::app::App;

/// Its number of lines.
pub(super) const LINES: u16 = 3;

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, app: &App) {
    let about = &app.about;
    let first = Line::from(vec![
        Span::styled(text::plain(&about.what), Style::new().bold()),
        Span::raw(" under "),
        Span::styled(text::plain(&about.scheduler), Style::new().bold()),
        Span::raw(format!("   {}", text::plain(&about.made))),
    ]);
    frame.render_widget(Paragraph::new(vec![first, clock(app), figures(app)]), area);
}

/// Time and speed.
fn clock(app: &App) -> Line<'static> {
    let mut spans = vec![Span::raw(format!("at {}", text::clock(app.view.now_ns)))];
    if let Some(length_ns) = app.about.length_ns {
        spans.push(Span::raw(format!(" of {}", text::time(length_ns))));
    }
    let state = match (&app.view.ended, app.goal_ns, app.is_paused) {
        (Some(why), ..) => format!("ENDED: {}", text::plain(why)),
        (None, Some(goal_ns), _) => format!("goes to {}", text::clock(goal_ns)),
        (None, None, true) => "HELD".to_owned(),
        (None, None, false) if app.about.is_real => "live".to_owned(),
        (None, None, false) => "runs".to_owned(),
    };
    spans.push(Span::raw("   "));
    spans.push(Span::styled(state, Style::new().bold()));
    if !app.about.is_real {
        spans.push(Span::raw(format!("   speed {}", app.speed)));
    }
    Line::from(spans)
}

/// The machine in the last interval.
fn figures(app: &App) -> Line<'static> {
    let recent = &app.view.recent;
    let machine = &recent.machine;
    let per_s =
        |value: Option<f64>| value.map_or_else(text::unknown, |value| format!("{value:.0}"));
    let mut line = format!(
        "{} to {}: {} switches/s  {} wake-ups/s  {} migrations/s",
        text::time(recent.start_ns),
        text::time(recent.end_ns),
        per_s(machine.switches_per_s()),
        per_s(machine.wakeups_per_s()),
        per_s(machine.migrations_per_s()),
    );
    if let Some(jain) = machine.jain_index {
        line += &format!("  fairness {jain:.3}");
    }
    if let Some(insns) = machine.policy.and_then(|policy| policy.switch.mean()) {
        line += &format!("  {insns:.0} insns/switch");
    }
    Line::from(line)
}
