//! From a decoded image to callable code, and the call.

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
use crate::image::Image;
use crate::instance::Core;
use crate::region::VM_TO_GUEST;
use crate::trap::Trap;
use crate::vm::Vm;

/// Address space for the code of one image: per instruction, and in any case.
const CODE_BYTES_PER_INSN: usize = 256;
const CODE_BYTES_MIN: usize = 1 << 20;

/// Compiled functions.
pub(crate) struct Code {
    /// By index.
    functions: Vec<Compiled>,
    /// Owns the code; taken at the end.
    module: Option<JITModule>,
}

// SAFETY: after compilation the code is only executed and its tables only read.
unsafe impl Sync for Code {}
// SAFETY: the pointers lead to the module's code, which moves along.
unsafe impl Send for Code {}

struct Compiled {
    entry: *const u8,
    bytes: u32,
    /// Offset of each machine instruction that may fault and the instruction that it belongs to, ascending.
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
            // SAFETY: an image outlives its instances, so nobody runs this code any more.
            unsafe { module.free_memory() };
        }
    }
}

impl Code {
    /// The addresses between which all code lies.
    pub(crate) fn range(&self) -> (u64, u64) {
        let starts = self.functions.iter().map(|function| function.entry as u64);
        let ends =
            self.functions.iter().map(|function| function.entry as u64 + u64::from(function.bytes));
        (starts.min().unwrap_or(0), ends.max().unwrap_or(0))
    }

    /// The function and the instruction at a code address.
    fn place(&self, address: u64) -> Option<(usize, usize)> {
        self.functions.iter().enumerate().find_map(|(index, function)| {
            let offset = address.checked_sub(function.entry as u64)?;
            let offset = u32::try_from(offset).ok().filter(|offset| *offset < function.bytes)?;
            let at = function.faults.binary_search_by_key(&offset, |(offset, _)| *offset).ok()?;
            Some((index, function.faults[at].1))
        })
    }
}

/// Compiles every function of an image.
pub(crate) fn compile<H: Host>(image: &Image<H>) -> Result<Code, String> {
    entry::install();
    let programs: Vec<&[Op]> = image.programs.iter().map(|program| &program.ops[..]).collect();
    let insns: usize = programs.iter().map(|ops| ops.len()).sum();
    let mut module = module(insns)?;
    let arities = liveness::arities(&programs);
    let mut ids = Vec::with_capacity(programs.len());
    for arity in &arities {
        let signature = signature(*arity);
        ids.push(module.declare_anonymous_function(&signature).map_err(|error| error.to_string())?);
    }
    let shims = Shims::of::<H>();
    let source = Source::new(image, &arities, &ids, shims);
    let mut functions = Vec::with_capacity(programs.len());
    let mut builder = FunctionBuilderContext::new();
    for index in 0..programs.len() {
        let compiled = function(&mut module, &mut builder, &source, index)
            .map_err(|error| format!("function `{}`: {error}", image.programs[index].name))?;
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

/// Control block, r10, arguments; returns r0.
pub(super) fn signature(arity: usize) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    signature.params.extend((0..2 + arity).map(|_| AbiParam::new(types::I64)));
    signature.returns.push(AbiParam::new(types::I64));
    signature
}

fn function(
    module: &mut JITModule,
    builder: &mut FunctionBuilderContext,
    source: &Source<'_>,
    index: usize,
) -> Result<Compiled, String> {
    let mut context = module.make_context();
    let id: FuncId = source.ids[index];
    context.func.signature = signature(source.arities[index]);
    translate(module, &mut context.func, builder, source, index);
    module.define_function(id, &mut context).map_err(|error| format!("{error:?}"))?;
    let code = context.compiled_code().ok_or("no code was made")?;
    let places = code.buffer.get_srclocs_sorted();
    let mut faults = Vec::new();
    for trap in code.buffer.traps() {
        if trap.code == UNREACHABLE {
            continue;
        }
        let next = places.partition_point(|place| place.start <= trap.offset);
        let near = places[..next].iter().rev().find(|place| !place.loc.is_default());
        let near = near.map_or(0, |place| place.loc.bits() as usize);
        if let Some(slot) = faulting_slot(source.programs[index], trap.code, near) {
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
pub(crate) unsafe fn run<H: Host>(
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
    Err(unsafe { landed::<H>(vm, code) })
}

/// The trap that generated code landed with: one that a shim left, or a fault.
///
/// # Safety
/// As [`run`].
#[cold]
unsafe fn landed<H>(vm: *mut Vm, code: &Code) -> Trap {
    // SAFETY: by contract, nothing else refers to the core or the block now.
    let (core, vm) = unsafe { (&mut *(*vm).core.cast::<Core<H>>(), &mut *vm) };
    if let Some(trap) = core.pending.take() {
        return trap;
    }
    let guest = (&raw const *vm) as u64 + VM_TO_GUEST;
    let addr = vm.fault_addr.wrapping_sub(guest);
    let Some((function, insn)) = code.place(vm.fault_code) else {
        return Trap::host(format!(
            "a fault at an unknown place of the generated code ({addr:#x})"
        ));
    };
    let program = &core.image.programs[function];
    // An inlined helper stores where it could load: what can be read faulted at a store.
    let store = matches!(program.ops[insn], Op::Store { .. } | Op::Atomic { .. })
        || core.memory.is_readable(addr);
    Trap::new(core.memory.fault_kind(addr, store)).at(&program.name, insn)
}
