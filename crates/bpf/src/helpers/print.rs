//! `bpf_trace_printk`, `bpf_trace_vprintk`, `bpf_snprintf`: the kernel's subset of printf.

use crate::call::Call;
use crate::env::Host;
use crate::memory::Memory;
use crate::trap::Trap;

/// Maximum bytes of a format string, and of a string that it prints.
const MAX_STRING: usize = 1024;
/// Maximum arguments of a format: the kernel's `MAX_BPRINTF_VARARGS`.
const MAX_ARGS: u64 = 12;
/// Maximum width of a field.
const MAX_WIDTH: usize = 512;

/// Formats as `bpf_trace_vprintk` and `scx_bpf_error_bstr` do: `data` is the guest address of an array of `data_bytes
/// / 8` arguments of 64 bits. A `%s` of an unreadable address prints `(fault)`.
///
/// # Errors
/// The format or the arguments cannot be read, the format is malformed, or it needs more arguments than there are.
pub fn format_bstr(
    memory: &Memory,
    format: u64,
    data: u64,
    data_bytes: u64,
) -> Result<String, Trap> {
    let count = (data_bytes / 8).min(MAX_ARGS);
    let mut args = Vec::with_capacity(count as usize);
    for at in 0..count {
        args.push(memory.load_u64(data.wrapping_add(8 * at))?);
    }
    let format = memory.read_str(format, MAX_STRING)?;
    render(memory, &format, &args)
}

/// `bpf_trace_printk(fmt, size, a, b, c)`.
pub(super) fn trace_printk<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let memory = call.memory();
    let format = memory.read_str(args[0], (args[1] as usize).min(MAX_STRING))?;
    let text = render(memory, &format, &args[2..])?;
    call.host().1.print(text.trim_end_matches('\n'));
    Ok(text.len() as u64)
}

/// `bpf_trace_vprintk(fmt, size, data, data_bytes)`.
pub(super) fn trace_vprintk<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let text = format_bstr(call.memory(), args[0], args[2], args[3])?;
    call.host().1.print(text.trim_end_matches('\n'));
    Ok(text.len() as u64)
}

/// `bpf_snprintf(into, size, fmt, data, data_bytes)`: the length including the NUL, before truncation.
pub(super) fn snprintf<H: Host>(call: &mut Call<H>, args: [u64; 5]) -> Result<u64, Trap> {
    let [into, size, format, data, data_bytes] = args;
    let memory = call.memory();
    let text = format_bstr(memory, format, data, data_bytes)?;
    let size = u64::from(size as u32);
    if size > 0 {
        let kept = text.len().min(size as usize - 1);
        memory.write(into, &text.as_bytes()[..kept])?;
        memory.store_u8(into.wrapping_add(kept as u64), 0)?;
    }
    Ok(text.len() as u64 + 1)
}

#[derive(Default)]
struct Spec {
    left: bool,
    zero: bool,
    alternate: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
    longs: u32,
}

fn render(memory: &Memory, format: &str, args: &[u64]) -> Result<String, Trap> {
    let mut out = String::new();
    let mut args = args.iter().copied();
    let mut chars = format.chars().peekable();
    while let Some(char) = chars.next() {
        if char != '%' {
            out.push(char);
            continue;
        }
        let spec = spec(&mut chars);
        let Some(kind) = chars.next() else { return Err(bad(format, "ends in a `%`")) };
        if kind == '%' {
            out.push('%');
            continue;
        }
        let Some(arg) = args.next() else { return Err(bad(format, "has too few arguments")) };
        if kind == 'p' {
            // The letters of %pK, %px and %ps choose how the kernel prints an address; guest addresses are printed as
            // they are.
            while chars.next_if(|next| matches!(next, 'K' | 'x' | 's' | 'S' | 'B')).is_some() {}
        }
        let body = match body(memory, kind, &spec, arg) {
            Some(body) => body,
            None => return Err(bad(format, &format!("has an unknown conversion `%{kind}`"))),
        };
        pad(&mut out, &body, &spec, kind);
    }
    Ok(out)
}

fn bad(format: &str, what: &str) -> Trap {
    Trap::helper(format!("the format {format:?} {what}"))
}

fn spec(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Spec {
    let mut spec = Spec::default();
    while let Some(flag) = chars.next_if(|next| "-0#+ ".contains(*next)) {
        match flag {
            '-' => spec.left = true,
            '0' => spec.zero = true,
            '#' => spec.alternate = true,
            '+' => spec.plus = true,
            _ => {}
        }
    }
    spec.width = number(chars).unwrap_or(0);
    if chars.next_if_eq(&'.').is_some() {
        spec.precision = Some(number(chars).unwrap_or(0));
    }
    while let Some(length) = chars.next_if(|next| "lhzjt".contains(*next)) {
        if matches!(length, 'l' | 'z' | 'j' | 't') {
            spec.longs += 1;
        }
    }
    spec
}

fn number(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut value = None;
    while let Some(digit) = chars.next_if(char::is_ascii_digit) {
        let digit = digit as usize - '0' as usize;
        value = Some((value.unwrap_or(0) * 10 + digit).min(MAX_WIDTH));
    }
    value
}

fn body(memory: &Memory, kind: char, spec: &Spec, arg: u64) -> Option<String> {
    let signed = if spec.longs > 0 { arg as i64 } else { i64::from(arg as i32) };
    let unsigned = if spec.longs > 0 { arg } else { u64::from(arg as u32) };
    let digits = match kind {
        'd' | 'i' => signed.unsigned_abs().to_string(),
        'u' => unsigned.to_string(),
        'x' => format!("{unsigned:x}"),
        'X' => format!("{unsigned:X}"),
        'o' => format!("{unsigned:o}"),
        'p' => return Some(format!("{arg:016x}")),
        'c' => return Some(char::from(arg as u8).to_string()),
        's' => {
            let limit = spec.precision.unwrap_or(MAX_STRING).min(MAX_STRING);
            return Some(memory.read_str(arg, limit).unwrap_or_else(|_| "(fault)".to_owned()));
        }
        _ => return None,
    };
    let sign = match kind {
        'd' | 'i' if signed < 0 => "-",
        'd' | 'i' if spec.plus => "+",
        'x' | 'X' if spec.alternate && unsigned != 0 => "0x",
        _ => "",
    };
    Some(format!("{sign}{digits:0>width$}", width = spec.precision.unwrap_or(0)))
}

fn pad(out: &mut String, body: &str, spec: &Spec, kind: char) {
    let missing = spec.width.saturating_sub(body.chars().count());
    let zeros = spec.zero && !spec.left && spec.precision.is_none() && kind != 's' && kind != 'c';
    if spec.left {
        out.push_str(body);
        out.extend(std::iter::repeat_n(' ', missing));
    } else if zeros {
        let digits = body.trim_start_matches(['-', '+']);
        out.push_str(&body[..body.len() - digits.len()]);
        out.extend(std::iter::repeat_n('0', missing));
        out.push_str(digits);
    } else {
        out.extend(std::iter::repeat_n(' ', missing));
        out.push_str(body);
    }
}
