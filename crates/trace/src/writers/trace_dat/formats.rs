//! The events of a written `trace.dat`: their descriptions as a kernel has them in `events/SYSTEM/EVENT/format`, and
//! their bytes.

use std::fmt::Write as _;

use crate::TaskState;

/// The kernel's bits of a state (`TASK_REPORT`); that it was preempted stands above them.
const STATES: [(u64, TaskState); 8] = [
    (0x01, TaskState::Sleeping),
    (0x02, TaskState::Uninterruptible),
    (0x04, TaskState::Stopped),
    (0x08, TaskState::Traced),
    (0x10, TaskState::Dead),
    (0x20, TaskState::Zombie),
    (0x40, TaskState::Parked),
    (0x80, TaskState::Idle),
];
const PREEMPTED: u64 = 0x100;

/// Fields of every event: type, flags, preemption count, pid.
const COMMON_BYTES: usize = 8;

/// The type of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A task's name; the longest one gives its size.
    Comm,
    /// 32 bits.
    Int,
    /// 64 bits.
    Long,
    /// A text up to the end of the event.
    Tail,
    /// 64-bit numbers up to the end of the event.
    Longs,
}

/// A field's value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Numbers(&'a [u64]),
}

/// An event.
#[derive(Debug)]
pub(super) struct Format {
    pub(super) system: &'static str,
    name: &'static str,
    /// Types and names.
    fields: &'static [(Kind, &'static str, &'static str)],
    print: &'static str,
}

use Kind::{Comm, Int, Long, Longs, Tail};

const TASK: [(Kind, &str, &str); 3] =
    [(Comm, "char", "comm"), (Int, "pid_t", "pid"), (Int, "int", "prio")];
const WOKEN: &[(Kind, &str, &str)] = &[TASK[0], TASK[1], TASK[2], (Int, "int", "target_cpu")];
const WOKEN_PRINT: &str =
    r#""comm=%s pid=%d prio=%d target_cpu=%03d", REC->comm, REC->pid, REC->prio, REC->target_cpu"#;

/// The events; the number of one is its place, from [`FIRST_ID`].
pub(super) const FORMATS: [Format; 13] = [
    format(
        "ftrace",
        "print",
        &[(Long, "unsigned long", "ip"), (Tail, "char", "buf")],
        r#""%ps: %s", (void *)REC->ip, REC->buf"#,
    ),
    format(
        "ftrace",
        "kernel_stack",
        &[(Int, "int", "size"), (Longs, "unsigned long", "caller")],
        r#""\t=> %ps\n", (void *)REC->caller[0]"#,
    ),
    format(
        "bpf_trace",
        "bpf_trace_printk",
        &[(Tail, "char", "bpf_string")],
        r#""%s", REC->bpf_string"#,
    ),
    format(
        "timer",
        "hrtimer_expire_entry",
        &[(Long, "void *", "hrtimer"), (Long, "s64", "now"), (Long, "void *", "function")],
        r#""hrtimer=%p function=%ps now=%llu", REC->hrtimer, REC->function, REC->now"#,
    ),
    format(
        "cgroup",
        "cgroup_attach_task",
        &[
            (Int, "int", "dst_root"),
            (Int, "int", "dst_level"),
            (Long, "u64", "dst_id"),
            TASK[1],
            TASK[0],
            (Tail, "char", "dst_path"),
        ],
        r#""dst_root=%d dst_id=%llu dst_level=%d dst_path=%s pid=%d comm=%s", REC->dst_root, REC->dst_id, REC->dst_level, REC->dst_path, REC->pid, REC->comm"#,
    ),
    format(
        "sched",
        "sched_switch",
        &[
            (Comm, "char", "prev_comm"),
            (Int, "pid_t", "prev_pid"),
            (Int, "int", "prev_prio"),
            (Long, "long", "prev_state"),
            (Comm, "char", "next_comm"),
            (Int, "pid_t", "next_pid"),
            (Int, "int", "next_prio"),
        ],
        r#""prev_comm=%s prev_pid=%d prev_prio=%d prev_state=%s%s ==> next_comm=%s next_pid=%d next_prio=%d", REC->prev_comm, REC->prev_pid, REC->prev_prio, (REC->prev_state & 0xff) ? __print_flags(REC->prev_state & 0xff, "|", { 0x01, "S" }, { 0x02, "D" }, { 0x04, "T" }, { 0x08, "t" }, { 0x10, "X" }, { 0x20, "Z" }, { 0x40, "P" }, { 0x80, "I" }) : "R", REC->prev_state & 0x100 ? "+" : "", REC->next_comm, REC->next_pid, REC->next_prio"#,
    ),
    format("sched", "sched_waking", WOKEN, WOKEN_PRINT),
    format("sched", "sched_wakeup", WOKEN, WOKEN_PRINT),
    format("sched", "sched_wakeup_new", WOKEN, WOKEN_PRINT),
    format(
        "sched",
        "sched_migrate_task",
        &[TASK[0], TASK[1], TASK[2], (Int, "int", "orig_cpu"), (Int, "int", "dest_cpu")],
        r#""comm=%s pid=%d prio=%d orig_cpu=%d dest_cpu=%d", REC->comm, REC->pid, REC->prio, REC->orig_cpu, REC->dest_cpu"#,
    ),
    format(
        "sched",
        "sched_process_fork",
        &[
            (Comm, "char", "parent_comm"),
            (Int, "pid_t", "parent_pid"),
            (Comm, "char", "child_comm"),
            (Int, "pid_t", "child_pid"),
        ],
        r#""comm=%s pid=%d child_comm=%s child_pid=%d", REC->parent_comm, REC->parent_pid, REC->child_comm, REC->child_pid"#,
    ),
    format(
        "sched",
        "sched_process_exit",
        &TASK,
        r#""comm=%s pid=%d prio=%d", REC->comm, REC->pid, REC->prio"#,
    ),
    format(
        "sched",
        "sched_stat_runtime",
        &[TASK[0], TASK[1], (Long, "u64", "runtime")],
        r#""comm=%s pid=%d runtime=%Lu [ns]", REC->comm, REC->pid, REC->runtime"#,
    ),
];

