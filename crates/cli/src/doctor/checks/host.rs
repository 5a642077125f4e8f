//! This machine's kernel: the rights and features for recording it and for attaching a scheduler.

use fairground_realkernel::rights::Rights;
use fairground_realkernel::sched_ext::{LoadError, attachable};
use fairground_realkernel::tracefs::{RecordError, Tracefs, find_tracefs};

use super::super::packages::{as_root, is_container};
use super::super::{Check, Finding, World};

pub(in super::super) const RIGHTS: Check = Check { name: "root", test: rights, boots: false };
pub(in super::super) const TRACEFS: Check = Check { name: "tracefs", test: tracefs, boots: false };
pub(in super::super) const SCHED_EXT: Check =
    Check { name: "sched_ext", test: sched_ext, boots: false };

/// A container's root cannot get a right that the container was started without.
const CONTAINER: &str = "start the container with its host's rights (docker run --privileged)";

fn rights(world: &World) -> Finding {
    if Rights::read(&world.root).may_record() {
        return Finding::ready("this user has the rights of root");
    }
    let remedy = if is_container(world) { CONTAINER } else { "run it with sudo" };
    Finding::missing("this user has not the rights of root (CAP_SYS_ADMIN)", remedy)
}

fn tracefs(world: &World) -> Finding {
    match find_tracefs(&world.root, world.is_tracefs) {
        Ok(Tracefs::Usable(place)) => Finding::ready(format!("{}, writable", place.display())),
        // Whether it can be mounted would have to be tried, and nothing is changed here.
        Ok(Tracefs::Mountable(place)) => Finding::not_measured(format!(
            "not mounted yet: `record` mounts it on {}",
            place.display()
        )),
        Err(RecordError::NoTracefs { why }) => {
            let mount = match has_sys(world) {
                true => as_root(world, "mount -t tracefs tracefs /sys/kernel/tracing"),
                false => mount_sys(world),
            };
            Finding::missing(why, if is_container(world) { CONTAINER.to_owned() } else { mount })
        }
        Err(RecordError::NotPermitted { path, source }) => {
            let remedy = if is_container(world) { CONTAINER } else { "run it with sudo" };
            Finding::missing(format!("{}: {source}", path.display()), remedy)
        }
        Err(error) => Finding::missing(error.to_string(), CONTAINER),
    }
}

/// Whether the kernel's own files can be seen.
fn has_sys(world: &World) -> bool {
    world.root.join("sys/kernel").is_dir()
}

fn mount_sys(world: &World) -> String {
    as_root(world, "mount -t sysfs sysfs /sys")
}

fn sched_ext(world: &World) -> Finding {
    let in_a_guest = "boot Linux 6.12 or newer with CONFIG_SCHED_CLASS_EXT; or use a virtual machine: --on vm:newest";
    match attachable(&world.root, "a scheduler") {
        Ok(()) => Finding::ready("the kernel has it, and no scheduler is attached"),
        Err(LoadError::NoSchedExt { .. }) if !has_sys(world) => {
            Finding::missing("there is no folder /sys/kernel to see it in", mount_sys(world))
        }
        Err(LoadError::NoSchedExt { release, .. }) => {
            Finding::missing(format!("the running kernel, {release}, has none"), in_a_guest)
        }
        Err(LoadError::NoBtf { release, .. }) => Finding::missing(
            format!(
                "the running kernel, {release}, does not describe its types (CONFIG_DEBUG_INFO_BTF)"
            ),
            in_a_guest,
        ),
        Err(LoadError::NoRights { .. }) => {
            Finding::missing("the kernel has it; attaching takes root", "run it with sudo")
        }
        Err(LoadError::Busy { other, .. }) => Finding::missing(
            format!("`{other}` is in charge, and there can be one"),
            "end the program that attached it",
        ),
        Err(error) => Finding::missing(error.to_string(), in_a_guest),
    }
}
