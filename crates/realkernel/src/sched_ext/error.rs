//! Errors of loading and attaching a scheduler.

use std::fmt::Write;

use crate::job::SchedulerExit;

/// Why an object could not be loaded, configured or attached.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel has no sched_ext.
    #[error(
        "{name}: the running kernel, {release}, has no sched_ext: use Linux 6.12 or later, built with \
         CONFIG_SCHED_CLASS_EXT\n  help: run it on such a kernel in a virtual machine: `--on vm:7.2`"
    )]
    NoSchedExt {
        /// The scheduler.
        name: String,
        /// `uname -r`.
        release: String,
    },
    /// The user may not load BPF programs.
    #[error(
        "{name}: attaching a scheduler requires root (CAP_BPF and CAP_PERFMON, or \
         CAP_SYS_ADMIN)\n  help: run it with sudo, or without these rights in a virtual machine: \
         `--on vm:7.2`"
    )]
    NoRights {
        /// The scheduler.
        name: String,
    },
    /// The kernel has no BTF.
    #[error(
        "{name}: the running kernel, {release}, has no BTF (/sys/kernel/btf/vmlinux is missing: \
         CONFIG_DEBUG_INFO_BTF is off), which loading a scheduler requires\n  help: `--on vm:7.2`"
    )]
    NoBtf {
        /// The scheduler.
        name: String,
        /// `uname -r`.
        release: String,
    },
    /// Another sched_ext scheduler is enabled.
    #[error(
        "{name}: another scheduler, `{other}`, is enabled on this kernel, which permits one\n  \
         help: end the program that attached it; `SysRq-S` (`echo S > /proc/sysrq-trigger`) \
         disables it by force"
    )]
    Busy {
        /// The scheduler.
        name: String,
        /// The enabled scheduler.
        other: String,
    },
    /// libbpf cannot open the object.
    #[error("{name} cannot be opened as a BPF object:\n{}", indented(.messages))]
    NoObject {
        /// The scheduler.
        name: String,
        /// The messages of libbpf.
        messages: Vec<String>,
    },
    /// The object does not define exactly one scheduler.
    #[error("{name} defines {}; a scheduler defines one variable of type `struct sched_ext_ops`", found_text(.found))]
    NotOne {
        /// The scheduler.
        name: String,
        /// Its struct_ops variables, with their types.
        found: Vec<String>,
    },
    /// A program of the object that its loader runs has failed.
    #[error("{name}: the program `{program}`, which its loader runs, failed: {problem}")]
    Program {
        /// The scheduler.
        name: String,
        /// The program.
        program: String,
        /// The system's error, or what the program returned.
        problem: String,
    },
    /// The object cannot take a setting or a topology.
    #[error("{name}: `{label}`: {problem}")]
    BadSetting {
        /// The scheduler.
        name: String,
        /// The setting.
        label: String,
        /// The problem.
        problem: String,
    },
    /// A read-only variable after loading.
    #[error(
        "`{label}` is in .rodata, which is read-only once the object is loaded: set it at the start"
    )]
    Frozen {
        /// The setting.
        label: String,
    },
    /// The kernel's verifier rejects a program.
    #[error(
        "{name}: the kernel's verifier rejects the program `{program}`{}\n{}{}",
        cause_text(.causes),
        indented(.log),
        help_text(.causes)
    )]
    Refused {
        /// The scheduler.
        name: String,
        /// The program.
        program: String,
        /// The last lines of the verifier's log.
        log: Vec<String>,
        /// Common causes.
        causes: Vec<Cause>,
    },
    /// The object does not match the kernel, or the kernel lacks memory for it.
    #[error("{name} cannot be loaded into this kernel:\n{}{}", indented(.messages), help_text(.causes))]
    Load {
        /// The scheduler.
        name: String,
        /// The messages of libbpf.
        messages: Vec<String>,
        /// Common causes.
        causes: Vec<Cause>,
    },
    /// The scheduler's own loader did not attach it.
    #[error("{name} {problem}\n{}", indented(.output))]
    Loader {
        /// The loader.
        name: String,
        /// The problem.
        problem: String,
        /// The last lines of the loader and of the kernel's log.
        output: Vec<String>,
    },
    /// The kernel did not attach a program to its event.
    #[error(
        "{name}: the kernel does not attach the program {program} to {section}: {error}\n\
         help: leave it out with `detach = [\"{program}\"]` under [run] of a profile"
    )]
    Event {
        /// The scheduler.
        name: String,
        /// The program.
        program: String,
        /// Its section, which names the event.
        section: String,
        /// The system's error.
        error: String,
    },
    /// The kernel did not attach the scheduler.
    #[error("{name} was loaded, but the kernel does not attach it: {error}\n{}", indented(.log))]
    Attach {
        /// The scheduler.
        name: String,
        /// The system's error.
        error: String,
        /// The kernel's log about it.
        log: Vec<String>,
    },
    /// The kernel disabled the scheduler while it was being enabled.
    #[error("the kernel disabled {name} while it was being enabled: {}: {}\n\
             {}", .exit.reason, .exit.message, indented(.log))]
    Ejected {
        /// The scheduler.
        name: String,
        /// The exit record.
        exit: Box<SchedulerExit>,
        /// The kernel's log about it.
        log: Vec<String>,
    },
}

/// A common cause of a rejection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The meaning of the message.
    pub meaning: &'static str,
    /// The remedy.
    pub remedy: &'static str,
}

fn indented(lines: &[String]) -> String {
    lines.iter().fold(String::new(), |mut text, line| {
        let _ = writeln!(text, "    {line}");
        text
    })
}

fn found_text(found: &[String]) -> String {
    match found {
        [] => "no scheduler".to_owned(),
        _ => format!("`{}`", found.join("`, `")),
    }
}

fn cause_text(causes: &[Cause]) -> String {
    causes.first().map_or_else(String::new, |cause| format!(": {}", cause.meaning))
}

fn help_text(causes: &[Cause]) -> String {
    causes.iter().fold(String::new(), |mut text, cause| {
        let _ = write!(text, "  help: {}", cause.remedy);
        text
    })
}
