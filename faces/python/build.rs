//! Tells the module whether it is built for an interpreter without a lock (`Py_GIL_DISABLED`,
//! `src/gate.rs`).

fn main() {
    pyo3_build_config::use_pyo3_cfgs();
}
