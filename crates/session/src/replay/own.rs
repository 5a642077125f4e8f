//! The scheduler and the machine that made a recording, as far as the recording tells.

use fairground_trace::{Origin, Trace};

use crate::OWN_SCHEDULER;
use crate::failure::Failure;
use crate::input::{SchedulerObject, is_loader, parameter_sets};
use crate::spec::{HZ_CHOICES, MachineSpec, NamedChoice, TimersChoice, TopologySpec};

/// The model of the scheduler that made a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnScheduler {
    /// As `--sched` takes it.
    pub spec: String,
    /// As `--set` takes them.
    pub set: Vec<String>,
}

/// The models of the kernels' own schedulers: each from this release on, the newest first.
const MODELS: [((u32, u32, u32), &str); 3] =
    [((6, 6, 0), "eevdf"), ((2, 6, 23), "cfs"), ((2, 6, 0), "o1")];

impl OwnScheduler {
    /// That of a recording: the scheduler that it names, or the model of the kernel's own with the parameter set of
    /// the newest release that is not newer than the kernel. `None`: the recording does not tell, or there is no
    /// model, or a program of its own loaded the scheduler.
    ///
    /// # Errors
    /// If the object that the recording names cannot be read.
    pub fn of(origin: &Origin) -> Result<Option<Self>, Failure> {
        let named = origin.scheduler.as_deref().filter(|scheduler| *scheduler != OWN_SCHEDULER);
        if named.is_some_and(is_loader) {
            return Ok(None);
        }
        if let Some(scheduler) = named {
            SchedulerObject::find(scheduler, None)?;
            let set = origin.settings.iter().map(|(name, value)| format!("{name}={value}"));
            return Ok(Some(Self { spec: scheduler.to_owned(), set: set.collect() }));
        }
        let Some(release) = origin.kernel.as_deref().and_then(release) else { return Ok(None) };
        let Some((_, model)) = MODELS.iter().find(|(since, _)| *since <= release) else {
            return Ok(None);
        };
        let object = SchedulerObject::find(model, None)?;
        let sets = parameter_sets(&object.object);
        let of_release = |set: &&String| set.bytes().all(|b| b.is_ascii_digit() || b == b'.');
        let named = sets.keys().filter(of_release);
        let known = named.filter_map(|set| Some((self::release(set)?, set)));
        let known = known.filter(|(of_set, _)| *of_set <= release);
        let set = known.max().map_or(String::new(), |(_, set)| format!("@{set}"));
        Ok(Some(Self { spec: format!("{model}{set}"), set: Vec::new() }))
    }
}

