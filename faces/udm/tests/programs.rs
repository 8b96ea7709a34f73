//! Headers, and programs of one process that misuse the library.

mod support;

use std::process::Command;

use support::{MISUSE, UDM, compiler, include, passes, run_ok};

#[test]
fn headers_compile_alone_in_each_language() {
    for header in ["udm.h", "crl.h"] {
        for standard in [
            "c99", "c11", "c17", "c2x", "gnu99", "c++11", "c++17", "c++20",
        ] {
            let language = if standard.contains("++") { "c++" } else { "c" };
            let mut command = compiler(standard);
            command.args(["-pedantic", "-fsyntax-only", "-x", language, "-include"]);
            run_ok(command.arg(include().join(header)).arg("/dev/null"));
        }
    }
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
