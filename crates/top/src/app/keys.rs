//! The action of each key.

use fairground_workload::parse_time;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

use super::{App, Column, Mode};
use crate::source::{Problem, Source};

/// Tasks that a page key scrolls.
const PAGE_TASKS: usize = 20;
/// Limit of the characters at a prompt.
const TYPED_MAX: usize = 64;

/// The keys, for the help.
pub(crate) const KEYS: [(&str, &str); 14] = [
    ("space", "hold, go on"),
    ("+  -", "twice, half as fast"),
    ("s", "one step: to the next event"),
    ("g", "go to a time (2.5s, 300ms); an earlier one begins the run again"),
    ("r", "begin again, with every change at its time"),
    ("t", "tunables and features of the scheduler: change one now"),
    ("tab", "the next of the schedulers, as far as this one"),
    ("<  >", "sort by another column"),
    ("R", "the other way round"),
    ("e", "the last events"),
    ("↑ ↓ PgUp PgDn", "scroll"),
    ("h  ?", "this help"),
    ("esc", "close what is open"),
    ("q  Ctrl-C", "leave"),
];

impl App {
    /// A key was pressed.
    pub fn press(&mut self, key: KeyEvent, source: &mut dyn Source) {
        self.message = None;
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            self.has_left = true;
            return;
        }
        let done = match std::mem::replace(&mut self.mode, Mode::Tasks) {
            Mode::Tasks => self.press_in_tasks(key.code, source),
            Mode::Help => Ok(()),
            Mode::Jump(text) => self.press_in_jump(key.code, text, source),
            Mode::Tunables(chosen) => self.press_in_tunables(key.code, chosen, source),
            Mode::Edit(chosen, text) => self.press_in_edit(key.code, chosen, text, source),
        };
        if let Err(problem) = done {
            self.message = Some(problem);
        }
    }

    fn press_in_tasks(&mut self, key: KeyCode, source: &mut dyn Source) -> Result<(), Problem> {
        match key {
            KeyCode::Char('q') => self.has_left = true,
            KeyCode::Char(' ' | 'p') => {
                self.is_paused = !self.is_paused;
                (self.goal_ns, self.goes_on) = (None, false);
            }
            KeyCode::Char('+' | '=') => self.change_speed(|speed| speed.faster())?,
            KeyCode::Char('-') => self.change_speed(|speed| speed.slower())?,
            KeyCode::Char('s') => self.step(source)?,
            KeyCode::Char('g') if self.about.is_real => return source.restart(),
            KeyCode::Char('g') => self.mode = Mode::Jump(String::new()),
            KeyCode::Char('r') => {
                source.restart()?;
                self.begun_again(source);
                self.look(source);
            }
            KeyCode::Char('t') => self.open_tunables(source)?,
            KeyCode::Tab => self.change_scheduler(source)?,
            KeyCode::Char('<') => self.move_column(-1),
            KeyCode::Char('>') => self.move_column(1),
            KeyCode::Char('R') => self.is_reversed = !self.is_reversed,
            KeyCode::Char('e') => self.shows_events = !self.shows_events,
            KeyCode::Char('h' | '?') => self.mode = Mode::Help,
            KeyCode::Up => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::PageUp => self.scroll(-(PAGE_TASKS as isize)),
            KeyCode::PageDown => self.scroll(PAGE_TASKS as isize),
            _ => {}
        }
        Ok(())
    }

    fn change_speed(
        &mut self,
        change: fn(crate::pace::Speed) -> crate::pace::Speed,
    ) -> Result<(), Problem> {
        if self.about.is_real {
            return Err("a real machine has its own pace".to_owned());
        }
        self.speed = change(self.speed);
        Ok(())
    }

    /// To the next event, which is shown.
    fn step(&mut self, source: &mut dyn Source) -> Result<(), Problem> {
        (self.is_paused, self.goal_ns) = (true, None);
        source.step()?;
        self.look(source);
        self.message = self.view.events.last().cloned();
        Ok(())
    }

    /// The run of the next scheduler, up to the time of the present one.
    fn change_scheduler(&mut self, source: &mut dyn Source) -> Result<(), Problem> {
        let now_ns = self.goal_ns.unwrap_or(source.now_ns());
        source.next_scheduler()?;
        if source.now_ns() > now_ns {
            source.restart()?;
        }
        self.begun_again(source);
        if source.now_ns() < now_ns {
            self.goal_ns = Some(now_ns);
            self.goes_on = !self.is_paused;
        }
        self.about = source.about();
        self.tunables = source.tunables();
        self.column = self.still_there(source);
        self.look(source);
        Ok(())
    }

    fn open_tunables(&mut self, source: &mut dyn Source) -> Result<(), Problem> {
        self.tunables = source.tunables();
        if self.tunables.is_empty() {
            return Err("there is nothing here that can be changed".to_owned());
        }
        self.mode = Mode::Tunables(0);
        Ok(())
    }

    /// The column of the same name, or the default one when another scheduler has no such numbers.
    fn still_there(&self, source: &dyn Source) -> Column {
        match self.column {
            Column::Own(number) if number >= source.view().number_names.len() => Column::Share,
            column => column,
        }
    }

    fn move_column(&mut self, by: isize) {
        let all = Column::all(&self.view);
        let at = all.iter().position(|column| *column == self.column).unwrap_or(0);
        self.column = all[at.saturating_add_signed(by).min(all.len() - 1)];
        self.scrolled = 0;
    }

    fn scroll(&mut self, by: isize) {
        let last = self.order().len().saturating_sub(1);
        self.scrolled = self.scrolled.saturating_add_signed(by).min(last);
    }

    fn press_in_jump(
        &mut self,
        key: KeyCode,
        text: String,
        source: &mut dyn Source,
    ) -> Result<(), Problem> {
        if key != KeyCode::Enter {
            if let Some(text) = typed(key, text) {
                self.mode = Mode::Jump(text);
            }
            return Ok(());
        }
        let goal_ns = parse_time(text.trim()).map_err(|error| {
            let help =
                if error.help.is_empty() { String::new() } else { format!(": {}", error.help) };
            format!("{}{help}", error.message)
        })?;
        if goal_ns < source.now_ns() {
            source.restart()?;
            self.begun_again(source);
            self.look(source);
        }
        if goal_ns > source.now_ns() {
            (self.goal_ns, self.goes_on) = (Some(goal_ns), false);
        }
        self.is_paused = true;
        Ok(())
    }

    fn press_in_tunables(
        &mut self,
        key: KeyCode,
        chosen: usize,
        source: &mut dyn Source,
    ) -> Result<(), Problem> {
        let last = self.tunables.len().saturating_sub(1);
        let chosen = chosen.min(last);
        self.mode = Mode::Tunables(chosen);
        match key {
            KeyCode::Esc | KeyCode::Char('q' | 't') => self.mode = Mode::Tasks,
            KeyCode::Up => self.mode = Mode::Tunables(chosen.saturating_sub(1)),
            KeyCode::Down => self.mode = Mode::Tunables((chosen + 1).min(last)),
            KeyCode::Enter | KeyCode::Char(' ') => {
                let Some(tunable) = self.tunables.get(chosen).cloned() else { return Ok(()) };
                if let Some(why) = tunable.fixed {
                    return Err(why);
                }
                match (tunable.unit.as_str(), tunable.value.as_str()) {
                    ("switch", "on") => self.set(source, chosen, "off")?,
                    ("switch", _) => self.set(source, chosen, "on")?,
                    _ => self.mode = Mode::Edit(chosen, tunable.value),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn press_in_edit(
        &mut self,
        key: KeyCode,
        chosen: usize,
        text: String,
        source: &mut dyn Source,
    ) -> Result<(), Problem> {
        self.mode = Mode::Tunables(chosen);
        if key == KeyCode::Enter {
            return self.set(source, chosen, text.trim());
        }
        if let Some(text) = typed(key, text) {
            self.mode = Mode::Edit(chosen, text);
        }
        Ok(())
    }

    fn set(&mut self, source: &mut dyn Source, chosen: usize, value: &str) -> Result<(), Problem> {
        let Some(name) = self.tunables.get(chosen).map(|tunable| tunable.name.clone()) else {
            return Ok(());
        };
        source.set(&name, value)?;
        self.look(source);
        self.tunables = source.tunables();
        self.message = Some(format!("{name}={value} from here on"));
        Ok(())
    }
}

/// The text of a prompt after another key; `None`: cancelled.
fn typed(key: KeyCode, mut text: String) -> Option<String> {
    match key {
        KeyCode::Esc => return None,
        KeyCode::Backspace => {
            text.pop();
        }
        KeyCode::Char(c) if text.chars().count() < TYPED_MAX => text.push(c),
        _ => {}
    }
    Some(text)
}
