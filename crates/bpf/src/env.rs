//! The environment that a program is linked against (types, kfuncs, configuration), and the host that it runs on.

use crate::helpers;
use crate::link::ConfigValue;
use crate::memory::Memory;
use crate::trap::Trap;
use crate::types::TargetTypes;

/// A host function: a kfunc, or a helper that the environment supplies. It gets the host, the guest's memory, and
/// r1…r5. Pointers among the arguments are guest addresses; [`Memory`] checks each access.
pub type HostFn<H> = fn(&mut H, &Memory, [u64; 5]) -> Result<u64, Trap>;

/// A function of the program, as a callback: an index into [`crate::Linked::functions`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FuncRef(pub usize);

/// The interface of the host that helpers call.
pub trait Host {
    /// `bpf_get_prandom_u32`: the next number of the host's own seeded sequence.
    fn random_u32(&mut self) -> u32;

    /// One line of `bpf_trace_printk`, formatted, without the trailing newline.
    fn print(&mut self, line: &str);

    /// `bpf_timer_start`. `timer` is the guest address of the `struct bpf_timer`, which identifies it. When it
    /// expires, the host calls [`crate::Instance::call_function`] with `callback` and `args` (map, key pointer, value
    /// pointer). `time_ns` is a delay, or a point in time when `flags` has `BPF_F_TIMER_ABS` (1). Returns 0 or a
    /// negative errno.
    fn timer_start(
        &mut self,
        timer: u64,
        callback: FuncRef,
        args: [u64; 5],
        time_ns: u64,
        flags: u64,
    ) -> i64;

    /// `bpf_timer_cancel`: 1 if the timer was armed, 0 if not, or a negative errno.
    fn timer_cancel(&mut self, timer: u64) -> i64;

    /// A value of the program is gone that owned a reference to an object of the host (`__kptr`): drops it.
    fn release(&mut self, memory: &Memory, pointer: u64) {
        let _ = (memory, pointer);
    }

    /// `bpf_per_cpu_ptr`, `bpf_this_cpu_ptr` of a kernel variable: the guest address of the copy of `cpu`. `symbol`
    /// is the value of the variable in [`Env::ksyms`]. `None`: it is not a per-CPU variable.
    fn per_cpu_variable(&mut self, memory: &Memory, symbol: u64, cpu: u32) -> Option<u64> {
        let _ = (memory, symbol, cpu);
        None
    }
}

/// A kernel function that a program calls, and that may have a price ([`Env::prices`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Callable {
    /// A kfunc by name.
    Kfunc(&'static str),
    /// A helper by UAPI number.
    Helper(u32),
}

/// Maximum number of different prices: the number of values of a byte, so that each index is valid.
pub const MAX_PRICES: usize = 1 << u8::BITS;

/// The simulated kernel that an object is linked against.
#[derive(Clone, Debug)]
pub struct Env<H> {
    /// Types for CO-RE relocations.
    pub types: TargetTypes,
    /// Kfuncs by name. Iterators over numbers, RCU and preemption sections come with this crate.
    pub kfuncs: Vec<(&'static str, HostFn<H>)>,
    /// Names that the environment lacks for a reason, and the reason with its remedy: kernel functions (also of those
    /// that come with this crate), types, members, constants, and helpers with their whole name.
    pub lacks: Vec<(&'static str, String)>,
    /// Helpers by UAPI number that this environment supplies or replaces.
    pub helpers: Vec<(u32, HostFn<H>)>,
    /// `CONFIG_…` and `LINUX_KERNEL_VERSION` externs.
    pub kconfig: Vec<(String, ConfigValue)>,
    /// Kernel variables (`__ksym`) and the guest addresses that they get.
    pub ksyms: Vec<(String, u64)>,
    /// The calls that have a price, with its index in the list of [`crate::Instance::set_prices`]. Other calls cost
    /// their instruction only.
    pub prices: Vec<(Callable, u8)>,
}

impl<H: Host> Env<H> {
    /// The names of all kernel functions, without those that it lacks.
    pub(crate) fn kfunc_names(&self) -> Vec<&str> {
        let own = self.kfuncs.iter().map(|(name, _)| *name);
        let all = own.chain(helpers::builtin_kfuncs());
        all.filter(|name| !self.lacks.iter().any(|(lacking, _)| lacking == name)).collect()
    }

    /// Whether this environment, or this crate, has the BPF helper of a number.
    pub fn has_helper(&self, number: u32) -> bool {
        self.helpers.iter().any(|(known, _)| *known == number)
            || helpers::builtin_helper::<H>(number).is_some()
    }
}

impl<H> Env<H> {
    /// An environment with types only.
    pub fn new(types: TargetTypes) -> Env<H> {
        let (kfuncs, helpers, lacks) = (vec![], vec![], vec![]);
        Env { types, kfuncs, lacks, helpers, kconfig: vec![], ksyms: vec![], prices: vec![] }
    }
}
