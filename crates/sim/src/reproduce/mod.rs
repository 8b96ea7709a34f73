//! The paper's measurements, on the paper's machine (`Hamlyn 4` and `5.4`).
//!
//! [`measure`] times messages as the paper does, [`mod@bench`] carries out its experiments, [`entries`] has a row for each number,
//! experiment and claim of the paper, and [`mod@report`] sets ours beside the paper's. Nothing here knows what will come out: the
//! paper's numbers are only compared with, and changing a parameter of the machine changes the figures. [`beyond`] has what the paper could not
//! measure.

pub mod bench;
pub mod beyond;
pub mod entries;
pub mod measure;
pub mod report;

pub use report::{Comparison, Entry, Kind, Origin, Plot, Reading, Report, Verdict, report};

#[cfg(test)]
mod tests;
