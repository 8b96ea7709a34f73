//! Headers, and programs of one process that misuse the library.

mod support;

use std::process::Command;

use support::{MISUSE, UDM, headers_compile_alone, passes};

#[test]
fn headers_compile_alone_in_each_language() {
    headers_compile_alone(&["udm.h", "crl.h"]);
}

#[test]
fn misuse_is_a_code() {
    for standard in ["gnu99", "gnu++17"] {
        let program = UDM.compile("misuse.c", standard, &format!("misuse_{standard}"));
        for part in MISUSE {
            passes(Command::new(&program).arg(part));
        }
    }
}

#[test]
fn messages_and_operations_allocate_nothing() {
    let program = UDM.compile("allocations.c", "gnu99", "allocations");
    passes(&mut Command::new(&program));
}
