//! Pages of systrace: HTML with the text of a recording in it.

/// Which lines of a text are those of the page around it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Page {
    is_page: bool,
    in_recording: bool,
}

impl Page {
    /// Whether a line is not of the recording but of the page around it. `number` counts from 1.
    #[inline]
    pub(super) fn is_around(&mut self, number: u64, text: &str) -> bool {
        if number == 1 {
            let text = text.trim_start_matches(|c: char| c == '\u{feff}' || c.is_whitespace());
            let begins = |word: &str| {
                text.get(..word.len()).is_some_and(|first| first.eq_ignore_ascii_case(word))
            };
            self.is_page = begins("<html") || begins("<!doctype html");
        }
        self.is_page && self.moves(text)
    }

    fn moves(&mut self, text: &str) -> bool {
        if text.contains("class=\"trace-data\"") || text.contains("linuxPerfData =") {
            self.in_recording = true;
            return true;
        }
        if text.contains("</script>") || text.starts_with("\";") {
            self.in_recording = false;
        }
        !self.in_recording
    }
}
