//! Compiles a decoded program to machine code, and calls it.

use std::fmt;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITMemoryKind, JITMemoryProvider, JITModule};
use cranelift_module::{Linkage, Module, default_libcall_names};

use super::access::{UNREACHABLE, faulting_slot};
use super::entry;
use super::liveness;
use super::translate::{Source, translate};
use crate::decode::Op;
use crate::env::Host;
use crate::host_calls::HostCalls;
use crate::program::Program;
use crate::region::{PAGE, VM_TO_GUEST};
use crate::trap::Trap;
use crate::vm::Vm;

/// Address space for the code of one image, per instruction.
const CODE_BYTES_PER_INSN: usize = 256;
/// Address space per function, besides: each starts on a page of its own.
const CODE_BYTES_PER_FUNCTION: usize = 2 * PAGE as usize;
/// Address space for the code of one image, besides.
const CODE_BYTES_MIN: usize = 1 << 20;

/// The machine code of a program. A function is compiled when it is first called: most runs call less than half of a
/// scheduler.
pub(crate) struct Code {
    /// By function index: the machine code, null before the first call. Generated code reads this table.
    entries: Box<[AtomicPtr<u8>]>,
    /// By function index: the number of arguments that it reads.
    arities: Vec<usize>,
    /// The first and the end address of what is reserved for code.
    range: (u64, u64),
    compiler: Mutex<Compiler>,
}

// SAFETY: what is compiled is only executed, and the pointers of the module are used under the lock.
unsafe impl Sync for Code {}
// SAFETY: the pointers point to the module's code, which moves with this value.
unsafe impl Send for Code {}

/// The state that changes while functions are compiled.
struct Compiler {
    /// By function index; `None` before the first call.
    functions: Vec<Option<Compiled>>,
    builder: FunctionBuilderContext,
    /// Owns the code; `None` only while dropping.
    module: Option<JITModule>,
}

/// A machine instruction that may fault.
#[derive(Clone, Copy)]
struct MayFault {
    /// Its offset in the function's code.
    offset: u32,
    /// The slot of its BPF instruction.
    slot: usize,
    /// Instructions until there, itself included, that are not subtracted from the fuel yet.
    pending: i64,
}

struct Compiled {
    entry: *mut u8,
    bytes: u32,
    /// The machine instructions that may fault, by offset, ascending.
    faults: Vec<MayFault>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 =
            self.compiler().functions.iter().flatten().map(|of| u64::from(of.bytes)).sum();
        f.debug_struct("Code").field("bytes", &bytes).finish_non_exhaustive()
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        let compiler = self.compiler.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = compiler.module.take() {
            // SAFETY: an image outlives its instances, so this code no longer runs.
            unsafe { module.free_memory() };
        }
    }
}

impl Code {
    /// Prepares to compile the functions of a program.
    ///
    /// # Errors
    /// Cranelift does not know this processor, or the kernel grants no address space.
    pub(crate) fn new(program: &Program) -> Result<Code, String> {
        entry::install();
        let ops: Vec<&[Op]> = program.functions.iter().map(|function| &function.ops[..]).collect();
        let insns: usize = ops.iter().map(|ops| ops.len()).sum();
        let bytes = insns.saturating_mul(CODE_BYTES_PER_INSN)
            + ops.len() * CODE_BYTES_PER_FUNCTION
            + CODE_BYTES_MIN;
        let (module, start) = module(bytes)?;
        let compiler = Compiler {
            functions: ops.iter().map(|_| None).collect(),
            builder: FunctionBuilderContext::new(),
            module: Some(module),
        };
        Ok(Code {
            entries: ops.iter().map(|_| AtomicPtr::default()).collect(),
            arities: liveness::arities(&ops),
            range: (start, start + bytes as u64),
            compiler: Mutex::new(compiler),
        })
    }

    /// The first and the end address of all code.
    pub(crate) fn range(&self) -> (u64, u64) {
        self.range
    }

    fn compiler(&self) -> MutexGuard<'_, Compiler> {
        // A panic with the lock held leaves at most a function that is not in the table.
        self.compiler.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine code of a function, compiled now unless it already is.
    #[inline]
    fn entry<H: Host>(
        &self,
        program: &Program,
        calls: &HostCalls<H>,
        function: usize,
    ) -> Result<*const u8, Trap> {
        let entry = self.entries[function].load(Ordering::Acquire);
        if entry.is_null() { self.compile(program, calls, function) } else { Ok(entry) }
    }

    /// Compiles a function.
    ///
    /// # Errors
    /// Cranelift refuses it, or the address space for code is used up.
    #[cold]
    #[inline(never)]
    pub(super) fn compile<H: Host>(
        &self,
        program: &Program,
        calls: &HostCalls<H>,
        index: usize,
    ) -> Result<*const u8, Trap> {
        let mut compiler = self.compiler();
        if let Some(known) = &compiler.functions[index] {
            return Ok(known.entry);
        }
        let entries = self.entries.as_ptr() as usize;
        let source = Source::new(program, calls, &self.arities, entries);
        let compiled = compiler.function(&source, index).map_err(|error| {
            Trap::host(format!("function `{}`: {error}", program.functions[index].name))
        })?;
        let entry = compiled.entry;
        compiler.functions[index] = Some(compiled);
        self.entries[index].store(entry, Ordering::Release);
        Ok(entry)
    }

