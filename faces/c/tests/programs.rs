//! Programs in C, compiled with the header and linked with the library.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Compiles a program of `tests/programs`, and says where it is.
fn compiled(name: &str, extra: &[&str]) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // The library lies where this test does.
    let this = std::env::current_exe().unwrap();
    let libraries = this.parent().unwrap();
    assert!(libraries.join("libhamlyn_c.so").exists(), "{libraries:?}");
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}{}", extra.len()));
    let mut command = Command::new("cc");
    command.args([
        "-std=c11",
        "-D_GNU_SOURCE",
        "-O1",
        "-g",
        "-Wall",
        "-Wextra",
        "-Werror",
    ]);
    command.args(extra).arg("-I").arg(root.join("include"));
    command.arg(root.join("tests/programs").join(name).with_extension("c"));
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

#[test]
fn every_protocol_works_between_two_programs_with_every_strategy() {
    let program = compiled("everything", &[]);
    for strategy in ["0", "1", "2", "3"] {
        let namespace = format!("c-{}-{strategy}", std::process::id());
        let serves = start(&program, &namespace, &["serve", strategy]);
        let asks = start(&program, &namespace, &["ask", strategy]);
        passed(asks);
        passed(serves);
    }
}

#[test]
fn bad_input_gets_an_error_that_says_what_to_do() {
    let program = compiled("bad_input", &[]);
    passed(start(
        &program,
        &format!("c-bad-{}", std::process::id()),
        &[],
    ));
}

/// Undefined behaviour and wrong addresses in the programs themselves, and what the library writes to their memory.
#[test]
fn sanitizers_find_nothing() {
    let sanitized = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let program = compiled("everything", &sanitized);
    let namespace = format!("c-san-{}", std::process::id());
    let serves = start(&program, &namespace, &["serve", "0"]);
    let asks = start(&program, &namespace, &["ask", "0"]);
    passed(asks);
    passed(serves);
}
