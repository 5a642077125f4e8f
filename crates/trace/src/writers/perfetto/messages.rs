//! The few messages of Perfetto's format that are written: field numbers and types from its public
//! `perfetto_trace.proto`.

use prost::{Message, Oneof};

/// `Trace`, one packet of it: a file is a sequence of such.
#[derive(Clone, PartialEq, Message)]
pub(super) struct OnePacket {
    #[prost(message, optional, tag = "1")]
    pub(super) packet: Option<TracePacket>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TracePacket {
    #[prost(uint64, optional, tag = "8")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "10")]
    pub(super) trusted_packet_sequence_id: Option<u32>,
    #[prost(message, optional, tag = "12")]
    pub(super) interned_data: Option<InternedData>,
    #[prost(uint32, optional, tag = "13")]
    pub(super) sequence_flags: Option<u32>,
    #[prost(oneof = "Data", tags = "1, 2, 11, 34, 45, 60")]
    pub(super) data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Data {
    #[prost(message, tag = "1")]
    FtraceEvents(FtraceEventBundle),
    #[prost(message, tag = "2")]
    ProcessTree(ProcessTree),
    #[prost(message, tag = "11")]
    TrackEvent(TrackEvent),
    #[prost(message, tag = "34")]
    FtraceStats(FtraceStats),
    #[prost(message, tag = "45")]
    SystemInfo(SystemInfo),
    #[prost(message, tag = "60")]
    TrackDescriptor(TrackDescriptor),
}

/// Defines messages whose fields are always written: each with its type in Perfetto and in Rust, and its number.
macro_rules! messages {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ident $type:ty = $tag:tt,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Message)]
        pub(super) struct $name {
            $(
                $(#[$field_doc])*
                #[prost($kind, required, tag = $tag)]
                pub(super) $field: $type,
            )*
        }
    )*};
}

messages! {
    SystemInfo {
        num_cpus: uint32 u32 = "8",
    }
    FtraceCpuStats {
        cpu: uint64 u64 = "1",
        overrun: uint64 u64 = "3",
    }
    SchedSwitch {
        prev_comm: string String = "1",
        prev_pid: int32 i32 = "2",
        prev_prio: int32 i32 = "3",
        prev_state: int64 i64 = "4",
        next_comm: string String = "5",
        next_pid: int32 i32 = "6",
        next_prio: int32 i32 = "7",
    }
    /// `sched_waking`, `sched_wakeup` and `sched_wakeup_new` have the same fields.
    SchedWakeup {
        comm: string String = "1",
        pid: int32 i32 = "2",
        prio: int32 i32 = "3",
        success: int32 i32 = "4",
        target_cpu: int32 i32 = "5",
    }
    CgroupAttachTask {
        dst_id: int32 i32 = "2",
        pid: int32 i32 = "3",
        comm: string String = "4",
        dst_path: string String = "7",
    }
    TaskNewtask {
        pid: int32 i32 = "1",
        comm: string String = "2",
        clone_flags: uint64 u64 = "3",
    }
    SchedProcessExit {
        comm: string String = "1",
        pid: int32 i32 = "2",
        prio: int32 i32 = "4",
    }
    SchedProcessFork {
        parent_comm: string String = "1",
        parent_pid: int32 i32 = "2",
        child_comm: string String = "3",
        child_pid: int32 i32 = "4",
    }
    SchedMigrateTask {
        comm: string String = "1",
        pid: int32 i32 = "2",
        prio: int32 i32 = "3",
        orig_cpu: int32 i32 = "4",
        dest_cpu: int32 i32 = "5",
    }
    HrtimerExpireEntry {
        now: int64 i64 = "2",
        /// A number in [`InternedData`].
        function: uint64 u64 = "3",
    }
    InternedString {
        iid: uint64 u64 = "1",
        text: bytes Vec<u8> = "2",
    }
    ThreadDescriptor {
        pid: int32 i32 = "1",
        tid: int64 i64 = "2",
        thread_name: string String = "5",
    }
    DebugAnnotation {
        string_value: string String = "6",
        name: string String = "10",
    }
}

