//! The control block of an instance, shared by generated code, the engines and the functions that generated code calls.

use std::ffi::c_void;

use crate::env::MAX_PRICES;
use crate::image::Executable;
use crate::maps::TaskView;
use crate::state::State;
use crate::trap::Trap;

/// The values that inlined helpers read. The host sets them before a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Context {
    /// The CPU that the program runs on (`bpf_get_smp_processor_id`, per-CPU maps): below
    /// [`crate::InstanceConfig::cpus`].
    pub cpu: u32,
    /// The clock in ns (`bpf_ktime_get_ns`, `scx_bpf_now`, …).
    pub now_ns: u64,
    /// Guest address of the current `task_struct` (`bpf_get_current_task_btf`).
    pub task: u64,
}

/// Runs a function of the program with r1…r5 on the engine of its image: [`crate::exec::invoke`] for the host's type.
pub(crate) type Invoke = unsafe fn(*mut Vm, usize, &[u64; 5]) -> Result<u64, Trap>;

/// The control block. Generated code contains the offsets of its fields. All zeros is a valid value.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Vm {
    /// Native stack pointer of the innermost entry into generated code.
    pub(crate) entry_sp: u64,
    /// Instructions that the call may still execute; negative: out of fuel.
    pub(crate) fuel: i64,
    /// Divisions and remainders executed since the instance was created.
    pub(crate) divisions: u64,
    /// Sum of the prices of calls since [`crate::Instance::take_spent`].
    pub(crate) spent: u64,
    /// Guest stack pointer (r10) of the next function that a helper calls.
    pub(crate) sp: u64,
    /// Set by the host before a call.
    pub(crate) context: Context,
    /// `&mut H` of the running call.
    pub(crate) host: *mut c_void,
    /// The state of the instance.
    pub(crate) state: *mut State,
    /// The `Image<H>` of the instance.
    pub(crate) image: *const c_void,
    /// The function that runs; null before the first call.
    pub(crate) executable: *const Executable,
    /// For callbacks of helpers.
    pub(crate) invoke: Option<Invoke>,
    /// Native address of the instruction that faulted, or 0.
    pub(crate) fault_code: u64,
    /// Native address that it accessed.
    pub(crate) fault_addr: u64,
    /// Native start address of the image's code.
    pub(crate) code_low: u64,
    /// Native end address of the image's code.
    pub(crate) code_high: u64,
    /// Guest address of task 0 in the task slab.
    pub(crate) slab_base: u64,
    /// Bytes of the task slab.
    pub(crate) slab_bytes: u64,
    /// Bytes from a task to the next.
    pub(crate) slab_stride: u64,
    /// `ceil(2^32 / slab_stride)`: turns the division by the stride into a multiplication.
    pub(crate) slab_inverse: u64,
    /// One per map; empty for maps other than task storage.
    pub(crate) task_views: *const TaskView,
    /// By price index: the amount that a call adds to `spent`. The last field, because it is long.
    pub(crate) prices: [u32; MAX_PRICES],
}

/// Maximum nesting of calls, callbacks included. The kernel's verifier allows 8 frames; a callback of a
/// helper starts a new count there.
pub(crate) const MAX_FRAMES: u32 = 64;
/// Bytes of stack per frame (the kernel's `MAX_BPF_STACK`).
pub(crate) const FRAME_BYTES: u64 = 512;
/// Lowest guest address of the stack.
pub(crate) const STACK_LOW: u64 = 0x10_0000;
/// r10 of the outermost frame.
pub(crate) const STACK_TOP: u64 = STACK_LOW + MAX_FRAMES as u64 * FRAME_BYTES;
/// Guest address of the arguments of a call.
pub(crate) const ARGS: u64 = 0x12_0000;
/// Maximum number of arguments of a call.
pub(crate) const MAX_ARGS: usize = 12;

impl Vm {
    /// The index in the slab of the task at `addr`; `None` if no task starts there.
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
