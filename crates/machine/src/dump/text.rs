//! The text of a dump, and what it says about tasks.

use crate::Dump;

/// Bytes of a line that `scx_bpf_dump_bstr` builds up (`SCX_EXIT_MSG_LEN`): then it is written without a newline.
const LINE_MAX: usize = crate::abi::EXIT_MSG_LEN;
/// Mark where the text was cut off.
const CUT: &str = "[truncated]\n";

/// A dump that is being written.
#[derive(Debug)]
pub(crate) struct DumpText {
    dump: Dump,
    limit: usize,
    is_cut: bool,
    /// A callback runs: how its lines begin.
    prefix: Option<&'static str>,
    /// The line that a callback has begun.
    line: String,
    /// A head that is written once a line follows.
    held: Option<String>,
    /// Subject of the next lines of the scheduler.
    about: Option<String>,
    /// The last line: which callback failed, and why.
    failure: Option<String>,
}

impl DumpText {
    /// A dump of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> DumpText {
        let dump = Dump::default();
        DumpText {
            dump,
            limit,
            is_cut: false,
            prefix: None,
            line: String::new(),
            held: None,
            about: None,
            failure: None,
        }
    }

    /// A line of the machine; `held`: only if the scheduler adds a line.
    pub(crate) fn head(&mut self, line: String, held: bool) {
        self.about = Some(line.clone());
        self.held = Some(line);
        if !held {
            self.release();
        }
    }

    fn release(&mut self) {
        if let Some(line) = self.held.take() {
            self.write(&line);
        }
    }

    /// A callback begins.
    pub(crate) fn begin(&mut self, prefix: &'static str) {
        self.prefix = Some(prefix);
        self.line.clear();
    }

    /// The callback is over.
    pub(crate) fn end(&mut self) {
        self.flush();
        self.prefix = None;
    }

    /// Text of the callback that runs.
    pub(crate) fn add(&mut self, text: &str) {
        self.line.push_str(text);
        if self.line.len() >= LINE_MAX || self.line.ends_with('\n') {
            self.flush();
        }
    }

    /// Writes the lines that were built up.
    fn flush(&mut self) {
        let Some(prefix) = self.prefix.filter(|_| !self.line.is_empty()) else { return };
        let text = std::mem::take(&mut self.line);
        self.release();
        let mut about = self.about.take();
        for line in text.trim_end_matches('\n').split('\n') {
            let line = format!("{prefix}{line}");
            if self.write(&line) {
                // What the lines are about heads them once.
                self.dump.own.extend(about.take());
                self.dump.own.push(line);
            }
        }
    }

    /// Writes a line, if there is room.
    fn write(&mut self, line: &str) -> bool {
        let room = self.limit.saturating_sub(CUT.len() + 1);
        if !self.is_cut && self.dump.text.len() + line.len() <= room {
            self.dump.text.push_str(line);
            self.dump.text.push('\n');
        } else if !std::mem::replace(&mut self.is_cut, true) && self.limit >= CUT.len() {
            self.dump.text.push_str(CUT);
        }
        !self.is_cut
    }

    /// A callback ended in a trap: the dump ends with that, whatever else would follow.
    pub(crate) fn fail(&mut self, text: &str) {
        self.failure.get_or_insert_with(|| format!("the dump ends here: {text}"));
    }

    /// Whether a callback has failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failure.is_some()
    }

    /// The text.
    pub(crate) fn finish(mut self) -> Dump {
        if let Some(failure) = self.failure.take() {
            self.write(&failure);
            self.dump.own.push(failure);
        }
        self.dump
    }
}
