//! Text of babeltrace (1.5 and 2), of LTTng's kernel traces:
//!
//! ```text
//! [21:36:35.523071732] (+0.000001557) host sched_switch: { cpu_id = 2 }, { tid = 0 }, { prev_comm = "swapper/2", … }
//! [2019-10-16 21:36:35.523071732] host sched_switch: { cpu_id = 2 }, { prev_comm = "swapper/2", prev_tid = 0, … }
//! ```
//!
//! The first braces hold the context of the packet, the last ones the fields; between them are contexts that were added
//! (`procname`, `tid`). Text in quotes has `"` and `\` behind a backslash.

use super::collect::Collector;
use super::interner::{Named as NamedTask, UNNAMED};
use super::line::{CPUS_MAX, leading_number};
use super::lttng::{Interrupts, LttngValue, Named, stated};
use super::stated::Tasks;
use crate::TaskState;

const NS_PER_S: u64 = 1_000_000_000;
const S_PER_DAY: u64 = 86_400;

/// A line that is an event.
#[derive(Debug)]
pub(super) struct EventLine<'a> {
    pub(super) cpu: u32,
    pub(super) time_ns: u64,
    /// The time is one of a day, which begins again at midnight.
    pub(super) is_of_day: bool,
    pub(super) event: &'a str,
    /// The fields, and behind them the contexts.
    fields: Vec<(&'a str, LttngValue<'a>)>,
    contexts: usize,
}

impl<'a> EventLine<'a> {
    pub(super) fn fields(&self) -> Named<'_, 'a> {
        Named(&self.fields[self.contexts..])
    }

    /// The contexts of the packet and of the event.
    pub(super) fn contexts(&self) -> Named<'_, 'a> {
        Named(&self.fields[..self.contexts])
    }
}

/// Values of a line; more are not read.
const VALUES_MAX: usize = 256;

/// Whether a line looks like one of babeltrace: a time in brackets first.
pub(super) fn is_event(text: &str) -> bool {
    text.strip_prefix('[').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
        && text.contains(": { ")
}

/// Parses a line; the error names what it lacks.
pub(super) fn parse(text: &str) -> Result<EventLine<'_>, &'static str> {
    let (stamp, rest) =
        text.strip_prefix('[').and_then(|text| text.split_once(']')).ok_or("no time")?;
    let (time_ns, is_of_day) = time(stamp).ok_or("a time in brackets that is not in seconds")?;
    let (head, groups) = rest.split_once(": { ").ok_or("no fields in braces")?;
    let event = head.rsplit(' ').next().unwrap_or(head);
    let (mut fields, mut contexts) = (Vec::new(), 0);
    let mut rest = groups;
    loop {
        rest = group(rest, &mut fields).ok_or("fields that cannot be read")?;
        match rest
            .trim_start()
            .strip_prefix(',')
            .and_then(|rest| rest.trim_start().strip_prefix('{'))
        {
            Some(next) => (contexts, rest) = (fields.len(), next),
            None => break,
        }
    }
    let line = EventLine { cpu: 0, time_ns, is_of_day, event, fields, contexts };
    let cpu = line.contexts().number("cpu_id").or_else(|| line.contexts().number("perf_cpu"));
    let cpu = cpu.and_then(|cpu| u32::try_from(cpu).ok()).filter(|cpu| *cpu < CPUS_MAX);
    Ok(EventLine { cpu: cpu.ok_or("no cpu_id among its contexts")?, ..line })
}

