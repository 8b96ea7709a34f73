//! The library as it is installed: found by pkg-config and CMake, shared and as an archive.

mod support;

use support::installed::{Installed, declared, exported};

#[test]
fn the_installed_library_serves_programs() {
    let installed = Installed::new("hamlyn_am");
    installed.serves_by_pkg_config("old.c");
    installed.serves_by_cmake("old.c");
}

/// The header declares each function of the library, and the library has each that it declares.
#[test]
fn header_and_library_have_the_same_functions() {
    const STRUCTS: [&str; 6] = [
        "bundle",
        "endpoint",
        "name",
        "returned",
        "statistics",
        "forms",
    ];
    let mut declared = declared("hamlyn_am.h", "hamlyn_am_");
    declared.retain(|name| {
        !name.ends_with("_t") && !STRUCTS.contains(&name.trim_start_matches("hamlyn_am_"))
    });
    assert!(declared.len() > 60, "{declared:?}");
    assert_eq!(declared, exported("hamlyn_am", "hamlyn_am_"));
}
