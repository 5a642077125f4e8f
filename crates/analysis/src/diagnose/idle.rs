//! CPUs that idle while tasks wait in the queues of others.

use super::{Case, Fact, Finding, RECORDING, Rule, RuleOutcome, cpu_list};
use fairground_trace::TaskId;

/// So much idle time while others wait, of all CPU time: a hundredth, ppm.
const WASTE_MIN_PPM: u64 = 10_000;

/// With it, an idle CPU must have stayed so for a tick at HZ 1000. Shorter times are wake-ups and moves under way:
/// tasks that wake each other many thousand times a second add up to some per cent of them under any scheduler, ns.
const WASTE_EPISODE_MIN_NS: u64 = 1_000_000;

/// Or so long without a break: the threshold of Lozi et al., "The Linux scheduler: a decade of wasted cores"
/// (EuroSys 2016), ns.
const WASTE_LONG_NS: u64 = 100_000_000;

/// CPUs and tasks that are named.
const NAMED: usize = 3;

pub(super) fn look(case: &Case<'_>) -> RuleOutcome {
    let machine = &case.analysis.machine;
    let wasted_ns = machine.idle_while_waiting_ns;
    let severity_ppm = case.share_ppm(wasted_ns.into());
    let longest_ns = machine.idle_while_waiting_longest_ns;
    let often = severity_ppm >= WASTE_MIN_PPM && longest_ns >= WASTE_EPISODE_MIN_NS;
    if !often && longest_ns < WASTE_LONG_NS {
        return RuleOutcome::Nothing;
    }
    let mut cpus: Vec<(u64, u32)> =
        case.analysis.cpus.iter().map(|cpu| (cpu.idle_ns, cpu.cpu)).collect();
    cpus.sort_by_key(|(idle_ns, cpu)| (u64::MAX - idle_ns, *cpu));
    let idle: Vec<u32> = cpus.iter().take(NAMED).map(|(_, cpu)| *cpu).collect();
    let mut tasks: Vec<(u64, TaskId)> =
        case.analysis.tasks.iter().map(|task| (task.figures.wait_ns, task.task)).collect();
    tasks.sort_by_key(|(wait_ns, task)| (u64::MAX - wait_ns, *task));
    let waiting: Vec<TaskId> = tasks.iter().take(NAMED).map(|(_, task)| *task).collect();
    let mut finding = Finding::new(
        Rule::IdleWhileWaiting,
        format!("idle CPU while tasks wait: CPU {}", cpu_list(&idle)),
    );
    finding.severity_ppm = severity_ppm;
    finding.add("idle CPU time while a task waited elsewhere", Fact::Ns(wasted_ns));
    finding.add("longest time without a break", Fact::Ns(machine.idle_while_waiting_longest_ns));
    for (idle_ns, cpu) in cpus.iter().take(NAMED) {
        finding.add(format!("idle time of CPU {cpu}"), Fact::Ns(*idle_ns));
    }
    finding.add("tasks that wait most", Fact::Text(case.names(&waiting)));
    if let Some((wait_ns, _)) = tasks.first() {
        finding.add("time that the first of them waits", Fact::Ns(*wait_ns));
    }
    finding.meaning =
        "Work conservation would have used that time, less what moves cost. Where the recording \
        does not tell affinity, pinned tasks look alike."
            .to_owned();
    finding.tasks = waiting;
    finding.cpus = idle;
    finding.command = format!("analyze {RECORDING} --all --interval 100ms");
    RuleOutcome::Found(finding)
}
