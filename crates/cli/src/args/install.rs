//! Options of the commands that belong to an installation: `completions`, `man`, `schema`, `doctor`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};

use crate::doctor::ABILITIES;
use crate::formats::FORMATS;

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// The folder for the pages of all commands; without it, the page of `fairground` goes to stdout
    #[arg(value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Check only these, and end with exit code 1 where one of them is not ready
    #[arg(value_name = "ABILITY", value_parser = abilities())]
    pub(crate) abilities: Vec<String>,

    /// Boot the newest kernel that is here, too: a minute where the machine is busy
    #[arg(long)]
    pub(crate) thorough: bool,
}

fn abilities() -> PossibleValuesParser {
    let value =
        |ability: &crate::doctor::Ability| PossibleValue::new(ability.name).help(ability.what);
    PossibleValuesParser::new(ABILITIES.iter().map(value))
}

#[derive(Debug, Args)]
pub(crate) struct SchemaArgs {
    /// The format whose JSON Schema is printed; without it, the formats are listed
    #[arg(value_name = "FORMAT", value_parser = with_schema())]
    pub(crate) format_name: Option<String>,
}

fn with_schema() -> PossibleValuesParser {
    let with = FORMATS.iter().filter(|format| format.json_schema.is_some());
    PossibleValuesParser::new(with.map(|format| PossibleValue::new(format.name).help(format.what)))
}
