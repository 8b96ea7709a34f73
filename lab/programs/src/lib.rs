//! Parallel programs of the papers, written for this project, over any host: they run on the
//! simulator's machines and in processes of a real one, and each checks its result.

pub mod enumerate;
