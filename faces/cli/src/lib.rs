//! What the commands `hamlyn` and `hamlyn-lab` have in common: output that people and programs
//! read, processes of their own, jobs of them, and the processors that they measure on. It changes
//! as they do, and promises nothing to others.
#![forbid(unsafe_code)]

pub mod actor;
pub mod output;
pub mod processors;
pub mod run;
pub mod terminal;
