//! The programs under tools that watch them: sanitizers of addresses, of undefined behaviour and of
//! threads, and valgrind. What the library writes to the memory of programs is watched, too; its
//! own code is not compiled with the sanitizers.

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{OF_C, all_passed_with, compiled, passed_with, start_under};

/// Said where nobody keeps it from being read: the harness keeps what a test that passes prints by
/// its macros.
fn skipped(why: &str) {
    let said = format!("SKIPPED: {why}\n");
    std::io::stderr().write_all(said.as_bytes()).unwrap();
}

fn both_sides_under(tool: &[&str], program: &Path, namespace: &str) {
    let namespace = format!("{namespace}-{}", std::process::id());
    let sides = ["serve", "ask"].map(|side| start_under(tool, program, &namespace, &[side, "0"]));
    all_passed_with(sides.into(), "passed\n");
}

fn alone_under(tool: &[&str], program: &Path, namespace: &str) {
    let namespace = format!("{namespace}-{}", std::process::id());
    passed_with(start_under(tool, program, &namespace, &[]), "passed\n");
}

#[test]
fn address_and_undefined_behaviour_sanitizers_find_nothing() {
    const SANITIZED: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let of_c = [&OF_C[..], &SANITIZED].concat();
    let of_classes = |standard| [&["c++", standard][..], &SANITIZED].concat();
    for file in ["everything.c", "lower.c"] {
        let name = format!("{file}-sanitized");
        both_sides_under(
            &[],
            &compiled(file, &name, &of_c),
            &format!("san-{}", &file[..5]),
        );
    }
    for file in [
        "alone.c",
        "completions.c",
        "lanes.c",
        "lower_bad_input.c",
        "mailboxes.c",
        "memory.c",
        "sharing.c",
    ] {
        let name = format!("{file}-sanitized");
        alone_under(
            &[],
            &compiled(file, &name, &of_c),
            &format!("san-{}", &file[..5]),
        );
    }
    let classes = compiled(
        "classes.cpp",
        "classes-sanitized",
        &of_classes("-std=c++17"),
    );
    both_sides_under(&[], &classes, "san-classes");
    for (file, standard) in [
        ("completions.cpp", "-std=c++20"),
        ("coroutines.cpp", "-std=c++20"),
        ("lanes.cpp", "-std=c++20"),
        ("lower_classes.cpp", "-std=c++17"),
    ] {
        let program = compiled(file, &format!("{file}-sanitized"), &of_classes(standard));
        alone_under(&[], &program, &format!("san-{}", &file[..5]));
    }
}

/// Races between threads of the programs: over what they share, and over handles that pass from one
/// to the other.
#[test]
fn the_thread_sanitizer_finds_nothing() {
    let probe = Path::new(env!("CARGO_TARGET_TMPDIR")).join("probe");
    std::fs::write(probe.with_extension("c"), "int main(void) { return 0; }\n").unwrap();
    let mut compiler = Command::new("cc");
    compiler
        .arg("-fsanitize=thread")
        .arg(probe.with_extension("c"));
    compiler.arg("-o").arg(&probe).stderr(Stdio::null());
    let is_there = compiler.status().is_ok_and(|status| status.success());
    let runs = || Command::new(&probe).stderr(Stdio::null()).status();
    if !is_there || !runs().is_ok_and(|status| status.success()) {
        skipped("no thread sanitizer: the C compiler has none that runs on this kernel");
        return;
    }
    let of_c = [&OF_C[..], &["-fsanitize=thread"]].concat();
    let excused = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/threads.supp");
    let excused = format!("TSAN_OPTIONS=suppressions={}", excused.display());
    let tool = ["env", &excused];
    for file in ["alone.c", "sharing.c"] {
        let program = compiled(file, &format!("{file}-threads"), &of_c);
        alone_under(&tool, &program, &format!("tsan-{}", &file[..5]));
    }
    let lower = compiled("lower.c", "lower-threads", &of_c);
    both_sides_under(&tool, &lower, "tsan-lower");
}

#[test]
fn valgrind_finds_nothing() {
    let valgrind = Command::new("valgrind")
        .arg("--version")
        .stdout(Stdio::null())
        .status();
    if !valgrind.is_ok_and(|status| status.success()) {
        skipped("no valgrind (apt-get install valgrind)");
        return;
    }
    let excused = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/valgrind.supp");
    let excused = format!("--suppressions={}", excused.display());
    let tool = [
        "valgrind",
        "--quiet",
        "--error-exitcode=9",
        "--fair-sched=try",
        &excused,
    ];
    for file in ["alone.c", "lanes.c", "mailboxes.c"] {
        let program = compiled(file, &format!("{file}-valgrind"), &OF_C);
        alone_under(&tool, &program, &format!("vg-{}", &file[..5]));
    }
    for file in ["lower.c", "everything.c"] {
        let program = compiled(file, &format!("{file}-valgrind"), &OF_C);
        both_sides_under(&tool, &program, &format!("vg-{}", &file[..5]));
    }
}
