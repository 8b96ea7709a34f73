//! The numbers of a machine's file, each with where it is from.
//!
//! A number is a table of one unit and one provenance: `{ ns = 500, given = "H-275" }`. It refuses
//! a number without a provenance, with two, or with a reason that says nothing.

use serde::Deserialize;
use toml::{Table, Value};

use crate::time::Span;

/// Where a number is from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provenance {
    /// The paper prints it, or it follows by arithmetic from what the paper prints.
    Given,
    /// It was chosen so that rows of the paper come out.
    Calibrated,
    /// The paper says nothing of it.
    Assumed,
}

/// Units, and what one of each is in the smallest.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1e3),
    ("us", 1e6),
    ("cycles", 1.0),
    ("bytes", 1.0),
    ("count", 1.0),
    ("per_mille", 1.0),
];
const PROVENANCES: [(&str, Provenance); 3] = [
    ("given", Provenance::Given),
    ("calibrated", Provenance::Calibrated),
    ("assumed", Provenance::Assumed),
];

impl Provenance {
    /// Its name in files.
    pub fn name(self) -> &'static str {
        let mut all = PROVENANCES.iter();
        all.find(|(_, one)| *one == self)
            .map_or("", |(name, _)| name)
    }
}

/// A number of a machine's file, as it stands there.
#[derive(Clone, PartialEq, Debug, serde::Serialize)]
pub struct Number {
    /// Where it stands: the names of the tables around it, with points between.
    pub path: String,
    /// What it is, in its unit.
    pub value: f64,
    /// Its unit.
    pub unit: &'static str,
    /// Where it is from.
    pub provenance: Provenance,
    /// The rows of the paper, or the reason.
    pub source: String,
}

/// A table that may be a number: its unit and provenance, if it has both.
fn number_of(path: &str, table: &Table) -> Option<Number> {
    let (unit, value) = UNITS.iter().find_map(|(unit, _)| {
        let value = table.get(*unit)?;
        let value = value
            .as_float()
            .or_else(|| value.as_integer().map(|integer| integer as f64))?;
        Some((*unit, value))
    })?;
    let (provenance, source) = PROVENANCES
        .iter()
        .find_map(|(name, provenance)| Some((*provenance, table.get(*name)?.as_str()?)))?;
    Some(Number {
        path: path.to_owned(),
        value,
        unit,
        provenance,
        source: source.to_owned(),
    })
}

/// All numbers beneath a value, in the order of their paths.
pub fn numbers(value: &Value) -> Vec<Number> {
    fn collect(path: &str, value: &Value, into: &mut Vec<Number>) {
        let beneath = |name: &str| match path {
            "" => name.to_owned(),
            _ => format!("{path}.{name}"),
        };
        match value {
            Value::Table(table) => {
                into.extend(number_of(path, table));
                for (name, value) in table {
                    collect(&beneath(name), value, into);
                }
            }
            Value::Array(array) => {
                for (place, value) in array.iter().enumerate() {
                    collect(&beneath(&place.to_string()), value, into);
                }
            }
            _ => {}
        }
    }
    let mut all = Vec::new();
    collect("", value, &mut all);
    all
}

/// What stands at that path.
pub fn at<'a>(value: &'a mut Value, path: &str) -> Option<&'a mut Value> {
    path.split('.').try_fold(value, |value, name| match value {
        Value::Table(table) => table.get_mut(name),
        Value::Array(array) => array.get_mut(name.parse::<usize>().ok()?),
        _ => None,
    })
}

/// Changes the number at that path; false if none stands there.
pub fn change(value: &mut Value, path: &str, to: impl FnOnce(f64) -> f64) -> bool {
    let Some(Value::Table(table)) = at(value, path) else {
        return false;
    };
    let Some(number) = number_of(path, table) else {
        return false;
    };
    let value = to(number.value);
    // What is counted stays whole, so that it can be read as before.
    let is_whole = value.fract() == 0.0;
    let value = if is_whole {
        Value::Integer(value as i64)
    } else {
        Value::Float(value)
    };
    table.insert(number.unit.to_owned(), value);
    true
}