/// The first two or three numbers of a kernel's release.
fn release(text: &str) -> Option<(u32, u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(str::parse);
    let (Some(Ok(major)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return None };
    Some((major, minor, numbers.next().and_then(Result::ok).unwrap_or(0)))
}

/// The longest search for tasks that a recording is believed to have had, ns.
const LONGEST_SEARCH_NS_MAX: u64 = 1_000_000_000;

/// The machine of a replay: what `asked` leaves at its default is as the recording tells.
pub fn recorded_machine(asked: &MachineSpec, trace: &Trace) -> MachineSpec {
    let (origin, usual) = (&trace.origin, MachineSpec::default());
    let mut machine = asked.clone();
    if machine.cpus.is_none() && machine.topology.is_none() {
        let parsed = origin.topology.as_deref().and_then(|text| text.parse::<TopologySpec>().ok());
        let fits = |topology: &TopologySpec| match topology {
            TopologySpec::Word(word) => {
                let parsed = word.parse::<fairground_machine::Topology>();
                parsed.is_ok_and(|topology| topology.cpus() == trace.cpus)
            }
            TopologySpec::Table(_) => false,
        };
        machine.topology = parsed.filter(fits);
        machine.cpus = machine.topology.is_none().then_some(trace.cpus.max(1));
    }
    machine.hz = machine.hz.or(origin.hz.filter(|hz| HZ_CHOICES.contains(hz)));
    let timers = origin.timers.as_deref().and_then(|text| TimersChoice::parse(text).ok());
    if let (true, Some(timers)) = (machine.timers == usual.timers, timers) {
        machine.timers = timers;
    }
    if let (None, Some(costs)) = (&machine.costs, &origin.costs) {
        machine.costs = Some(costs.clone());
        let changed = origin.cost.iter().map(|(name, value)| format!("{name}={value}"));
        machine.cost.splice(0..0, changed);
    }
    let longest = origin.tunables.iter().find(|(name, _)| name == "max_newidle_lb_cost");
    if let Some(ns) = longest.and_then(|(_, ns)| ns.parse::<u64>().ok()) {
        machine.cost.insert(0, format!("newidle_max_ns={}", ns.min(LONGEST_SEARCH_NS_MAX)));
    }
    machine
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_kernel(kernel: &str) -> Option<String> {
        let origin = Origin { kernel: Some(kernel.to_owned()), ..Origin::default() };
        OwnScheduler::of(&origin).unwrap().map(|own| own.spec)
    }

    #[test]
    fn a_kernel_has_the_model_of_its_release() {
        assert_eq!(of_kernel("6.1.0-40-amd64").as_deref(), Some("cfs@6.1"));
        assert_eq!(of_kernel("6.5.13").as_deref(), Some("cfs@6.5"));
        assert_eq!(of_kernel("5.10.1").as_deref(), Some("cfs@2.6.36"));
        assert_eq!(of_kernel("6.18.44").as_deref(), Some("eevdf@6.18"));
        assert_eq!(of_kernel("2.6.27.5").as_deref(), Some("cfs@2.6.27"));
        assert_eq!(of_kernel("2.4.20"), None);
        assert_eq!(of_kernel("unknown"), None);
        assert_eq!(OwnScheduler::of(&Origin::default()).unwrap(), None);
    }

    #[test]
    fn a_named_scheduler_keeps_its_settings() {
        let mut origin = Origin { scheduler: Some("rfs".to_owned()), ..Origin::default() };
        origin.settings = vec![("a".to_owned(), "3".to_owned())];
        let own = OwnScheduler::of(&origin).unwrap().unwrap();
        assert_eq!((own.spec.as_str(), &own.set[..]), ("rfs", &["a=3".to_owned()][..]));
        origin.scheduler = Some("./gone.bpf.o".to_owned());
        assert!(OwnScheduler::of(&origin).is_err());
    }

    #[test]
    fn what_is_asked_for_comes_before_what_was_recorded() {
        let mut trace = Trace::new(2);
        trace.origin = Origin {
            hz: Some(1000),
            timers: Some("jiffies".to_owned()),
            costs: Some("linux-2.6".to_owned()),
            cost: vec![("tick_ns".to_owned(), 7)],
            topology: Some("1x1x2".to_owned()),
            ..Origin::default()
        };
        let usual = recorded_machine(&MachineSpec::default(), &trace);
        assert_eq!((usual.hz, usual.timers, usual.cpus), (Some(1000), TimersChoice::Jiffies, None));
        assert_eq!(usual.topology, Some("1x1x2".parse().unwrap()));
        assert_eq!(
            (usual.costs.as_deref(), &usual.cost[..]),
            (Some("linux-2.6"), &["tick_ns=7".to_owned()][..])
        );
        trace.origin.tunables = vec![("max_newidle_lb_cost".to_owned(), "9000".to_owned())];
        let usual = recorded_machine(&MachineSpec::default(), &trace);
        assert_eq!(usual.cost, ["newidle_max_ns=9000", "tick_ns=7"]);
        for (told, counts) in [("4 us", None), ("18446744073709551615", Some("1000000000"))] {
            trace.origin.tunables = vec![("max_newidle_lb_cost".to_owned(), told.to_owned())];
            let usual = recorded_machine(&MachineSpec::default(), &trace);
            let cost = usual.cost.iter().find_map(|cost| cost.strip_prefix("newidle_max_ns="));
            assert_eq!(cost, counts, "{told}");
        }
        trace.origin.tunables.clear();
        let asked = MachineSpec {
            cpus: Some(4),
            hz: Some(100),
            costs: Some("zero".to_owned()),
            ..MachineSpec::default()
        };
        let asked = recorded_machine(&asked, &trace);
        assert_eq!((asked.cpus, asked.topology, asked.hz), (Some(4), None, Some(100)));
        assert_eq!((asked.costs.as_deref(), asked.cost.len()), (Some("zero"), 0));
        // Of a machine with other CPUs.
        trace.origin.topology = Some("1x4x1".to_owned());
        assert_eq!(recorded_machine(&MachineSpec::default(), &trace).cpus, Some(2));
    }
}
