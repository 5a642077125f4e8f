//! A scheduler, compiled and linked against the simulated kernel: ready for any number of machines.

use std::fmt;
use std::sync::Arc;

use fairground_bpf::{
    Callable, ConfigValue, Engine, Env, Global, Image, Lack, LoadError, Object, Obstacle, OpsValue,
    StructOps, Types,
};
use fairground_trace::CallbackKind;

use crate::interface::{self, KernelAbi, constants::constant};
use crate::kernel::Kernel;
use crate::kfuncs::{self, Kfunc};
use crate::layout::kernel_types;
use crate::op::Op;
use crate::setup::{self, Prepared};
use crate::topology::{self, globals::TopologyArray};
use crate::tracing::Tracing;
use crate::{abi, settings};

/// Why an object is no scheduler for this machine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PolicyError {
    /// It could not be linked or compiled.
    #[error(transparent)]
    Load(Box<LoadError>),
    /// It defines no table of callbacks.
    #[error(
        "{file}: the object has no `struct sched_ext_ops` variable in section `.struct_ops` or `.struct_ops.link`{}; \
         a scheduler defines one, for example with SCX_OPS_DEFINE()",
        other_types(.others)
    )]
    NoOps {
        /// The object.
        file: String,
        /// Types of the struct_ops variables that it has.
        others: Vec<String>,
    },
    /// It defines several tables.
    #[error(
        "{file}: the object has several schedulers (`{}`), and one can be loaded: a profile names it, as in \
         `scheduler = \"{}\"`",
        names.join("`, `"),
        names.first().map_or("", String::as_str)
    )]
    SeveralOps {
        /// The object.
        file: String,
        /// The variables.
        names: Vec<String>,
    },
    /// A flag of the table that the kernel refuses.
    #[error("{file}: `flags` of the `sched_ext_ops` has {flag}: {reason}")]
    Flag {
        /// The object.
        file: String,
        /// The flag.
        flag: String,
        /// Why, and the remedy.
        reason: String,
    },
    /// A variable for the machine's topology cannot hold it.
    #[error("{file}: global variable `{variable}`: {problem}")]
    Topology {
        /// The object.
        file: String,
        /// The variable.
        variable: String,
        /// The fault, and the remedy.
        problem: String,
    },
    /// A member of the table is out of range.
    #[error("{file}: `{member}` of the `sched_ext_ops` is {value}; {problem}")]
    Member {
        /// The object.
        file: String,
        /// The member.
        member: &'static str,
        /// Its content.
        value: u64,
        /// The problem.
        problem: String,
    },
}

impl From<LoadError> for PolicyError {
    fn from(error: LoadError) -> PolicyError {
        PolicyError::Load(Box::new(error))
    }
}

fn other_types(types: &[String]) -> String {
    if types.is_empty() { String::new() } else { format!(" (it has `{}`)", types.join("`, `")) }
}

/// Bytes of a dump, at most.
const EXIT_DUMP_MAX: u64 = 4 << 20;

/// A loaded scheduler. Compiled once; each machine runs its own instance of it.
#[derive(Clone)]
pub struct Policy {
    pub(crate) name: String,
    pub(crate) image: Arc<Image<Kernel>>,
    /// The release whose interface it is linked against.
    pub(crate) abi: KernelAbi,
    pub(crate) ops: OpsTable,
    pub(crate) globals: Vec<Global>,
    /// The types of its values.
    pub(crate) types: Types,
    /// Variables that hold constants of the kernel, and their values.
    pub(crate) constants: Vec<(usize, u64)>,
    /// It reads `sched_info` of tasks, which the machine keeps then.
    pub(crate) reads_sched_info: bool,
    /// Actions of its loader beside setting variables.
    pub(crate) setup: Prepared,
    /// The programs that are called at events of the kernel.
    pub(crate) tracing: Tracing,
    /// Where the program reads `CONFIG_HZ`: the machine's, not the program's.
    pub(crate) hz: Option<Global>,
    /// Arrays that each machine fills with its topology.
    pub(crate) topology: Vec<TopologyArray>,
}

impl fmt::Debug for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Policy")
            .field("name", &self.name)
            .field("ops", &self.ops)
            .finish_non_exhaustive()
    }
}

/// The table of callbacks, by number.
#[derive(Clone, Debug)]
pub(crate) struct OpsTable {
    functions: [Option<usize>; Op::COUNT],
    pub(crate) flags: u64,
    /// It is a `struct sched_ext_ops_cid`: it uses topological CPU numbers.
    pub(crate) cid_form: bool,
    pub(crate) batch: u32,
    /// `exit_dump_len`; 0 when the scheduler names none.
    pub(crate) exit_dump_len: u32,
    /// `timeout_ms`; `None` when the scheduler names none.
    pub(crate) timeout_ns: Option<u64>,
    /// Number of CPUs that came and went, as the loader found it; 0: it did not look.
    pub(crate) hotplug_seq: u64,
}

