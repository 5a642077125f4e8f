//! Worlds in a folder: a bare one, one with everything, and those in between.

use std::cell::OnceCell;
use std::fs;
use std::io::Write;

use std::process::{Command, Stdio};

use fairground_realkernel::job::KernelInfo;
use fairground_realkernel::packages::{Cache, Cached};
use tempfile::TempDir;

use super::world::Booted;
use super::{ABILITIES, Ability, Examined, Readiness, World, examine};

const ROOT: &str = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
const USER: &str = "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\n";
const APT: [&str; 3] = ["apt-get", "apt-cache", "dpkg-deb"];
/// A clang that copies an object for every source.
const CLANG: &str = r#"[ "$1" = -dumpversion ] && { echo 19.1.7; exit; }
for last; do :; done
/bin/cp OBJECT "$last"
"#;
/// A QEMU under whose KVM the kernel comes to its end.
const QEMU: &str = r#"[ "$1" = --version ] || [ "$3" = --version ] && { echo "QEMU emulator version 10.0.2 (Debian)"; exit; }
echo "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)"
"#;

/// A kernel's description of itself: 7.2 has sched_ext, 6.1 has none, 9.9 ends in the middle.
fn describes(kernel: &str) -> Booted {
    let info = |sched_ext| KernelInfo {
        release: format!("{kernel}.13"),
        sched_ext,
        ..KernelInfo::default()
    };
    match kernel {
        "7.2" => Ok(info(true)),
        "6.1" => Ok(info(false)),
        _ => Err("the guest's kernel panicked: no init\nlines of its console".to_owned()),
    }
}

struct Place {
    folder: TempDir,
    world: World,
}

impl Place {
    /// A machine with a shell's worth of nothing.
    fn bare(status: &str) -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        let world = World {
            root: folder.path().to_owned(),
            path: folder.path().join("bin").into(),
            cache: Some(Cache::at(folder.path().join("cache"))),
            clang: None,
            terminal: false,
            term: None,
            is_tracefs: |path| path.join("README").is_file(),
            thorough: true,
            boot: |machine| describes(&machine.kernel.name),
            booted: OnceCell::new(),
        };
        let place = Place { folder, world };
        place.file("proc/self/status", status);
        place.file("proc/sys/kernel/osrelease", "6.1.0-test\n");
        place
    }

    /// A machine with everything.
    fn full() -> Place {
        let mut place = Place::bare(ROOT);
        place.apt(0, "");
        place.toolchain(CLANG);
        place.program("qemu-system-x86_64", QEMU);
        place.kernel("7.2");
        place.file("dev/kvm", "");
        place.file("sys/kernel/tracing/README", "");
        fs::create_dir_all(place.path("sys/kernel/tracing/instances")).expect("made");
        place.file("sys/kernel/sched_ext/state", "disabled\n");
        place.file("sys/kernel/btf/vmlinux", "");
        (place.world.terminal, place.world.term) = (true, Some("xterm-256color".to_owned()));
        place
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn file(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies below the root")).expect("made");
        fs::write(path, text).expect("written");
    }

    /// A program. A shell writes it: a file that this process had open for writing while another thread starts a child
    /// could not be executed.
    fn executable(&self, name: &str, script: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("it lies below the root")).expect("made");
        let mut shell = Command::new("/bin/sh")
            .args(["-c", "/bin/cat > \"$0\" && /bin/chmod +x \"$0\""])
            .arg(&path)
            .stdin(Stdio::piped())
            .spawn()
            .expect("a shell");
        let mut to = shell.stdin.take().expect("piped");
        write!(to, "#!/bin/sh\n{script}").expect("handed over");
        drop(to);
        assert!(shell.wait().expect("it ends").success());
    }

    fn program(&self, name: &str, script: &str) {
        self.executable(&format!("bin/{name}"), script);
    }

    fn toolchain(&self, clang: &str) {
        let object = self.path("fifo.bpf.o");
        let fifo = fairground_policies::get("fifo").expect("fifo");
        fs::write(&object, fifo.object).expect("written");
        self.program("clang-19", &clang.replace("OBJECT", &object.display().to_string()));
        self.file("usr/include/bpf/bpf_helpers.h", "");
    }

    fn apt(&self, helper_code: u8, helper_says: &str) {
        for program in APT {
            self.program(program, "exit 0\n");
        }
        self.file("usr/share/keyrings/debian-archive-keyring.gpg", "");
        let script = format!("echo '{helper_says}' >&2\nexit {helper_code}\n");
        self.executable("usr/lib/apt/apt-helper", &script);
    }

    fn kernel(&self, name: &str) {
        let note = Cached {
            name: name.to_owned(),
            release: format!("{name}.1"),
            package: String::new(),
            version: String::new(),
            package_sha256: String::new(),
            // Of "abc".
            sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".to_owned(),
        };
        let folder = format!("cache/kernels/{name}");
        self.file(&format!("{folder}/vmlinuz"), "abc");
        self.file(&format!("{folder}/kernel.json"), &serde_json::to_string(&note).expect("text"));
    }

    fn examine(&self) -> Vec<Examined> {
        examine(&self.world, &ABILITIES.iter().collect::<Vec<_>>(), &mut |_| ())
    }

    /// Of one ability: its verdict, and all that was found and advised.
    fn of(&mut self, ability: &str) -> (Readiness, String) {
        // What was booted before is another machine's.
        self.world.booted = OnceCell::new();
        let ability = Ability::find(ability).expect("it is known");
        let examined = examine(&self.world, &[ability], &mut |_| ()).remove(0);
        let said = examined.findings.iter().map(|(name, finding)| {
            format!("{name}: {} -> {}\n", finding.found, finding.remedy.as_deref().unwrap_or("-"))
        });
        (examined.verdict(), said.collect())
    }

    fn is(&mut self, ability: &str, verdict: Readiness, words: &[&str]) {
        let (found, said) = self.of(ability);
        assert_eq!(found, verdict, "{ability}: {said}");
        for word in words {
            assert!(said.contains(word), "{ability}: no `{word}` in: {said}");
        }
    }
}

