//! Names that say which process a file or a folder belongs to: `PREFIXpid-start-number`.

use std::path::Path;
use std::process;

use crate::child::start_time;

/// The name of something of this process; `number` is the caller's.
pub fn name_of_own(prefix: &str, number: u32) -> String {
    let pid = process::id();
    let start = start_time(pid).unwrap_or(0);
    format!("{prefix}{pid}-{start}-{number}")
}

/// Whether a name is one of [`name_of_own`], of a process that has ended. A process whose start time is unknown may be
/// alive.
pub fn is_left(name: &str, prefix: &str) -> bool {
    owner(name, prefix).is_some_and(|(pid, start)| {
        !Path::new(&format!("/proc/{pid}")).exists()
            || start_time(pid).is_some_and(|now| now != start)
    })
}

/// Process number and start time in a name; `None` for other names.
fn owner(name: &str, prefix: &str) -> Option<(u32, u64)> {
    let mut parts = name.strip_prefix(prefix)?.split('-');
    let (pid, start, number) = (parts.next()?, parts.next()?, parts.next()?);
    number.parse::<u32>().ok()?;
    Some((pid.parse().ok()?, start.parse().ok()?)).filter(|_| parts.next().is_none())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_names_are_ours() {
        assert_eq!(owner("fairground-12-345-0", "fairground-"), Some((12, 345)));
        for other in ["fairground", "fairground-x", "fairground-1-2", "fairground-1-2-3-4", "mine"]
        {
            assert_eq!(owner(other, "fairground-"), None, "{other}");
        }
    }

    #[test]
    fn what_belongs_to_a_living_process_is_not_left() {
        let own = name_of_own("a-", 7);
        assert!(own.ends_with("-7") && !is_left(&own, "a-"), "{own}");
        // No process has this number, and this process began at another time.
        assert!(is_left("a-4194305-7-0", "a-"));
        assert!(is_left(&format!("a-{}-1-0", process::id()), "a-"));
    }
}
