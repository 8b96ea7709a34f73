//! The header is what the source says, and is C and C++ of every standard.

use std::path::Path;

fn generated() -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let bindings = cbindgen::Builder::new()
        .with_crate(root)
        .with_config(config)
        .generate()
        .unwrap();
    let mut text = Vec::new();
    bindings.write(&mut text);
    let text = String::from_utf8(text).unwrap();
    let lines = text.lines().map(|line| match line.strip_prefix("    ") {
        // A value of an enumeration; the generator has no prefix for those.
        Some(value)
            if value.starts_with(|c: char| c.is_ascii_uppercase()) && value.contains(" = ") =>
        {
            format!("    HAMLYN_{value}\n")
        }
        _ => format!("{line}\n"),
    });
    lines.collect()
}

/// `HAMLYN_WRITE_HEADER=1 cargo test -p hamlyn-c --test header` writes it anew.
#[test]
fn the_header_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("include/hamlyn.h");
    let generated = generated();
    if std::env::var_os("HAMLYN_WRITE_HEADER").is_some() {
        std::fs::write(&path, &generated).unwrap();
    }
    let committed = std::fs::read_to_string(&path).unwrap();
    assert!(
        committed == generated,
        "include/hamlyn.h is not what the source says: HAMLYN_WRITE_HEADER=1 cargo test -p hamlyn-c --test header"
    );
}

fn syntax_of(standard: &str, language: &str, program: &str) {
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let compiler = if language == "c" { "cc" } else { "c++" };
    let mut command = std::process::Command::new(compiler);
    command.args([
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wconversion",
        "-Wshadow",
        "-Wstrict-aliasing",
        "-Werror",
        "-fsyntax-only",
    ]);
    command
        .arg(format!("-std={standard}"))
        .args(["-x", language]);
    command.arg("-I").arg(include).arg(program);
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{standard}: {errors}");
}

#[test]
fn the_header_alone_is_c_and_c_plus_plus_of_every_standard() {
    let program = std::env::temp_dir().join(format!("hamlyn-header-{}.c", std::process::id()));
    std::fs::write(
        &program,
        "#include <hamlyn.h>\n#include <hamlyn.h>\nint main(void) { return HAMLYN_OK; }\n",
    )
    .unwrap();
    let name = program.to_str().unwrap();
    for standard in ["c99", "c11", "c17"] {
        syntax_of(standard, "c", name);
    }
    for standard in ["c++11", "c++17", "c++20"] {
        syntax_of(standard, "c++", name);
    }
    std::fs::remove_file(&program).unwrap();
}
