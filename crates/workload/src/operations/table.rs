//! The table of operations: all that the reader, the writer, the checks and the summaries need to know of each.
//!
//! A row is
//!
//! ```text
//! Variant(key: Type as Operand, …) {
//!     word: its word in files = an example of its value,
//!     effect: an `Effect` (its time, and what a task that holds a spin lock may not do),
//!     words: the operation in a summary; each operand is a text,
//! }
//! ```
//!
//! The value of a word with one operand is that operand; with two it is a table with their keys, or the first operand
//! alone where the second has a usual value. A word with `is` has that text for its value, and stands before the row that
//! takes others; a `bare` word has none. In `effect`, operands are references, and the identifier of the first line is the workload.

/// Hands the table to a macro of rows. The loop, which has a body, is not in it.
macro_rules! operations {
    ($expand:ident) => {
        $expand! { (workload)
            /// Compute forever: only a signal or the end of the run interrupts it.
            RunForever {
                word: "run" is "forever",
                effect: Effect::waits().forbidden("a run without end"),
                words: "run for ever".to_owned(),
            }
            /// Compute for this CPU time, on a CPU without disturbance.
            Run(length: Duration as WorkLength) {
                word: "run" = "\"1ms\"",
                effect: Effect::computes(*length),
                words: format!("run {length}"),
            }
            /// Read this many bytes of the task's own memory once. The time depends on how much of them the CPU's
            /// cache still holds.
            Touch(bytes: u64 as Bytes) {
                word: "touch" = "65536",
                effect: Effect::AT_ONCE,
                words: format!("touch {bytes}"),
            }
            /// Compute until this wall time has passed since the operation began, whichever task had the CPU
            /// meanwhile. The task reads the clock after each [`BUSY_LOOK_NS`] of its own CPU time.
            Busy(length: Duration as WorkLength) {
                word: "busy" = "\"1ms\"",
                effect: Effect::computes(*length),
                words: format!("compute until {length} have passed"),
            }
            /// Sleep for this long from now on. The machine adds its timer slack.
            Sleep(length: Duration as Length) {
                word: "sleep" = "\"1ms\"",
                effect: Effect::sleeps(*length).forbidden("a sleep"),
                words: format!("sleep {length}"),
            }
            /// A request to the machine's block device that takes it this long, awaited in uninterruptible sleep. The
            /// device serves one request after the other.
            Io(length: Duration as Length) {
                word: "io" = "\"1ms\"",
                effect: Effect::sleeps(*length).forbidden("a wait for the device"),
                words: format!("wait for the device for {length}"),
            }
            /// Wait for the next expiry of a periodic timer, this many ns (not 0) after the previous one, so that
            /// preemption does not stretch the period. The first period begins with the first wait, or with
            /// [`Op::TimerStart`].
            TimerWait(name: TimerId as TimerName, period: u64 as Period) {
                word: "timer" = "{ name = \"tick\", period = \"20ms\" }",
                effect: Effect::sleeps(Duration::Fixed(*period)).forbidden("a wait for a timer"),
                words: format!("wait for timer {name} ({period})"),
            }
            /// Start the first period of a timer; without effect on a timer that has started.
            TimerStart(timer: TimerId as TimerName) {
                word: "timer_start" = "\"tick\"",
                effect: Effect::AT_ONCE,
                words: format!("start timer {timer}"),
            }
            /// Write bytes to a pipe; waits while the pipe is full, wakes a reader.
            PipeWrite(pipe: PipeId as PipeName, bytes: u64 as Bytes) {
                word: "write" = "{ pipe = \"data\", bytes = 64 }",
                effect: Effect::waits().forbidden("a write into a pipe"),
                words: format!("write {bytes} into {pipe}"),
            }
            /// Read up to this many bytes from a pipe; waits while it is empty, wakes a writer. Returns as soon as
            /// there is a byte.
            PipeRead(pipe: PipeId as PipeName, bytes: u64 as Bytes) {
                word: "read" = "{ pipe = \"data\", bytes = 64 }",
                effect: Effect::waits().forbidden("a read from a pipe"),
                words: format!("read {bytes} from {pipe}"),
            }
            /// Send a message to a queue; wakes one receiver. Waits while the queue is full.
            Send(queue: QueueId as QueueName) {
                word: "send" = "\"answers\"",
                effect: match workload.queues[*queue].capacity {
                    Some(_) => Effect::waits().forbidden("a send to a queue that may be full"),
                    None => Effect::AT_ONCE,
                },
                words: format!("send to {queue}"),
            }
            /// Receive this many messages from a queue, one after the other; waits while it is empty.
            Receive(queue: QueueId as QueueName, count: u32 as Messages) {
                word: "receive" = "{ queue = \"answers\", count = 16 }",
                effect: Effect::waits().forbidden("a receive"),
                words: match count.as_str() {
                    "1" => format!("receive from {queue}"),
                    _ => format!("receive {count} from {queue}"),
                },
            }
            /// Send a signal. The receiver runs its handler ([`TaskSpec::on_signal`]) the next time that it runs; a
            /// sleeping receiver is woken.
            Signal(role: Role as Receiver) {
                word: "signal" = "\"worker\"",
                effect: Effect::AT_ONCE,
                words: format!("signal {role}"),
            }
            /// Start the tasks of a group (as many as its count), as children of this one.
            Fork(task: TaskSpecId as TaskName) {
                word: "fork" = "\"worker\"",
                effect: Effect::AT_ONCE.forbidden("a fork"),
                words: format!("fork {task}"),
            }
            /// Wait until all children have exited.
            WaitChildren {
                word: bare "wait",
                effect: Effect::waits().forbidden("a wait for children"),
                words: "wait for the children".to_owned(),
            }
            /// Yield the CPU once (`sched_yield`).
            Yield {
                word: bare "yield",
                effect: Effect::AT_ONCE.forbidden("a yield"),
                words: "yield".to_owned(),
            }
            /// Set the task's own nice value.
            SetNice(nice: i8 as Nice) {
                word: "nice" = "5",
                effect: Effect::AT_ONCE.forbidden("a change of the task's own scheduling"),
                words: format!("set nice {nice}"),
            }
            /// Set the task's own scheduling policy (`sched_setscheduler`).
            SetPolicy(policy: SchedPolicy as Policy) {
                word: "policy" = "{ name = \"fifo\", priority = 50 }",
                effect: Effect::AT_ONCE.forbidden("a change of the task's own scheduling"),
                words: format!("set policy {policy}"),
            }
            /// Request slices of this length, ns (`sched_setattr` with `sched_runtime` for a fair policy, Linux 6.12):
            /// clamped to 0.1 to 100 ms; 0 restores the scheduler's own length. Its effect depends on the scheduler.
            SetSlice(slice: u64 as SliceLength) {
                word: "slice" = "\"100us\"",
                effect: Effect::AT_ONCE.forbidden("a change of the task's own scheduling"),
                words: format!("ask for slices of {slice}"),
            }
            /// Set the task's own affinity.
            SetAffinity(cpus: CpuList as Cpus) {
                word: "cpus" = "\"0-3\"",
                effect: Effect::AT_ONCE.forbidden("a change of the task's own affinity"),
                words: format!("move to CPUs {cpus}"),
            }
            /// Move the task itself into a cgroup.
            SetCgroup(cgroup: CgroupId as CgroupPath) {
                word: "cgroup" = "\"web/front\"",
                effect: Effect::AT_ONCE.forbidden("a change of a cgroup"),
                words: format!("move to cgroup {cgroup}"),
            }
            /// Set the weight of a cgroup (`cpu.weight`, 1…10,000); the root has none.
            SetCgroupWeight(cgroup: CgroupId as ChildPath, weight: u32 as Weight) {
                word: "weight" = "{ cgroup = \"web\", weight = 300 }",
                effect: Effect::AT_ONCE.forbidden("a change of a cgroup"),
                words: format!("set the weight of cgroup {cgroup} to {weight}"),
            }
            /// Write a mark to the trace; its value is the number of earlier marks of this text by this task.
            Mark(text: String as Text) {
                word: "mark" = "\"begin\"",
                effect: Effect::AT_ONCE,
                words: format!("mark {text}"),
            }
            /// Acquire a lock; waits while another task holds it.
            Lock(lock: LockId as KindOfLock) {
                word: "lock" = "\"table\"",
                effect: Effect::AT_ONCE,
                words: format!("lock {lock}"),
            }
            /// Acquire an rwlock as a reader; waits while a writer holds it or waits for it.
            ReadLock(lock: LockId as LockName) {
                word: "read_lock" = "\"table\"",
                effect: Effect::AT_ONCE,
                words: format!("lock {lock} to read"),
            }
            /// Acquire an rwlock as a writer; waits while any task holds it.
            WriteLock(lock: LockId as LockName) {
                word: "write_lock" = "\"table\"",
                effect: Effect::AT_ONCE,
                words: format!("lock {lock} to write"),
            }
            /// Release a lock that the task holds.
            Unlock(lock: LockId as LockName) {
                word: "unlock" = "\"table\"",
                effect: Effect::AT_ONCE,
                words: format!("unlock {lock}"),
            }
            /// Release the lock, wait until the condition is notified, and acquire the lock again.
            ConditionWait(cond: ConditionId as ConditionName, lock: LockId as LockName) {
                word: "wait" = "{ cond = \"filled\", lock = \"table\" }",
                effect: Effect::waits(),
                words: format!("wait for {cond} without {lock}"),
            }
            /// Wake the task that has waited longest for the condition, if there is one.
            Notify(condition: ConditionId as ConditionName) {
                word: "notify" = "\"filled\"",
                effect: Effect::AT_ONCE,
                words: format!("notify {condition}"),
            }
            /// Wake all tasks that wait for the condition.
            NotifyAll(condition: ConditionId as ConditionName) {
                word: "notify_all" = "\"filled\"",
                effect: Effect::AT_ONCE,
                words: format!("notify all at {condition}"),
            }
            /// Wait until the barrier's number of tasks have arrived; then all continue.
            Barrier(barrier: BarrierId as BarrierName) {
                word: "barrier" = "\"start\"",
                effect: match workload.barriers[*barrier].count {
                    0 | 1 => Effect::AT_ONCE,
                    _ => Effect::waits(),
                }
                .forbidden("a wait at a barrier"),
                words: format!("meet {barrier}"),
            }
            /// Exit.
            Exit {
                word: bare "exit",
                effect: Effect::waits(),
                words: "exit".to_owned(),
            }
        }
    };
}
pub(crate) use operations;