    /// The function of a faulting machine instruction, and what is known of the instruction.
    fn fault_location(&self, address: u64) -> Option<(usize, MayFault)> {
        self.compiler().functions.iter().enumerate().find_map(|(index, function)| {
            let function = function.as_ref()?;
            let offset = address.checked_sub(function.entry as u64)?;
            let offset = u32::try_from(offset).ok().filter(|offset| *offset < function.bytes)?;
            let at = function.faults.binary_search_by_key(&offset, |known| known.offset).ok()?;
            Some((index, function.faults[at]))
        })
    }
}

/// A module with so many bytes of address space, and its first address.
fn module(bytes: usize) -> Result<(JITModule, u64), String> {
    let mut flags = settings::builder();
    let verify = if cfg!(debug_assertions) { "true" } else { "false" };
    for (name, value) in [
        ("opt_level", "speed"),
        ("enable_verifier", verify),
        ("is_pic", "false"),
        ("use_colocated_libcalls", "false"),
        ("unwind_info", "false"),
    ] {
        flags.set(name, value).map_err(|error| error.to_string())?;
    }
    let isa = cranelift_native::builder()?
        .finish(settings::Flags::new(flags))
        .map_err(|error| error.to_string())?;
    let mut builder = JITBuilder::with_isa(isa, default_libcall_names());
    let mut memory =
        ArenaMemoryProvider::new_with_size(bytes).map_err(|error| error.to_string())?;
    // The arena does not say where it starts; what is allocated first does.
    let first = memory.allocate(1, 1, JITMemoryKind::Executable);
    let start = first.map_err(|error| error.to_string())? as u64;
    builder.memory_provider(Box::new(memory));
    Ok((JITModule::new(builder), start))
}

/// The signature of a function of 64-bit words.
pub(super) fn signature(parameters: usize, results: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.resize(parameters, AbiParam::new(types::I64));
    signature.returns.resize(results, AbiParam::new(types::I64));
    signature
}

/// The signature of generated code: control block, r10, arguments; returns r0.
pub(super) fn signature_of_code(arity: usize) -> Signature {
    signature(2 + arity, 1)
}

impl Compiler {
    fn function(&mut self, source: &Source<'_>, index: usize) -> Result<Compiled, String> {
        let module = self.module.as_mut().ok_or("the code is being dropped")?;
        let mut context = module.make_context();
        context.func.signature = signature_of_code(source.arities[index]);
        // A profile of `perf` shows the name, if PERF_BUILDID_DIR is set.
        let name = format!("{}.{index}", source.program.functions[index].name);
        let id = module.declare_function(&name, Linkage::Local, &context.func.signature);
        let id = id.map_err(|error| error.to_string())?;
        let pending =
            translate(module.target_config(), &mut context.func, &mut self.builder, source, index);
        module.define_function(id, &mut context).map_err(|error| format!("{error:?}"))?;
        module.finalize_definitions().map_err(|error| error.to_string())?;
        let code = context.compiled_code().ok_or("no code was made")?;
        let locations = code.buffer.get_srclocs_sorted();
        let mut faults = Vec::new();
        for trap in code.buffer.traps() {
            if trap.code == UNREACHABLE {
                continue;
            }
            let next = locations.partition_point(|range| range.start <= trap.offset);
            let near = locations[..next].iter().rev().find(|range| !range.loc.is_default());
            let near = near.map_or(0, |range| range.loc.bits() as usize);
            let ops = &source.program.functions[index].ops;
            if let Some(slot) = faulting_slot(ops, trap.code, near) {
                let pending = pending.get(&slot).copied().unwrap_or(0);
                faults.push(MayFault { offset: trap.offset, slot, pending });
            }
        }
        faults.sort_unstable_by_key(|known| known.offset);
        let bytes = code.code_info().total_size;
        Ok(Compiled { entry: module.get_finalized_function(id).cast_mut(), bytes, faults })
    }
}

/// Runs compiled code on the frame at `Vm::sp`, inside [`catching`](super::catching).
///
/// # Safety
/// As [`crate::exec::invoke`].
#[inline]
pub(crate) unsafe fn run<H: Host>(
    vm: *mut Vm,
    code: &Code,
    program: &Program,
    calls: &HostCalls<H>,
    function: usize,
    args: &[u64; 5],
) -> Result<u64, Trap> {
    let entry = code.entry(program, calls, function)?;
    // SAFETY: the entry is of finished code; `vm` is alive by contract; the outermost call catches faults.
    let outcome = unsafe { entry::enter(vm, entry, args) };
    if outcome.trapped == 0 {
        return Ok(outcome.value);
    }
    // SAFETY: by contract; generated code has been left.
    Err(unsafe { trap_of(vm, code) })
}

/// The trap with which generated code was left: the one that a shim recorded, or a fault.
///
/// # Safety
/// As [`run`].
#[cold]
unsafe fn trap_of(vm: *mut Vm, code: &Code) -> Trap {
    // SAFETY: by contract, there is no other reference to the state or the block now.
    let (state, vm) = unsafe { (&mut *(*vm).state, &mut *vm) };
    if let Some(trap) = state.pending.take() {
        return trap;
    }
    let guest = (&raw const *vm) as u64 + VM_TO_GUEST;
    let addr = vm.fault_addr.wrapping_sub(guest);
    let Some((function, known)) = code.fault_location(vm.fault_code) else {
        return Trap::host(format!(
            "fault at an unknown instruction of the generated code (guest address {addr:#x})"
        ));
    };
    vm.fuel -= known.pending;
    let (function, insn) = (&state.program.functions[function], known.slot);
    // Inlined helpers load before they store to an address: a fault at a readable address is a store's.
    let store = matches!(function.ops[insn], Op::Store { .. } | Op::Atomic { .. })
        || state.memory.is_readable(addr);
    Trap::new(state.memory.fault_kind(addr, store)).at(&function.name, insn)
}
