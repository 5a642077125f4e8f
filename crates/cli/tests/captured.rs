//! Entries of the catalogue against what the schedulers' own loaders set in a guest. The loaders are programs that this
//! repository cannot build: the folder that has them is named by the environment.

use std::env;
use std::path::PathBuf;

use crate::support::{bootable, fairground, refusal};

/// The folder of the loaders (`scx_bpfland`, …).
const LOADERS: &str = "FAIRGROUND_LOADERS";
/// Those whose entries set all that their loaders set.
const EXACT: [&str; 8] = [
    "scx_beerland",
    "scx_bpfland",
    "scx_cosmos",
    "scx_flash",
    "scx_lavd",
    "scx_p2dq",
    "scx_rusty",
    "scx_tickless",
];

/// The loader of a scheduler.
fn loader(name: &str) -> String {
    let folder = env::var_os(LOADERS).expect("FAIRGROUND_LOADERS names the folder of the loaders");
    let program = PathBuf::from(folder).join(name);
    assert!(program.is_file(), "there is no {}", program.display());
    program.display().to_string()
}

#[test]
#[ignore = "FAIRGROUND_LOADERS=FOLDER with the schedulers' own loaders"]
fn entries_set_what_the_loaders_set() {
    let Some(kernel) = bootable() else { return };
    for name in EXACT {
        let program = loader(name);
        let output = fairground(&[
            "sched",
            "capture",
            "--on",
            kernel,
            "--cpus",
            "4",
            "--loader",
            &program,
            "--against",
            name,
            "--quiet",
        ]);
        let text = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {text}{errors}");
        assert!(text.contains(&format!("{name} sets what")), "{text}");
    }
}

/// With another option the loader sets something else, and the difference is a negative verdict.
#[test]
#[ignore = "FAIRGROUND_LOADERS=FOLDER with the schedulers' own loaders"]
fn a_difference_is_named() {
    let Some(kernel) = bootable() else { return };
    let command = format!("{} --no-wake-sync", loader("scx_bpfland"));
    let capture =
        ["sched", "capture", "--on", kernel, "--cpus", "4", "--quiet", "--loader", &command];
    let against = |name: &str| fairground(&[&capture[..], &["--against", name]].concat());
    let output = against("scx_bpfland");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("no_wake_sync"), "{text}");
    let output = against("scx_bpfland:no_wake_sync=on");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn what_cannot_be_captured_is_refused() {
    let text = refusal(&["sched", "capture", "--loader", "/bin/true"]);
    assert!(text.contains("no sched_ext object within this program"), "{text}");
    let text = refusal(&["sched", "capture", "--loader", "./gone"]);
    assert!(text.contains("no program `./gone`"), "{text}");
}
