//! A writer of small `trace.dat` files of version 6, in either byte order, for what no kernel would write on demand.

#![allow(dead_code)] // Each test file uses a part of it.

pub(crate) mod any_trace;
pub(crate) mod ctf_2;
pub(crate) mod ctf_file;
pub(crate) mod perf_file;
pub(crate) mod proto;
pub(crate) mod samples;
pub(crate) mod wire;

/// Bytes of a page of these files.
pub(crate) const PAGE: usize = 256;

/// The bits of `commit` for missing events, and for their number behind the data.
pub(crate) const MISSED: u64 = 1 << 31;
pub(crate) const STORED: u64 = 1 << 30;

/// A file in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Dat {
    pub(crate) big: bool,
    /// Pages of each CPU.
    pub(crate) cpus: Vec<Vec<Vec<u8>>>,
    /// Texts of the options CPUSTAT.
    pub(crate) stats: Vec<String>,
    /// Further options.
    pub(crate) options: Vec<(u16, String)>,
    pub(crate) clock: String,
    /// Lines of pids and names.
    pub(crate) names: String,
    /// Descriptions of further events.
    pub(crate) formats: Vec<&'static str>,
    /// Lines of the kernel's functions.
    pub(crate) kallsyms: String,
}

const SWITCH: &str = "name: sched_switch\nID: 7\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:char prev_comm[4];\toffset:8;\tsize:4;\tsigned:0;\n\
    \tfield:pid_t prev_pid;\toffset:12;\tsize:4;\tsigned:1;\n\
    \tfield:int prev_prio;\toffset:16;\tsize:4;\tsigned:1;\n\
    \tfield:long prev_state;\toffset:20;\tsize:4;\tsigned:1;\n\
    \tfield:char next_comm[4];\toffset:24;\tsize:4;\tsigned:0;\n\
    \tfield:pid_t next_pid;\toffset:28;\tsize:4;\tsigned:1;\n\
    \tfield:int next_prio;\toffset:32;\tsize:4;\tsigned:1;\n\
    \nprint fmt: \"\", { 1, \"S\" }, { 2, \"D\" }, { 16, \"X\" }\n";
const OTHER: &str = "name: other\nID: 9\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n";
pub(crate) const BLOCKED: &str = "name: sched_blocked_reason\nID: 11\nformat:\n\
    \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
    \tfield:void* caller;\toffset:16;\tsize:8;\tsigned:0;\n\
    \tfield:bool io_wait;\toffset:24;\tsize:1;\tsigned:0;\n";
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:240;\tsigned:0;\n";

impl Dat {
    fn number(&self, value: u64, bytes: usize) -> Vec<u8> {
        let mut number = value.to_le_bytes()[..bytes].to_vec();
        if self.big {
            number.reverse();
        }
        number
    }

    /// A page with data and the flags of `commit`; missing events, if any, behind the data.
    pub(crate) fn page(
        &self,
        time_ns: u64,
        events: &[Vec<u8>],
        flags: u64,
        missing: u64,
    ) -> Vec<u8> {
        let data = events.concat();
        let mut page = self.number(time_ns, 8);
        page.extend(self.number(flags | data.len() as u64, 8));
        page.extend(&data);
        if flags & STORED != 0 {
            page.extend(self.number(missing, 8));
        }
        assert!(page.len() <= PAGE, "too much for a page");
        page.resize(PAGE, 0);
        page
    }

    /// The word before an event's data: length in words, and nanoseconds since the event before.
    fn event(&self, delta_ns: u64, data: &[u8]) -> Vec<u8> {
        let words = data.len() as u64 / 4;
        let word = if self.big { words << 27 | delta_ns } else { words | delta_ns << 5 };
        [self.number(word, 4), data.to_vec()].concat()
    }

    /// A switch from one task to another, both of nice 0.
    pub(crate) fn switch(
        &self,
        delta_ns: u64,
        prev: (u32, &[u8; 4], u64),
        next: (u32, &[u8; 4]),
    ) -> Vec<u8> {
        let (prev_pid, prev_comm, state) = prev;
        let number = |value: u32| self.number(value.into(), 4);
        let parts = [
            number(if self.big { 7 << 16 } else { 7 }),
            number(prev_pid),
            prev_comm.to_vec(),
            number(prev_pid),
            number(120),
            number(state as u32),
            next.1.to_vec(),
            number(next.0),
            number(120),
        ];
        self.event(delta_ns, &parts.concat())
    }

    /// An event of a type that is described and not used, or of one that is not described.
    pub(crate) fn other(&self, delta_ns: u64, id: u16) -> Vec<u8> {
        let id = u64::from(id);
        let first = self.number(if self.big { id << 16 } else { id }, 4);
        self.event(delta_ns, &[first, self.number(1, 4)].concat())
    }

    /// An event [`BLOCKED`].
    pub(crate) fn blocked(&self, delta_ns: u64, pid: u32, caller: u64) -> Vec<u8> {
        let small = |value: u32| self.number(value.into(), 4);
        let kind = small(if self.big { 11 << 16 } else { 11 });
        let parts = [kind, small(0), small(pid), small(0), self.number(caller, 8), small(0)];
        self.event(delta_ns, &parts.concat())
    }

