//! The tests of workloads and their formats, in one program.

mod diagnostics;
mod docs;
mod drawn;
mod library;
mod parser;
mod rt_app;
