//! The common form of a line: the running task, the CPU, the time, the event and its fields.
//!
//! ```text
//!            bash  9952 [001]  1462.462222565:       sched:sched_waking: comm=cat pid=18 …     perf script
//!            bash  9952/9950 [001] 1462.462222: 1 sched:sched_waking: …                       with -F pid, period
//!            bash-9952    [001] d..2.  1462.462222: sched_waking: comm=cat pid=18 …           ftrace
//!            bash-9952    (   9950) [001] d..2.  1462.462222: sched_waking: …                 with record-tgid
//!            bash-9952      1d..2.  1462.462222: (+13) sched_waking: …                        trace-cmd -l --ts-diff
//!            bash-9952      1d..2.   37us+: sched_waking: …                                   latency format
//! ```
//!
//! Names may hold anything, so the CPU in brackets is the anchor: the first `[digits]` with a pid before it and a time
//! stamp after it.

use super::interner::UNNAMED;

/// CPU numbers at or above this are damage, not CPUs (the kernel's own limit, `NR_CPUS`, is 8192).
pub(super) const CPUS_MAX: u32 = 1 << 16;

/// A name may hold brackets of its own; after this many the line is unreadable.
const ANCHORS_MAX: usize = 64;

const NS_PER_S: u64 = 1_000_000_000;
const FRACTION_DIGITS_MAX: usize = 9;

/// A line in its parts. What the event's fields mean is for [`super::fields`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Line<'a> {
    /// The task that the CPU was running; `None` where perf prints −1 (it had just been reaped).
    pub(super) pid: Option<u32>,
    pub(super) comm: &'a str,
    pub(super) cpu: u32,
    pub(super) time_ns: u64,
    /// It happened in a hard or soft interrupt. False where the line has no flags.
    pub(super) in_interrupt: bool,
    /// Without the `sched:` of perf.
    pub(super) event: &'a str,
    pub(super) fields: &'a str,
}

/// Parses a line; the error names what it lacks.
pub(super) fn parse(text: &str) -> Result<Line<'_>, &'static str> {
    let mut why = "no CPU in brackets";
    const COUNT: &str = "the time is a count, of no unit that is known: record with a clock of time \
                         (`trace-cmd record -C mono`; `echo mono > trace_clock`), print without --raw-ts";
    for (open, _) in text.match_indices('[').take(ANCHORS_MAX) {
        let Some((cpu, after)) = bracketed_number(&text[open..]) else { continue };
        let Some((comm, pid)) = running_task(&text[..open]) else {
            why = "no pid before the CPU";
            continue;
        };
        let Some((in_interrupt, time_ns, rest)) = stamp(after) else {
            why = if is_count(after) { COUNT } else { "no time stamp in seconds after the CPU" };
            continue;
        };
        if cpu >= CPUS_MAX {
            return Err("a CPU number beyond every machine's");
        }
        let (event, fields) = event_and_fields(rest).ok_or("no event after the time stamp")?;
        return Ok(Line { pid, comm, cpu, time_ns, in_interrupt, event, fields });
    }
    match latency(text) {
        Some((line, cpu)) if cpu < CPUS_MAX => Ok(line),
        _ => Err(why),
    }
}

/// The latency format (`trace_print_lat_context`): the CPU has no brackets and its flags follow it at once, a name is
/// cut to eight characters, and a time may count microseconds from the first event on.
fn latency(text: &str) -> Option<(Line<'_>, u32)> {
    /// Words before the CPU: those of a name.
    const WORDS_MAX: usize = 8;
    let mut at = 0;
    for _ in 0..WORDS_MAX {
        at += text[at..].find(|c: char| !c.is_whitespace())?;
        let end = at + text[at..].find(char::is_whitespace)?;
        let (before, word) = (&text[..at], &text[at..end]);
        if let Some((cpu, flags)) = leading_number(word)
            && let Some(in_interrupt) = flags_in_latency(flags)
            && before.trim_end().ends_with(|c: char| c.is_ascii_digit())
            && let Some((comm, pid)) = running_task(before)
            && let Some((time_ns, rest)) = seconds_or_us(text[end..].trim_start())
        {
            let (event, fields) = event_and_fields(rest)?;
            let cpu = u32::try_from(cpu).ok()?;
            return Some((Line { pid, comm, cpu, time_ns, in_interrupt, event, fields }, cpu));
        }
        at = end;
    }
    None
}

