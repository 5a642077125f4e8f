//! A writer of small CTF traces with LTTng's description of its events, in either byte order.

use std::fs;
use std::path::Path;

/// A stream of a CPU in the making.
#[derive(Clone, Debug)]
pub(crate) struct CtfStream {
    big: bool,
    cpu: u32,
    packets: Vec<u8>,
    /// Events of the present packet: time and bytes behind the head.
    events: Vec<(u64, u32, Vec<u8>)>,
    /// Events lost so far.
    pub(crate) discarded: u64,
    /// Packets so far.
    pub(crate) number: u64,
    /// The context of the next events, if they have one.
    context: Vec<u8>,
}

/// Numbers of the events.
pub(crate) const WAKING: u32 = 2;
pub(crate) const WAKEUP: u32 = 3;
pub(crate) const SWITCH: u32 = 5;
pub(crate) const FORK: u32 = 11;
pub(crate) const PROCESS_STATE: u32 = 20;
/// Beyond those that a compact head has room for.
pub(crate) const IRQ_ENTRY: u32 = 40;
pub(crate) const IRQ_EXIT: u32 = 41;

/// A task: its number and name.
pub(crate) type CtfTask<'a> = (u32, &'a str);

impl CtfStream {
    pub(crate) fn new(cpu: u32, big: bool) -> Self {
        Self {
            big,
            cpu,
            packets: Vec::new(),
            events: Vec::new(),
            discarded: 0,
            number: 0,
            context: Vec::new(),
        }
    }

    fn number(&self, value: u64, bytes: usize) -> Vec<u8> {
        match self.big {
            true => value.to_be_bytes()[8 - bytes..].to_vec(),
            false => value.to_le_bytes()[..bytes].to_vec(),
        }
    }

    /// Adds an event with its fields.
    pub(crate) fn event(&mut self, time: u64, id: u32, fields: &[&[u8]]) {
        self.events.push((time, id, [&self.context[..], &fields.concat()].concat()));
    }

    /// The next events have the context `tid`.
    pub(crate) fn in_task(&mut self, tid: u32) {
        self.context = self.number(tid.into(), 4);
    }

    fn comm(name: &str) -> Vec<u8> {
        let mut field = name.as_bytes().to_vec();
        field.resize(16, 0);
        field
    }

    /// Name, number and priority: nice 0.
    fn task(&self, (tid, comm): CtfTask<'_>) -> Vec<u8> {
        [Self::comm(comm), self.number(tid.into(), 4), self.number(20, 4)].concat()
    }

    pub(crate) fn switch(&mut self, time: u64, prev: CtfTask<'_>, state: u64, next: CtfTask<'_>) {
        let fields = [self.task(prev), self.number(state, 8), self.task(next)];
        self.event(time, SWITCH, &[&fields.concat()]);
    }

    /// `sched_waking` or `sched_wakeup`.
    pub(crate) fn wake(&mut self, time: u64, id: u32, task: CtfTask<'_>, target_cpu: u32) {
        let fields = [self.task(task), self.number(target_cpu.into(), 4)];
        self.event(time, id, &[&fields.concat()]);
    }

    pub(crate) fn fork(&mut self, time: u64, parent: CtfTask<'_>, child: CtfTask<'_>) {
        let number = |value: u32| self.number(value.into(), 4);
        let fields = [
            Self::comm(parent.1),
            number(parent.0),
            Self::comm(child.1),
            number(child.0),
            // A sequence of two numbers.
            vec![2],
            number(child.0),
            number(1),
        ];
        self.event(time, FORK, &[&fields.concat()]);
    }

    /// `lttng_statedump_process_state`.
    pub(crate) fn process_state(&mut self, time: u64, (tid, name): CtfTask<'_>) {
        let [tid, other] = [tid, 1].map(|value| self.number(value.into(), 4));
        let fields = [tid, other.clone(), other.clone(), Self::comm(name), other];
        self.event(time, PROCESS_STATE, &[&fields.concat()]);
    }

