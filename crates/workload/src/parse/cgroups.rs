//! Control groups: the tables `[cgroups.NAME]`, and references to them.

use std::collections::BTreeMap;
use std::ops::Range;

use toml::de::DeValue;

use super::fields::{Section, kind_of};
use super::{Parser, Value};
use crate::cgroups::{self, path_problem};
use crate::diagnostic::suggestion;
use crate::limits::{CGROUP_WEIGHT_DEFAULT, CGROUP_WEIGHT_MAX, CGROUPS_MAX};
use crate::model::{Cgroup, Op};
use crate::spans::Spans;

impl Parser<'_> {
    /// All cgroups of the file, including undeclared parents.
    pub(super) fn cgroups(
        &mut self,
        value: Option<Value<'_, '_>>,
        spans: &mut Spans,
    ) -> Vec<Cgroup> {
        let Some(value) = value else { return Vec::new() };
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`cgroups` is {}, not a table", kind_of(value.get_ref()));
            self.problem(value.span(), message, "write `[cgroups.web]`");
            return Vec::new();
        };
        if table.len() >= CGROUPS_MAX {
            let message =
                format!("{} cgroups is more than CGROUPS_MAX, {CGROUPS_MAX}", table.len() + 1);
            self.problem(value.span(), message, "share them between tasks");
            return Vec::new();
        }
        let (mut weights, mut locations) = (BTreeMap::new(), BTreeMap::new());
        for (key, value) in table {
            let path = key.get_ref().as_ref();
            if let Some((message, help)) = path_problem(path) {
                self.problem(key.span(), message, help);
                continue;
            }
            locations.insert(path.to_owned(), key.span());
            weights.insert(path.to_owned(), self.weight(path, value));
        }
        let list = cgroups::tree(weights);
        for (index, cgroup) in list.iter().enumerate() {
            self.names.cgroups.insert(cgroup.path.clone(), index);
            spans.cgroups.push(locations.get(&cgroup.path).cloned().unwrap_or(value.span()));
        }
        list
    }

    /// `weight` of the table of one cgroup.
    fn weight(&mut self, path: &str, value: Value<'_, '_>) -> u32 {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("the cgroup `{path}` is {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, format!("write `[cgroups.{path}]`"));
            return CGROUP_WEIGHT_DEFAULT;
        };
        let nested = table.iter().find(|(key, value)| {
            key.get_ref().as_ref() != "weight" && matches!(value.get_ref(), DeValue::Table(_))
        });
        if let Some((key, _)) = nested {
            let message = format!("`{}` is a table inside the cgroup `{path}`", key.get_ref());
            let help = format!("a cgroup below it is [cgroups.\"{path}/{}\"]", key.get_ref());
            self.problem(key.span(), message, help);
            return CGROUP_WEIGHT_DEFAULT;
        }
        let mut section = Section::new(self, table, value.span(), "[cgroups]", &["weight"]);
        let weight = section.amount("weight", 1..=u64::from(CGROUP_WEIGHT_MAX));
        weight.and_then(|weight| u32::try_from(weight).ok()).unwrap_or(CGROUP_WEIGHT_DEFAULT)
    }

    /// The index of a cgroup by its path.
    pub(super) fn cgroup_reference(&mut self, path: &str, span: Range<usize>) -> Option<usize> {
        let plain = path.strip_prefix('/').filter(|rest| !rest.is_empty()).unwrap_or(path);
        if let Some(&index) = self.names.cgroups.get(plain) {
            return Some(index);
        }
        let help = if self.names.cgroups.is_empty() {
            format!("declare it: [cgroups.\"{}\"] with `weight = 100`", plain)
        } else {
            suggestion(plain, self.names.cgroups.keys().map(String::as_str), "cgroups")
        };
        self.problem(span, format!("there is no cgroup `{path}`"), help);
        None
    }

    /// `{ weight = { cgroup = "web", weight = 300 } }`.
    pub(super) fn cgroup_weight(&mut self, value: Value<'_, '_>) -> Option<Op> {
        const EXAMPLE: &str = "write { weight = { cgroup = \"web\", weight = 300 } }";
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("`weight` cannot be {}", kind_of(value.get_ref()));
            self.problem(value.span(), message, EXAMPLE);
            return None;
        };
        let keys = ["cgroup", "weight"];
        let mut section = Section::new(self, table, value.span(), "`weight`", &keys);
        for key in keys {
            if section.value(key).is_none() {
                section.missing(key, EXAMPLE);
            }
        }
        let weight = section.amount("weight", 1..=u64::from(CGROUP_WEIGHT_MAX));
        let named = section.value("cgroup");
        let cgroup = named.and_then(|named| self.reference("cgroup", named));
        Some(Op::SetCgroupWeight(cgroup?, u32::try_from(weight?).ok()?))
    }
}
