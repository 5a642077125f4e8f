//! The tests of the simulated machine, in one program.

mod behaviour;
mod cgroups;
mod cids;
mod clock;
mod control;
mod faults;
mod launch;
mod order;
mod processes;
mod random;
mod setup;
mod support;
mod timers;
mod tools;
mod topology;
mod turns;
