//! Programs in C, compiled with the header and linked with the library.

mod support;

use std::path::Path;

use support::{OF_C, all_passed_with, compiled, passed_with, start};

fn both_sides(program: &Path, namespace: &str, strategy: &str) {
    let namespace = format!("{namespace}-{}-{strategy}", std::process::id());
    let [serves, asks] = ["serve", "ask"].map(|side| {
        let strategy = Some(strategy).filter(|strategy| !strategy.is_empty());
        let arguments: Vec<&str> = [side].into_iter().chain(strategy).collect();
        start(program, &namespace, &arguments)
    });
    all_passed_with(vec![asks, serves], "passed\n");
}

#[test]
fn every_protocol_works_between_two_programs_with_every_strategy() {
    let program = compiled("everything.c", "everything", &OF_C);
    for strategy in ["0", "1", "2", "3"] {
        both_sides(&program, "c", strategy);
    }
}

#[test]
fn the_lower_layer_works_between_two_programs_with_every_strategy() {
    let program = compiled("lower.c", "lower", &OF_C);
    for strategy in ["0", "1", "2", "3"] {
        both_sides(&program, "c-lower", strategy);
    }
}

#[test]
fn lanes_work_between_two_programs_with_every_strategy() {
    let program = compiled("lanes.c", "lanes-of-two", &OF_C);
    for strategy in ["0", "1", "2", "3"] {
        both_sides(&program, "c-lanes", strategy);
    }
}

#[test]
fn a_long_record_arrives_though_its_sender_only_receives() {
    let program = compiled("long_records.c", "long-records", &OF_C);
    both_sides(&program, "long-records", "");
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
fn classes_of_the_lower_layer_work() {
    for standard in ["c++17", "c++20"] {
        let program = compiled(
            "lower_classes.cpp",
            &format!("lower-{standard}"),
            &["c++", &format!("-std={standard}")],
        );
        let standard = standard.replace("++", "pp");
        let namespace = format!("lower-{standard}-{}", std::process::id());
        passed_with(start(&program, &namespace, &[]), "passed\n");
    }
}

#[test]
fn classes_of_completion_queues_and_lanes_work() {
    for name in ["completions", "lanes"] {
        for standard in ["c++17", "c++20"] {
            let program = compiled(
                &format!("{name}.cpp"),
                &format!("{name}-{standard}"),
                &["c++", &format!("-std={standard}")],
            );
            let standard = standard.replace("++", "pp");
            let namespace = format!("{name}-{standard}-{}", std::process::id());
            passed_with(start(&program, &namespace, &[]), "passed\n");
        }
    }
}

#[test]
fn tasks_wait_on_an_event_loop() {
    let program = compiled("coroutines.cpp", "coroutines", &["c++", "-std=c++20"]);
    let namespace = format!("c-coroutines-{}", std::process::id());
    passed_with(start(&program, &namespace, &[]), "passed\n");
}

#[test]
fn bad_input_gets_an_error_that_says_what_to_do() {
    for file in [
        "bad_input.c",
        "lower_bad_input.c",
        "negative_wait.c",
        "alone.c",
        "completions.c",
        "lanes.c",
        "mailboxes.c",
        "memory.c",
        "overflow.c",
    ] {
        let name = file.trim_end_matches(".c");
        let program = compiled(file, name, &OF_C);
        let namespace = format!("c-{name}-{}", std::process::id());
        passed_with(start(&program, &namespace, &[]), "passed\n");
    }
}

/// One that waits in a call of the lower layer keeps nobody from a shared manager.
#[test]
fn threads_wait_in_the_lower_layer_side_by_side() {
    let program = compiled("sharing.c", "sharing", &OF_C);
    for strategy in ["0", "1", "2", "3"] {
        let namespace = format!("c-sharing-{}-{strategy}", std::process::id());
        passed_with(start(&program, &namespace, &[strategy]), "passed\n");
    }
}

/// The functions of the header.
fn functions() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/hamlyn.h")).unwrap();
    let declared = header
        .lines()
        .filter_map(|line| line.strip_prefix("hamlyn_status "));
    let names: Vec<String> = declared
        .filter_map(|rest| rest.split('(').next().map(str::to_owned))
        .collect();
    assert!(names.len() > 150);
    names
}

/// C++ has the whole interface.
#[test]
fn classes_call_every_function() {
    let classes = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/hamlyn");
    let mut headers = String::new();
    for header in std::fs::read_dir(classes).unwrap() {
        headers += &std::fs::read_to_string(header.unwrap().path()).unwrap();
    }
    let is_word = |byte: u8| byte == b'_' || byte.is_ascii_alphanumeric();
    let is_called = |name: &str| {
        let mut places = headers.match_indices(name).map(|(at, _)| at + name.len());
        places.any(|end| !headers.as_bytes().get(end).copied().is_some_and(is_word))
    };
    // A manager is opened with options.
    let missing: Vec<String> = functions()
        .into_iter()
        .filter(|name| name != "hamlyn_open" && !is_called(name))
        .collect();
    assert!(missing.is_empty(), "no class calls {missing:?}");
}

/// A function that no program calls is one that nobody has tried.
#[test]
fn programs_call_every_function() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut programs = String::new();
    for program in std::fs::read_dir(root.join("tests/programs")).unwrap() {
        let path = program.unwrap().path();
        if path.is_file() {
            programs += &std::fs::read_to_string(path).unwrap();
        }
    }
    // Those of `lower_bad_input.c` that close handles are named by what they close.
    let is_called = |name: &String| {
        let closed = name.strip_prefix("hamlyn_close_").unwrap_or("nothing");
        programs.contains(&format!("{name}(")) || programs.contains(&format!("CLOSE({closed})"))
    };
    let missing: Vec<String> = functions()
        .into_iter()
        .filter(|name| !is_called(name))
        .collect();
    assert!(missing.is_empty(), "no program calls {missing:?}");
}