#[test]
fn a_bare_machine_simulates_and_is_told_how_to_get_the_rest() {
    let examined = Place::bare(USER).examine();
    let verdicts: Vec<_> = examined.iter().map(|e| (e.ability.name, e.verdict().word())).collect();
    let expected = [
        ("simulate", "ready"),
        ("build", "missing"),
        ("fetch", "missing"),
        ("vm", "missing"),
        ("vm-load", "missing"),
        ("kvm", "missing"),
        ("record", "missing"),
        ("load", "missing"),
        ("terminal", "not measured"),
    ];
    assert_eq!(verdicts, expected);
    for (check, finding) in examined.iter().flat_map(|one| &one.findings) {
        let is_missing = finding.verdict == Readiness::Missing;
        assert_eq!(finding.remedy.is_some(), is_missing, "{check}: {finding:?}");
    }
}

#[test]
fn a_machine_with_everything_is_ready_for_everything() {
    for one in Place::full().examine() {
        assert_eq!(one.verdict(), Readiness::Ready, "{}: {:?}", one.ability.name, one.findings);
    }
}

#[test]
fn what_is_missing_is_installed_by_the_machines_own_package_manager() {
    let mut place = Place::bare(USER);
    place.is("build", Readiness::Missing, &["-> install clang 16 or newer"]);
    place.is("vm", Readiness::Missing, &["-> install QEMU 10 or newer", "--kernel PATH"]);
    place.program("dnf", "exit 1\n");
    place.is("build", Readiness::Missing, &["-> sudo dnf install clang\n", "libbpf-devel"]);
    place.is("vm", Readiness::Missing, &["-> sudo dnf install qemu-system-x86\n", "--kernel PATH"]);
    let mut debian = Place::bare(ROOT);
    debian.apt(0, "");
    debian.is("build", Readiness::Missing, &["-> apt-get install clang-19\n", "libbpf-dev"]);
    debian.is("vm", Readiness::Missing, &["-> fairground kernels fetch 6.1 newest"]);
    debian.is("vm-load", Readiness::Missing, &["-> fairground kernels fetch newest"]);
    debian.is("fetch", Readiness::Ready, &["a file came"]);
    // Root of a container may do little, and needs no sudo to install.
    let mut confined = Place::bare("Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n");
    confined.apt(0, "");
    confined.is("build", Readiness::Missing, &["-> apt-get install clang-19\n"]);
}

