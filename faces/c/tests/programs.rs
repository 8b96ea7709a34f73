//! Programs in C, compiled with the header and linked with the library.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

const OF_C: [&str; 3] = ["cc", "-std=c11", "-D_GNU_SOURCE"];

/// Compiles a program of `tests/programs` with that compiler and those options, and says where it is.
fn compiled(file: &str, to: &str, compiler: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The library lies where this test does.
    let this = std::env::current_exe().unwrap();
    let libraries = this.parent().unwrap();
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(to);
    let mut command = Command::new(compiler[0]);
    command.args(&compiler[1..]);
    command.args(["-O1", "-g", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    command.arg("-I").arg(root.join("include"));
    command.arg(root.join("tests/programs").join(file));
    command.arg("-o").arg(&to).arg("-L").arg(libraries);
    command.arg(format!("-Wl,-rpath,{}", libraries.display()));
    command.args(["-lhamlyn_c", "-lpthread"]);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    to
}

fn start(program: &Path, namespace: &str, arguments: &[&str]) -> Child {
    let mut command = Command::new(program);
    command.args(arguments).env("HAMLYN_NAMESPACE", namespace);
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn passed(child: Child) {
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "passed\n");
}

fn both_sides(program: &Path, namespace: &str, strategy: &str) {
    let namespace = format!("{namespace}-{}-{strategy}", std::process::id());
    let serves = start(program, &namespace, &["serve", strategy]);
    let asks = start(program, &namespace, &["ask", strategy]);
    passed(asks);
    passed(serves);
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
    passed(start(
        &program,
        &format!("c-bad-{}", std::process::id()),
        &[],
    ));
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
