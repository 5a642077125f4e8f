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

/// Package managers: the program, how it installs, and what it calls the first three packages.
const MANAGERS: [(&str, &str, [&str; 3]); 5] = [
    ("apt-get", "apt-get install", ["clang-19", "libbpf-dev", "qemu-system-x86"]),
    ("dnf", "dnf install", ["clang", "libbpf-devel", "qemu-system-x86"]),
    ("zypper", "zypper install", ["clang", "libbpf-devel", "qemu-x86"]),
    ("pacman", "pacman -S", ["clang", "libbpf", "qemu-system-x86"]),
    ("apk", "apk add", ["clang", "libbpf-dev", "qemu-system-x86_64"]),
];

/// The command that installs `package` here; where no package manager is known, what to install, in words.
pub(super) fn install(world: &World, package: Package) -> String {
    if package == Package::ArchiveKeys {
        return as_root(world, "apt-get install debian-archive-keyring");
    }
    let manager = MANAGERS.iter().find(|(program, ..)| world.program(program).is_some());
    let name =
        manager.and_then(|(_, install, names)| Some((install, names.get(package as usize)?)));
    match name {
        Some((install, name)) => as_root(world, &format!("{install} {name}")),
        None => words(package).to_owned(),
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