    /// Ends the packet with the events so far.
    pub(crate) fn packet(&mut self) {
        let events = std::mem::take(&mut self.events);
        if events.is_empty() {
            return;
        }
        let (begin, end) = (events[0].0, events[events.len() - 1].0);
        let mut body = Vec::new();
        let head_bytes = 4 + 16 + 4 + 8 + 6 * 8 + 4;
        for (time, id, fields) in &events {
            // Heads begin at bytes.
            match *id {
                0..=30 => {
                    let (id, time) = (u64::from(*id), time & ((1 << 27) - 1));
                    let word = if self.big { id << 27 | time } else { id | time << 5 };
                    body.extend(self.number(word, 4));
                }
                _ => {
                    body.push(if self.big { 31 << 3 } else { 31 });
                    body.extend(self.number((*id).into(), 4));
                    body.extend(self.number(*time, 8));
                }
            }
            body.extend(fields);
        }
        let content = (head_bytes + body.len()) as u64 * 8;
        // Padding behind the content.
        let size = content.next_multiple_of(512);
        let mut packet = self.number(0xc1fc_1fc1, 4);
        packet.extend([7; 16]);
        packet.extend(self.number(0, 4));
        packet.extend(self.number(self.cpu.into(), 8));
        for value in [begin, end, content, size, self.number, self.discarded] {
            packet.extend(self.number(value, 8));
        }
        packet.extend(self.number(self.cpu.into(), 4));
        packet.extend(body);
        packet.resize(size as usize / 8, 0);
        self.packets.extend(packet);
        self.number += 1;
    }

    /// The bytes of its file.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.packets.clone()
    }
}

/// The description, plain.
pub(crate) fn metadata(big: bool) -> String {
    let order = if big { "be" } else { "le" };
    let int = |bits: u32, signed: u32| {
        format!(
            "integer {{ size = {bits}; align = 8; signed = {signed}; encoding = none; base = 10; }}"
        )
    };
    let comm = "integer { size = 8; align = 8; signed = 0; encoding = UTF8; base = 10; }";
    let (i32, u8, u64) = (int(32, 1), int(8, 0), int(64, 1));
    let task = |prefix: &str| {
        format!("{comm} _{prefix}comm[16]; {i32} _{prefix}tid; {i32} _{prefix}prio;")
    };
    let event = |name: &str, id: u32, fields: String| {
        format!(
            "event {{\n\tname = \"{name}\";\n\tid = {id};\n\tstream_id = 0;\n\tfields := struct {{ {fields} \
             }};\n}};\n\n"
        )
    };
    let woken = task("") + &i32 + " _target_cpu;";
    let switch = format!("{} {u64} _prev_state; {}", task("prev_"), task("next_"));
    let fork = format!(
        "{comm} _parent_comm[16]; {i32} _parent_tid; {comm} _child_comm[16]; {i32} _child_tid; \
         {u8} __vtids_length; {i32} _vtids[ __vtids_length ];"
    );
    let state = format!("{i32} _tid; {i32} _pid; {i32} _ppid; {comm} _name[16]; {i32} _type;");
    let events = [
        event("sched_waking", WAKING, woken.clone()),
        event("sched_wakeup", WAKEUP, woken),
        event("sched_switch", SWITCH, switch),
        event("sched_process_fork", FORK, fork),
        event("lttng_statedump_process_state", PROCESS_STATE, state),
        event("irq_handler_entry", IRQ_ENTRY, format!("{i32} _irq; string _name;")),
        event("irq_handler_exit", IRQ_EXIT, format!("{i32} _irq;")),
    ];
    HEAD.replace("byte_order = le", &format!("byte_order = {order}")) + &events.concat()
}

const HEAD: &str = "\
/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;
typealias integer { size = 5; align = 1; signed = false; } := uint5_t;