#[test]
fn a_compiler_counts_when_it_compiles_a_scheduler() {
    let mut place = Place::bare(USER);
    place.toolchain("[ \"$1\" = -dumpversion ] && { echo 14.0.6; exit; }\n");
    place.is("build", Readiness::Missing, &["no clang 16 or newer", "nothing to compile it with"]);
    let no_target = "[ \"$1\" = -dumpversion ] && { echo 19.1.7; exit; }\n\
        echo 'error: unable to create target: bpfel' >&2; exit 1\n";
    place.toolchain(no_target);
    place.is("build", Readiness::Missing, &["version 19", "unable to create target: bpfel"]);
    place.toolchain(CLANG);
    place.is("build", Readiness::Ready, &["version 19: clang-19", "bytes of object"]);
    fs::remove_file(place.path("usr/include/bpf/bpf_helpers.h")).expect("removed");
    place.is("build", Readiness::Missing, &["no bpf/bpf_helpers.h"]);
}

#[test]
fn a_compiler_by_name_is_that_compiler() {
    let mut place = Place::bare(USER);
    place.toolchain(CLANG);
    place.world.clang = Some(place.path("bin/clang-19").display().to_string());
    place.is("build", Readiness::Ready, &["named by FAIRGROUND_CLANG"]);
    place.world.clang = Some("/nowhere/clang".to_owned());
    place.is(
        "build",
        Readiness::Missing,
        &["/nowhere/clang is not a clang", "unset FAIRGROUND_CLANG"],
    );
}

#[test]
fn the_archive_counts_when_a_file_comes() {
    let mut place = Place::bare(ROOT);
    place.apt(100, "E: Temporary failure resolving deb.debian.org");
    place.is("fetch", Readiness::Missing, &["Temporary failure resolving", "apt's proxy"]);
    fs::remove_file(place.path("usr/lib/apt/apt-helper")).expect("removed");
    place.is("fetch", Readiness::NotMeasured, &["no apt-helper"]);
    fs::remove_file(place.path("usr/share/keyrings/debian-archive-keyring.gpg")).expect("removed");
    place.is("fetch", Readiness::Missing, &["apt-get install debian-archive-keyring"]);
}

#[test]
fn qemu_must_be_new_enough_and_a_kernel_whole() {
    let mut place = Place::full();
    place.program("qemu-system-x86_64", "echo 'QEMU emulator version 7.2.22 (Debian)'\n");
    place.is("vm", Readiness::Missing, &["version 7.2.22: it takes 10 or newer", "kernels fetch"]);
    place.program("qemu-system-x86_64", QEMU);
    place.is("vm", Readiness::Ready, &["10.0.2: ", "7.2 in ", "7.2.13"]);
    place.file("cache/kernels/7.2/vmlinuz", "cut off");
    place.is("vm", Readiness::Missing, &["none in "]);
    place.is("vm-load", Readiness::Missing, &["none is here", "kernels fetch newest"]);
    place.kernel("6.1");
    place.is("vm", Readiness::Ready, &["6.1.13"]);
    place.is("vm-load", Readiness::Missing, &["6.1.13, has none", "kernels fetch newest"]);
    place.kernel("9.9");
    place.is("vm", Readiness::Missing, &["kernel panicked: no init ->", "kernels boot newest"]);
    place.is("vm-load", Readiness::NotMeasured, &["did not boot"]);
}

