//! Variables that are shown, and expectations of them.

use std::fmt;
use std::ops::ControlFlow;

use fairground_bpf::{Global, GlobalType, Types};

use super::path::{Places, concrete, follow};
use super::read::{Reading, Value};
use super::{Meanings, SettingError, find};

/// Comparisons, longer ones first; `==` is another form of `=`.
const COMPARISONS: [(&str, Comparison); 7] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::Differs),
    ("<=", Comparison::AtMost),
    (">=", Comparison::AtLeast),
    ("=", Comparison::Equal),
    ("<", Comparison::Below),
    (">", Comparison::Above),
];

/// A relation between what is found and what is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Comparison {
    Equal,
    Differs,
    Below,
    AtMost,
    Above,
    AtLeast,
}

impl Comparison {
    fn holds(self, found: &Value, expected: &Value) -> bool {
        let numbers = found.number().zip(expected.number());
        match (self, numbers) {
            (Comparison::Equal, _) => found == expected,
            (Comparison::Differs, _) => found != expected,
            (Comparison::Below, Some((found, expected))) => found < expected,
            (Comparison::AtMost, Some((found, expected))) => found <= expected,
            (Comparison::Above, Some((found, expected))) => found > expected,
            (Comparison::AtLeast, Some((found, expected))) => found >= expected,
            (_, None) => false,
        }
    }
}

/// A part of a variable by its path, or several with `[*]` and ranges.
#[derive(Clone, Debug)]
pub struct VariablePart {
    /// The variable: an index into those that it was found among.
    pub variable: usize,
    name: String,
    path: String,
    whole: GlobalType,
    places: Places,
}

/// A value and the path of the part that holds it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedValue {
    /// The path: `x`, `x[1].y`; of equal elements that follow each other, `x[4..64]`.
    pub name: String,
    /// The value.
    pub value: Value,
}

/// Expected content of a part of a variable.
#[derive(Clone, Debug)]
pub struct Expectation {
    /// The part.
    pub part: VariablePart,
    comparison: Comparison,
    patches: Vec<super::Patch>,
}

/// An expectation that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The path of the first part for which it does not hold.
    pub name: String,
    /// The value that is expected, with the comparison unless that is equality.
    pub expected: String,
    /// The value that is found.
    pub found: String,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`: expected {}, found {}", self.name, self.expected, self.found)
    }
}

impl Meanings<'_> {
    /// The part of one of the variables `globals` that a path names.
    ///
    /// # Errors
    /// The scheduler has no such variable, or it has no such part.
    pub fn part(
        &self,
        scheduler: &str,
        globals: &[Global],
        path: &str,
    ) -> Result<VariablePart, SettingError> {
        let (variable, path) = find(scheduler, globals, path)?;
        let Global { name, ty, size, .. } = &globals[variable];
        let whole = Places::of(ty, *size);
        let places = follow(whole, name, path, self.types, &self.words)
            .map_err(|problem| SettingError::machine(&format!("{name}{path}"), problem))?;
        let (name, path, whole) = (name.clone(), path.to_owned(), ty.clone());
        Ok(VariablePart { variable, name, path, whole, places })
    }

    /// Expectation that `PATH=VALUE` states of one of the variables `globals`; also with `!=`, `<`, `<=`, `>` and `>=`.
    /// The value is one that can be set, or a number for a pointer.
    ///
    /// # Errors
    /// The text is no comparison, the scheduler has no such variable, it has no such part, or that part cannot hold
    /// the value.
    pub fn expectation(
        &self,
        scheduler: &str,
        globals: &[Global],
        text: &str,
    ) -> Result<Expectation, SettingError> {
        let form = "write `NAME=VALUE`; `!=`, `<`, `<=`, `>` and `>=` compare, too";
        let wrong = |problem: String| SettingError::machine(text, problem);
        let at = text.find(['=', '!', '<', '>']).ok_or_else(|| wrong(form.to_owned()))?;
        let (name, behind) = text.split_at(at);
        let found = COMPARISONS.iter().find(|(sign, _)| behind.starts_with(sign));
        let (sign, comparison) = found.copied().ok_or_else(|| wrong(form.to_owned()))?;
        let value = behind[sign.len()..].trim();
        let part = self.part(scheduler, globals, name.trim())?;
        let of_several = matches!(
            part.places.ty,
            GlobalType::Array { text: false, .. } | GlobalType::Composite { .. }
        );
        if of_several && comparison != Comparison::Equal {
            return Err(wrong("only `=` compares several values with a list".to_owned()));
        }
        let is_text = matches!(part.places.ty, GlobalType::Array { text: true, .. });
        if is_text && !matches!(comparison, Comparison::Equal | Comparison::Differs) {
            return Err(wrong("a text has no order: write `=` or `!=`".to_owned()));
        }
        let mut target = part.places.clone();
        if target.ty == GlobalType::Pointer {
            target.ty = GlobalType::Int { bits: 64, signed: false };
        }
        let unit = globals[part.variable].tags.iter().find_map(|tag| tag.strip_prefix("unit:"));
        let unit = unit.filter(|_| !part.path.contains('.'));
        let full = format!("{}{}", part.name, part.path);
        let patches = self.written(&target, &full, unit, value).map_err(wrong)?;
        Ok(Expectation { part, comparison, patches })
    }
}

impl VariablePart {
    /// The values in the variable's content, `max` at most, and whether these are all.
    pub fn values(&self, content: &[u8], types: &Types, max: usize) -> (Vec<NamedValue>, bool) {
        let reading = Reading { types, found: content, expected: content, only_differing: false };
        let mut values = Vec::new();
        let end = (0..self.places.at.len()).try_for_each(|index| {
            reading.visit(&self.places, index, &self.place(index, types), &mut |name, value, _| {
                if values.len() >= max {
                    return ControlFlow::Break(());
                }
                values.push(NamedValue { name: name.to_owned(), value });
                ControlFlow::Continue(())
            })
        });
        (values, end.is_continue())
    }

    /// The path of one of the places.
    fn place(&self, index: usize, types: &Types) -> String {
        let offset = self.places.at.get(index).map_or(0, |(offset, _)| *offset);
        concrete(&self.name, &self.path, offset, &self.whole, types)
    }
}

impl Expectation {
    /// The first part for which it does not hold in the variable's content.
    pub fn unmet(&self, content: &[u8], types: &Types) -> Option<Unmet> {
        let mut expected = content.to_vec();
        self.patches.iter().for_each(|patch| {
            patch.apply(&mut expected);
        });
        let only_differing = self.comparison == Comparison::Equal;
        let reading = Reading { types, found: content, expected: &expected, only_differing };
        let mut unmet = None;
        let places = &self.part.places;
        for index in 0..places.at.len() {
            // Its name is made only where it is needed: a path may name a million parts.
            let _ = reading.visit(places, index, "", &mut |below, found, expected| {
                if self.comparison.holds(&found, &expected) {
                    return ControlFlow::Continue(());
                }
                let name = format!("{}{below}", self.part.place(index, types));
                unmet = Some(self.failure(name, &found, &expected));
                ControlFlow::Break(())
            });
            if unmet.is_some() {
                break;
            }
        }
        unmet
    }

    fn failure(&self, name: String, found: &Value, expected: &Value) -> Unmet {
        let sign = COMPARISONS.iter().find(|(_, comparison)| *comparison == self.comparison);
        let sign = sign.map_or("", |(sign, _)| *sign);
        let expected = match self.comparison {
            Comparison::Equal => expected.to_string(),
            _ => format!("{sign} {expected}"),
        };
        Unmet { name, expected, found: found.to_string() }
    }
}