/// Whether flags behind the CPU are those of an interrupt: three or more, or as a number (`trace-cmd report -l -R`).
/// `None` where it is no word of flags.
fn flags_in_latency(word: &str) -> Option<bool> {
    /// `TRACE_FLAG_HARDIRQ`, `TRACE_FLAG_SOFTIRQ`, `TRACE_FLAG_NMI`.
    const OF_INTERRUPT: u32 = 0x08 | 0x10 | 0x40;
    match word.strip_prefix("-0x") {
        Some(bits) => Some(u32::from_str_radix(bits, 16).ok()? & OF_INTERRUPT != 0),
        None => is_flags(word).then(|| is_of_interrupt(word)),
    }
}

/// Three flags or more, as `d.h2`, `dN..1`.
fn is_flags(word: &str) -> bool {
    word.len() >= 3
        && word.bytes().all(|byte| byte == b'.' || byte.is_ascii_alphanumeric() || byte == b'#')
        && !word.as_bytes()[0].is_ascii_digit()
}

/// `seconds.fraction:`, or `37us+:` with a mark for a long time.
fn seconds_or_us(text: &str) -> Option<(u64, &str)> {
    if let Some(found) = seconds(text) {
        return Some(found);
    }
    let (us, rest) = leading_number(text)?;
    let rest = rest.strip_prefix("us")?.trim_start_matches([' ', '+', '!', '#', '*', '@', '$']);
    Some((us.checked_mul(1_000)?, rest.strip_prefix(':')?))
}

/// The longest name of a task; shorter ones have blanks before them.
const NAME_CHARS_MAX: usize = 15;

/// `trace-cmd report` of several files, or of a buffer instance, begins each line with the file's or the instance's
/// name: that, and the rest. Task names may hold a colon, too (`tmux: server`), but no blanks fill them behind it.
pub(super) fn split_source(text: &str) -> (Option<&str>, &str) {
    let split = || {
        let (word, rest) = text.trim_start().split_once(' ')?;
        let source = word.strip_suffix(':')?;
        let is_line = || {
            let before_cpu = rest[..rest.find(" [")?].trim_end();
            let before_cpu = before_cpu.rsplit_once('(').map_or(before_cpu, |(task, _)| task);
            let name = before_cpu.trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
            let name = name.strip_suffix('-')?;
            (name.starts_with(' ') || name.chars().count() >= NAME_CHARS_MAX).then_some(())
        };
        let is_remark = rest.starts_with("CPU:") || rest.starts_with("cpus=");
        let is_word = !source.is_empty() && !source.contains(['#', '[']);
        (is_word && (is_remark || is_line().is_some())).then_some((Some(source), rest))
    };
    split().unwrap_or((None, text))
}

/// `[001] rest` → 1 and the rest.
fn bracketed_number(text: &str) -> Option<(u32, &str)> {
    let inside = text.strip_prefix('[')?;
    let (number, after) = leading_number(inside)?;
    Some((u32::try_from(number).ok()?, after.strip_prefix(']')?))
}