/// Nanoseconds, and whether they count from midnight: `HH:MM:SS.fraction`, with a date in front, or seconds alone.
fn time(stamp: &str) -> Option<(u64, bool)> {
    let (date, clock) = match stamp.split_once(' ') {
        Some((date, clock)) => (Some(days(date)?), clock),
        None => (None, stamp),
    };
    let (whole, fraction) = clock.split_once('.')?;
    let digits = fraction.len();
    if !(1..=9).contains(&digits) {
        return None;
    }
    let fraction_ns = fraction.parse::<u64>().ok()? * 10_u64.pow(9 - digits as u32);
    let mut seconds: u64 = 0;
    let parts = whole.split(':').count();
    for part in whole.split(':') {
        seconds = seconds.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    if parts != 3 && parts != 1 || parts == 1 && date.is_some() {
        return None;
    }
    let seconds = date.unwrap_or(0).checked_mul(S_PER_DAY)?.checked_add(seconds)?;
    let ns = seconds.checked_mul(NS_PER_S)?.checked_add(fraction_ns)?;
    Some((ns, parts == 3 && date.is_none()))
}

/// The days from 1970 to a date `2019-10-16`, by the Gregorian calendar.
fn days(date: &str) -> Option<u64> {
    let mut parts = date.split('-').map(str::parse::<u64>);
    let (year, month, day) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    if !(1970..10_000).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    // Years that begin in March: a leap day is the last one.
    let years = if month <= 2 { year - 1 } else { year };
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    Some(years * 365 + years / 4 - years / 100 + years / 400 + day_of_year - 719_468)
}

/// Parses `key = value, … }`; returns what follows the brace.
fn group<'a>(text: &'a str, fields: &mut Vec<(&'a str, LttngValue<'a>)>) -> Option<&'a str> {
    let mut rest = text.trim_start();
    while fields.len() < VALUES_MAX {
        if let Some(rest) = rest.strip_prefix('}') {
            return Some(rest);
        }
        let (key, behind) = rest.split_once(" = ")?;
        let (value, behind) = value(behind)?;
        fields.extend(value.map(|value| (key, value)));
        rest = behind.trim_start();
        rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
    }
    None
}

/// A value and what follows it: a text, a number, an enumeration `( "NAME" : container = 1 )`, or nested ones, which
/// are skipped.
fn value(text: &str) -> Option<(Option<LttngValue<'_>>, &str)> {
    match text.as_bytes().first()? {
        b'"' => {
            let end = end_of_text(text)?;
            Some((Some(LttngValue::Text(&text.as_bytes()[1..end])), &text[end + 1..]))
        }
        b'(' | b'[' | b'{' => {
            let end = end_of_nested(text)?;
            let inside = &text[..end];
            let number = inside.rsplit_once("container = ").and_then(|(_, rest)| number(rest));
            Some((number.map(|(number, _)| LttngValue::Number(number)), &text[end..]))
        }
        _ => match number(text) {
            Some((number, rest)) => Some((Some(LttngValue::Number(number)), rest)),
            // A floating point number, or a word.
            None => Some((None, &text[text.find([',', '}'])?..])),
        },
    }
}

/// `-5`, `17` or `0x1F`, and what follows.
fn number(text: &str) -> Option<(i64, &str)> {
    let (is_negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (number, rest) = match digits.strip_prefix("0x") {
        Some(hex) => {
            let end = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
            (u64::from_str_radix(&hex[..end], 16).ok()?, &hex[end..])
        }
        None => leading_number(digits)?,
    };
    let ends = rest.is_empty() || rest.starts_with([' ', ',', '}', ')', ']']);
    let number = if is_negative { (number as i64).wrapping_neg() } else { number as i64 };
    ends.then_some((number, rest))
}

/// The byte of the quote that ends a text.
fn end_of_text(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().enumerate().skip(1).find_map(|(at, byte)| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends.then_some(at)
    })
}

