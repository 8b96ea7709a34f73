//! Every function of the header that takes a handle is refused in a forked child. The calls are
//! written from the header, so that none is forgotten.

mod support;

use std::path::Path;

use support::{OF_C, compile, passed_with, start};

/// The declarations of the header, each in one line.
fn declarations(header: &str) -> Vec<String> {
    let begun = header.match_indices("\nhamlyn_status hamlyn_");
    let whole = begun.map(|(at, _)| {
        let rest = &header[at..];
        let end = rest.find(';').expect("a declaration ends");
        rest[..end].split_whitespace().collect::<Vec<_>>().join(" ")
    });
    whole.collect()
}

/// The types that are handles: those of which C sees no field.
fn kinds(header: &str) -> Vec<&str> {
    let opaque = header.lines().filter_map(|line| {
        let rest = line.strip_prefix("typedef struct ")?.strip_suffix(';')?;
        let (named, again) = rest.split_once(' ')?;
        (named == again).then_some(named)
    });
    opaque.collect()
}

/// A call with inherited handles, and something for all else. Nothing if it takes no handle.
fn call(declaration: &str, kinds: &[&str]) -> Option<String> {
    let (function, rest) = declaration
        .strip_prefix("hamlyn_status ")?
        .split_once('(')?;
    let mut takes_handle = false;
    let argument = |parameter: &str| {
        let (kind, name) = parameter.rsplit_once([' ', '*']).unwrap();
        let kind = match parameter.contains('*') {
            true => &parameter[..=parameter.rfind('*').unwrap()],
            false => kind,
        };
        let handle = kind.strip_suffix(" *").filter(|kind| kinds.contains(kind));
        if let Some(handle) = handle {
            takes_handle = true;
            return format!("of->{}", handle.trim_start_matches("hamlyn_"));
        }
        match (name, kind) {
            ("error", _) => "&error".to_owned(),
            ("wait_ns", _) => "wait_ns".to_owned(),
            ("room_bytes" | "text_bytes", _) => "sizeof some".to_owned(),
            (_, "const char *") => "\"forked/inbox\"".to_owned(),
            // The library checks these before the handle.
            (_, "const hamlyn_ticket *") => "&a_ticket".to_owned(),
            (_, "const hamlyn_region_ticket *") => "&a_region".to_owned(),
            (_, "const hamlyn_piece *") => "&a_piece".to_owned(),
            (_, "const hamlyn_member *") => "&a_member".to_owned(),
            (_, "const hamlyn_seed *") => "&a_seed".to_owned(),
            (_, "const hamlyn_lane_seed *") => "&a_lane_seed".to_owned(),
            (_, "const hamlyn_atomic_change *") => "&a_change".to_owned(),
            (_, kind) if kind.ends_with("_options *") => "NULL".to_owned(),
            (_, kind) if kind.contains('*') => format!("({kind})some.handles"),
            (_, kind) => format!("({kind})1"),
        }
    };
    let arguments: Vec<String> = rest
        .trim_end_matches(')')
        .split(", ")
        .map(argument)
        .collect();
    let arguments = arguments.join(", ");
    let call = format!("    refused(\"{function}\", {function}({arguments}));\n");
    takes_handle.then_some(call)
}

#[test]
fn every_call_with_an_inherited_handle_is_refused() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let header = std::fs::read_to_string(root.join("include/hamlyn.h")).unwrap();
    let kinds = kinds(&header);
    assert!(kinds.len() > 30, "{kinds:?}");
    let declarations = declarations(&header);
    let calls: Vec<String> = declarations
        .iter()
        .filter_map(|declaration| call(declaration, &kinds))
        .collect();
    assert!(calls.len() > 180, "{} calls", calls.len());
    let program = root.join("tests/programs/forked.c");
    let source = format!(
        "#include \"{}\"\n\nstatic void every_call(const struct handles *of, int64_t wait_ns) {{\n    (void)wait_ns;\n{}}}\n",
        program.display(),
        calls.concat()
    );
    let written = Path::new(env!("CARGO_TARGET_TMPDIR")).join("every_forked_call.c");
    std::fs::write(&written, source).unwrap();
    let program = compile(&written, "every-forked-call", &OF_C);
    let namespace = format!("c-forked-{}", std::process::id());
    passed_with(start(&program, &namespace, &[]), "passed\n");
}
