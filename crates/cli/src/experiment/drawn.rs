//! Points that are drawn at random in the place of an experiment's own, so that nothing can be tuned to them.

use std::collections::BTreeMap;

use fairground_session::Failure;
use fairground_workload::drawn_cpus;
use serde::Deserialize;

use super::agreement::Agreement;
use super::file::Experiment;
use super::sweep::Point;

/// What an experiment compares at drawn points.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawn {
    /// Titles of the agreements. Their sweeps run at every point, without the controls.
    pub(super) agreements: Vec<String>,
    /// The starts of the sweeps on a real kernel; those of simulated sweeps are their own.
    starts: Vec<String>,
}

/// Points drawn from a seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draw {
    pub(crate) seed: u64,
    /// How many; their indexes count from 0.
    pub(crate) points: u32,
}

impl Draw {
    /// The name of a point, which is its workload's.
    fn name(self, index: u32) -> String {
        format!("drawn:{}.{index}", self.seed)
    }

    /// The CPUs of each point, by its name.
    pub(crate) fn cpus(self) -> BTreeMap<String, u32> {
        (0..self.points).map(|index| (self.name(index), drawn_cpus(index))).collect()
    }
}

impl Experiment {
    /// The experiment with drawn points in the place of its own, and with nothing but the agreements at them. Its
    /// tolerances stay; that their metrics move is what its own points show.
    ///
    /// # Errors
    /// If the experiment has no `[drawn]`.
    pub(crate) fn at_drawn_points(&self, draw: Draw) -> Result<Experiment, Failure> {
        let Some(drawn) = &self.drawn else {
            return Err(Failure::new(format_args!(
                "{}: it compares nothing at drawn points",
                self.name
            ))
            .help("leave `--seed` out, or add a table `[drawn]` (docs/reference/experiments.md)"));
        };
        let agreements: Vec<Agreement> = self
            .agreements
            .iter()
            .filter(|agreement| drawn.agreements.contains(&agreement.title))
            .map(|agreement| Agreement {
                control: None,
                without: BTreeMap::new(),
                ..agreement.clone()
            })
            .collect();
        let is_used = |name: &String| {
            agreements
                .iter()
                .any(|agreement| [&agreement.real, &agreement.simulated].contains(&name))
        };
        let mut sweeps: Vec<_> =
            self.sweeps.iter().filter(|sweep| is_used(&sweep.name)).cloned().collect();
        for sweep in &mut sweeps {
            sweep.points = None;
            if agreements.iter().any(|agreement| agreement.real == sweep.name) {
                sweep.starts.clone_from(&drawn.starts);
            }
        }
        let points: Vec<Point> = (0..draw.points)
            .map(|index| Point::drawn(draw.name(index), drawn_cpus(index)))
            .collect();
        let runs =
            sweeps.iter().flat_map(|sweep| sweep.runs(&points, self.is_real(sweep.on()))).collect();
        let mut experiment = self.with_rules_alone();
        experiment.points = points;
        experiment.sweeps = sweeps;
        experiment.agreements = agreements;
        experiment.runs = runs;
        experiment.is_drawn = true;
        Ok(experiment)
    }
}
