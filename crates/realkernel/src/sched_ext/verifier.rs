//! Explains the messages of libbpf and of the kernel's verifier about a rejected object.

use std::sync::{Mutex, PoisonError};

use libbpf_rs::{PrintLevel, set_print};

use super::error::{Cause, LoadError};

/// Maximum lines of the verifier's log in an error: the instruction, the registers, the reason.
const LOG_LINES_SHOWN: usize = 24;
/// Maximum lines of libbpf's messages in an error.
const MESSAGES_SHOWN: usize = 12;

/// libbpf's messages. Its callback for messages has no context argument.
static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep(_: PrintLevel, message: String) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).push(message);
}

/// Calls libbpf; returns its warnings with the result.
pub(super) fn with_warnings<T>(work: impl FnOnce() -> T) -> (T, Vec<String>) {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).clear();
    let before = set_print(Some((PrintLevel::Warn, keep)));
    let result = work();
    set_print(before);
    let warnings = std::mem::take(&mut *SAID.lock().unwrap_or_else(PoisonError::into_inner));
    (result, warnings)
}

/// The error of an object that libbpf could not load.
pub(super) fn explain(name: &str, warnings: &[String]) -> LoadError {
    if let Some((program, log)) = verifier_log(warnings) {
        let lines: Vec<&str> = log.lines().filter(|line| !line.trim().is_empty()).collect();
        let text = lines.join("\n");
        let shown = lines.len().saturating_sub(LOG_LINES_SHOWN);
        return LoadError::Refused {
            name: name.to_owned(),
            program,
            log: lines[shown..].iter().map(|line| (*line).to_owned()).collect(),
            causes: causes(&text),
        };
    }
    let messages = messages(warnings);
    let text = messages.join("\n");
    LoadError::Load { name: name.to_owned(), messages, causes: causes(&text) }
}

/// The last of libbpf's messages, as lines.
pub(super) fn messages(warnings: &[String]) -> Vec<String> {
    let lines = warnings.iter().flat_map(|text| text.lines());
    let lines: Vec<String> = lines
        .map(|line| line.trim_start_matches("libbpf: ").to_owned())
        .filter(|l| !l.is_empty())
        .collect();
    let first = lines.len().saturating_sub(MESSAGES_SHOWN);
    lines[first..].to_vec()
}

/// The rejected program and the verifier's log, which libbpf prints between two marker lines.
fn verifier_log(warnings: &[String]) -> Option<(String, String)> {
    const BEGIN: &str = "-- BEGIN PROG LOAD LOG --";
    const END: &str = "-- END PROG LOAD LOG --";
    let all = warnings.concat();
    let (before, rest) = all.rsplit_once(BEGIN)?;
    let log = rest.split_once(END).map_or(rest, |(log, _)| log);
    let program = before.rsplit_once("prog '")?.1.split_once('\'')?.0;
    Some((program.to_owned(), log.to_owned()))
}

/// libbpf's words when it finds no configuration of the kernel for an object that reads it.
pub(crate) const NO_KCONFIG: &str = "failed to open system Kconfig";

/// Common causes: a part of the log, its meaning, the remedy.
const CAUSES: [(&str, &str, &str); 13] = [
    (
        "BPF program is too large. Processed",
        "it is too complex: more than a million instructions on all paths",
        "make functions that take numbers `SEPARATE`, and loops `for_range`: the \
         verifier then checks them once",
    ),
    (
        "calling kernel function",
        "it calls a kernel function that this callback may not call",
        "the kernel permits each kfunc in certain callbacks only (scx_bpf_dsq_move_to_local in dispatch, \
         scx_bpf_create_dsq in a sleepable init)",
    ),
    (
        "invalid mem access 'map_value_or_null'",
        "a map's value is used without a check for NULL",
        "check the result of the look-up for NULL",
    ),
    (
        "invalid mem access 'scalar'",
        "a scalar is used as a pointer: the verifier has lost track of its origin",
        "keep pointers in registers or maps, and read foreign memory by BPF_CORE_READ \
         or bpf_probe_read_kernel",
    ),
    (
        "makes map_value pointer be out of bounds",
        "an index may be out of bounds",
        "mask the index where it is used: BOUNDED(index, size)",
    ),
    (
        "invalid access to map value",
        "an index may be out of bounds",
        "mask the index where it is used: BOUNDED(index, size)",
    ),
    (
        "unbounded memory access",
        "the verifier knows no bound of an index",
        "mask the index where it is used: BOUNDED(index, size)",
    ),
    (
        "infinite loop detected",
        "a loop makes no progress that the verifier can see",
        "write it with for_range and a named limit",
    ),
    (
        "back-edge from insn",
        "it loops, and the verifier does not see the end",
        "write the loop with for_range and a named limit",
    ),
    (
        "combined stack size of",
        "it needs more than 512 bytes of stack",
        "keep collected state in globals",
    ),
    (
        "unknown func",
        "this kernel has no helper of that number for a scheduler",
        "`fairground sched show OBJECT` lists what it calls",
    ),
    (
        NO_KCONFIG,
        "it asks for the kernel's configuration (`__kconfig`)",
        "this kernel's configuration is found neither in /proc/config.gz nor in /boot; \
         CONFIG_HZ is known without",
    ),
    (
        "extern (func ksym)",
        "it calls a kernel function that this kernel does not have, or has with other arguments",
        "kfuncs of sched_ext changed their names between releases: declare them \
         `__weak` and test with bpf_ksym_exists",
    ),
];

fn causes(text: &str) -> Vec<Cause> {
    // The reason is at the log's end; the rest of the log also names valid kfuncs and helpers.
    let lines: Vec<&str> = text.lines().collect();
    let end = lines[lines.len().saturating_sub(4)..].join("\n");
    let known = CAUSES.into_iter().find(|(sign, ..)| end.contains(sign));
    known.map(|(_, meaning, remedy)| Cause { meaning, remedy }).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_program_reason_and_remedy() {
        let warnings = [
            "libbpf: prog 'cfs_tick': BPF program load failed: -EACCES\n".to_owned(),
            "libbpf: prog 'cfs_tick': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\n12: (79) r1 = *(u64 *)(r0 +0)\n\
             R0 invalid mem access 'map_value_or_null'\nprocessed 12 insns\n-- END PROG LOAD LOG --\n"
                .to_owned(),
            "libbpf: failed to load object 'cfs'\n".to_owned(),
        ];
        let text = explain("cfs", &warnings).to_string();
        assert!(text.contains("the program `cfs_tick`"), "{text}");
        assert!(text.contains("invalid mem access"), "{text}");
        assert!(text.contains("check the result of the look-up for NULL"), "{text}");
        assert!(!text.contains("BEGIN PROG"), "{text}");
    }

    #[test]
    fn a_missing_kernel_function_is_named() {
        let warnings =
            ["libbpf: extern (func ksym) 'scx_bpf_new': not found in kernel or module BTFs\n"
                .to_owned()];
        let text = explain("mine", &warnings).to_string();
        assert!(text.contains("scx_bpf_new") && text.contains("__weak"), "{text}");
    }
}
