//! Whole-program tests, in one program: the laws of the schedulers, determinism, the rules of ARCHITECTURE.md.
//!
//! Tests begin in the order of their names. The longest is in `accepted_by_a_kernel`, so that the others run beside it.

mod accepted_by_a_kernel;
mod balance_groups;
mod balance_kinds;
mod balance_laws;
mod benchmark_laws;
mod beside;
mod cfs2623_laws;
mod cfs_groups;
mod cfs_laws;
mod cfs_releases;
mod cfs_rules;
mod compared_recordings;
mod containers;
mod determinism;
mod diagnose_rules;
mod eevdf_laws;
mod eevdf_rules;
mod ends_of_work;
mod fairness_bounds;
mod fork_laws;
mod house;
mod jit_oracle;
mod lat_ctx;
mod lock_laws;
mod naive_models;
mod o1_estimator;
mod o1_laws;
mod o1_rules;
mod offline_cpu;
mod original_programs;
mod policy_cost;
mod prt_laws;
mod random_workloads;
mod real_time_laws;
mod recording;
mod rfs_averages;
mod rfs_history;
mod rfs_laws;
mod rfs_ms32;
mod rfs_sums;
mod rig;
mod sd_laws;
mod wake_laws;
mod yield_pair;
