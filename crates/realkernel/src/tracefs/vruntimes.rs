//! How far tasks are ahead in their queues when a recording begins, as CFS keeps it.
//!
//! A virtual runtime means something beside those of its own queue only, and the queue beside which a sleeping task is
//! placed when it wakes up is that of the CPU on which it ran last. Both are in text files of the kernel
//! (`CONFIG_SCHED_DEBUG`): the task's in `/proc/TID/sched`, the queue's `min_vruntime` in `debug/sched/debug`, which
//! Linux 6.8 and later do not print.

use std::collections::BTreeMap;
use std::fs;

/// Every queue of the fair class with its numbers (`print_cfs_rq`).
const QUEUES: &str = "/sys/kernel/debug/sched/debug";
/// `task_cpu` in `/proc/TID/stat`, counted after the name: field 39 of the line.
const STAT_CPU: usize = 36;

/// `min_vruntime` of the queues, ns, by CPU and path of the group.
#[derive(Debug, Default)]
pub(super) struct Queues(BTreeMap<(u32, String), i64>);

impl Queues {
    /// Those of this machine; none where the kernel does not print them.
    pub(super) fn read() -> Self {
        Self::parse(&fs::read_to_string(QUEUES).unwrap_or_default())
    }

    fn parse(text: &str) -> Self {
        let mut found = BTreeMap::new();
        let mut queue = None;
        for line in text.lines() {
            if let Some((cpu, path)) =
                line.strip_prefix("cfs_rq[").and_then(|line| line.split_once("]:"))
            {
                let path = if path.is_empty() { "/" } else { path };
                queue = cpu.parse().ok().map(|cpu: u32| (cpu, path.to_owned()));
            } else if let Some((".min_vruntime", value)) =
                line.split_once(':').map(|(name, value)| (name.trim(), value))
            {
                found.extend(queue.take().zip(parse_ms(value)));
            }
        }
        Self(found)
    }

    /// How far a task is ahead of `min_vruntime` of the queue of its group on a CPU, ns.
    pub(super) fn ahead_ns(&self, tid: u32, cpu: u32, path: &str) -> Option<i64> {
        let min_ns = self.0.get(&(cpu, path.to_owned()))?;
        vruntime_ns(tid)?.checked_sub(*min_ns)
    }
}

/// The CPU on which a task runs or ran last, from the text of its `/proc/TID/stat`.
pub(super) fn last_cpu(stat: &str) -> Option<u32> {
    let (_, fields) = stat.rsplit_once(") ")?;
    fields.split(' ').nth(STAT_CPU)?.trim().parse().ok()
}

/// The key by which a task's queue orders it, ns (`proc_sched_show_task`).
fn vruntime_ns(tid: u32) -> Option<i64> {
    let text = fs::read_to_string(format!("/proc/{tid}/sched")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("se.vruntime"))?;
    parse_ms(line.trim_start_matches([' ', ':']))
}

/// `12.345678`, milliseconds with six digits behind the point, as ns.
fn parse_ms(text: &str) -> Option<i64> {
    let (ms, ns) = text.trim().split_once('.')?;
    let part: i64 = ns.parse().ok().filter(|_| ns.len() == 6)?;
    let part = if ms.starts_with('-') { -part } else { part };
    ms.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vruntime_is_in_milliseconds() {
        assert_eq!(parse_ms("632609.546302\n"), Some(632_609_546_302));
        assert_eq!(parse_ms("-1.048576"), Some(-1_048_576));
        assert_eq!([parse_ms("5"), parse_ms("1.5"), parse_ms("x.000000")], [None; 3]);
    }

    #[test]
    fn queues_have_a_cpu_and_a_group() {
        let text = "cpu#1\n  .nr_running : 0\n\ncfs_rq[1]:/web\n  .exec_clock : 0.000000\n  \
                    .min_vruntime                  : 12.000003\n  .max_vruntime : 99.000000\n\ncfs_rq[1]:\n  \
                    .min_vruntime : 7.500000\nrt_rq[1]:\n  .min_vruntime : 1.000000\n";
        let expected = [((1, "/".to_owned()), 7_500_000), ((1, "/web".to_owned()), 12_000_003)];
        assert_eq!(Queues::parse(text).0, BTreeMap::from(expected));
        assert!(Queues::parse("cfs_rq[x]:/\n  .min_vruntime : 1.000000\n").0.is_empty());
    }

    #[test]
    fn the_last_cpu_follows_a_name_with_brackets() {
        let fields: Vec<String> = (3..=52).map(|field: u32| field.to_string()).collect();
        let stat = format!("7 (a) b) {}\n", fields.join(" "));
        assert_eq!(last_cpu(&stat), Some(39));
        assert_eq!(last_cpu("7 (a) S 1"), None);
    }
}
