//! The compiler of schedulers, tried.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use fairground_bpf::Object;
use fairground_policies::{CLANG_FLAGS, CLANG_VARIABLE, HEADERS as POLICY_HEADERS};
use fairground_policies::{find_clang_on, find_headers_below};
use fairground_scratch::Folder;

use super::super::packages::{Package, install};
use super::super::{Check, Finding, World};

pub(in super::super) const CLANG: Check = Check { name: "clang", test: clang, boots: false };
pub(in super::super) const HEADERS: Check =
    Check { name: "libbpf's headers", test: headers, boots: false };
pub(in super::super) const COMPILE: Check =
    Check { name: "a scheduler compiled", test: compile, boots: false };

/// The scheduler that is compiled.
const SAMPLE: &str = "fifo";

fn clang(world: &World) -> Finding {
    match find_clang_on(&world.path, world.clang.as_deref()) {
        Ok((program, version)) => {
            let how = match &world.clang {
                Some(_) => format!("named by {CLANG_VARIABLE}"),
                None => {
                    world.program(&program).map_or_else(String::new, |p| p.display().to_string())
                }
            };
            Finding::ready(format!("version {version}: {program} ({how})"))
        }
        Err(_) if world.clang.is_none() => {
            Finding::missing("no clang 16 or newer", install(world, Package::Clang))
        }
        Err(error) => Finding::missing(error.to_string(), format!("unset {CLANG_VARIABLE}")),
    }
}

fn headers(world: &World) -> Finding {
    match find_headers_below(&world.root) {
        Ok(()) => Finding::ready("bpf/bpf_helpers.h is here"),
        Err(_) => Finding::missing(
            "no bpf/bpf_helpers.h in /usr/include",
            install(world, Package::LibbpfHeaders),
        ),
    }
}

fn compile(world: &World) -> Finding {
    let (Ok((program, _)), Ok(())) =
        (find_clang_on(&world.path, world.clang.as_deref()), find_headers_below(&world.root))
    else {
        return Finding::not_measured("there is nothing to compile it with");
    };
    match object_of_sample(world, &program) {
        Ok(bytes) => Finding::ready(format!("{SAMPLE}.bpf.c, {bytes} bytes of object")),
        Err(problem) => Finding::missing(problem, install(world, Package::Clang)),
    }
}

/// Compiles a scheduler as `sched build` does; the object's size.
fn object_of_sample(world: &World, clang: &str) -> Result<usize, String> {
    let sample = fairground_policies::get(SAMPLE).ok_or("there is no scheduler `fifo`")?;
    let folder = Folder::new().map_err(|e| format!("a temporary folder: {e}"))?;
    let write = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).map_err(|e| format!("{name}: {e}"))
    };
    for (name, text) in POLICY_HEADERS {
        write(name, text)?;
    }
    write("sample.bpf.c", sample.source)?;
    // A path from here must lead there from the temporary folder too.
    let clang = match clang.contains('/') {
        true => std::path::absolute(clang).map_err(|e| format!("{clang}: {e}"))?,
        false => clang.into(),
    };
    let output = Command::new(&clang)
        .env("PATH", &world.path)
        .args(CLANG_FLAGS)
        .arg("-I.")
        .args(["-c", "sample.bpf.c", "-o", "sample.bpf.o"])
        .current_dir(folder.path())
        .stdin(Stdio::null())
        .output()
        .map_err(|e| format!("{}: {e}", clang.display()))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error")).unwrap_or("it says nothing");
        return Err(format!("{} does not compile it: {}", clang.display(), first.trim()));
    }
    read_object(&folder.path().join("sample.bpf.o"))
}

fn read_object(path: &Path) -> Result<usize, String> {
    let bytes = fs::read(path).map_err(|e| format!("it left no object: {e}"))?;
    Object::parse(SAMPLE, &bytes).map_err(|e| e.to_string())?;
    Ok(bytes.len())
}