trace {
	major = 1;
	minor = 8;
	uuid = \"07070707-0707-0707-0707-070707070707\";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};

env {
	domain = \"kernel\";
	kernel_release = \"6.1.0-test\";
	tracer_name = \"lttng-modules\";
	tracer_major = 2;
};

clock {
	name = \"monotonic\";
	freq = 1000000000; /* Frequency, in Hz */
	offset = 1571238431155326264;
};

typealias integer {
	size = 27; align = 1; signed = false;
	map = clock.monotonic.value;
} := uint27_clock_monotonic_t;

typealias integer {
	size = 64; align = 8; signed = false;
	map = clock.monotonic.value;
} := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_compact {
	enum : uint5_t { compact = 0 ... 30, extended = 31 } id;
	variant <id> {
		struct {
			uint27_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_compact;
	packet.context := struct packet_context;
};

";

/// The description in packets, as LTTng writes it.
pub(crate) fn packed(text: &str, big: bool) -> Vec<u8> {
    let number = |value: u32| if big { value.to_be_bytes() } else { value.to_le_bytes() };
    let mut out = Vec::new();
    for part in text.as_bytes().chunks(1000) {
        let content = (37 + part.len() as u32) * 8;
        let size = content.next_multiple_of(1 << 13);
        let start = out.len();
        out.extend(number(0x75d1_1d57));
        out.extend([7; 16]);
        out.extend([number(0), number(content), number(size)].concat());
        out.extend([0, 0, 0, 1, 8]);
        out.extend(part);
        out.resize(start + size as usize / 8, 0);
    }
    out
}

/// The description of events with the context `tid`.
pub(crate) fn metadata_with_tid(big: bool) -> String {
    let frame = "packet.context := struct packet_context;";
    let context =
        "event.context := struct { integer { size = 32; align = 8; signed = 1; } _tid; };";
    metadata(big).replace(frame, &format!("{frame}\n\t{context}"))
}

/// A trace of two CPUs.
pub(crate) fn small(big: bool) -> Vec<(String, Vec<u8>)> {
    let (idle, app, other) = ((0, "swapper/0"), (7, "app"), (8, "other"));
    let mut first = CtfStream::new(0, big);
    first.switch(1_000, idle, 0, app);
    first.wake(2_000, WAKING, other, 1);
    first.packet();
    first.fork(2_500, app, (9, "app"));
    first.event(2_600, IRQ_ENTRY, &[&first.number(5, 4), b"eth0\0"]);
    first.wake(2_700, WAKING, (10, "late"), 0);
    first.event(2_800, IRQ_EXIT, &[&first.number(5, 4)]);
    // The compact clock has 27 bits.
    first.switch((1 << 27) + 5, app, 1, idle);
    first.packet();
    let mut second = CtfStream::new(1, big);
    second.wake(2_100, WAKEUP, other, 1);
    second.switch(2_200, (0, "swapper/1"), 0, other);
    second.packet();
    second.discarded = 9;
    second.switch(9_000, other, 2, (0, "swapper/1"));
    second.packet();
    vec![
        ("metadata".to_owned(), packed(&metadata(big), big)),
        ("channel0_0".to_owned(), first.bytes()),
        ("channel0_1".to_owned(), second.bytes()),
    ]
}

/// Writes the files of a trace into a folder.
pub(crate) fn write(folder: &Path, files: &[(String, Vec<u8>)]) {
    fs::create_dir_all(folder).expect("a folder");
    for (name, bytes) in files {
        fs::write(folder.join(name), bytes).expect("a file");
    }
}

/// Files of a trace: names and contents.
pub(crate) type CtfFiles = Vec<(String, Vec<u8>)>;

/// A trace that lists tasks when it begins. Its events have the context `tid`.
pub(crate) fn dumped() -> CtfFiles {
    let mut stream = CtfStream::new(0, false);
    stream.in_task(99);
    stream.process_state(900, (7, "early"));
    stream.process_state(950, (8, "dumped"));
    stream.in_task(7);
    stream.wake(1_000, WAKING, (8, "other"), 0);
    stream.switch(2_000, (0, "swapper/0"), 0, (8, "other"));
    stream.packet();
    let text = metadata_with_tid(false);
    vec![("metadata".to_owned(), text.into_bytes()), ("channel0_0".to_owned(), stream.bytes())]
}

/// The trace of a program: its description, without a stream.
pub(crate) fn of_program() -> CtfFiles {
    let text = metadata(false).replace("domain = \"kernel\"", "domain = \"ust\"");
    let (head, _) = text.split_once("event {").expect("events");
    vec![("metadata".to_owned(), head.as_bytes().to_vec())]
}

/// A tar archive with these files in folders.
pub(crate) fn tars(folders: &[(&str, CtfFiles)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (folder, files) in folders {
        let archive = tar(folder, files);
        out.extend(&archive[..archive.len() - END_BYTES]);
    }
    out.resize(out.len() + END_BYTES, 0);
    out
}

/// What ends a tar archive.
const END_BYTES: usize = 1024;

/// A tar archive with these files in a folder.
pub(crate) fn tar(folder: &str, files: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut out = Vec::new();
    for (name, bytes) in files {
        let mut head = vec![0; 512];
        let path = format!("{folder}/{name}");
        head[..path.len()].copy_from_slice(path.as_bytes());
        let size = format!("{:011o}", bytes.len());
        head[124..135].copy_from_slice(size.as_bytes());
        head[156] = b'0';
        head[257..262].copy_from_slice(b"ustar");
        out.extend(head);
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + END_BYTES, 0);
    out
}
