//! `trace.dat`, the file of trace-cmd and KernelShark: versions 6 and 7, plain or compressed with zlib or zstd.

mod contents;
mod pages;
mod sections;

use std::collections::HashMap;
use std::io;

use self::contents::{Buffer, Contents, CpuPages};
use self::pages::{Item, Layout};
use super::binary::{Decoder, TracingData, Why};
use super::collect::Collector;
use super::error::{Machines, ReadError};
use super::expand::Expansion;
use super::interner::{Named, UNNAMED};
use super::no_machine;
use crate::Trace;

/// Clocks of the kernel that do not count nanoseconds.
const CLOCKS_WITHOUT_TIME: [&str; 3] = ["counter", "uptime", "x86-tsc"];

const REMEDY: &str =
    "record it again with `fairground record`; `trace-cmd report` may still print a part of it";

/// Reads a whole file, or a buffer of it; `cut` is the reason why it is not whole.
pub(super) fn read(
    name: &str,
    bytes: &[u8],
    cut: Option<io::Error>,
    machine: Option<&str>,
    expansion: &Expansion,
) -> Result<Trace, ReadError> {
    let damaged = |why: Why| ReadError::Damaged {
        name: name.to_owned(),
        format: "a trace.dat",
        why,
        remedy: REMEDY,
    };
    let contents = contents(bytes, expansion).map_err(damaged)?;
    let layout = Layout::new(contents.endian, contents.page_bytes, &contents.header_page)
        .ok_or_else(|| damaged("its pages have no possible size".to_owned()))?;
    if let Some(clock) = clock_without_time(&contents) {
        return Err(ReadError::Damaged {
            name: name.to_owned(),
            format: "a trace.dat",
            why: format!("its clock {clock} does not count nanoseconds"),
            remedy: "record with a clock of time: `trace-cmd record -C mono`",
        });
    }
    let filled = contents.filled();
    let names = || Machines(filled.iter().map(|buffer| buffer.called().to_owned()).collect());
    let buffer = match machine {
        None => filled.first(),
        Some(machine) => {
            let buffer = filled.iter().find(|buffer| buffer.called() == machine);
            Some(buffer.ok_or_else(|| no_machine(name, machine, names()))?)
        }
    };
    let mut reader = Reader::new(&contents, layout);
    if machine.is_none() && filled.len() > 1 {
        reader.collector.first_of_all(|| {
            let names = names().text();
            format!("of several buffers in the file the largest is read (--machine NAME chooses: {names})")
        });
    }
    if let Some(error) = cut {
        let at = bytes.len();
        reader.collector.truncated(|| format!("after byte {at}: the input failed: {error}"));
    }
    reader.all(&contents, buffer);
    reader.collector.finish(name)
}

fn contents<'a>(bytes: &'a [u8], expansion: &'a Expansion) -> Result<Contents<'a>, Why> {
    let (cursor, version, page_bytes) = TracingData::start(bytes)?;
    match version.as_str() {
        "6" => contents::version_6(bytes),
        "7" => sections::version_7(bytes, cursor, page_bytes, expansion),
        _ => Err(format!("its version is {version:?}; 6 and 7 are known")),
    }
}

/// The clock in use, if it does not count nanoseconds.
fn clock_without_time<'c>(contents: &'c Contents<'_>) -> Option<&'c str> {
    let clocks = contents.clock.as_deref()?;
    let used =
        clocks.split_once('[').and_then(|(_, rest)| rest.split(']').next()).unwrap_or(clocks);
    CLOCKS_WITHOUT_TIME.contains(&used.trim()).then_some(used)
}

struct Reader<'c> {
    collector: Collector<'static>,
    decoder: Decoder<'c>,
    layout: Layout,
    names: HashMap<u32, &'c str>,
}

impl<'c> Reader<'c> {
    fn new(contents: &'c Contents<'_>, layout: Layout) -> Self {
        let mut collector = Collector::new(None);
        collector.position = ("byte", 0);
        collector.trace().cpus = contents.cpus;
        // `Linux host 6.18.44 …`
        let release = contents.uname.as_deref().and_then(|names| names.split(' ').nth(2));
        release.into_iter().for_each(|release| collector.origin("kernel", release));
        contents.start_state.iter().for_each(|text| collector.start_state(text));
        let name = |line: &'c str| {
            let (pid, name) = line.split_once(' ')?;
            Some((pid.parse().ok()?, name))
        };
        Self {
            collector,
            decoder: Decoder::new(contents.endian, &contents.formats, &contents.kallsyms),
            layout,
            names: contents.cmdlines.lines().filter_map(name).collect(),
        }
    }

    fn all(&mut self, contents: &Contents<'_>, buffer: Option<&&Buffer<'_>>) {
        if let Some(why) = &contents.cut {
            self.collector.truncated(|| format!("the file ends early: {why}"));
        }
        let Some(Buffer { cpus, .. }) = buffer else { return };
        let stats: HashMap<u32, Stats> =
            contents.stats.iter().filter_map(|text| Stats::parse(text)).collect();
        for pages in cpus {
            let missed = self.cpu(pages);
            let Some(stats) = stats.get(&pages.cpu) else { continue };
            // The pages themselves report a part of it.
            self.collector.overwritten(stats.overrun.saturating_sub(missed));
            let at_the_end = stats.commit_overrun.saturating_add(stats.dropped);
            if at_the_end > 0 {
                self.collector.lost_at_the_end(pages.cpu, at_the_end);
            }
        }
    }

    /// Reads the pages of a CPU; returns the number of missing events that they report.
    fn cpu(&mut self, pages: &CpuPages<'_>) -> u64 {
        let Self { collector, decoder, layout, names } = self;
        let running = |pid: u32| {
            let unknown = if pid == 0 { "<idle>" } else { UNNAMED };
            Some(Named { pid, comm: names.get(&pid).copied().unwrap_or(unknown), prio: None })
        };
        let mut interner = collector.interner.clone();
        let mut missed: u64 = 0;
        for (number, page) in pages.bytes.chunks(layout.page_bytes).enumerate() {
            let offset = (number * layout.page_bytes) as u64;
            collector.position = ("byte", pages.at.saturating_add(offset));
            layout.walk(page, |item| match item {
                Item::Missed(count) => {
                    missed = missed.saturating_add(count.unwrap_or(0));
                    collector.lost(pages.cpu, count.unwrap_or(1));
                }
                Item::Event { time_ns, data } => {
                    collector.read += 1;
                    let add = |stated| collector.add(pages.cpu, time_ns, stated);
                    if let Err(why) = decoder.decode(data, &mut interner, running, add) {
                        collector.unreadable(&why);
                    }
                }
                Item::Bad(why) => collector.unreadable(why),
                Item::Cut => {
                    collector.trace().loss.truncated = true;
                    collector.first(|| "the page is cut off".to_owned());
                }
            });
        }
        missed
    }
}

/// The kernel's statistics of a CPU's buffer (`per_cpu/cpuN/stats`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Stats {
    overrun: u64,
    commit_overrun: u64,
    dropped: u64,
}

impl Stats {
    /// From the text of an option: a line `CPU: N`, then the kernel's.
    fn parse(text: &str) -> Option<(u32, Self)> {
        let number = |key: &str| {
            text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())
        };
        let stats = Self {
            overrun: number("overrun:").unwrap_or(0),
            commit_overrun: number("commit overrun:").unwrap_or(0),
            dropped: number("dropped events:").unwrap_or(0),
        };
        Some((number("CPU:")?.try_into().ok()?, stats))
    }
}