impl OpsTable {
    /// A table without callbacks.
    #[cfg(test)]
    pub(crate) fn empty() -> OpsTable {
        OpsTable {
            functions: [None; Op::COUNT],
            flags: 0,
            cid_form: false,
            batch: abi::DISPATCH_BATCH_DFL,
            exit_dump_len: 0,
            timeout_ns: None,
            hotplug_seq: 0,
        }
    }

    /// The function of a callback.
    #[inline]
    pub(crate) fn function(&self, op: Op) -> Option<usize> {
        self.functions[op as usize]
    }

    /// The function of the callback of a kind.
    pub(crate) fn of_kind(&self, kind: CallbackKind) -> Option<usize> {
        Op::ALL.iter().find(|op| op.kind() == kind).and_then(|op| self.function(*op))
    }

    /// `SCX_HAS_OP`.
    #[inline]
    pub(crate) fn has(&self, op: Op) -> bool {
        self.functions[op as usize].is_some()
    }
}

impl Policy {
    /// The function of the object that is a callback; `None` if the scheduler does not have that callback.
    pub fn callback(&self, kind: CallbackKind) -> Option<&str> {
        let op = Op::ALL.iter().find(|op| op.kind() == kind && kind != CallbackKind::Other)?;
        let function = self.ops.function(*op)?;
        self.image.linked().functions.get(function).map(|function| function.name.as_str())
    }

    /// Finds the scheduler in an object and compiles it for `engine`.
    ///
    /// # Errors
    /// [`PolicyError::NoOps`] when the object is no scheduler, [`PolicyError::Load`] when it needs what this kernel
    /// lacks.
    pub fn load(object: &Object, engine: Engine) -> Result<Policy, PolicyError> {
        Policy::load_for(object, engine, KernelAbi::NEWEST)
    }

    /// As [`Policy::load`], against the interface of a release.
    ///
    /// # Errors
    /// As [`Policy::load`], and [`PolicyError::Flag`].
    pub fn load_for(
        object: &Object,
        engine: Engine,
        abi: KernelAbi,
    ) -> Result<Policy, PolicyError> {
        let ops = find_ops(object)?;
        let table = read_ops(object.name(), ops, abi)?;
        let name = match ops.field("name") {
            Some(OpsValue::Text(text)) if !text.is_empty() => text.clone(),
            _ => ops.name.clone(),
        };
        let image = Image::new(object, &environment(abi), engine)?;
        let hz = object.configuration().into_iter().find(|value| value.name == "CONFIG_HZ");
        let globals = object.globals().to_vec();
        let topology = topology::globals::find(object.name(), &globals)?;
        let constants = kernel_constants(&globals, abi);
        let setup = Prepared::default();
        let tracing = setup::attached(&image, &[], &[]).unwrap_or_default();
        let reads_sched_info = object.names_member("struct task_struct.sched_info");
        let types = object.types();
        Ok(Policy {
            name,
            image,
            abi,
            ops: table,
            globals,
            types,
            constants,
            reads_sched_info,
            setup,
            tracing,
            hz,
            topology,
        })
    }

    /// Reasons for which its run may end: instructions that require what this kernel lacks, in what its callbacks, the
    /// programs that are attached to events and those that its loader runs can reach.
    pub fn obstacles(&self) -> Vec<Obstacle> {
        let callbacks = Op::ALL.iter().filter_map(|op| self.ops.function(*op));
        let programs = self.setup.functions().chain(self.tracing.functions());
        self.image.obstacles(callbacks.chain(programs).collect())
    }

    /// The scheduler's name (`sched_ext_ops.name`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How its program is executed.
    pub fn engine(&self) -> Engine {
        self.image.engine()
    }

    /// The callbacks that it implements, in the kernel's order.
    pub fn callbacks(&self) -> Vec<&'static str> {
        Op::ALL.iter().filter(|op| self.ops.has(**op)).map(|op| op.name()).collect()
    }

    /// Its tunables: the global numbers, switches and enumerations that a setting can change, in the order of the
    /// object.
    pub fn tunables(&self) -> impl Iterator<Item = &Global> {
        let tunable = |g: &&Global| g.is_settable() && settings::is_number(&g.ty);
        self.globals.iter().filter(tunable).filter(|g| !is_kernel_constant(g))
    }
}

/// Whether a variable represents a constant of the kernel: `const volatile u64 __SCX_SLICE_DFL` for `SCX_SLICE_DFL`.
/// The headers of the scx project declare one for each constant whose value depends on the kernel; every loader sets
/// them, from the kernel's type information, before the program is loaded.
pub fn is_kernel_constant(global: &Global) -> bool {
    global.read_only && global.volatile && global.size == 8 && global.name.starts_with("__SCX_")
}

/// The variables that represent a constant which this kernel has. One that it lacks stays 0, as with the headers' own
/// loader.
fn kernel_constants(globals: &[Global], abi: KernelAbi) -> Vec<(usize, u64)> {
    let standing = globals.iter().enumerate().filter(|(_, global)| is_kernel_constant(global));
    standing.filter_map(|(at, global)| Some((at, constant(&global.name[2..], abi)?))).collect()
}

