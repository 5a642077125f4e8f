//! System calls in the forms in which kernels' tools print them.

use fairground_trace::{Call, EventKind, TaskId, read};

/// What trace-cmd and perf print; what ftrace prints of the same calls.
const FORMS: [&str; 2] = [
    "
 a-7 [000] ..... 1.000001: sys_enter_futex: uaddr: 0x7f10a8, op: 0x00000080, val: 0x2, utime: 0x0, uaddr2: 0x0, val3: 0x0
 a-7 [000] ..... 1.000002: sys_exit_futex: 0xfffffffffffffff5
 a-7 [000] ..... 1.000003: sys_enter_futex: uaddr: 0x7f10a8, op: 0x00000081, val: 0x1, utime: 0x0, uaddr2: 0x0, val3: 0x0
 a-7 [000] ..... 1.000004: sys_exit_futex: 0x1
 a-7 [000] ..... 1.000005: sys_enter_read: fd: 0x00000003, buf: 0x7ffd00, count: 0x400
 a-7 [000] ..... 1.000006: sys_exit_read: 0x20
 a-7 [000] ..... 1.000007: sys_enter_clock_nanosleep: which_clock: 0x1, flags: 0x1, rqtp: 0x7ffd, rmtp: 0x0
 a-7 [000] ..... 1.000008: sys_exit_clock_nanosleep: 0x0
 a-7 [000] ..... 1.000009: sys_enter_sched_yield: \x20
 a-7 [000] ..... 1.000010: sys_exit_sched_yield: 0x0
 a-7 [000] ..... 1.000011: sys_enter_wait4: upid: 0xffffffffffffffff, stat_addr: 0x7f, options: 0x0, ru: 0x0
 a-7 [000] ..... 1.000012: sys_exit_wait4: 0x8
 a-7 [000] ..... 1.000013: sys_enter_futex: uaddr: 0x7f10a8, op: 0x00000002, val: 0x1, utime: 0x0, uaddr2: 0x0, val3: 0x0
 a-7 [000] ..... 1.000014: sys_enter_getpid: \x20
",
    "
 a-7 [000] ..... 1.000001: sys_futex(uaddr: 7f10a8, op: 80, val: 2, utime: 0, uaddr2: 0, val3: 0)
 a-7 [000] ..... 1.000002: sys_futex -> 0xfffffffffffffff5
 a-7 [000] ..... 1.000003: sys_futex(uaddr: 7f10a8, op: 81, val: 1, utime: 0, uaddr2: 0, val3: 0)
 a-7 [000] ..... 1.000004: sys_futex -> 0x1
 a-7 [000] ..... 1.000005: sys_read(fd: 3, buf: 7ffd00, count: 400)
 a-7 [000] ..... 1.000006: sys_read -> 0x20
 a-7 [000] ..... 1.000007: sys_clock_nanosleep(which_clock: 1, flags: 1, rqtp: 7ffd, rmtp: 0)
 a-7 [000] ..... 1.000008: sys_clock_nanosleep -> 0x0
 a-7 [000] ..... 1.000009: sys_sched_yield()
 a-7 [000] ..... 1.000010: sys_sched_yield -> 0x0
 a-7 [000] ..... 1.000011: sys_wait4(upid: ffffffffffffffff, stat_addr: 7f, options: 0, ru: 0)
 a-7 [000] ..... 1.000012: sys_wait4 -> 0x8
 a-7 [000] ..... 1.000013: sys_futex(uaddr: 7f10a8, op: 2, val: 1, utime: 0, uaddr2: 0, val3: 0)
 a-7 [000] ..... 1.000014: sys_getpid()
",
];

#[test]
fn every_form_of_a_call_is_read() {
    let task = TaskId(1);
    let enter = |call, object| EventKind::CallEnter { task, call, object };
    let exit = |result| EventKind::CallExit { task, result };
    for form in FORMS {
        let trace = read("calls", form.as_bytes()).expect("a recording");
        let kinds: Vec<_> = trace.events().map(|event| event.kind).collect();
        let wanted = [
            enter(Call::FutexWait, 0x7f_10a8),
            exit(-11),
            enter(Call::FutexWake, 0x7f_10a8),
            exit(1),
            enter(Call::Read, 3),
            exit(0x20),
            enter(Call::SleepUntil, 0),
            exit(0),
            enter(Call::Yield, 0),
            exit(0),
            enter(Call::WaitChild, u64::MAX),
            exit(8),
        ];
        assert_eq!(kinds, wanted, "{:?}", trace.loss);
        // A futex without waiters, and a call that cannot wait.
        assert_eq!((trace.loss.skipped, trace.loss.unreadable), (2, 0), "{:?}", trace.loss);
    }
}

#[test]
fn a_call_without_its_arguments_is_counted() {
    let text = " a-7 [000] ..... 1.000001: sys_enter_read: buf: 0x1, count: 0x2\n\
                \x20a-7 [000] ..... 1.000002: sys_exit_read: much\n\
                \x20a-7 [000] ..... 1.000003: sys_read(fd: 3\n\
                \x20a-7 [000] ..... 1.000004: sys_enter_read: fd: 0x3, buf: 0x0, count: 0x0\n";
    let trace = read("calls", text.as_bytes()).expect("a recording");
    assert_eq!((trace.len(), trace.loss.unreadable), (1, 3));
}

#[test]
fn names_tell_calls_apart() {
    for call in Call::ALL {
        assert_eq!(Call::of_name(call.name()), Some(call));
    }
    assert_eq!(Call::of_name("jump"), None);
}
