//! The tests of the simulated machine, in one program.

mod behaviour;
mod cgroups;
mod cids;
mod control;
mod costs;
mod custody;
mod dump;
mod faults;
mod hotplug;
mod immed;
mod interface;
mod lead_in;
mod newer;
mod operator;
mod order;
mod processes;
mod random;
mod real_time;
mod setup;
mod support;
mod timers;
mod tools;
mod topology;
mod tracing;
mod values;
