//! The guest's side: this program as the first process of a virtual machine.

/// Whether this process is the first one of a guest that the program has booted.
pub fn is_init() -> bool {
    std::process::id() == 1 && std::env::args_os().next().is_some_and(|name| name == "/init")
}

/// The first process: prepares the machine, runs what it is told, hands back what came of it, switches off.
pub fn main() -> ! {
    std::process::exit(1)
}
