//! Limits of control groups that a scheduler does not learn of.

use std::collections::BTreeSet;

use fairground_bpf::OpsValue;
use fairground_machine::Setting;
use fairground_workload::{Bandwidth, Cgroup, Workload};

use super::SchedulerObject;

/// A file of a control group that sched_ext leaves to the scheduler.
struct Control {
    /// Its name, without `cpu.`.
    file: &'static str,
    /// The callback that tells of it.
    callback: &'static str,
    /// Whether a workload's group has it set.
    of_group: fn(&Cgroup) -> bool,
    /// Whether a value of a setting sets it.
    of_value: fn(&str) -> bool,
}

const CONTROLS: [Control; 2] = [
    Control {
        file: "max",
        callback: "cgroup_set_bandwidth",
        of_group: |cgroup| cgroup.max.is_limited(),
        of_value: |value| Bandwidth::parse(value).is_ok_and(|max| max.is_limited()),
    },
    Control {
        file: "idle",
        callback: "cgroup_set_idle",
        of_group: |cgroup| cgroup.idle,
        of_value: |value| matches!(value, "on" | "true" | "1"),
    },
];

impl SchedulerObject {
    /// Which limits of the workload's control groups, and of settings, nothing enforces: sched_ext tells the scheduler
    /// of them, and this one has no callback for that. In words, one text for each kind.
    pub fn unenforced(&self, workload: &Workload, given: &[Setting]) -> Vec<String> {
        let controls = CONTROLS.iter().filter(|control| !self.has_callback(control.callback));
        let texts = controls.filter_map(|Control { file, callback, of_group, of_value }| {
            let declared = workload.cgroups.iter().filter(|cgroup| of_group(cgroup));
            let given = given.iter().filter(|setting| of_value(&setting.value));
            let set = given.filter_map(|setting| {
                setting.name.strip_prefix("cgroup.")?.strip_suffix(file)?.strip_suffix('.')
            });
            let named: BTreeSet<&str> =
                declared.map(|cgroup| cgroup.path.as_str()).chain(set).collect();
            let named: Vec<_> = named.into_iter().map(|path| format!("`{path}`")).collect();
            (!named.is_empty()).then(|| {
                format!(
                    "{}: nothing enforces cpu.{file} of {}: it has no {callback}, and sched_ext \
                     leaves that to the scheduler",
                    self.label,
                    named.join(", ")
                )
            })
        });
        texts.collect()
    }

    fn has_callback(&self, name: &str) -> bool {
        let fields = self.object.struct_ops().iter().flat_map(|ops| &ops.fields);
        fields
            .filter(|field| field.name == name)
            .any(|field| matches!(field.value, OpsValue::Function(_)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_that_a_scheduler_does_not_learn_of_are_named() {
        let text = "format = 1\nname = \"w\"\nduration = \"1s\"\n\
                    [cgroups.a]\nmax = \"50ms/100ms\"\n[cgroups.b]\n[cgroups.\"b/c\"]\nidle = true\n\
                    [[task]]\nname = \"t\"\nprogram = [{ run = \"1ms\" }]\n";
        let workload = fairground_workload::parse("w.toml", text).expect("valid");
        let cfs = SchedulerObject::find("cfs", None).expect("it comes with fairground");
        let given =
            [Setting::at(5, "cgroup.b/c.max", "1ms"), Setting::at(5, "cgroup.b.max", "max")];
        let texts = cfs.unenforced(&workload, &given);
        assert_eq!(texts.len(), 2, "{texts:?}");
        assert!(texts[0].starts_with("cfs: nothing enforces cpu.max of `a`, `b/c`: "));
        assert!(texts[1].starts_with("cfs: nothing enforces cpu.idle of `b/c`: "));
        assert!(cfs.unenforced(&Workload::default(), &[]).is_empty());
    }
}
