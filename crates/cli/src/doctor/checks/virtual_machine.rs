//! QEMU, kernels, the archive that they come from, KVM.

use fairground_realkernel::files::read_text;
use fairground_realkernel::packages::{PackageError, Reach, reach};
use fairground_realkernel::vm::{NoKvm, kvm_opens, kvm_works};

use super::super::packages::{Package, as_root, install};
use super::super::{Check, Finding, World};

pub(in super::super) const ARCHIVE: Check =
    Check { name: "Debian's archive", test: archive, boots: false };
pub(in super::super) const QEMU: Check = Check { name: "QEMU", test: qemu, boots: false };
pub(in super::super) const KERNELS: Check = Check { name: "kernels", test: kernels, boots: false };
pub(in super::super) const BOOT: Check = Check { name: "a kernel booted", test: boot, boots: true };
pub(in super::super) const SCHED_EXT_KERNEL: Check =
    Check { name: "a kernel with sched_ext", test: sched_ext_kernel, boots: false };
pub(in super::super) const KVM: Check = Check { name: "KVM", test: kvm, boots: false };

/// The line of a kernel's configuration that has sched_ext.
const SCHED_EXT: &str = "CONFIG_SCHED_CLASS_EXT=y";
/// Where there is no apt, kernels come from the user.
const OWN_KERNEL: &str = "give a kernel of your own: --on vm --kernel PATH (a bzImage)";

fn archive(world: &World) -> Finding {
    match reach(&world.root, &world.path) {
        Ok(Reach::Proven) => Finding::ready("a file came"),
        Ok(Reach::NotTried) => Finding::not_measured(
            "apt and its keys are here; there is no apt-helper to try it with",
        ),
        Err(PackageError::NoKeys { path }) => Finding::missing(
            format!("no keys of Debian's archive at {}", path.display()),
            install(world, Package::ArchiveKeys),
        ),
        Err(PackageError::NoApt { program }) => {
            Finding::missing(format!("no {program}: kernels come from Debian by apt"), OWN_KERNEL)
        }
        Err(PackageError::NoNetwork { message: said, .. }) => {
            let why = said.lines().last().unwrap_or_default().trim().to_owned();
            let remedy =
                "check the network, or apt's proxy (Acquire::http::Proxy in /etc/apt/apt.conf.d)";
            Finding::missing(format!("it does not answer: {why}"), remedy)
        }
        Err(error) => Finding::missing(error.to_string(), OWN_KERNEL),
    }
}

/// Fetches what the cache holds, where apt is here to do it.
fn fetch(world: &World, what: &str, otherwise: String) -> String {
    match world.program("apt-get") {
        Some(_) => format!("fairground kernels fetch {what}"),
        None => otherwise,
    }
}

fn qemu(world: &World) -> Finding {
    match world.qemu() {
        Ok(qemu) => Finding::ready(format!("{}: {}", qemu.version, qemu.program.display())),
        Err(error) => {
            let found = match error {
                PackageError::NoQemu { found: None } => "no qemu-system-x86_64".to_owned(),
                PackageError::NoQemu { found: Some(what) } => {
                    format!("{what}: it takes 10 or newer")
                }
                other => other.to_string(),
            };
            Finding::missing(found, fetch(world, "6.1 newest", install(world, Package::Qemu)))
        }
    }
}

fn kernels(world: &World) -> Finding {
    let remedy = || fetch(world, "6.1 newest", OWN_KERNEL.to_owned());
    let Some(cache) = &world.cache else {
        return Finding::missing("no folder to keep them in", "set FAIRGROUND_CACHE to a folder");
    };
    let names: Vec<String> = world.kernels().into_iter().map(|kernel| kernel.name).collect();
    if names.is_empty() {
        return Finding::missing(format!("none in {}", cache.root().display()), remedy());
    }
    Finding::ready(format!("{} in {}", names.join(", "), cache.root().display()))
}

fn boot(world: &World) -> Finding {
    match world.booted() {
        None => Finding::not_measured("there is nothing to boot, or to boot it in"),
        Some(Ok(info)) => Finding::ready(info.release.clone()),
        Some(Err(problem)) => {
            let first = problem.lines().next().unwrap_or_default();
            Finding::missing(first, "fairground kernels boot newest: it shows the guest's console")
        }
    }
}

fn sched_ext_kernel(world: &World) -> Finding {
    let remedy = || fetch(world, "newest", OWN_KERNEL.to_owned());
    if !world.thorough {
        return configured(world, remedy);
    }
    match world.booted() {
        Some(Ok(info)) if info.sched_ext => Finding::ready(info.release.clone()),
        Some(Ok(info)) => Finding::missing(
            format!("the newest that is here, {}, has none", info.release),
            remedy(),
        ),
        Some(Err(_)) => Finding::not_measured("the newest kernel did not boot"),
        None => Finding::missing("none is here, or no QEMU to look into it", remedy()),
    }
}

/// Whether the configuration of a kernel that is here has sched_ext.
fn configured(world: &World, remedy: impl Fn() -> String) -> Finding {
    let Some(kernel) = world.kernels().pop() else {
        return Finding::missing("none is here", remedy());
    };
    let text = kernel.config.as_ref().map(read_text);
    match text {
        Some(Ok(text)) if text.lines().any(|line| line == SCHED_EXT) => {
            Finding::ready(format!("{}: {SCHED_EXT}", kernel.name))
        }
        Some(Ok(_)) => Finding::missing(
            format!("the newest that is here, {}, has none", kernel.name),
            remedy(),
        ),
        Some(Err(error)) => Finding::not_measured(format!("its configuration: {error}")),
        None => Finding::not_measured(format!("{} is here without its configuration", kernel.name)),
    }
}

fn kvm(world: &World) -> Finding {
    match kvm_opens(&world.root) {
        Ok(()) => {}
        Err(error @ NoKvm::NotPermitted { .. }) => {
            return Finding::missing(error.to_string(), as_root(world, "usermod -aG kvm $USER"));
        }
        Err(error) => {
            let remedy = "switch virtualisation on in the firmware; in a virtual machine, nested \
                          virtualisation on its host";
            return Finding::missing(error.to_string(), remedy);
        }
    }
    if !world.thorough {
        return Finding::not_measured(
            "/dev/kvm opens; `doctor --thorough` boots a kernel under it",
        );
    }
    // The newest kernel: what it needs of a processor, the others need too.
    let Some(machine) = world.newest_machine() else {
        return Finding::not_measured("/dev/kvm opens; only a kernel that boots proves more");
    };
    match kvm_works(&world.root, &machine) {
        Ok(()) => Finding::ready(format!("{} boots under it", machine.kernel.name)),
        Err(error) => {
            Finding::missing(error.to_string(), "do without: it is not used where it does not work")
        }
    }
}
