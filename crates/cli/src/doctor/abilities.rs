//! Abilities that a user may want, and the checks that each needs.

use super::Check;
use super::checks::{host, simulator, terminal, toolchain, virtual_machine};

/// Something that the program can do where the machine lets it.
#[derive(Debug)]
pub(crate) struct Ability {
    /// As it is asked for: `doctor vm`.
    pub(crate) name: &'static str,
    /// Whose commands it is for.
    pub(crate) what: &'static str,
    /// The checks that must all succeed.
    pub(super) needs: &'static [&'static Check],
}

/// Every ability, in the order in which they are shown.
pub(crate) const ABILITIES: &[Ability] = &[
    Ability {
        name: "simulate",
        what: "run, compare, replay, reproduce in the simulated machine; analyze, convert recordings",
        needs: &[&simulator::SCHEDULERS, &simulator::RUN],
    },
    Ability {
        name: "build",
        what: "--sched ./mine.bpf.c, sched build: a scheduler of your own from its source",
        needs: &[&toolchain::CLANG, &toolchain::HEADERS, &toolchain::COMPILE],
    },
    Ability {
        name: "fetch",
        what: "kernels fetch: real kernels and QEMU from Debian, without root",
        needs: &[&virtual_machine::ARCHIVE],
    },
    Ability {
        name: "vm",
        what: "--on vm:KERNEL: real kernels in a virtual machine",
        needs: &[&virtual_machine::QEMU, &virtual_machine::KERNELS, &virtual_machine::BOOT],
    },
    Ability {
        name: "vm-load",
        what: "--on vm:newest --sched NAME: schedulers in charge of a real kernel there",
        needs: &[&virtual_machine::QEMU, &virtual_machine::SCHED_EXT_KERNEL],
    },
    Ability {
        name: "kvm",
        what: "--vm-mode fast at the machine's own speed; the exact mode does without",
        needs: &[&virtual_machine::KVM],
    },
    Ability {
        name: "record",
        what: "record, contention, --on host: what this machine's kernel does",
        needs: &[&host::RIGHTS, &host::TRACEFS],
    },
    Ability {
        name: "load",
        what: "load, --on host --sched NAME: schedulers in charge of this machine",
        needs: &[&host::RIGHTS, &host::SCHED_EXT],
    },
    Ability {
        name: "terminal",
        what: "progress, colours, tables as wide as the window",
        needs: &[&terminal::TERMINAL],
    },
];

impl Ability {
    pub(crate) fn find(name: &str) -> Option<&'static Ability> {
        ABILITIES.iter().find(|ability| ability.name == name)
    }
}
