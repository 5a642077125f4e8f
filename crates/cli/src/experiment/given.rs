//! Figures from elsewhere: published, or of a real kernel.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};

use super::top;
use super::top::TopLine;

/// Figures from elsewhere.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    pub(crate) name: String,
    pub(crate) source: String,
    /// Metric → value or range.
    #[serde(default)]
    pub(crate) values: BTreeMap<String, Range>,
    /// Tasks as `top` showed them.
    #[serde(default, deserialize_with = "top::lines")]
    pub(crate) top: Vec<TopLine>,
}

/// A value or a range, as published: `1.05` or `"0.12..0.44"`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Range {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl<'de> Deserialize<'de> for Range {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Form {
            Number(f64),
            Text(String),
        }
        let bad = |t: &str| D::Error::custom(format!("`{t}` is neither a number nor `low..high`"));
        match Form::deserialize(deserializer)? {
            Form::Number(v) => Ok(Self { low: v, high: v }),
            Form::Text(text) => {
                let (low, high) = text.split_once("..").ok_or_else(|| bad(&text))?;
                let parse = |s: &str| s.trim().parse::<f64>().map_err(|_| bad(&text));
                let range = Self { low: parse(low)?, high: parse(high)? };
                if range.low <= range.high { Ok(range) } else { Err(bad(&text)) }
            }
        }
    }
}
