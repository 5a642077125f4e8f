//! Why a scheduler is not in charge.

use std::fmt::Write;

use crate::job::SchedulerExit;

/// Why an object could not be loaded, told a setting, or attached.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The kernel knows no sched_ext.
    #[error(
        "{name}: the running kernel, {release}, has no sched_ext: it takes Linux 6.12 or later, built with \
         CONFIG_SCHED_CLASS_EXT\n  help: a kernel that has it runs in a virtual machine: `--on vm:7.2`"
    )]
    NoSchedExt {
        /// The scheduler.
        name: String,
        /// `uname -r`.
        release: String,
    },
    /// The user may not load BPF programs.
    #[error(
        "{name}: to attach a scheduler takes the rights of root (CAP_BPF and CAP_PERFMON, or CAP_SYS_ADMIN)\n  help: run it with \
         sudo, or in a virtual machine, which needs no rights: `--on vm:7.2`"
    )]
    NoRights {
        /// The scheduler.
        name: String,
    },
    /// The kernel does not describe its types.
    #[error(
        "{name}: the running kernel, {release}, does not describe its types (/sys/kernel/btf/vmlinux is missing: \
         CONFIG_DEBUG_INFO_BTF is off), and a scheduler's object is fitted to them\n  help: `--on vm:7.2`"
    )]
    NoBtf {
        /// The scheduler.
        name: String,
        /// `uname -r`.
        release: String,
    },
    /// Somebody else's scheduler is in charge.
    #[error(
        "{name}: another scheduler, `{other}`, is in charge of this kernel, and there can be one\n  help: end the program that \
         attached it; `SysRq-S` (`echo S > /proc/sysrq-trigger`) removes it by force"
    )]
    Busy {
        /// The scheduler.
        name: String,
        /// The one that is in charge.
        other: String,
    },
    /// The bytes are no object that libbpf opens.
    #[error("{name} is no BPF object that can be opened:\n{}", indented(.messages))]
    NoObject {
        /// The scheduler.
        name: String,
        /// What libbpf says.
        messages: Vec<String>,
    },
    /// The object has no scheduler, or several.
    #[error("{name} holds {}; to attach it, it must define one variable of type `struct sched_ext_ops`", found_text(.found))]
    NotOne {
        /// The scheduler.
        name: String,
        /// The struct_ops variables that it holds, with their types.
        found: Vec<String>,
    },
    /// A program of the object that its loader runs.
    #[error("{name}: the program `{program}`, which its loader runs, failed: {problem}")]
    Program {
        /// The scheduler.
        name: String,
        /// The program.
        program: String,
        /// The system's error, or what the program returned.
        problem: String,
    },
    /// A setting or a topology that has no place in the object.
    #[error("{name}: `{label}`: {problem}")]
    NoPlace {
        /// The scheduler.
        name: String,
        /// The setting.
        label: String,
        /// What is wrong.
        problem: String,
    },
    /// A variable that cannot be changed any more.
    #[error(
        "`{label}` lies in .rodata, which the kernel froze when it loaded the object: set it at the start"
    )]
    Frozen {
        /// The setting.
        label: String,
    },
    /// The kernel's verifier refuses a program.
    #[error(
        "{name}: the kernel's verifier refuses the program `{program}`{}\n{}{}",
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
        /// Its usual causes: what it means and what to do.
        causes: Vec<Cause>,
    },
    /// The object does not fit the kernel, or the kernel has no room for it.
    #[error("{name} cannot be loaded into this kernel:\n{}{}", indented(.messages), help_text(.causes))]
    Load {
        /// The scheduler.
        name: String,
        /// What libbpf says.
        messages: Vec<String>,
        /// Usual causes.
        causes: Vec<Cause>,
    },
    /// The kernel did not take the scheduler.
    #[error("{name} was loaded, but the kernel does not put it in charge: {error}\n{}", indented(.log))]
    Attach {
        /// The scheduler.
        name: String,
        /// The system's error.
        error: String,
        /// What the kernel's log says about it.
        log: Vec<String>,
    },
    /// It was in charge, and the kernel ended it at once.
    #[error("{name} was ended while it was put in charge: {}: {}\n{}", .exit.reason, .exit.message, indented(.log))]
    Ejected {
        /// The scheduler.
        name: String,
        /// How it ended.
        exit: Box<SchedulerExit>,
        /// What the kernel's log says about it.
        log: Vec<String>,
    },
}

/// A usual cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What it means.
    pub meaning: &'static str,
    /// What to do.
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
