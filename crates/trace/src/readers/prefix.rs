//! The stamps of consoles and loggers before a line of ftrace's buffer: the kernel's log (`ftrace_dump_on_oops`) as the
//! console, `dmesg`, syslog or the journal have it, and as programs write it that keep a console's output.
//!
//! ```text
//! [  100.000002]        x-3         0d..2. 1000000us : sched_switch: …           the console, dmesg
//! <4>[  100.000002][    T1]        x-3         0d..2. …                          /dev/kmsg, with CONFIG_PRINTK_CALLER
//! kern  :warn  : [  100.000002]        x-3         0d..2. …                      dmesg -x
//! [Tue Jan  2 10:00:00 2024]        x-3         0d..2. …                         dmesg -T
//! Jan 02 10:00:00 host kernel: [  100.000002]        x-3         0d..2. …        syslog, the journal
//! 2024-01-02T10:00:00.123456+00:00 host kernel:        x-3         0d..2. …      the same with ISO dates
//! ```

/// Prefixes that stand one behind the other.
const PREFIXES_MAX: usize = 6;
/// Words before `kernel:` in a line of syslog: those of a date, the host, the facility.
const SYSLOG_WORDS_MAX: usize = 8;
/// Bytes of all of them.
const SYSLOG_BYTES_MAX: usize = 160;

/// The line behind its stamps; `None` where it has none.
pub(super) fn strip(text: &str) -> Option<&str> {
    let mut rest = text;
    for _ in 0..PREFIXES_MAX {
        let is_first = rest.len() == text.len();
        match one(rest, is_first) {
            Some(behind) => rest = behind,
            None => break,
        }
    }
    (rest.len() < text.len()).then_some(rest)
}

/// Takes one prefix away, with the blank behind it.
fn one(text: &str, is_first: bool) -> Option<&str> {
    let rest = match text.bytes().next()? {
        b'<' => priority(text),
        b'[' => bracket(text, is_first),
        // A pid and a task's name begin with digits and letters, too: a stamp has a time, and a logger its word.
        first if first.is_ascii_digit() => syslog(text).or_else(|| date(text)),
        first if first.is_ascii_alphabetic() => syslog(text).or_else(|| facility(text)),
        // The caller may stand apart from the stamp.
        b' ' if !is_first => {
            bracket(text.trim_start(), false).filter(|_| text.trim_start().starts_with('['))
        }
        _ => None,
    }?;
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

/// `<4>`.
fn priority(text: &str) -> Option<&str> {
    let (level, rest) = text[1..].split_once('>')?;
    (!level.is_empty() && is_of(level, "")).then_some(rest)
}

/// `[  100.000002]`, `[  100.000002 <    0.000001>]`, `[  +0.000001]`, `[Tue Jan  2 10:00:00 2024]`; behind another
/// prefix `[    T1]` and `[    C0]`.
fn bracket(text: &str, is_first: bool) -> Option<&str> {
    let (inside, rest) = text.strip_prefix('[')?.split_once(']')?;
    let is_time = is_of(inside, " .,<>+-") && inside.contains('.');
    let is_date = inside.starts_with(|c: char| c.is_ascii_uppercase()) && has_time_of_day(inside);
    let caller = inside.trim_start().strip_prefix(['T', 'C']);
    let is_caller =
        caller.is_some_and(|number| !number.is_empty() && is_of(number, "")) && !is_first;
    (is_time || is_date || is_caller).then_some(rest)
}

/// `2024-01-02T10:00:00,123456+00:00`, `2024-01-02 10:00:00.5`, `10:00:00.5`.
fn date(text: &str) -> Option<&str> {
    let (first, rest) = text.split_once(' ')?;
    let is_stamp = |word: &str| has_time_of_day(word) && is_of(word, ":.,-+TZ/");
    if is_stamp(first) {
        // A task may be called like a time; a pid follows its name.
        let next = rest.trim_start();
        let is_task = !first.contains('T') && next.starts_with(|c: char| c.is_ascii_digit());
        return (!is_task).then_some(rest);
    }
    let (second, rest) = rest.split_once(' ')?;
    (is_of(first, "-/.") && first.len() >= 8 && is_stamp(second)).then_some(rest)
}

/// Everything up to `kernel:`, behind a date.
fn syslog(text: &str) -> Option<&str> {
    let head = text.get(..SYSLOG_BYTES_MAX).unwrap_or(text);
    // A bound in the middle of a character is no line of syslog.
    let at = head.find("kernel: ")?;
    let (before, rest) = (&text[..at], &text[at + "kernel:".len()..]);
    let mut words = before.split_whitespace();
    let is_logger = before.ends_with(' ')
        && before.split_whitespace().count() <= SYSLOG_WORDS_MAX
        && !before.contains(['[', '=', '|'])
        // Behind the kernel's own stamp the host alone stands.
        && (words.any(has_time_of_day) || before.trim().split(' ').count() == 1);
    is_logger.then_some(rest)
}

/// `kern  :warn  : `, as `dmesg -x` prints it.
fn facility(text: &str) -> Option<&str> {
    let (facility, rest) = text.split_once(':')?;
    let (level, rest) = rest.split_once(": ")?;
    let is_word = |word: &str| {
        let word = word.trim_end();
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    };
    let is_own = matches!(facility.trim_end(), "kern" | "user" | "daemon") && is_word(level);
    is_own.then_some(rest)
}

/// Whether a text has digits and these characters alone.
fn is_of(text: &str, others: &str) -> bool {
    text.chars().all(|c| c.is_ascii_digit() || others.contains(c))
}

/// Whether `10:00:00` is in it.
fn has_time_of_day(text: &str) -> bool {
    text.as_bytes().windows(8).any(|eight| {
        let is_right = |(at, byte): (usize, &u8)| match at {
            2 | 5 => *byte == b':',
            _ => byte.is_ascii_digit(),
        };
        eight.iter().enumerate().all(is_right)
    })
}