/// Texts that later packets name by their numbers.
#[derive(Clone, PartialEq, Message)]
pub(super) struct InternedData {
    #[prost(message, repeated, tag = "26")]
    pub(super) kernel_symbols: Vec<InternedString>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ProcessTree {
    #[prost(message, repeated, tag = "1")]
    pub(super) processes: Vec<Process>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Process {
    #[prost(int32, optional, tag = "1")]
    pub(super) pid: Option<i32>,
    #[prost(string, repeated, tag = "3")]
    pub(super) cmdline: Vec<String>,
    /// The command line is only a task's name.
    #[prost(bool, optional, tag = "9")]
    pub(super) cmdline_is_comm: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceStats {
    /// 1: at the start, 2: at the end.
    #[prost(int32, optional, tag = "1")]
    pub(super) phase: Option<i32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) cpu_stats: Vec<FtraceCpuStats>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEventBundle {
    #[prost(uint32, optional, tag = "1")]
    pub(super) cpu: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(super) event: Vec<FtraceEvent>,
    #[prost(bool, optional, tag = "3")]
    pub(super) lost_events: Option<bool>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct FtraceEvent {
    #[prost(uint64, optional, tag = "1")]
    pub(super) timestamp: Option<u64>,
    #[prost(uint32, optional, tag = "2")]
    pub(super) pid: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    pub(super) common_flags: Option<u32>,
    #[prost(oneof = "Ftrace", tags = "4, 17, 20, 67, 114, 235, 238, 239, 491, 553")]
    pub(super) event: Option<Ftrace>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Ftrace {
    #[prost(message, tag = "4")]
    SchedSwitch(SchedSwitch),
    #[prost(message, tag = "17")]
    SchedWakeup(SchedWakeup),
    #[prost(message, tag = "20")]
    SchedWaking(SchedWakeup),
    #[prost(message, tag = "67")]
    CgroupAttachTask(CgroupAttachTask),
    #[prost(message, tag = "114")]
    SchedWakeupNew(SchedWakeup),
    #[prost(message, tag = "235")]
    TaskNewtask(TaskNewtask),
    #[prost(message, tag = "238")]
    SchedProcessExit(SchedProcessExit),
    #[prost(message, tag = "239")]
    SchedProcessFork(SchedProcessFork),
    #[prost(message, tag = "491")]
    SchedMigrateTask(SchedMigrateTask),
    #[prost(message, tag = "553")]
    HrtimerExpireEntry(HrtimerExpireEntry),
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackDescriptor {
    #[prost(uint64, optional, tag = "1")]
    pub(super) uuid: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub(super) name: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub(super) thread: Option<ThreadDescriptor>,
    #[prost(uint64, optional, tag = "5")]
    pub(super) parent_uuid: Option<u64>,
    #[prost(message, optional, tag = "8")]
    pub(super) counter: Option<CounterDescriptor>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct CounterDescriptor {
    /// 1: time in ns, 2: a count.
    #[prost(int32, optional, tag = "3")]
    pub(super) unit: Option<i32>,
    /// A unit that has no number.
    #[prost(string, optional, tag = "6")]
    pub(super) unit_name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct TrackEvent {
    #[prost(message, repeated, tag = "4")]
    pub(super) debug_annotations: Vec<DebugAnnotation>,
    /// 1 and 2: begin and end of a slice, 3: an instant, 4: a counter's value.
    #[prost(int32, optional, tag = "9")]
    pub(super) kind: Option<i32>,
    #[prost(uint64, optional, tag = "11")]
    pub(super) track_uuid: Option<u64>,
    #[prost(string, repeated, tag = "22")]
    pub(super) categories: Vec<String>,
    #[prost(string, optional, tag = "23")]
    pub(super) name: Option<String>,
    #[prost(int64, optional, tag = "30")]
    pub(super) counter_value: Option<i64>,
}
