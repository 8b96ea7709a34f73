//! Programs in C, compiled with the header and linked with the library.

mod support;

use std::path::{Path, PathBuf};

use support::{compile, passed_with, start};

const OF_C: [&str; 3] = ["cc", "-std=c11", "-D_GNU_SOURCE"];

/// Compiles a program of `tests/programs`.
fn compiled(file: &str, to: &str, compiler: &[&str]) -> PathBuf {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    compile(&programs.join(file), to, compiler)
}

fn both_sides(program: &Path, namespace: &str, strategy: &str) {
    let namespace = format!("{namespace}-{}-{strategy}", std::process::id());
    let serves = start(program, &namespace, &["serve", strategy]);
    let asks = start(program, &namespace, &["ask", strategy]);
    passed_with(asks, "passed\n");
    passed_with(serves, "passed\n");
}

#[test]
fn every_protocol_works_between_two_programs_with_every_strategy() {
    let program = compiled("everything.c", "everything", &OF_C);
    for strategy in ["0", "1", "2", "3"] {
        both_sides(&program, "c", strategy);
    }
}

#[test]
fn classes_of_c_plus_plus_work() {
    for standard in ["c++17", "c++20"] {
        let program = compiled(
            "classes.cpp",
            standard,
            &["c++", &format!("-std={standard}")],
        );
        both_sides(&program, &standard.replace("++", "pp"), "0");
    }
}

#[test]
fn bad_input_gets_an_error_that_says_what_to_do() {
    let program = compiled("bad_input.c", "bad_input", &OF_C);
    let namespace = format!("c-bad-{}", std::process::id());
    passed_with(start(&program, &namespace, &[]), "passed\n");
}

/// Undefined behaviour and wrong addresses in the programs themselves, and what the library writes to their memory.
#[test]
fn sanitizers_find_nothing() {
    const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let of_c = [&OF_C[..], &SANITIZED].concat();
    both_sides(
        &compiled("everything.c", "everything-sanitized", &of_c),
        "c-san",
        "0",
    );
    let of_classes = [&["c++", "-std=c++17"][..], &SANITIZED].concat();
    both_sides(
        &compiled("classes.cpp", "classes-sanitized", &of_classes),
        "classes-san",
        "0",
    );
}
