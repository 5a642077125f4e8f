//! Entry into generated code, and its exits: return, trap, fault.
//!
//! A trap leaves generated code by restoring the stack pointer that the innermost entry saved. Frames of generated
//! code own nothing, so they need no cleanup. A fault (an access to an uncommitted page) takes the same path: the
//! signal handler redirects the faulting thread to [`landing`].

use std::arch::{asm, naked_asm};
use std::cell::Cell;
use std::mem::{MaybeUninit, offset_of};
use std::ptr;
use std::sync::{Once, OnceLock};

use crate::region::{GUEST_SIZE, VM_TO_GUEST};
use crate::vm::Vm;

/// The result of a shim or an entry, in two registers.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct Outcome {
    /// r0.
    pub(super) value: u64,
    /// 0, or 1 for a trap.
    pub(super) trapped: u64,
}

/// Calls generated code with r10 from `Vm::sp` and r1…r5 from `args`. Sets `Vm::entry_sp`; a nested
/// caller restores it.
///
/// # Safety
/// `code` is a compiled function's entry, `vm` its control block, and faults are caught.
#[inline(always)]
pub(super) unsafe fn enter(vm: *mut Vm, code: *const u8, args: &[u64; 5]) -> Outcome {
    let (value, trapped);
    // SAFETY: by contract. The stack is aligned at the start of the block, and with four words more at the call.
    // Generated code preserves the callee-saved registers, but `landing` does not: all are declared clobbered except
    // rbx and rbp, which the block saves itself.
    unsafe {
        asm!(
            "push rbp",
            "push rbx",
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi + {entry_sp}], rsp",
            "push r10",
            "call r11",
            "xor edx, edx",
            "add rsp, 16",
            "2:",
            "pop rbx",
            "pop rbp",
            entry_sp = const offset_of!(Vm, entry_sp),
            inlateout("rdi") vm => _,
            inlateout("rsi") (*vm).sp => _,
            inlateout("rdx") args[0] => trapped,
            inlateout("rcx") args[1] => _,
            inlateout("r8") args[2] => _,
            inlateout("r9") args[3] => _,
            inlateout("r10") args[4] => _,
            inlateout("r11") code => _,
            lateout("rax") value,
            lateout("r12") _,
            lateout("r13") _,
            lateout("r14") _,
            lateout("r15") _,
            clobber_abi("sysv64"),
        );
    }
    Outcome { value, trapped }
}

/// Returns from the innermost [`enter`] with a trap.
///
/// # Safety
/// Generated code of `vm` runs, and no frame between here and its entry owns anything.
#[unsafe(naked)]
pub(super) unsafe extern "sysv64" fn landing(vm: *mut Vm) -> ! {
    naked_asm!(
        "mov rsp, [rdi + {entry_sp}]",
        "mov edx, 1",
        "ret",
        entry_sp = const offset_of!(Vm, entry_sp),
    )
}

thread_local! {
    /// The control block of the instance that this thread runs, or null.
    static RUNNING: Cell<*mut Vm> = const { Cell::new(ptr::null_mut()) };
}

/// Runs the outermost `body` with faults of `vm`'s code caught on this thread.
#[inline(always)]
pub(crate) fn catching<T>(vm: *mut Vm, body: impl FnOnce() -> T) -> T {
    let outer = RUNNING.replace(vm);
    let result = body();
    RUNNING.set(outer);
    result
}

/// The signal handlers that this crate replaced.
struct Previous {
    segv: libc::sigaction,
    bus: libc::sigaction,
}

static PREVIOUS: OnceLock<Previous> = OnceLock::new();
static INSTALL: Once = Once::new();

/// Installs the signal handler, once per process.
pub(super) fn install() {
    INSTALL.call_once(|| {
        // SAFETY: a zeroed `sigaction` is valid; the handler below is async-signal-safe.
        unsafe {
            let mut previous: MaybeUninit<Previous> = MaybeUninit::zeroed();
            let old = previous.as_mut_ptr();
            libc::sigaction(libc::SIGSEGV, ptr::null(), &raw mut (*old).segv);
            libc::sigaction(libc::SIGBUS, ptr::null(), &raw mut (*old).bus);
            let _ = PREVIOUS.set(previous.assume_init());
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fault as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigemptyset(&raw mut action.sa_mask);
            libc::sigaction(libc::SIGSEGV, &raw const action, ptr::null_mut());
            libc::sigaction(libc::SIGBUS, &raw const action, ptr::null_mut());
        }
    });
}

unsafe extern "C" fn on_fault(
    signal: libc::c_int,
    info: *mut libc::siginfo_t,
    context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes a valid siginfo and ucontext.
    let (addr, registers) = unsafe {
        let context = context.cast::<libc::ucontext_t>();
        ((*info).si_addr() as u64, &mut (*context).uc_mcontext.gregs)
    };
    let code = registers[libc::REG_RIP as usize] as u64;
    let vm = RUNNING.get();
    // SAFETY: a thread's running control block is alive.
    if !vm.is_null() && unsafe { is_ours(vm, code, addr) } {
        // SAFETY: as above; generated code holds no reference to the block.
        unsafe {
            (*vm).fault_code = code;
            (*vm).fault_addr = addr;
        }
        registers[libc::REG_RIP as usize] = landing as *const () as i64;
        registers[libc::REG_RDI as usize] = vm as i64;
        return;
    }
    // SAFETY: the arguments are passed on as they came.
    unsafe { chain(signal, info, context) };
}

/// Whether a fault is that of generated code of `vm` at an address of its region or guards.
///
/// # Safety
/// `vm` is a live control block.
unsafe fn is_ours(vm: *mut Vm, code: u64, addr: u64) -> bool {
    // SAFETY: by contract.
    let (low, high) = unsafe { ((*vm).code_low, (*vm).code_high) };
    let first = vm as u64;
    let bytes = 2 * VM_TO_GUEST + GUEST_SIZE;
    (low..high).contains(&code) && addr.wrapping_sub(first) < bytes
}

/// Passes a fault of other code to the previous signal handler.
///
/// # Safety
/// Called from a signal handler with its arguments.
unsafe fn chain(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let previous = PREVIOUS.get();
    let action = match signal {
        libc::SIGBUS => previous.map(|previous| &previous.bus),
        _ => previous.map(|previous| &previous.segv),
    };
    let handler = action.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    let flags = action.map_or(0, |action| action.sa_flags);
    // SAFETY: the handler was installed with these flags, which define its signature.
    unsafe {
        if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
            // Returning repeats the faulting instruction, now with the default action.
            libc::signal(signal, libc::SIG_DFL);
        } else if flags & libc::SA_SIGINFO != 0 {
            type Action =
                unsafe extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);
            std::mem::transmute::<usize, Action>(handler)(signal, info, context);
        } else {
            std::mem::transmute::<usize, unsafe extern "C" fn(libc::c_int)>(handler)(signal);
        }
    }
}
