//! Output of the scheduler.

/// The first lines that the scheduler has printed.
#[derive(Debug)]
pub(crate) struct Log {
    lines: Vec<String>,
    lines_max: usize,
}

impl Log {
    /// Keeps so many lines.
    pub(crate) fn new(lines_max: usize) -> Log {
        Log { lines: Vec::new(), lines_max }
    }

    /// Keeps a line, if there is room. False: it is dropped.
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let has_room = self.lines.len() < self.lines_max;
        if has_room {
            self.lines.push(line.to_owned());
        }
        has_room
    }

    /// The lines that were kept.
    pub(crate) fn lines(&self) -> &[String] {
        &self.lines
    }

    /// The lines that were kept, for good.
    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines
    }
}
