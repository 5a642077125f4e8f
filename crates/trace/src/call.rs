//! Calls in which a task may wait for another one, or may end another one's wait.

/// Defines [`Call`]: each kind with its name.
macro_rules! calls {
    ($($(#[$doc:meta])* $call:ident = $name:literal,)*) => {
        /// A kind of call in which a task may wait, or may end the wait of another task: system calls of a real kernel,
        /// operations of the simulated machine.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Call {
            $($(#[$doc])* $call,)*
        }

        impl Call {
            /// Every kind, in numerical order.
            pub const ALL: [Call; [$($name),*].len()] = [$(Call::$call),*];

            /// Its name in texts and tables.
            pub fn name(self) -> &'static str {
                match self {
                    $(Call::$call => $name,)*
                }
            }

            /// The kind of a name.
            pub fn of_name(name: &str) -> Option<Call> {
                Call::ALL.into_iter().find(|call| call.name() == name)
            }
        }
    };
}

calls! {
    /// Waits for a value in memory: `futex` with `FUTEX_WAIT…` or `FUTEX_LOCK_PI`, `futex_wait`. The object is the
    /// address. Simulated: takes a sleeping lock, waits for a condition or at a barrier.
    FutexWait = "futex_wait",
    /// Wakes such waiters: `FUTEX_WAKE…`, `FUTEX_REQUEUE…`, `FUTEX_UNLOCK_PI`, `futex_wake`. Simulated: gives back a
    /// lock, notifies a condition.
    FutexWake = "futex_wake",
    /// Reads from a file descriptor, the object: a pipe, a socket, a device, a file.
    Read = "read",
    /// Writes to a file descriptor, the object.
    Write = "write",
    /// Sends to a socket (the object is the descriptor) or a message queue (its id).
    Send = "send",
    /// Receives, or accepts a connection.
    Receive = "receive",
    /// Waits for events of descriptors: `epoll_wait` (the object is its descriptor), `poll`, `select` (object 0).
    Poll = "poll",
    /// Sleeps for a length.
    Sleep = "sleep",
    /// Sleeps until a point in time (`TIMER_ABSTIME`). Simulated: until a periodic timer expires.
    SleepUntil = "sleep_until",
    /// `sched_yield`.
    Yield = "yield",
    /// Waits for the end of a child; the object is the pid that the caller named, as a 64-bit word.
    WaitChild = "wait_child",
}
