//! How a package is installed, by the machine's own package manager.

use std::fs;

use fairground_realkernel::rights::Rights;

use super::World;

/// Something that a distribution has a package for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Package {
    Clang,
    LibbpfHeaders,
    Qemu,
    ArchiveKeys,
}

/// A package manager: its program, how it installs, and what it calls the packages.
struct Manager {
    program: &'static str,
    install: &'static str,
    names: [(Package, &'static str); 3],
}

const MANAGERS: [Manager; 5] = [
    Manager {
        program: "apt-get",
        install: "apt-get install",
        names: [
            (Package::Clang, "clang-19"),
            (Package::LibbpfHeaders, "libbpf-dev"),
            (Package::Qemu, "qemu-system-x86"),
        ],
    },
    Manager {
        program: "dnf",
        install: "dnf install",
        names: [
            (Package::Clang, "clang"),
            (Package::LibbpfHeaders, "libbpf-devel"),
            (Package::Qemu, "qemu-system-x86"),
        ],
    },
    Manager {
        program: "zypper",
        install: "zypper install",
        names: [
            (Package::Clang, "clang"),
            (Package::LibbpfHeaders, "libbpf-devel"),
            (Package::Qemu, "qemu-x86"),
        ],
    },
    Manager {
        program: "pacman",
        install: "pacman -S",
        names: [
            (Package::Clang, "clang"),
            (Package::LibbpfHeaders, "libbpf"),
            (Package::Qemu, "qemu-system-x86"),
        ],
    },
    Manager {
        program: "apk",
        install: "apk add",
        names: [
            (Package::Clang, "clang"),
            (Package::LibbpfHeaders, "libbpf-dev"),
            (Package::Qemu, "qemu-system-x86_64"),
        ],
    },
];

/// The command that installs `package` here; where no package manager is known, what to install, in words.
pub(super) fn install(world: &World, package: Package) -> String {
    if package == Package::ArchiveKeys {
        return as_root(world, "apt-get install debian-archive-keyring");
    }
    let manager = MANAGERS.iter().find(|manager| world.program(manager.program).is_some());
    let name = manager.and_then(|m| m.names.iter().find(|(known, _)| *known == package));
    match (manager, name) {
        (Some(manager), Some((_, name))) => as_root(world, &format!("{} {name}", manager.install)),
        _ => words(package).to_owned(),
    }
}

fn words(package: Package) -> &'static str {
    match package {
        Package::Clang => "install clang 16 or newer",
        Package::LibbpfHeaders => "install libbpf's headers (bpf/bpf_helpers.h)",
        Package::Qemu => "install QEMU 10 or newer (qemu-system-x86_64)",
        Package::ArchiveKeys => "install the keys of Debian's archive",
    }
}

/// A command for root, as this user types it.
pub(super) fn as_root(world: &World, command: &str) -> String {
    let is_root = Rights::read(&world.root).is_root();
    if is_root { command.to_owned() } else { format!("sudo {command}") }
}

/// Whether the machine is a container, which lacks rights that a machine's own root has: as systemd and the usual
/// engines say.
pub(super) fn is_container(world: &World) -> bool {
    let there = |path: &str| fs::exists(world.root.join(path)).unwrap_or(false);
    ["run/systemd/container", "run/.containerenv", ".dockerenv"].into_iter().any(there)
}