/// Names that the simulated kernel of a release lacks for an object, also for one that cannot be loaded.
pub fn lacks(object: &Object, abi: KernelAbi) -> Vec<Lack> {
    object.lacks(&environment(abi))
}

/// Why a callback (`dump`, `sub_attach`, …; of either form of table) is never called here; `None`: it is.
pub fn never_called(callback: &str, abi: KernelAbi) -> Option<String> {
    interface::never_called(callback, abi)
}

/// The kernel that programs are linked against.
pub(crate) fn environment(abi: KernelAbi) -> Env<Kernel> {
    let mut env = Env::new(kernel_types(abi));
    env.kfuncs = kfuncs::all().filter_map(|k| Some((k.feature.name, k.call?))).collect();
    env.lacks = interface::lacks(abi);
    env.helpers = kfuncs::helpers();
    let price = |k: &Kfunc| Some((Callable::Kfunc(k.feature.name), k.price.index()?));
    env.prices = kfuncs::all().filter_map(price).collect();
    env.ksyms = vec![
        ("__preempt_count".to_owned(), abi::PREEMPT_COUNT_SYMBOL),
        ("runqueues".to_owned(), abi::RUNQUEUES_SYMBOL),
        ("cpufreq_cpu_data".to_owned(), abi::CPUFREQ_SYMBOL),
    ];
    let numbers = [
        ("LINUX_KERNEL_VERSION", abi.version_code()),
        ("CONFIG_SMP", 1),
        // Each machine writes its own.
        ("CONFIG_HZ", 1000),
        ("CONFIG_NR_CPUS", u64::from(abi::MAX_CPUS)),
    ];
    let numbers = numbers.map(|(name, value)| (name.to_owned(), ConfigValue::Number(value)));
    let compiler = ("CONFIG_CC_VERSION_TEXT".to_owned(), ConfigValue::Text("fairground".into()));
    env.kconfig = numbers.into_iter().chain([compiler]).collect();
    env
}

/// Types of a scheduler's table: of the form that names CPUs by their numbers, and of the one (7.2) that names them by
/// their topological numbers.
const OPS_TYPES: [&str; 2] = ["sched_ext_ops", CID_FORM];
const CID_FORM: &str = "sched_ext_ops_cid";

fn find_ops(object: &Object) -> Result<&StructOps, PolicyError> {
    let mut tables =
        object.struct_ops().iter().filter(|s| OPS_TYPES.contains(&s.type_name.as_str()));
    let Some(first) = tables.next() else {
        let others = object.struct_ops().iter().map(|s| s.type_name.clone()).collect();
        return Err(PolicyError::NoOps { file: object.name().to_owned(), others });
    };
    let rest: Vec<String> = tables.map(|s| s.name.clone()).collect();
    if !rest.is_empty() {
        let names = std::iter::once(first.name.clone()).chain(rest).collect();
        return Err(PolicyError::SeveralOps { file: object.name().to_owned(), names });
    }
    Ok(first)
}

fn read_ops(file: &str, ops: &StructOps, abi: KernelAbi) -> Result<OpsTable, PolicyError> {
    let int = |name| match ops.field(name) {
        Some(OpsValue::Int(value)) => *value,
        _ => 0,
    };
    let mut functions = [None; Op::COUNT];
    let cid_form = ops.type_name == CID_FORM;
    for (slot, op) in functions.iter_mut().zip(Op::ALL) {
        let name = if cid_form { op.cid_form_name() } else { op.name() };
        *slot = ops.function(name).filter(|_| interface::has_member(name, abi));
    }
    let flags = int("flags");
    if let Some((flag, reason)) = interface::refused_flag(flags, abi) {
        return Err(PolicyError::Flag { file: file.to_owned(), flag, reason });
    }
    let batch = match int("dispatch_max_batch") {
        0 => abi::DISPATCH_BATCH_DFL,
        n if n <= u64::from(abi::DISPATCH_BATCH_MAX) => n as u32,
        n => {
            let problem = format!("up to {} slots are possible", abi::DISPATCH_BATCH_MAX);
            return Err(PolicyError::Member {
                file: file.to_owned(),
                member: "dispatch_max_batch",
                value: n,
                problem,
            });
        }
    };
    let timeout_ns = match int("timeout_ms") {
        0 => None,
        ms if ms <= abi::WATCHDOG_MAX_NS / 1_000_000 => Some(ms * 1_000_000),
        ms => {
            let problem = format!("the kernel takes up to {} ms", abi::WATCHDOG_MAX_NS / 1_000_000);
            return Err(PolicyError::Member {
                file: file.to_owned(),
                member: "timeout_ms",
                value: ms,
                problem,
            });
        }
    };
    let exit_dump_len = int("exit_dump_len").min(EXIT_DUMP_MAX) as u32;
    let hotplug_seq = int("hotplug_seq");
    Ok(OpsTable { functions, flags, cid_form, batch, exit_dump_len, timeout_ns, hotplug_seq })
}