/// The first number: smaller ones are those of ftrace's own events in a kernel.
const FIRST_ID: usize = 1;

const fn format(
    system: &'static str,
    name: &'static str,
    fields: &'static [(Kind, &'static str, &'static str)],
    print: &'static str,
) -> Format {
    Format { system, name, fields, print }
}

/// Its number and its event, by name.
pub(super) fn of_name(name: &str) -> (u16, &'static Format) {
    let at = FORMATS.iter().position(|format| format.name == name);
    let at = at.unwrap_or_else(|| unreachable!("{name} has no format"));
    (id(at), &FORMATS[at])
}

fn id(at: usize) -> u16 {
    (FIRST_ID + at) as u16
}

/// The descriptions of a system's events. `comm_bytes` is the size of names.
pub(super) fn described(system: &str, comm_bytes: usize) -> Vec<String> {
    let formats = FORMATS.iter().enumerate().filter(|(_, format)| format.system == system);
    formats.map(|(at, format)| format.text(id(at), comm_bytes)).collect()
}

impl Kind {
    /// Size and alignment, bytes.
    fn size(self, comm_bytes: usize) -> (usize, usize) {
        match self {
            Comm => (comm_bytes, 1),
            Int => (4, 4),
            Long => (8, 8),
            Tail => (0, 1),
            Longs => (0, 8),
        }
    }
}

impl Format {
    fn text(&self, id: u16, comm_bytes: usize) -> String {
        let mut text = format!("name: {}\nID: {id}\nformat:\n", self.name);
        let common = [("unsigned short", "type", 0, 2, 0), ("unsigned char", "flags", 2, 1, 0)];
        let rest = [("unsigned char", "preempt_count", 3, 1, 0), ("int", "pid", 4, 4, 1)];
        for (of, name, at, size, signed) in common.into_iter().chain(rest) {
            let _ = writeln!(
                text,
                "\tfield:{of} common_{name};\toffset:{at};\tsize:{size};\tsigned:{signed};"
            );
        }
        text.push('\n');
        let mut at = COMMON_BYTES;
        for (kind, of, name) in self.fields {
            let (size, align) = kind.size(comm_bytes);
            at = at.next_multiple_of(align);
            let array = match kind {
                Comm => format!("[{size}]"),
                Tail | Longs => "[]".to_owned(),
                _ => String::new(),
            };
            let signed = u8::from(matches!(*of, "int" | "pid_t" | "long" | "s64"));
            let _ = writeln!(
                text,
                "\tfield:{of} {name}{array};\toffset:{at};\tsize:{size};\tsigned:{signed};"
            );
            at += size;
        }
        let _ = writeln!(text, "\nprint fmt: {}", self.print);
        text
    }

    /// The bytes of an event: `flags` are its common flags, `pid` is that of the task that the CPU runs.
    pub(super) fn bytes(
        &self,
        id: u16,
        flags: u8,
        pid: u32,
        comm_bytes: usize,
        values: &[Value<'_>],
    ) -> Vec<u8> {
        let mut bytes = id.to_le_bytes().to_vec();
        bytes.extend([flags, 0]);
        bytes.extend(pid.to_le_bytes());
        for ((kind, ..), value) in self.fields.iter().zip(values) {
            let (size, align) = kind.size(comm_bytes);
            bytes.resize(bytes.len().next_multiple_of(align), 0);
            match *value {
                Value::Number(number) => bytes.extend(&number.to_le_bytes()[..size]),
                Value::Numbers(numbers) => {
                    numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
                }
                Value::Text(text) => {
                    let end = bytes.len() + size;
                    bytes.extend(text.bytes().take(size.checked_sub(1).unwrap_or(text.len())));
                    // One that fills the rest of the event ends with a zero byte, too.
                    bytes.resize(end.max(bytes.len() + usize::from(size == 0)), 0);
                }
            }
        }
        bytes
    }
}

/// A state as `prev_state` has it.
pub(super) fn state_bits(state: TaskState) -> u64 {
    match STATES.iter().find(|(_, known)| *known == state) {
        Some((bits, _)) => *bits,
        None if state == TaskState::Preempted => PREEMPTED,
        None => 0,
    }
}
