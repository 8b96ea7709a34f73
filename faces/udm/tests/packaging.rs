//! The library as it is installed: found by pkg-config and CMake, shared and as an archive.

mod support;

use support::installed::{Installed, declared, exported};

#[test]
fn the_installed_library_serves_programs() {
    let installed = Installed::new("hamlyn_udm");
    installed.serves_by_pkg_config("installed.c");
    installed.serves_by_cmake("installed.c");
}

/// The headers name each function of the library, and the library has each that they name.
#[test]
fn headers_and_library_have_the_same_functions() {
    let mut declared: std::collections::BTreeSet<String> = declared("udm.h", "hamlyn_");
    declared.extend(support::installed::declared("crl.h", "hamlyn_"));
    assert!(declared.len() > 55, "{declared:?}");
    assert_eq!(declared, exported("hamlyn_udm", "hamlyn_"));
}