    /// Adds a page to those of a CPU.
    pub(crate) fn add(&mut self, cpu: usize, page: Vec<u8>) {
        self.cpus[cpu].push(page);
    }

    /// The whole file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = self.tracing_data("6");
        out.extend(self.number(self.cpus.len() as u64, 4));
        out.extend(b"options  \0");
        let options = self.stats.iter().map(|text| (2, text)).chain([(4, &self.clock)]);
        let further = self.options.iter().map(|(number, text)| (u64::from(*number), text));
        let options = options.chain(further);
        for (number, text) in options {
            out.extend(self.number(number, 2));
            out.extend(self.sized(text.as_bytes(), 4));
        }
        out.extend(self.number(0, 2));
        out.extend(b"flyrecord\0");
        let mut at = (out.len() + 16 * self.cpus.len()) as u64;
        for pages in &self.cpus {
            let size = pages.iter().map(Vec::len).sum::<usize>() as u64;
            out.extend(self.number(at, 8));
            out.extend(self.number(size, 8));
            at += size;
        }
        out.extend(self.cpus.concat().concat());
        out
    }

    /// The kernel's descriptions of its events: the beginning of a `trace.dat`, and a part of a `perf.data`.
    pub(crate) fn tracing_data(&self, version: &str) -> Vec<u8> {
        let mut out = [&b"\x17\x08\x44tracing"[..], version.as_bytes(), b"\0"].concat();
        out.extend([u8::from(self.big), 8]);
        out.extend(self.number(PAGE as u64, 4));
        for (name, text) in [("header_page\0", HEADER_PAGE), ("header_event\0", "")] {
            out.extend(name.as_bytes());
            out.extend(self.sized(text.as_bytes(), 8));
        }
        out.extend(self.number(0, 4));
        out.extend(self.number(1, 4));
        out.extend(b"sched\0");
        let formats: Vec<_> = [SWITCH, OTHER].iter().chain(&self.formats).collect();
        out.extend(self.number(formats.len() as u64, 4));
        formats.iter().for_each(|format| out.extend(self.sized(format.as_bytes(), 8)));
        out.extend(self.sized(self.kallsyms.as_bytes(), 4));
        out.extend(self.sized(b"", 4));
        out.extend(self.sized(self.names.as_bytes(), 8));
        out
    }

    fn sized(&self, bytes: &[u8], size_bytes: usize) -> Vec<u8> {
        [self.number(bytes.len() as u64, size_bytes), bytes.to_vec()].concat()
    }
}

/// Two CPUs, some switches.
pub(crate) fn small(big: bool) -> Dat {
    let mut dat = Dat { big, clock: "local [mono]".to_owned(), ..Dat::default() };
    dat.names = "1 one\n2 two\n".to_owned();
    let first = vec![
        dat.switch(0, (0, b"swap", 0), (1, b"one\0")),
        dat.other(5, 9),
        dat.switch(10, (1, b"one\0", 1), (2, b"two\0")),
    ];
    let second = vec![dat.switch(0, (2, b"two\0", 2), (0, b"swap"))];
    let other = vec![dat.switch(7, (0, b"swap", 0), (3, b"tri\0"))];
    dat.cpus = vec![
        vec![dat.page(1000, &first, 0, 0), dat.page(2000, &second, 0, 0)],
        vec![dat.page(1003, &other, 0, 0)],
    ];
    dat
}

/// A recording of the experiments, by its file's name.
pub(crate) fn recording(name: &str) -> fairground_trace::Trace {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../experiments/recordings");
    let file = std::fs::File::open(format!("{folder}/{name}")).expect("a recording");
    fairground_trace::read_file(name, file).expect("a trace")
}

/// Events in words, with the tasks' names and pids.
pub(crate) fn words(trace: &fairground_trace::Trace) -> Vec<String> {
    use fairground_trace::EventKind;

    let task = |id: fairground_trace::TaskId| {
        let info = &trace.tasks()[id.index()];
        format!("{}:{}", info.comm, info.pid)
    };
    let of = |event: fairground_trace::Event| {
        let what = match event.kind {
            EventKind::Switch { prev, prev_state, next } => {
                format!("{} {} -> {}", task(prev), prev_state.text(), task(next))
            }
            EventKind::Waking { task: id, waker, target_cpu } => {
                format!("{} wakes {} on {target_cpu}", task(waker), task(id))
            }
            EventKind::Lost { count } => format!("lost {count}"),
            EventKind::Fork { parent, child } => format!("{} forks {}", task(parent), task(child)),
            EventKind::Wakeup { task: id, target_cpu } => format!("{} on {target_cpu}", task(id)),
            kind => format!("{kind:?}"),
        };
        format!("{} {} {what}", event.time_ns, event.cpu)
    };
    trace.events().map(of).collect()
}
