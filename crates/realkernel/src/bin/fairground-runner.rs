//! The runner without the rest of the program: on the host, or as the first process of a guest.
//!
//! ```text
//! fairground-runner __run-job FOLDER
//! fairground-runner __kernel-info
//! fairground-runner __misbehave panic|hang|fail|fill|garbage   failures of a guest, for the tests
//! ```

use std::fs;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairground_realkernel::run::{INFO_COMMAND, RUNNER_COMMAND};
use fairground_realkernel::{carry_out, guest};

fn main() -> ExitCode {
    if guest::is_init() {
        guest::main();
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words[..] {
        [RUNNER_COMMAND, folder] => {
            carry_out(Path::new(folder)).map(drop).map_err(|e| e.to_string())
        }
        [INFO_COMMAND] => {
            println!("{}", serde_json::json!(fairground_realkernel::run::kernel_info()));
            Ok(())
        }
        ["__misbehave", how] => misbehave(how).map_err(|e| format!("{how}: {e}")),
        _ => Err(format!("usage: fairground-runner {RUNNER_COMMAND} FOLDER | {INFO_COMMAND}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

/// Simulates a failure of a guest, for the tests. Fails outside of a guest.
fn misbehave(how: &str) -> std::io::Result<()> {
    const MORE_THAN_ANY_ROOM: usize = 96 << 20;
    if std::os::unix::process::parent_id() != 1 || !Path::new("/init").exists() {
        return Err(std::io::Error::other("only in a guest"));
    }
    match how {
        "panic" => fs::write("/proc/sysrq-trigger", "c"),
        "hang" => loop {
            std::thread::sleep(Duration::from_secs(60));
        },
        "fail" => {
            eprintln!("it went wrong");
            std::process::exit(7)
        }
        "fill" => fs::write("everything", vec![0; MORE_THAN_ANY_ROOM]),
        "garbage" => guest::scribble().map_err(std::io::Error::other),
        _ => Err(std::io::Error::other("unknown")),
    }
}
