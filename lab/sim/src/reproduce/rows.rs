//! The rows of a paper: what it says, in data, and how each of its numbers is to be judged.
//!
//! Identifiers are those of `docs/papers/`. A row names no way to measure it; the experiments do,
//! by its identifier.

use serde::{Deserialize, Serialize};

/// What kind of row it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// The paper gives a number.
    Number,
    /// The paper carries out an experiment, or draws one.
    Experiment,
    /// The paper claims something.
    Claim,
    /// A relation between the paper's numbers that a model should satisfy.
    Derived,
}

/// How a row is dealt with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Treatment {
    /// By an experiment here.
    Measured,
    /// It is shown elsewhere in this project; the remark says where.
    Elsewhere,
    /// Somebody else's figure or judgement, quoted.
    Cited,
    /// It cannot be measured here; the remark says why.
    NotMeasurable,
    /// An experiment that is carried out here; the remark says which curves show it.
    CarriedOut,
}

/// Where a figure of ours comes from, and so what its agreement with the paper's is worth.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The machine was given it, or what it follows from by arithmetic. The agreement says only
    /// that the number is in force.
    Input,
    /// A number of the machine was chosen by it. The agreement says that the numbers can be
    /// reconciled with each other.
    Calibrated,
    /// No number of the machine was chosen by it.
    Predicted,
}

/// A number of the paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// What it is.
    pub what: String,
    /// Its unit.
    pub unit: String,
    /// What the paper says.
    pub paper: f64,
    /// Where ours comes from.
    pub is: Origin,
    /// The unit of its last digit, if the paper prints so few that rounding decides more than the
    /// limit.
    pub printed_to: Option<f64>,
    /// How far ours may deviate, in percent, if not by as little as elsewhere.
    pub within_percent: Option<f64>,
    /// The row whose experiment it repeats, if it is no experiment of its own; it is counted there.
    pub same_as: Option<String>,
}

/// A row of a paper.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Its identifier.
    pub id: String,
    /// The machine that it is about, if the paper has several.
    pub machine: Option<String>,
    /// Its kind.
    pub kind: Kind,
    /// How it is dealt with.
    pub treatment: Treatment,
    /// Where in the paper it stands.
    pub source: String,
    /// What the paper says, in our words.
    pub says: String,
    /// What must be said of it, if its measurement does not say it.
    #[serde(default)]
    pub remark: String,
    /// Its numbers.
    #[serde(default)]
    pub figures: Vec<Figure>,
}

/// A place where a paper contradicts itself or is silent.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reading {
    /// Where.
    pub place: String,
    /// What it says there.
    pub says: String,
    /// What is followed here.
    pub follows: String,
    /// Whose rows that concerns.
    pub rows: String,
}

/// What a paper says.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paper {
    /// Its rows, in its order.
    pub row: Vec<Row>,
    /// Where it contradicts itself, and what is followed.
    #[serde(default)]
    pub reading: Vec<Reading>,
}

impl Paper {
    /// Reads a paper's file.
    pub fn parse(text: &str) -> Result<Self, toml::de::Error> {
        toml::from_str(text)
    }

    /// The Hamlyn paper.
    pub fn hamlyn() -> Self {
        Self::parse(include_str!("../../papers/hamlyn.toml"))
            .expect("a file that is in the program")
    }
}
