//! Settings by name, as the bytes that a real kernel's loader puts into an object's data sections.

use fairground_bpf::Object;
use fairground_machine::{Meanings, Setting, Topology};
use fairground_realkernel::job::{GlobalWrite, Patch};

use super::SchedulerObject;
use crate::failure::Failure;

/// The writes of `settings` on a machine of that topology, in their order: a parameter set's before those that were typed,
/// so that the last one counts.
///
/// # Errors
/// If the scheduler has no such variable, it cannot hold the value, or the setting is one of the simulated machine.
pub fn global_writes(
    object: &Object,
    settings: &[Setting],
    topology: &Topology,
) -> Result<Vec<GlobalWrite>, Failure> {
    let types = object.types();
    let meanings = Meanings::new(&types, topology);
    settings.iter().map(|setting| global_write(object, meanings, setting)).collect()
}

/// The writes that make arrays as long as the profile says: their whole sections, which begin with the object's content.
pub fn resize_writes(scheduler: &SchedulerObject) -> Vec<GlobalWrite> {
    let of = |array: &String| {
        let global = scheduler.object.global(array)?;
        let content = scheduler.object.content_of(global);
        Some(GlobalWrite {
            label: format!("{array}: {} bytes", content.len()),
            section: scheduler.object.section_of(global).to_owned(),
            patches: vec![Patch { offset: 0, bytes: content.to_vec(), mask: Vec::new() }],
            at_ns: None,
        })
    };
    scheduler.resized.iter().filter_map(of).collect()
}

fn global_write(
    object: &Object,
    meanings: Meanings<'_>,
    setting: &Setting,
) -> Result<GlobalWrite, Failure> {
    let Setting { name, value, at_ns } = setting;
    if name.starts_with("cgroup.") || name.starts_with("task.") {
        return Err(Failure::new(format_args!(
            "`{name}={value}` is a setting of the simulated machine"
        ))
        .help("on a real kernel, set variables of the scheduler (`fairground sched show NAME`)"));
    }
    let change = meanings.change(object.name(), object.globals(), setting).map_err(Failure::new)?;
    let global = &object.globals()[change.variable];
    let patches = change.patches.into_iter().map(|patch| Patch {
        offset: global.offset + patch.offset,
        bytes: patch.bytes,
        mask: patch.mask,
    });
    Ok(GlobalWrite {
        label: change.label,
        section: object.section_of(global).to_owned(),
        patches: patches.collect(),
        at_ns: *at_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::find_object;

    #[test]
    fn a_setting_becomes_the_bytes_of_its_variable() {
        let object = find_object("cfs").expect("cfs comes with fairground");
        let settings = [
            Setting::initial("sched_latency_ns", "6ms"),
            Setting::at(5, "new_fair_sleepers", "off"),
        ];
        let writes =
            global_writes(&object, &settings, &Topology::flat(4)).expect("settings of cfs");
        let latency = object.global("sched_latency_ns").expect("a tunable of cfs");
        assert_eq!(writes[0].label, "sched_latency_ns=6ms");
        assert_eq!(writes[0].section, ".data");
        let Patch { offset, bytes, .. } = &writes[0].patches[0];
        assert_eq!(*offset, latency.offset);
        assert_eq!(*bytes, 6_000_000_u64.to_le_bytes());
        let switched = &writes[1].patches[0].bytes;
        assert_eq!((switched.as_slice(), writes[1].at_ns), (&[0][..], Some(5)));
    }

    #[test]
    fn what_no_kernel_can_be_told_is_refused() {
        let object = find_object("cfs").expect("cfs comes with fairground");
        for (name, expected) in
            [("cgroup.web.weight", "simulated machine"), ("latencee", "no variable")]
        {
            let failure =
                global_writes(&object, &[Setting::initial(name, "1")], &Topology::flat(4));
            let text = failure.expect_err("no variable of that name").to_string();
            assert!(text.contains(expected), "{text}");
        }
    }
}
