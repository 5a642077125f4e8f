//! The clock modes of a virtual machine.

/// How the guest's clock advances.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VmMode {
    /// The clock counts instructions, 8 ns each or fewer ([`super::VmConfig::instruction_ns`]). The same job gives the
    /// same bytes, under any load, on any host with Linux 5.6 or newer that permits filters of system calls (elsewhere
    /// a few runs on several CPUs differ).
    #[default]
    Deterministic,
    /// Each virtual CPU is a thread of the host, under KVM if a probe has shown that it works. Faster; runs differ.
    Fast,
    /// All virtual CPUs share one thread of the host and the host's clock. Slower than [`VmMode::Fast`], for what
    /// that cannot do: under TCG with one thread per CPU, a kernel sometimes panics while it patches its own code
    /// (static branches), and always when a scheduler is attached. One thread of QEMU 10 then executes code that
    /// another one is changing.
    OneThread,
}
