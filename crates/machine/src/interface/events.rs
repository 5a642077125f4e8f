//! The counters of `scx_bpf_events()`.

use super::feature::Feature;
use super::release::KernelAbi;

const fn f(name: &'static str) -> Feature {
    Feature::new(name).since(6, 15)
}

/// Nothing bypasses the scheduler: the run ends with its time in charge.
const NO_BYPASS: &str = "0: nothing bypasses the scheduler while it is in charge";

/// The members of `struct scx_event_stats`, in the kernel's order.
pub(crate) const EVENTS: &[Feature] = &[
    f("SCX_EV_SELECT_CPU_FALLBACK"),
    f("SCX_EV_DISPATCH_LOCAL_DSQ_OFFLINE"),
    f("SCX_EV_DISPATCH_KEEP_LAST"),
    f("SCX_EV_ENQ_SKIP_EXITING"),
    f("SCX_EV_ENQ_SKIP_MIGRATION_DISABLED").but("0: every task can migrate"),
    f("SCX_EV_REENQ_IMMED").by(7, 2),
    f("SCX_EV_REENQ_LOCAL_REPEAT").by(7, 2).but("user queues included"),
    f("SCX_EV_ENQ_SLICE_DFL").gone(6, 16),
    f("SCX_EV_REFILL_SLICE_DFL").by(6, 16),
    f("SCX_EV_BYPASS_DURATION").but(NO_BYPASS),
    f("SCX_EV_BYPASS_DISPATCH").but(NO_BYPASS),
    f("SCX_EV_BYPASS_ACTIVATE").but(NO_BYPASS),
    f("SCX_EV_INSERT_NOT_OWNED").by(7, 1).but("0: there are no sub-schedulers"),
    f("SCX_EV_SUB_BYPASS_DISPATCH").by(7, 1).but("0: there are no sub-schedulers"),
];

/// The names in a release.
pub(crate) fn of(abi: KernelAbi) -> impl Iterator<Item = &'static str> {
    EVENTS.iter().filter(move |event| event.exists_in(abi)).map(|event| event.name)
}
