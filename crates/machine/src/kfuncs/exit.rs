//! Exits, errors and their messages.

use fairground_bpf::{Memory, format_bstr};

use super::Ret;
use crate::ExitKind;
use crate::kernel::Kernel;

/// `MAX_BPRINTF_VARARGS`: arguments of one message.
const MAX_ARGS: u64 = 12;

/// `bstr_format`: the message, or an error of the scheduler that describes its fault.
fn message(k: &mut Kernel, mem: &Memory, format: u64, data: u64, bytes: u64) -> Option<String> {
    if !bytes.is_multiple_of(8) || bytes > MAX_ARGS * 8 || (bytes != 0 && data == 0) {
        k.error(format!("invalid data={data:#x} and data__sz={bytes}"));
        return None;
    }
    match format_bstr(mem, format, data, bytes) {
        Ok(text) => Some(text),
        Err(trap) => {
            k.error(format!("format preparation failed: {trap}"));
            None
        }
    }
}

/// `scx_bpf_exit_bstr(exit_code, fmt, data, data__sz)`.
pub(super) fn exit(k: &mut Kernel, mem: &Memory, [code, format, data, bytes, _]: [u64; 5]) -> Ret {
    if let Some(text) = message(k, mem, format, data, u64::from(bytes as u32)) {
        k.exit(ExitKind::UnregisteredByBpf, code as i64, text);
    }
    Ok(0)
}

/// `scx_bpf_error_bstr(fmt, data, data__sz)`.
pub(super) fn error(k: &mut Kernel, mem: &Memory, [format, data, bytes, ..]: [u64; 5]) -> Ret {
    if let Some(text) = message(k, mem, format, data, u64::from(bytes as u32)) {
        k.exit(ExitKind::ErrorBpf, 0, text);
    }
    Ok(0)
}

/// `scx_bpf_dump_bstr(fmt, data, data__sz)`: only from `ops.dump()`, `ops.dump_cpu()` and `ops.dump_task()`.
pub(super) fn dump(k: &mut Kernel, mem: &Memory, [format, data, bytes, ..]: [u64; 5]) -> Ret {
    let Some(dump) = &mut k.dump else {
        k.error("scx_bpf_dump() is for ops.dump(), ops.dump_cpu() and ops.dump_task() only");
        return Ok(0);
    };
    let text = format_bstr(mem, format, data, u64::from(bytes as u32));
    dump.add(&text.unwrap_or_else(|fault| format!("[!] {fault}\n")));
    Ok(0)
}
