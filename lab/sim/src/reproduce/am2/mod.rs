//! *Virtual network transport protocols for Myrinet*: Figures 5 to 11 and Table 1, by programs of
//! the layer of Active Messages (`layers/am`) on the paper's cluster.

pub mod bench;
pub mod cluster;
pub mod exchange;
pub mod load;
pub mod log_p;