/// The byte behind the bracket that closes the first one.
fn end_of_nested(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0_u32, 0);
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => at += end_of_text(&text[at..])?,
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => {
                depth -= 1;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The state of reading a text of babeltrace.
#[derive(Debug, Default)]
pub(super) struct LttngText {
    interrupts: Interrupts,
    /// The last time, ns, and what is added to times of a day.
    last_ns: u64,
    days_ns: u64,
}

impl LttngText {
    /// The time of a line. One that is far before the last one is of the next day.
    fn time_ns(&mut self, time_ns: u64, is_of_day: bool) -> u64 {
        const DAY_NS: u64 = 86_400_000_000_000;
        if is_of_day && time_ns.saturating_add(self.days_ns + DAY_NS / 2) < self.last_ns {
            self.days_ns += DAY_NS;
        }
        self.last_ns = time_ns.saturating_add(if is_of_day { self.days_ns } else { 0 });
        self.last_ns
    }

    /// Takes a line for which [`is_event`] holds.
    pub(super) fn take(&mut self, collector: &mut Collector, text: &str) {
        let line = match parse(text) {
            Ok(line) => line,
            Err(why) => return collector.unreadable_text(why, text),
        };
        let contexts = line.contexts();
        let tid = contexts.number("tid").or_else(|| contexts.number("vtid"));
        let name = contexts.text("procname").map(|name| name.text());
        let running = tid.and_then(|tid| u32::try_from(tid).ok()).map(|pid| {
            let comm = name.as_deref().unwrap_or(UNNAMED);
            NamedTask { pid, comm, prio: None }
        });
        let in_interrupt = self.interrupts.note(line.cpu, line.event);
        let mut tasks = Tasks { interner: &mut collector.interner, running, in_interrupt };
        // The text does not name the kernel.
        match stated(line.event, line.fields(), TaskState::of_bits, &mut tasks) {
            Some(stated) => {
                let time_ns = self.time_ns(line.time_ns, line.is_of_day);
                collector.add(line.cpu, time_ns, stated);
            }
            None => collector.unreadable_text(&format!("{} without its fields", line.event), text),
        }
    }
}

/// The events that babeltrace reports as lost, in a line of its own.
pub(super) fn discarded(text: &str) -> Option<u64> {
    let rest = text.split_once("racer discarded ")?.1;
    let is_report = text.starts_with("[warning]") || text.starts_with("WARNING:");
    let (count, _) = leading_number(rest)?;
    is_report.then_some(count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_in_its_parts() {
        let text = "[21:36:35.523071732] (+0.000001557) my-host sched_switch: { cpu_id = 2 }, \
                    { tid = 7, procname = \"a\" }, { prev_comm = \"a}, \\\"b\", prev_tid = -1, \
                    prev_state = ( \"TASK_INTERRUPTIBLE\" : container = 1 ), _length = 1, vtids = [ [0] = 67 ], \
                    addr = 0xFFFF8000, share = 0.5, next_tid = 8 }";
        let line = parse(text).expect("a line");
        assert_eq!((line.cpu, line.event, line.time_ns), (2, "sched_switch", 77_795_523_071_732));
        let fields = line.fields();
        assert_eq!(fields.text("prev_comm").map(|text| text.0), Some(&b"a}, \\\"b"[..]));
        let numbers = ["prev_tid", "prev_state", "addr", "vtids", "share", "next_tid"];
        assert_eq!(
            numbers.map(|name| fields.number(name)),
            [Some(-1), Some(1), Some(0xFFFF_8000), None, None, Some(8)]
        );
        assert_eq!((line.contexts().number("tid"), fields.number("tid")), (Some(7), None));
    }

    #[test]
    fn times() {
        assert_eq!(time("00:00:01.5"), Some((1_500_000_000, true)));
        assert_eq!(time("1571261795.523067504"), Some((1_571_261_795_523_067_504, false)));
        assert_eq!(time("2019-10-16 21:36:35.523067504"), Some((1_571_261_795_523_067_504, false)));
        assert_eq!(
            [days("1970-01-01"), days("2000-03-01"), days("2024-02-29")],
            [Some(0), Some(11_017), Some(19_782)]
        );
        for bad in [
            "00000023364367741240",
            "1:2.5",
            "x",
            "2019-13-01 1:2:3.5",
            "1.0123456789",
            "9:99999999999999999999:1.5",
        ] {
            assert_eq!(time(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_lack_is_named() {
        let why = |text| parse(text).expect_err("it lacks something");
        assert_eq!(
            why("[00000023364] (+1) h e: { cpu_id = 1 }, { }"),
            "a time in brackets that is not in seconds"
        );
        assert_eq!(why("[1.5] h e: { x = 1 }, { y = 2 }"), "no cpu_id among its contexts");
        assert_eq!(why("[1.5] h e: { cpu_id = 1 }, { y = \"2 }"), "fields that cannot be read");
        assert_eq!(why("[1.5] hello"), "no fields in braces");
    }
}