/// The value of a number, in picoseconds if it is a time.
#[derive(Clone, Copy, PartialEq, Debug, Default, Deserialize)]
#[serde(try_from = "Table")]
pub(crate) struct Quantity {
    value: f64,
    is_time: bool,
}

impl TryFrom<Table> for Quantity {
    type Error = String;

    fn try_from(table: Table) -> Result<Self, String> {
        let known = |name: &&String| {
            UNITS.iter().any(|(unit, _)| unit == name)
                || PROVENANCES.iter().any(|(other, _)| other == name)
        };
        if let Some(strange) = table.keys().find(|name| !known(name)) {
            return Err(format!("a number has no {strange:?}"));
        }
        if table.len() != 2 {
            return Err("a number has one unit and one provenance".to_owned());
        }
        let number = number_of("", &table)
            .ok_or("a number has a unit with a number, and a provenance with a text")?;
        if number.source.trim().is_empty() {
            return Err("a provenance names rows or a reason".to_owned());
        }
        let (_, scale) = UNITS
            .iter()
            .find(|(unit, _)| *unit == number.unit)
            .ok_or("a unit")?;
        if number.value < 0.0 {
            return Err("a number is not negative".to_owned());
        }
        Ok(Self {
            value: number.value * scale,
            is_time: matches!(number.unit, "ns" | "us"),
        })
    }
}

/// A number that is a time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "Quantity")]
pub(crate) struct Time(pub(crate) Span);

impl TryFrom<Quantity> for Time {
    type Error = &'static str;

    fn try_from(quantity: Quantity) -> Result<Self, Self::Error> {
        if !quantity.is_time {
            return Err("a time is in ns or us");
        }
        Ok(Self(Span::from_ps(quantity.value.round() as u64)))
    }
}

/// A number that counts something.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(try_from = "Quantity")]
pub(crate) struct Count(pub(crate) u64);

impl TryFrom<Quantity> for Count {
    type Error = &'static str;

    fn try_from(quantity: Quantity) -> Result<Self, Self::Error> {
        if quantity.is_time || quantity.value.fract() != 0.0 {
            return Err("what is counted is whole, and in bytes, cycles, count or per_mille");
        }
        Ok(Self(quantity.value as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, String> {
        let table: Table = text.parse().unwrap();
        table["number"]
            .clone()
            .try_into()
            .map_err(|error: toml::de::Error| error.to_string())
    }

    #[test]
    fn a_number_has_one_unit_and_one_provenance() {
        let good = parsed::<Time>("number = { us = 1.5, given = \"H-001\" }");
        assert_eq!(good, Ok(Time(Span::from_ns(1_500))));
        for bad in [
            "number = { ns = 1 }",
            "number = { given = \"H-001\" }",
            "number = { ns = 1, us = 1, given = \"H-001\" }",
            "number = { ns = 1, given = \"H-001\", assumed = \"why\" }",
            "number = { ns = 1, given = \" \" }",
            "number = { ns = -1, given = \"H-001\" }",
            "number = { ns = 1, guessed = \"H-001\" }",
            "number = { bytes = 1, given = \"H-001\" }",
        ] {
            assert!(parsed::<Time>(bad).is_err(), "{bad}");
        }
        assert!(parsed::<Count>("number = { ns = 1, given = \"x\" }").is_err());
        assert!(parsed::<Count>("number = { bytes = 1.5, given = \"x\" }").is_err());
    }

    #[test]
    fn numbers_are_found_and_changed_by_their_paths() {
        let text =
            "[a]\nb = { ns = 1, given = \"x\" }\nc = [{ on = \"d\", cycles = 2, assumed = \"y\" }]";
        let mut value = Value::Table(text.parse().unwrap());
        let paths: Vec<_> = numbers(&value)
            .into_iter()
            .map(|number| number.path)
            .collect();
        assert_eq!(paths, ["a.b", "a.c.0"]);
        assert!(change(&mut value, "a.c.0", |before| before + 1.0));
        assert_eq!(numbers(&value)[1].value, 3.0);
        assert!(!change(&mut value, "a.c.1", |before| before));
        assert!(!change(&mut value, "a", |before| before));
    }
}
