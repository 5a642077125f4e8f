//! Programs: lists of operations.

use std::ops::Range;

use toml::de::{DeTable, DeValue};

use super::fields::{Parser, Value, kind_of};
use super::operands::{BARE_WORDS, bare_operation, example, table_words};
use crate::diagnostic::suggestion;
use crate::limits::{AMOUNT_MAX, LOOP_DEPTH_MAX, OPERATIONS_MAX};
use crate::model::{Op, Program};
use crate::spans::OpSpan;

impl Parser<'_> {
    /// A list of operations. Invalid ones are reported and skipped, so that the rest is read too.
    pub(super) fn program(&mut self, value: Value<'_, '_>, depth: usize) -> (Program, Vec<OpSpan>) {
        let Some(list) = value.get_ref().as_array() else {
            let message = format!("a program is a list of operations, not {}", kind_of(value));
            let help =
                "write it in [ ], as in `program = [{ run = \"1ms\" }, { sleep = \"1ms\" }]`";
            self.problem(value.span(), message, help);
            return Default::default();
        };
        if depth > LOOP_DEPTH_MAX {
            let message = format!("more than LOOP_DEPTH_MAX, {LOOP_DEPTH_MAX}, loops inside loops");
            self.problem(value.span(), message, "write fewer loops with more `times`");
            return Default::default();
        }
        self.operations = self.operations.saturating_add(list.len());
        if self.operations > OPERATIONS_MAX {
            let message = format!("more than OPERATIONS_MAX, {OPERATIONS_MAX}, operations");
            self.problem(value.span(), message, "write loops instead of repeated operations");
            return Default::default();
        }
        let mut program = Program::with_capacity(list.len());
        let mut spans = Vec::with_capacity(list.len());
        for item in list {
            if let Some((op, body)) = self.operation(item, depth) {
                program.push(op);
                spans.push(OpSpan { span: item.span(), body });
            }
        }
        (program, spans)
    }

    fn operation(&mut self, value: Value<'_, '_>, depth: usize) -> Option<(Op, Vec<OpSpan>)> {
        match value.get_ref() {
            DeValue::String(word) => self.bare_operation(word, value.span()),
            DeValue::Table(table) => self.table_operation(table, value.span(), depth),
            _ => {
                let message = format!("an operation cannot be {}", kind_of(value));
                let help =
                    "write a table, as in { run = \"1ms\" }, or \"wait\", \"yield\", \"exit\"";
                self.problem(value.span(), message, help);
                None
            }
        }
    }

    fn bare_operation(&mut self, word: &str, span: Range<usize>) -> Option<(Op, Vec<OpSpan>)> {
        let op = bare_operation(word);
        if op.is_none() {
            let help = if table_words().any(|known| known == word) {
                format!("`{word}` needs a value: {}", example(word))
            } else {
                suggestion(word, BARE_WORDS.iter().copied().chain(table_words()), "operations")
            };
            self.problem(span, format!("`{word}` alone is not an operation"), help);
        }
        Some((op?, Vec::new()))
    }

    fn table_operation(
        &mut self,
        table: &DeTable<'_>,
        span: Range<usize>,
        depth: usize,
    ) -> Option<(Op, Vec<OpSpan>)> {
        let mut word = None;
        let mut sound = true;
        for key in table.keys() {
            let name = key.get_ref().as_ref();
            if name == "times" && table.contains_key("loop") {
                continue;
            }
            if let Some(known) = table_words().find(|known| *known == name) {
                if let Some(first) = word.replace(known) {
                    let message = format!("one operation cannot be both `{first}` and `{known}`");
                    let help = format!(
                        "write two operations: {{ {first} = … }}, {{ {known} = … }}, in the order meant"
                    );
                    self.problem(span.clone(), message, help);
                    return None;
                }
                continue;
            }
            sound = false;
            let help = match name {
                "times" => "`times` belongs to a loop: { loop = [ … ], times = 10 }".to_owned(),
                _ if BARE_WORDS.contains(&name) => {
                    format!("write \"{name}\" alone, without {{ }}")
                }
                _ => {
                    suggestion(name, table_words().chain(BARE_WORDS.iter().copied()), "operations")
                }
            };
            self.problem(key.span(), format!("`{name}` is not an operation"), help);
        }
        let Some(word) = word else {
            if sound {
                let help = "write one, as in { run = \"1ms\" }";
                self.problem(span, "{ } holds no operation".to_owned(), help);
            }
            return None;
        };
        let value = table.get(word)?;
        if word == "loop" {
            return self.loop_operation(table, value, depth);
        }
        self.leaf(word, value).map(|op| (op, Vec::new()))
    }

    fn loop_operation(
        &mut self,
        table: &DeTable<'_>,
        body: Value<'_, '_>,
        depth: usize,
    ) -> Option<(Op, Vec<OpSpan>)> {
        let times = match table.get("times") {
            Some(times) => Some(self.amount("times", times, 1..=AMOUNT_MAX)?),
            None => None,
        };
        let problems = self.problems.len();
        let (program, spans) = self.program(body, depth + 1);
        if program.is_empty() {
            if self.problems.len() == problems {
                let help = "put operations into it, or remove it";
                self.problem(body.span(), "the loop is empty".to_owned(), help);
            }
            return None;
        }
        Some((Op::Loop(times, program), spans))
    }
}
