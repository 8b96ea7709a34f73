//! The papers' measurements, on the papers' machines.
//!
//! A paper is two files: `papers/` has its rows in [`rows`], `machines/` its machine. [`measure`]
//! times messages as the paper does, a module of each paper carries out its experiments
//! ([`mod@hamlyn`]), and [`mod@report`] sets ours beside the paper's. Nothing here knows what will
//! come out: the paper's numbers are only compared with, and changing a number of the machine
//! changes the figures. [`beyond`] has what the Hamlyn paper could not measure.

pub mod am2;
pub mod beyond;
pub mod hamlyn;
pub mod measure;
pub mod parallel;
pub mod primitive;
pub mod report;
pub mod rows;
pub mod split_c;
pub mod udm;

pub use report::{
    BarChart, Comparison, Curve, Entry, FigureVerdict, Headline, Plot, Report, Verdict,
};
pub use rows::{Kind, Origin, Reading};
