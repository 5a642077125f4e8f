//! Tests that need what not every machine has: a kernel to boot, a browser, the network.
//!
//! Such a test looks for it, calls [`unavailable`] where it is missing, and returns. The call notes what could not be
//! checked, and fails the test where it must run: in CI.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Notes that the calling test cannot run here since `name`, one of the names in `tests/unavailable.sh`, is missing.
///
/// # Panics
///
/// If this machine must have it (`CI=true`, `FAIRGROUND_REQUIRE`), or the name is unknown.
pub fn unavailable(name: &str, reason: impl Display) {
    let thread = std::thread::current();
    let output = Command::new(root().join("tests/unavailable.sh"))
        .args([name, thread.name().unwrap_or("a test"), &reason.to_string()])
        .output()
        .expect("tests/unavailable.sh is a program");
    let refusal = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{refusal}");
    print!("{}", String::from_utf8_lossy(&output.stdout));
}

/// Runs a command that needs the network, up to three times with a pause, until it succeeds. Returns its last output,
/// behind the messages of earlier tries.
///
/// # Panics
///
/// If it cannot be started.
#[must_use]
pub fn thrice(command: &Command) -> Output {
    let mut tries = Command::new(root().join("thrice.sh"));
    tries.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        match value {
            Some(value) => tries.env(key, value),
            None => tries.env_remove(key),
        };
    }
    tries.output().expect("thrice.sh is a program")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The exit code, with only these variables.
    fn code(name: &str, variables: &[(&str, &str)]) -> Option<i32> {
        let output = Command::new(root().join("tests/unavailable.sh"))
            .args([name, "the test of this mechanism", "first line\nsecond line"])
            .env_remove("CI")
            .env_remove("FAIRGROUND_REQUIRE")
            .env("FAIRGROUND_UNAVAILABLE", "/dev/null")
            .envs(variables.iter().copied())
            .output()
            .expect("a program");
        let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(!said.contains("second line"), "{said}");
        output.status.code()
    }

    #[test]
    fn what_can_be_fetched_is_required_in_ci() {
        assert_eq!(code("kernel", &[]), Some(0));
        assert_eq!(code("kernel", &[("CI", "true")]), Some(1));
        assert_eq!(code("kernel", &[("FAIRGROUND_REQUIRE", "all")]), Some(1));
        assert_eq!(code("kernel", &[("FAIRGROUND_REQUIRE", "browser")]), Some(0));
        assert_eq!(code("kernel", &[("FAIRGROUND_REQUIRE", "browser,kernel")]), Some(1));
        assert_eq!(code("kernel", &[("FAIRGROUND_REQUIRE", "none"), ("CI", "true")]), Some(0));
    }

    #[test]
    fn what_a_machine_is_is_required_by_name() {
        assert_eq!(code("recording", &[("CI", "true")]), Some(0));
        assert_eq!(code("recording", &[("FAIRGROUND_REQUIRE", "all,recording")]), Some(1));
        assert_eq!(code("recordings", &[]), Some(2), "an unknown name");
    }

    #[test]
    fn a_success_ends_the_tries() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = thrice(Command::new("test").arg("-d").arg(folder));
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
    }
}