/// The digits at the beginning as a number, and what follows.
pub(super) fn leading_number(text: &str) -> Option<(u64, &str)> {
    let end = text.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

/// The columns before the CPU: a name and a pid, in perf's or ftrace's manner.
fn running_task(text: &str) -> Option<(&str, Option<u32>)> {
    let mut text = text.trim_end();
    if let Some(inside) = text.strip_suffix(')') {
        // ftrace with record-tgid; dashes where the group is not known.
        let open = inside.rfind('(')?;
        let group = inside[open + 1..].trim();
        if group.is_empty() || !group.bytes().all(|b| b.is_ascii_digit() || b == b'-') {
            return None;
        }
        text = text[..open].trim_end();
    }
    let digits_from = text.bytes().rposition(|b| !b.is_ascii_digit()).map_or(0, |at| at + 1);
    let (before, digits) = text.split_at(digits_from);
    let number = digits.parse::<u32>().ok()?;
    if let Some(pid) = before.strip_suffix('/') {
        // perf with both: pid/tid. The scheduler knows threads.
        let comm = pid.trim_end_matches(|c: char| c.is_ascii_digit());
        let separated = comm.len() < pid.len() && comm.ends_with(char::is_whitespace);
        return separated.then_some((comm.trim(), Some(number)));
    }
    if let Some(comm) = before.strip_suffix('-') {
        let group = comm.strip_suffix("-1/");
        if digits == "1" && (group.is_some() || comm.ends_with(char::is_whitespace)) {
            return Some((group.unwrap_or(comm).trim(), None));
        }
        return Some((comm.trim_start(), Some(number)));
    }
    if before.trim().is_empty() {
        return Some((UNNAMED, Some(number)));
    }
    before.ends_with(char::is_whitespace).then_some((before.trim(), Some(number)))
}

/// An optional word of flags, then `seconds.fraction:`; returns whether the flags are those of an interrupt,
/// nanoseconds, and the rest.
fn stamp(text: &str) -> Option<(bool, u64, &str)> {
    let text = text.trim_start();
    if let Some((time_ns, rest)) = seconds(text) {
        return Some((false, time_ns, rest));
    }
    let (flags, rest) = text.split_once(char::is_whitespace)?;
    let (time_ns, rest) = seconds(rest.trim_start())?;
    Some((is_of_interrupt(flags), time_ns, rest))
}

/// The third flag (`trace_print_lat_fmt`, kernel/trace/trace_output.c): `h` and `H` hard interrupt, `s` soft interrupt,
/// `z` and `Z` NMI. `b` is a task with soft interrupts off.
fn is_of_interrupt(flags: &str) -> bool {
    flags.as_bytes().get(2).is_some_and(|flag| b"hHszZ".contains(flag))
}

/// A stamp without a fraction, as of the clocks `counter`, `uptime` and `x86-tsc`.
fn is_count(text: &str) -> bool {
    let mut words = text.split_whitespace();
    let is_stamp = |word: &str| {
        word.strip_suffix(':')
            .is_some_and(|count| leading_number(count).is_some_and(|(_, rest)| rest.is_empty()))
    };
    words.next().is_some_and(is_stamp) || words.next().is_some_and(is_stamp)
}

fn seconds(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = leading_number(text)?;
    let rest = rest.strip_prefix('.')?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 || digits > FRACTION_DIGITS_MAX {
        return None;
    }
    let fraction = rest[..digits].parse::<u64>().ok()?;
    let scale = 10_u64.pow((FRACTION_DIGITS_MAX - digits) as u32);
    let time_ns = whole.checked_mul(NS_PER_S)?.checked_add(fraction * scale)?;
    Some((time_ns, rest[digits..].strip_prefix(':')?))
}

/// `1 sched:sched_switch: fields` → the event's bare name and its fields.
fn event_and_fields(text: &str) -> Option<(&str, &str)> {
    let mut text = text.trim_start();
    // The time since the line before (`trace-cmd report --ts-diff`).
    if let Some((difference, rest)) = text.strip_prefix("(+").and_then(|rest| rest.split_once(')'))
        && difference.bytes().all(|byte| byte.is_ascii_digit())
    {
        text = rest.trim_start();
    }
    if let Some((_period, rest)) = leading_number(text) {
        // The form of the tracers of Linux 2.6.27, and of `wakeup` since: `3997:120:R ==> [001] 4055:120:R cat`.
        if rest.starts_with(':') {
            let is_switch = rest.contains(" ==> ");
            return Some((if is_switch { "sched_switch" } else { "sched_wakeup" }, text));
        }
        if rest.starts_with(' ') {
            text = rest.trim_start();
        }
    }
    // What the tracers `timerlat`, `hwlat` and `osnoise` print, which have no event's name: `#3 context …`, or a row of
    // numbers behind the runtime.
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_row =
        text.starts_with(|c: char| c.is_ascii_digit()) && text.split_whitespace().all(is_number);
    if text.starts_with('#') || is_row {
        return Some(("tracer", text));
    }
    if text.starts_with("<stack trace") {
        return Some(("kernel_stack", ""));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let word = &text[..end];
    if word.starts_with("PERF_RECORD_") {
        return Some((word, &text[end..]));
    }
    // ftrace's form of system calls: `sys_read(fd: 3, …)`, `sys_read -> 0x5`.
    if word.starts_with("sys_") {
        let end = word.find('(').unwrap_or(word.len());
        let (name, fields) = text.split_at(end);
        let fields = fields.trim_start();
        if fields.starts_with('(') || fields.starts_with("-> ") {
            return Some((name, fields));
        }
    }
    // A call that the function tracer recorded; its name has no colon, other than that of an event.
    if !word.ends_with(':') && text[end..].starts_with(" <-") {
        return Some(("function", text));
    }
    let name = word.strip_suffix(':')?;
    let bare = name.split_once(':').map_or(name, |(_, event)| event);
    // One blank separates; further ones are padding, except in marks, which are not padded.
    let fields = text[end..].trim_start_matches(' ');
    (!bare.is_empty()).then_some((bare, fields))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> (Option<u32>, &str, u32, u64, &str, &str) {
        let l = parse(text).expect("the line is well formed");
        (l.pid, l.comm, l.cpu, l.time_ns, l.event, l.fields)
    }

    #[test]
    fn perf_lines_with_every_column() {
        assert_eq!(
            line("  perf 9952 [000]  1462.462216325: sched:sched_waking: comm=x pid=1"),
            (Some(9952), "perf", 0, 1_462_462_216_325, "sched_waking", "comm=x pid=1")
        );
        assert_eq!(
            line(" Web Content 12/9952 [017] d..2. 1.5:  1 sched:sched_switch:    a"),
            (Some(9952), "Web Content", 17, 1_500_000_000, "sched_switch", "a")
        );
        assert_eq!(line("12 [001] 1.5: s:x: a"), (Some(12), "<...>", 1, 1_500_000_000, "x", "a"));
        assert_eq!(line("   12 [001] 1.5: s:x: a").1, "<...>", "with -F pid,cpu,time,event,trace");
        assert_eq!(line(":-1 -1 [001] 1.5: sched:x: a"), (None, ":-1", 1, 1_500_000_000, "x", "a"));
        assert_eq!(line(":-1 -1/-1 [001] 1.5: s:x: ").0, None);
        assert_eq!(line("a 1 [001] 1.5: PERF_RECORD_LOST lost 7").4, "PERF_RECORD_LOST");
    }

    #[test]
    fn ftrace_lines_with_every_column() {
        assert_eq!(
            line("    <idle>-0       [001] dNs5.  3275.965246: sched_wakeup: comm=sleep pid=2"),
            (Some(0), "<idle>", 1, 3_275_965_246_000, "sched_wakeup", "comm=sleep pid=2")
        );
        assert_eq!(
            line("my-task-1-77  (  26184) [000] ..... 3.000001: e: f"),
            (Some(77), "my-task-1", 0, 3_000_001_000, "e", "f")
        );
        assert_eq!(line("<idle>-0 (-------) [000] 3.1: e:").0, Some(0));
    }

    #[test]
    fn the_third_flag_tells_an_interrupt() {
        let flagged = |flags: &str| {
            parse(&format!("hog-10 [000] {flags} 1.5: e: f")).expect("a line").in_interrupt
        };
        assert!(["d.h2", "dNH2.", "d.s3", "dNz.."].into_iter().all(flagged));
        assert!(!["d..2", ".....", "dnb2.", "h...", ""].into_iter().any(flagged));
    }

    #[test]
    fn names_may_hold_brackets_and_numbers() {
        assert_eq!(line("a [12] b-7 [003] .... 1.5: e: f").1, "a [12] b");
        assert_eq!(line("a [12] 3 [003] 1.5: s:e: f").0, Some(3));
    }

    #[test]
    fn the_latency_format_and_differences() {
        let wanted =
            (Some(21934), "recordin", 0, 25_704_150_422_000, "sched_waking", "comm=a pid=1");
        let latency = "recordin-21934   0dN.2. 25704.150422: (+33)    sched_waking: comm=a pid=1";
        assert_eq!(line(latency), wanted);
        assert_eq!(
            line("  a b 1-7         1dNh5.  12us+: sched_waking:   comm=a pid=1"),
            (Some(7), "a b 1", 1, 12_000, "sched_waking", "comm=a pid=1")
        );
        assert!(parse("a-7  1dNh5.  12us : e: f").expect("a line").in_interrupt);
        let raw = parse("a-7         1-0x9  1.5: e: f").expect("a line");
        assert_eq!((raw.cpu, raw.in_interrupt, raw.event), (1, true, "e"));
        assert_eq!(line("a-7 [001] 1.5: (+12)  e: f").4, "e");
        assert_eq!(line("a-7 3dNs7    1us : try_to_wake_up <-wake_up_process").4, "function");
        assert_eq!(line("a-7 [001] 1.5: bpf_trace_printk: <-x").4, "bpf_trace_printk");
        let why = parse("a-7 [001] d..2. 4711: sched_switch: x").expect_err("no time");
        assert!(why.starts_with("the time is a count"), "{why}");
        let why = parse("a-7 [000]25704150421857: sched_switch: x").expect_err("no time");
        assert!(why.starts_with("the time is a count"), "{why}");
    }

    #[test]
    fn a_lack_is_named() {
        assert_eq!(parse("hello"), Err("no CPU in brackets"));
        assert_eq!(parse("a-1 [000] x y: e: f"), Err("no time stamp in seconds after the CPU"));
        assert_eq!(parse("[000] 1.5: e: f"), Err("no pid before the CPU"));
        assert_eq!(parse("a-1 [99999] 1.5: e: f"), Err("a CPU number beyond every machine's"));
        assert_eq!(
            parse("a-1 [0] 99999999999999.5: e: f"),
            Err("no time stamp in seconds after the CPU")
        );
        assert_eq!(parse("a-1 [0] 1.5: "), Err("no event after the time stamp"));
    }
}
