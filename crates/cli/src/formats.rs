//! The formats that are fairground's own, with their versions: what is read refuses another version, what is written
//! states it.

use fairground_report::{SCHEMA_VERSION, json_schema};
use fairground_session::{RUN_FORMAT, RunSpec, TOPOLOGY_FORMAT};
use serde_json::Value;

use crate::experiment::EXPERIMENT_FORMAT;

#[derive(Debug)]
pub(crate) struct OwnFormat {
    /// As it is asked for: `schema result`.
    pub(crate) name: &'static str,
    /// The version that is written, and the only one that is read.
    pub(crate) version: i64,
    /// Where a file states it.
    pub(crate) mark: &'static str,
    pub(crate) what: &'static str,
    pub(crate) page: &'static str,
    /// Its JSON Schema, where there is one.
    pub(crate) json_schema: Option<fn() -> Value>,
}

pub(crate) const FORMATS: &[OwnFormat] = &[
    OwnFormat {
        name: "result",
        version: SCHEMA_VERSION as i64,
        mark: "key schema_version",
        what: "what every command prints with --format json",
        page: "docs/reference/output-formats.md",
        json_schema: Some(json_schema),
    },
    OwnFormat {
        name: "run",
        version: RUN_FORMAT,
        mark: "under specs",
        what: "a run in words",
        page: "docs/reference/experiments.md",
        json_schema: Some(RunSpec::json_schema),
    },
    OwnFormat {
        name: "workload",
        version: fairground_workload::FORMAT,
        mark: "key format",
        what: "a workload (TOML)",
        page: "docs/reference/workloads.md",
        json_schema: None,
    },
    OwnFormat {
        name: "experiment",
        version: EXPERIMENT_FORMAT as i64,
        mark: "key format",
        what: "an experiment (TOML)",
        page: "docs/reference/experiments.md",
        json_schema: None,
    },
    OwnFormat {
        name: "topology",
        version: TOPOLOGY_FORMAT as i64,
        mark: "key format",
        what: "CPUs, caches and nodes of a machine (TOML)",
        page: "docs/reference/topology.md",
        json_schema: None,
    },
    #[cfg(feature = "parquet")]
    OwnFormat {
        name: "events",
        version: fairground_trace::EVENTS_SCHEMA_VERSION as i64,
        mark: "metadata fairground.schema_version",
        what: "the events of a trace as a table (Parquet, Arrow)",
        page: "docs/reference/parquet.md",
        json_schema: None,
    },
    #[cfg(feature = "parquet")]
    OwnFormat {
        name: "metrics",
        version: fairground_report::METRICS_SCHEMA_VERSION as i64,
        mark: "metadata fairground.schema_version",
        what: "what every command prints with --format parquet",
        page: "docs/reference/parquet.md",
        json_schema: None,
    },
];
