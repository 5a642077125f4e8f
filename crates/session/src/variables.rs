//! What is shown and required of a scheduler's variables at the end of a simulated run.

use fairground_bpf::{Global, Object, Types};
use fairground_machine::{
    Expectation, Machine, Meanings, NamedValue, Topology, Unmet, VariablePart, is_kernel_constant,
};

use crate::failure::Failure;
use crate::spec::{ALL_VARIABLES, VariablesSpec};

/// Values of one variable that are shown where all variables are.
const VALUES_OF_EACH: usize = 16;
/// Values that are shown of what is named.
const VALUES_OF_NAMED: usize = 4096;

/// What was asked for of a scheduler's variables, at the end of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    /// The values that are shown, in the order in which they were asked for, else of the object.
    pub values: Vec<NamedValue>,
    /// The variables and parts that have more values than are shown, and how many are.
    pub cut: Vec<(String, usize)>,
    /// The expectations that hold.
    pub met: usize,
    /// Those that do not.
    pub unmet: Vec<Unmet>,
}

/// What to read of an object's variables.
pub(crate) struct Wanted {
    types: Types,
    /// Each with its name, and the number of values to show.
    shown: Vec<(String, VariablePart, usize)>,
    expected: Vec<Expectation>,
}

impl Wanted {
    /// Finds everything that is named, before a run.
    ///
    /// # Errors
    /// The scheduler has no such variable or part, or it cannot hold the value.
    pub(crate) fn of(
        words: &VariablesSpec,
        object: &Object,
        topology: &Topology,
    ) -> Result<Wanted, Failure> {
        let (types, globals) = (object.types(), object.globals());
        let meanings = Meanings::new(&types, topology);
        let mut shown = Vec::new();
        for name in &words.show_globals {
            let of_all = name == ALL_VARIABLES;
            let is_own = |global: &&Global| global.is_settable() && !is_kernel_constant(global);
            let all = globals.iter().filter(|global| of_all && is_own(global));
            let names = all.map(|global| global.name.as_str());
            let max = if of_all { VALUES_OF_EACH } else { VALUES_OF_NAMED };
            for name in names.chain((!of_all).then_some(name.as_str())) {
                let part = meanings
                    .part(object.name(), globals, name)
                    .map_err(|error| Failure::new(format_args!("--show-globals: {error}")))?;
                shown.push((name.to_owned(), part, max));
            }
        }
        let expected = words.expect.iter().map(|text| {
            let expectation = meanings.expectation(object.name(), globals, text);
            expectation.map_err(|error| Failure::new(format_args!("--expect: {error}")))
        });
        let expected = expected.collect::<Result<_, _>>()?;
        Ok(Wanted { types, shown, expected })
    }

    /// Reads it.
    ///
    /// # Errors
    /// A variable cannot be read.
    pub(crate) fn read(&self, machine: &Machine) -> Result<Variables, Failure> {
        let mut variables = Variables::default();
        let content = |part: &VariablePart| {
            let content = machine.content(part.variable);
            content.ok_or_else(|| Failure::new("a variable of the scheduler cannot be read"))
        };
        for (name, part, max) in &self.shown {
            let (values, whole) = part.values(&content(part)?, &self.types, *max);
            if !whole {
                variables.cut.push((name.clone(), values.len()));
            }
            variables.values.extend(values);
        }
        for expectation in &self.expected {
            match expectation.unmet(&content(&expectation.part)?, &self.types) {
                None => variables.met += 1,
                Some(unmet) => variables.unmet.push(unmet),
            }
        }
        Ok(variables)
    }
}
