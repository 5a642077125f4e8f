//! `reproduce --seed`: an experiment's comparisons at points that are drawn at random.

use std::collections::BTreeMap;
use std::process::ExitCode;

use fairground_session::{EngineChoice, Failure, Outcome};

use super::drawn_follow::{Follow, follows};
use super::experiment_runs;
use super::reproduce::{Unmade, analysed};
use super::seed_history::SeedHistory;
use crate::args::{Cli, ReproduceArgs};
use crate::experiment::{Draw, Experiment, Figures, Run, Tally};
use crate::interrupt;
use crate::pictures;
use crate::present::{self, DrawnResult, FollowedPoint};

pub(super) fn reproduce(
    cli: &Cli,
    args: &ReproduceArgs,
    experiment: &Experiment,
    draw: Draw,
) -> Result<ExitCode, Failure> {
    let experiment = experiment.at_drawn_points(draw)?;
    pictures::prepare(&args.page)?;
    let history = args.drawn.report.as_deref().map(SeedHistory::read).transpose()?;
    let runs = experiment.runs()?;
    let follows = follows(&experiment, &runs);
    let all: Vec<Run> =
        runs.iter().chain(follows.iter().map(|follow| &follow.run)).cloned().collect();
    let finished =
        experiment_runs::run_all(cli.quiet, &experiment.name, &all, args.engine, |run, outcome| {
            Finished::of(args.engine, &follows, run, outcome)
        });
    let is_partial = interrupt::is_asked();

    let mut result = DrawnResult::new(&experiment, draw);
    let mut figures = BTreeMap::new();
    let (mut unmade, mut code) = (Unmade::default(), 0);
    for (run, finished) in all.iter().zip(finished) {
        match finished {
            Ok(Finished { followed: Some(followed), .. }) => result.add_followed(followed?),
            Ok(finished) => {
                code = code.max(finished.code);
                result.add_run(finished.described);
                figures.insert(run.name.clone(), finished.figures);
            }
            Err(failure) if run.is_simulated() && !is_partial => return Err(failure),
            Err(failure) => unmade.add(&run.name, &failure),
        }
    }
    let rules = experiment.rules();
    for agreement in &experiment.agreements {
        let cells = rules.cells(agreement, &agreement.simulated, &experiment.points, &figures);
        result.add_cells(&agreement.title, cells);
    }
    let mut document = result.document(present::shows_every_cell(cli));
    document.notes.extend(unmade.notes());
    if is_partial {
        document.title += " (partial)";
        document.notes.push("partial: it was interrupted; no report was written".to_owned());
        code = interrupt::EXIT_CODE;
    } else if let Some(history) = history {
        history.write(&result)?;
    }
    let drawn = pictures::write_experiment(&args.page, &document, &experiment, &figures);
    present::print_drawn(&document, cli, drawn)?;
    let holds = Tally::of(&result.all_cells()).is_enough();
    Ok(ExitCode::from(if code > 0 { code } else { u8::from(!holds) }))
}

/// What is kept of a run, without its events.
struct Finished {
    figures: Figures,
    described: fairground_report::Document,
    code: u8,
    /// Of a run that is followed: its decisions, and nothing else.
    followed: Option<Result<FollowedPoint, Failure>>,
}

impl Finished {
    fn of(engine: EngineChoice, follows: &[Follow], run: &Run, outcome: &Outcome) -> Finished {
        let follow = follows.iter().find(|follow| follow.run.name == run.name);
        let followed = follow.map(|follow| {
            Ok(FollowedPoint {
                comparison: follow.comparison.clone(),
                point: follow.point.clone(),
                decisions: follow.agreement(engine, outcome)?,
            })
        });
        let mut figures = Figures::default();
        analysed(&mut figures, outcome, |_| true);
        let mut described = fairground_report::Document::default();
        present::describe_run(&mut described, outcome);
        Finished { figures, described, code: outcome.exit_code(), followed }
    }
}
