//! The control block of an instance: what generated code, the engines and the shims between them share.

use std::ffi::c_void;

use crate::env::MAX_PRICES;

/// What inlined helpers read: set it before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Context {
    /// The CPU that the program runs on: `bpf_get_smp_processor_id`, per-CPU maps. Below the configured number of CPUs.
    pub cpu: u32,
    /// The clock, ns: `bpf_ktime_get_ns`, `scx_bpf_now` and their kin.
    pub now_ns: u64,
    /// Guest address of the current `task_struct`: `bpf_get_current_task_btf`.
    pub task: u64,
}

/// Where a task-storage map's values lie and which are in use, indexed by the task's number in its slab.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct TaskView {
    /// Guest address of task 0's value.
    pub(crate) values: u64,
    /// One byte per task: 1 if it has a value.
    pub(crate) present: *mut u8,
}

/// The control block. Generated code knows the offsets of its fields.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Vm {
    /// Native stack pointer of the innermost entry into generated code.
    pub(crate) entry_sp: u64,
    /// Instructions that the call may still execute; negative is out of fuel.
    pub(crate) fuel: i64,
    /// Divisions and remainders executed since the instance was made.
    pub(crate) divisions: u64,
    /// The prices of all calls so far, and not yet taken.
    pub(crate) spent: u64,
    /// Guest stack pointer (r10) of the next function that a helper calls back.
    pub(crate) sp: u64,
    /// Set by the host before a call.
    pub(crate) context: Context,
    /// `&mut H` of the running call.
    pub(crate) host: *mut c_void,
    /// The `Core<H>` of the instance.
    pub(crate) core: *mut c_void,
    /// Native address of the instruction that faulted, or 0.
    pub(crate) fault_code: u64,
    /// Native address that it touched.
    pub(crate) fault_addr: u64,
    /// Native addresses between which the image's code lies.
    pub(crate) code_low: u64,
    /// Its end.
    pub(crate) code_high: u64,
    /// The slab of tasks: guest address of task 0.
    pub(crate) slab_base: u64,
    /// Bytes of the slab.
    pub(crate) slab_bytes: u64,
    /// Bytes from a task to the next.
    pub(crate) slab_stride: u64,
    /// `ceil(2^32 / slab_stride)`: a multiplication finds the task's number.
    pub(crate) slab_inverse: u64,
    /// One per map (those of other kinds are empty).
    pub(crate) task_views: *const TaskView,
    /// What each priced kind of call adds to `spent`. Last, for it is long.
    pub(crate) prices: [u32; MAX_PRICES],
}

/// Deepest nesting of calls, callbacks included. The kernel's verifier allows 8 frames; callbacks of helpers start anew there.
pub(crate) const MAX_FRAMES: u32 = 64;
/// Bytes of stack per frame, as the BPF ISA has it.
pub(crate) const FRAME_BYTES: u64 = 512;
/// Lowest guest address of the stack.
pub(crate) const STACK_LOW: u64 = 0x10_0000;
/// r10 of the outermost frame.
pub(crate) const STACK_TOP: u64 = STACK_LOW + MAX_FRAMES as u64 * FRAME_BYTES;
/// Where a call's arguments lie.
pub(crate) const ARGS: u64 = 0x12_0000;
/// Arguments of one call at most.
pub(crate) const MAX_ARGS: usize = 12;

impl Vm {
    /// The number of the task at `addr` in the slab; `None` for any other address.
    #[inline]
    pub(crate) fn task_number(&self, addr: u64) -> Option<usize> {
        let offset = addr.wrapping_sub(self.slab_base);
        if offset >= self.slab_bytes {
            return None;
        }
        let number = (offset * self.slab_inverse) >> 32;
        (number * self.slab_stride == offset).then_some(number as usize)
    }
}
