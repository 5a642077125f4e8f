//! Stacks as text: below a line with `<stack trace>`, ` => function` each (ftrace, trace-cmd), or below the line of
//! their event an address, the function and its file each (perf). The called function stands before its caller.

use super::collect::Collector;
use super::interner::Named;
use super::line::Line;
use super::stated::Tasks;

/// Frames of a stack that are kept.
const FRAMES_MAX: usize = 128;

/// How a line that is no event relates to a stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A frame of the stack.
    Taken,
    /// A frame without an event that it could belong to.
    Orphan,
    /// No frame.
    None,
}

/// The stack that the next lines may hold.
#[derive(Debug, Default)]
pub(super) struct StackText {
    owner: Option<Owner>,
    /// The name of the task that the CPU was running.
    comm: String,
    /// Called before caller.
    frames: Vec<String>,
    /// They have addresses: perf's form.
    has_addresses: bool,
}

#[derive(Clone, Copy, Debug)]
struct Owner {
    cpu: u32,
    time_ns: u64,
    pid: Option<u32>,
}

impl StackText {
    /// The frames that follow belong to this event.
    pub(super) fn begin(&mut self, line: &Line<'_>) {
        self.owner = Some(Owner { cpu: line.cpu, time_ns: line.time_ns, pid: line.pid });
        line.comm.clone_into(&mut self.comm);
    }

    /// Takes a line that is no event.
    pub(super) fn take(&mut self, text: &str) -> Frame {
        let Some(function) = frame(text) else { return Frame::None };
        if self.owner.is_none() {
            return Frame::Orphan;
        }
        self.has_addresses = !text.trim_start().starts_with("=> ");
        if self.frames.len() < FRAMES_MAX {
            self.frames.push(function.to_owned());
        }
        Frame::Taken
    }

    /// Ends the stack and adds it as an event, if there was one. Frames that follow belong to no event until the next
    /// one begins.
    pub(super) fn end(&mut self, collector: &mut Collector) {
        let owner = self.owner.take();
        let Some(Owner { cpu, time_ns, pid }) = owner.filter(|_| !self.frames.is_empty()) else {
            return;
        };
        let mut frames = std::mem::take(&mut self.frames);
        if frames.len() == 1 && self.has_addresses {
            // No call chain: where the CPU was.
            return;
        }
        frames.reverse();
        let folded = frames.join(";");
        let running = pid.map(|pid| Named { pid, comm: &self.comm, prio: None });
        let interner = &mut collector.interner;
        let mut tasks = Tasks { interner, running, in_interrupt: false };
        let stated = tasks.stack(folded);
        collector.add(cpu, time_ns, stated);
    }
}

/// The function of a frame: ` => schedule`, ` => schedule+0x2a/0x90 <ffffffff81…>`, or `  ffffffff81… schedule+0x2a
/// ([kernel.kallsyms])`.
fn frame(text: &str) -> Option<&str> {
    const ADDRESS_DIGITS_MIN: usize = 6;
    // perf puts an address into sixteen columns behind a tab.
    const ADDRESS_COLUMNS: usize = 16;
    let trimmed = text.trim();
    let named = match trimmed.strip_prefix("=> ") {
        Some(rest) => rest,
        None => {
            let address = trimmed.split_whitespace().next()?;
            let indent = text.len() - text.trim_start().len();
            let is_column = text.starts_with('\t') && indent - 1 + address.len() == ADDRESS_COLUMNS;
            let is_address = text.starts_with(char::is_whitespace)
                && (is_column || address.len() >= ADDRESS_DIGITS_MIN)
                && address.bytes().all(|b| b.is_ascii_hexdigit());
            let function = is_address.then(|| trimmed[address.len()..].trim_start())?;
            if function.is_empty() { address } else { function }
        }
    };
    function(named.split_whitespace().next()?)
}

/// The name in `function+0x2a/0x90`.
pub(super) fn function(word: &str) -> Option<&str> {
    let name = word.split_once("+0x").map_or(word, |(name, _)| name);
    // A semicolon separates the functions of a folded stack.
    Some(name.split(';').next().unwrap_or(name)).filter(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_of_every_writer() {
        assert_eq!(frame(" => schedule"), Some("schedule"));
        assert_eq!(frame("=> schedule+0x2a/0x90 <ffffffff81000000>"), Some("schedule"));
        assert_eq!(frame("=> schedule (ffffffff81000000)"), Some("schedule"));
        assert_eq!(frame("\tffffffff81000000 schedule+0x2a ([kernel.kallsyms])"), Some("schedule"));
        assert_eq!(frame("          7f12ab main+0x1 (/usr/bin/x)"), Some("main"));
        assert_eq!(frame("          7f12ab"), Some("7f12ab"), "in no function that perf knows");
        let nowhere = "\t               0 [unknown] ([unknown])";
        assert_eq!(frame(nowhere), Some("[unknown]"));
        for other in ["", "=> ", "bash-1 [000] 1.5: e: f", "ffffffff81000000 schedule", " 12 x"] {
            assert_eq!(frame(other), None, "{other:?}");
        }
    }
}
