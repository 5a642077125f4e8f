//! `kernels list|fetch|boot`: real kernels, from packages.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use fairground_realkernel::channel::STDOUT_FILE;
use fairground_realkernel::job::KernelInfo;
use fairground_realkernel::packages::{Cache, KERNEL_SERIES, Kernel};
use fairground_realkernel::run::INFO_COMMAND;
use fairground_realkernel::vm::{GuestAnswer, GuestCommand, VmConfig, run_command};
use fairground_report::{Cell, Document, Table};
use fairground_scratch::Folder;
use fairground_session::{Failure, parse_time};

use crate::args::{BootArgs, Cli, KernelsCommand};
use crate::{present, talk};

/// Room for what a guest's command writes, bytes.
const OUTPUT_ROOM: u64 = 64 << 20;

pub(super) fn kernels(cli: &Cli, command: &KernelsCommand) -> Result<ExitCode, Failure> {
    match command {
        KernelsCommand::List => list(cli).map(|()| ExitCode::SUCCESS),
        KernelsCommand::Fetch { names } => fetch(cli, names).map(|()| ExitCode::SUCCESS),
        KernelsCommand::Boot(args) => boot(cli, args),
    }
}

/// Prints progress messages to stderr, unless `--quiet` is given.
pub(crate) fn saying(cli: &Cli) -> impl FnMut(&str) {
    let quiet = cli.quiet;
    move |text| {
        if !quiet {
            talk::say(format!("fairground: {text}"));
        }
    }
}

fn list(cli: &Cli) -> Result<(), Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    let table = Table::of("kernels", "Kernels that are here", cache.kernels())
        .text("kernel", |kernel| kernel.name.clone())
        .text("release", |kernel| kernel.release.clone())
        .text("package", |kernel| kernel.package.clone())
        .text("version", |kernel| kernel.version.clone())
        .text("sha256", |kernel| kernel.sha256.chars().take(16).collect::<String>())
        .table();
    let mut known = Table::of("catalogue", "Kernels that can be fetched", KERNEL_SERIES)
        .text("name", |entry| entry.name)
        .text("what_it_is", |entry| entry.what)
        .table();
    known.note(
        "`newest` goes by its version once it is here. A kernel of your own goes by its path.",
    );
    let mut document = Document::default();
    document.set("catalogue", "cache", Cell::text(cache.root().display().to_string()));
    let qemu = match cache.cached_qemu() {
        Ok(qemu) => format!("{} ({})", qemu.version, qemu.program.display()),
        Err(error) => error.to_string(),
    };
    document.set("catalogue", "qemu", Cell::text(qemu));
    document.tables.extend([table, known]);
    present::print(&document, cli)
}

fn fetch(cli: &Cli, names: &[String]) -> Result<(), Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    let all: Vec<String> = KERNEL_SERIES.iter().map(|e| e.name.to_owned()).collect();
    let mut say = saying(cli);
    let qemu = cache.qemu(&mut say).map_err(Failure::new)?;
    say(&format!("QEMU {} is here", qemu.version));
    for name in if names.is_empty() { &all } else { names } {
        let kernel = cache.fetch_kernel(name, &mut say).map_err(Failure::new)?;
        say(&format!("kernel {} is here: {}", kernel.name, kernel.image.display()));
    }
    Ok(())
}

fn boot(cli: &Cli, args: &BootArgs) -> Result<ExitCode, Failure> {
    let cache = Cache::open().map_err(Failure::new)?;
    let kernel = match args.kernel.contains('/') {
        true => Kernel::from_path(Path::new(&args.kernel)),
        false => cache.kernel(&args.kernel, &mut saying(cli)),
    };
    let kernel = kernel.map_err(Failure::new)?;
    let qemu = cache.qemu(&mut saying(cli)).map_err(Failure::new)?;
    let mut config = VmConfig::new(qemu, kernel, args.cpus);
    config.memory_mib = args.memory;
    config.append.clone_from(&args.append);
    config.mode = args.vm_mode.into();
    let length_ns = parse_time("--for", &args.duration)?;
    if args.command.is_empty() {
        let (info, answer) = describe(&config, length_ns)?;
        present::print(&boot_document(&info, &answer), cli)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (answer, output) = in_a_guest(args.command.clone(), length_ns, &config)?;
    present::write_stdout(&String::from_utf8_lossy(&output))?;
    if !cli.quiet {
        talk::say(answer.console.trim_end_matches('\n'));
    }
    Ok(ExitCode::from(u8::try_from(answer.exit_code).unwrap_or(crate::ERROR_CODE)))
}

/// Boots a kernel that describes itself, in so many ns of its time.
pub(crate) fn describe(
    config: &VmConfig,
    length_ns: u64,
) -> Result<(KernelInfo, GuestAnswer), Failure> {
    let (answer, output) = in_a_guest(vec![INFO_COMMAND.to_owned()], length_ns, config)?;
    let info = serde_json::from_slice(&output).map_err(|e| {
        Failure::new(format_args!("the guest did not describe its kernel: {e}"))
            .help(answer.console.trim_end())
    })?;
    Ok((info, answer))
}

/// Runs this program with `arguments` in a guest; what it wrote on its standard output.
fn in_a_guest(
    arguments: Vec<String>,
    duration_ns: u64,
    config: &VmConfig,
) -> Result<(GuestAnswer, Vec<u8>), Failure> {
    let command =
        GuestCommand { arguments, duration_ns, room: OUTPUT_ROOM, ..GuestCommand::default() };
    let folder = Folder::new().map_err(|e| Failure::io("make a temporary folder", &e))?;
    let answer =
        run_command(&command, config, folder.path(), &mut |_| true).map_err(Failure::new)?;
    let path = folder.path().join(STDOUT_FILE);
    let output = std::fs::read(&path).map_err(|e| Failure::io("read the guest's answer", &e))?;
    Ok((answer, output))
}

fn boot_document(info: &KernelInfo, answer: &GuestAnswer) -> Document {
    let mut document = Document::new("Booted");
    let yes_no = |is: bool| Cell::text(if is { "yes" } else { "no" });
    let time =
        |took: Duration| Cell::duration_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    let mut set = |name: &str, value: Cell| document.set("kernel", name, value);
    set("release", Cell::text(&info.release));
    set("version", Cell::text(&info.version));
    set("cpus", Cell::count(u64::from(info.cpus)));
    set("ticks_a_second", Cell::known(info.hz, |hz| Cell::count(u64::from(hz))));
    set("sched_ext", yes_no(info.sched_ext));
    set("preempt_rt", yes_no(info.preempt_rt));
    set("features", Cell::text(info.features.join(" ")));
    document.set("took", "boot", time(answer.boot));
    document.set("took", "command", time(answer.run));
    document.set("took", "shutdown", time(answer.shutdown));
    document.tables.push(
        Table::of("tunables", "Tunables", &info.tunables)
            .text("tunable", |(name, _)| name.as_str())
            .text("value", |(_, value)| value.as_str())
            .table(),
    );
    document
}
