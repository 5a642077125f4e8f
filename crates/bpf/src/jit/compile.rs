//! Compiles a decoded program to machine code, and calls it.

use std::fmt;

use cranelift_codegen::ir::{AbiParam, Signature, types};
use cranelift_codegen::isa::CallConv;
use cranelift_codegen::settings::{self, Configurable};
use cranelift_frontend::FunctionBuilderContext;
use cranelift_jit::{ArenaMemoryProvider, JITBuilder, JITModule};
use cranelift_module::{FuncId, Module, default_libcall_names};

use super::access::{UNREACHABLE, faulting_slot};
use super::entry;
use super::liveness;
use super::shims::Shims;
use super::translate::{Source, translate};
use crate::decode::Op;
use crate::env::Host;
use crate::host_calls::HostCalls;
use crate::program::Program;
use crate::region::VM_TO_GUEST;
use crate::trap::Trap;
use crate::vm::Vm;

/// Address space for the code of one image, per instruction.
const CODE_BYTES_PER_INSN: usize = 256;
/// Address space for the code of one image, besides.
const CODE_BYTES_MIN: usize = 1 << 20;

/// The machine code of a program.
pub(crate) struct Code {
    /// By function index.
    functions: Vec<Compiled>,
    /// Owns the code; `None` only while dropping.
    module: Option<JITModule>,
}

// SAFETY: after compilation the code is only executed and its tables only read.
unsafe impl Sync for Code {}
// SAFETY: the pointers point to the module's code, which moves with this value.
unsafe impl Send for Code {}

struct Compiled {
    entry: *const u8,
    bytes: u32,
    /// Offset of each machine instruction that may fault, ascending, and the slot of its BPF instruction.
    faults: Vec<(u32, usize)>,
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes: u64 = self.functions.iter().map(|function| u64::from(function.bytes)).sum();
        f.debug_struct("Code").field("bytes", &bytes).finish_non_exhaustive()
    }
}

impl Drop for Code {
    fn drop(&mut self) {
        if let Some(module) = self.module.take() {
            // SAFETY: an image outlives its instances, so this code no longer runs.
            unsafe { module.free_memory() };
        }
    }
}

impl Code {
    /// The first and the end address of all code.
    pub(crate) fn range(&self) -> (u64, u64) {
        let starts = self.functions.iter().map(|function| function.entry as u64);
        let ends =
            self.functions.iter().map(|function| function.entry as u64 + u64::from(function.bytes));
        (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
    }

    /// The function and the slot of the BPF instruction of a faulting machine instruction.
    fn fault_location(&self, address: u64) -> Option<(usize, usize)> {
        self.functions.iter().enumerate().find_map(|(index, function)| {
            let offset = address.checked_sub(function.entry as u64)?;
            let offset = u32::try_from(offset).ok().filter(|offset| *offset < function.bytes)?;
            let at = function.faults.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
            Some((index, function.faults[at].1))
        })
    }
}

/// Compiles every function of a program.
pub(crate) fn compile<H: Host>(program: &Program, calls: &HostCalls<H>) -> Result<Code, String> {
    entry::install();
    let ops: Vec<&[Op]> = program.functions.iter().map(|function| &function.ops[..]).collect();
    let insns: usize = ops.iter().map(|ops| ops.len()).sum();
    let mut module = module(insns)?;
    let arities = liveness::arities(&ops);
    let mut ids = Vec::with_capacity(ops.len());
    for arity in &arities {
        let signature = signature_of_code(*arity);
        ids.push(module.declare_anonymous_function(&signature).map_err(|error| error.to_string())?);
    }
    let shims = Shims::of::<H>();
    let source = Source::new(program, calls, &arities, &ids, shims);
    let mut functions = Vec::with_capacity(ops.len());
    let mut builder = FunctionBuilderContext::new();
    for index in 0..ops.len() {
        let compiled = function(&mut module, &mut builder, &source, index)
            .map_err(|error| format!("function `{}`: {error}", program.functions[index].name))?;
        functions.push(compiled);
    }
    module.finalize_definitions().map_err(|error| error.to_string())?;
    for (function, id) in functions.iter_mut().zip(&ids) {
        function.entry = module.get_finalized_function(*id);
    }
    Ok(Code { functions, module: Some(module) })
}

fn module(insns: usize) -> Result<JITModule, String> {
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
    let bytes = insns.saturating_mul(CODE_BYTES_PER_INSN) + CODE_BYTES_MIN;
    let memory = ArenaMemoryProvider::new_with_size(bytes).map_err(|error| error.to_string())?;
    builder.memory_provider(Box::new(memory));
    Ok(JITModule::new(builder))
}

/// The signature of a function of 64-bit words.
pub(super) fn signature(parameters: usize, results: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.resize(parameters, AbiParam::new(types::I64));
    signature.returns.resize(results, AbiParam::new(types::I64));
    signature
}

/// The signature of generated code: control block, r10, arguments; returns r0.
fn signature_of_code(arity: usize) -> Signature {
    signature(2 + arity, 1)
}

fn function(
    module: &mut JITModule,
    builder: &mut FunctionBuilderContext,
    source: &Source<'_>,
    index: usize,
) -> Result<Compiled, String> {
    let mut context = module.make_context();
    let id: FuncId = source.ids[index];
    context.func.signature = signature_of_code(source.arities[index]);
    translate(module, &mut context.func, builder, source, index);
    module.define_function(id, &mut context).map_err(|error| format!("{error:?}"))?;
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
        if let Some(slot) = faulting_slot(&source.program.functions[index].ops, trap.code, near) {
            faults.push((trap.offset, slot));
        }
    }
    faults.sort_unstable();
    let bytes = code.code_info().total_size;
    Ok(Compiled { entry: std::ptr::null(), bytes, faults })
}

/// Runs compiled code on the frame at `Vm::sp`, inside [`catching`](super::catching).
///
/// # Safety
/// As [`crate::exec::invoke`].
#[inline]
pub(crate) unsafe fn run(
    vm: *mut Vm,
    code: &Code,
    function: usize,
    args: &[u64; 5],
) -> Result<u64, Trap> {
    let entry = code.functions[function].entry;
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
    let Some((function, insn)) = code.fault_location(vm.fault_code) else {
        return Trap::host(format!(
            "fault at an unknown instruction of the generated code (guest address {addr:#x})"
        ));
    };
    let function = &state.program.functions[function];
    // Inlined helpers load before they store to an address: a fault at a readable address is a store's.
    let store = matches!(function.ops[insn], Op::Store { .. } | Op::Atomic { .. })
        || state.memory.is_readable(addr);
    Trap::new(state.memory.fault_kind(addr, store)).at(&function.name, insn)
}