#[test]
fn kvm_counts_when_a_kernel_boots_under_it() {
    let mut place = Place::full();
    place.is("kvm", Readiness::Ready, &["7.2 boots under it"]);
    let stops = QEMU.replace("VFS: Unable", "Attempted to kill init! Unable");
    place.program("qemu-system-x86_64", &stops);
    place.is("kvm", Readiness::Missing, &["does not boot under it"]);
    fs::remove_dir_all(place.path("cache")).expect("removed");
    place.is("kvm", Readiness::NotMeasured, &["only a kernel that boots"]);
    fs::remove_file(place.path("dev/kvm")).expect("removed");
    place.is("kvm", Readiness::Missing, &["there is no ", "nested"]);
}

#[test]
fn recording_takes_rights_and_a_tracefs() {
    let mut place = Place::full();
    place.is("record", Readiness::Ready, &["sys/kernel/tracing, writable"]);
    fs::remove_file(place.path("sys/kernel/tracing/README")).expect("removed");
    place.is("record", Readiness::NotMeasured, &["not mounted yet"]);
    place.file("proc/self/status", USER);
    place.is("record", Readiness::Missing, &["run it with sudo"]);
    place.file(".dockerenv", "");
    place.is("record", Readiness::Missing, &["--privileged"]);
    place.file("proc/self/status", ROOT);
    fs::remove_dir_all(place.path("sys/kernel/tracing")).expect("removed");
    place.is("record", Readiness::Missing, &["does not exist"]);
}

#[test]
fn attaching_takes_a_kernel_with_sched_ext_that_is_free() {
    let mut place = Place::full();
    place.is("load", Readiness::Ready, &["no scheduler is attached"]);
    place.file("sys/kernel/sched_ext/state", "enabled\n");
    place.file("sys/kernel/sched_ext/root/ops", "lavd_1.0\n");
    place.is("load", Readiness::Missing, &["`lavd_1.0` is in charge"]);
    fs::remove_dir_all(place.path("sys/kernel/sched_ext")).expect("removed");
    place.is("load", Readiness::Missing, &["6.1.0-test, has none", "--on vm:newest"]);
    // Without /sys nothing is known of the kernel.
    fs::remove_dir_all(place.path("sys/kernel")).expect("removed");
    place.is("load", Readiness::Missing, &["no folder /sys/kernel", "mount -t sysfs"]);
}

#[test]
fn each_thing_is_looked_at_once() {
    let mut said = Vec::new();
    let place = Place::bare(USER);
    let all: Vec<_> = ABILITIES.iter().collect();
    examine(&place.world, &all, &mut |what| said.push(what.to_owned()));
    let mut once = said.clone();
    once.sort();
    once.dedup();
    assert_eq!(once.len(), said.len(), "{said:?}");
    assert!(said.len() >= 12, "{said:?}");
}

#[test]
fn abilities_have_names_of_their_own() {
    for ability in ABILITIES {
        let namesakes = ABILITIES.iter().filter(|other| other.name == ability.name).count();
        assert_eq!(namesakes, 1, "{}", ability.name);
        assert!(!ability.needs.is_empty(), "{} needs something that is proven", ability.name);
    }
}

#[test]
fn without_the_time_for_it_nothing_is_booted() {
    let mut place = Place::full();
    place.world.thorough = false;
    place.world.boot = |_| panic!("a kernel is booted");
    place.is("vm", Readiness::Ready, &["7.2"]);
    place.is("vm-load", Readiness::NotMeasured, &["without its configuration"]);
    let kernel = place.world.kernels().pop().expect("a kernel");
    let config = kernel.image.with_file_name("config");
    // As if it had been fetched so.
    let fetched = |text: &str| {
        std::fs::write(&config, text).expect("written");
        std::fs::remove_file(config.with_file_name("files.json")).expect("removed");
    };
    fetched("CONFIG_SMP=y\n");
    place.is("vm-load", Readiness::Missing, &["7.2, has none"]);
    fetched("CONFIG_SMP=y\nCONFIG_SCHED_CLASS_EXT=y\n");
    place.is("vm-load", Readiness::Ready, &["7.2: CONFIG_SCHED_CLASS_EXT=y"]);
}
