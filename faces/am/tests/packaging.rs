//! The library as it is installed: found by pkg-config, shared and as an archive.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use support::{answer, run_ok, source};

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_installed_library_serves_programs() {
    let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("installed_am");
    let _ = std::fs::remove_dir_all(&to);
    let this = std::env::current_exe().unwrap();
    let archive = this.parent().unwrap().join("libhamlyn_am_c.a");
    let mut install = Command::new(here().join("../c/packaging/install.sh"));
    install.env("LIBRARY", "hamlyn_am").env("FACE", here());
    run_ok(install.arg(archive).args([VERSION, "/usr"]).arg(&to));
    let libraries = to.join("usr/lib");
    for header in [
        "am.h",
        "am_spmd.h",
        "am1996.h",
        "hamlyn_am.h",
        "hamlyn_am_forms.h",
    ] {
        assert!(to.join("usr/include").join(header).exists(), "{header}");
    }
    let shared = libraries.join("libhamlyn_am.so");
    let dynamic = run_ok(Command::new("readelf").arg("-d").arg(&shared));
    let dynamic = String::from_utf8_lossy(&dynamic.stdout).into_owned();
    assert!(dynamic.contains("[libhamlyn_am.so.0]"), "{dynamic}");
    if answer("pkg-config", &["--version"]).is_none() {
        eprintln!("== no pkg-config: the installed library is not linked with");
        return;
    }
    for is_static in [false, true] {
        let mut words = Command::new("pkg-config");
        words.env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"));
        words.env("PKG_CONFIG_SYSROOT_DIR", &to);
        words.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
        words.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
        words.args(["--cflags", "--libs", "hamlyn_am"]);
        if is_static {
            words.arg("--static");
        }
        let words = run_ok(&mut words);
        let words = String::from_utf8_lossy(&words.stdout).into_owned();
        let program = to.join(if is_static { "static" } else { "shared" });
        let mut cc = Command::new("cc");
        cc.arg(source("old.c")).arg("-o").arg(&program);
        for word in words.split_whitespace() {
            match word {
                "-lhamlyn_am" if is_static => cc.arg(libraries.join("libhamlyn_am.a")),
                word => cc.arg(word),
            };
        }
        run_ok(&mut cc);
        let mut run = Command::new(&program);
        run.env(
            "LD_LIBRARY_PATH",
            if is_static {
                Path::new("/")
            } else {
                &libraries
            },
        );
        run_ok(&mut run);
    }
}

/// The header declares each function of the library, and the library has each that it declares.
#[test]
fn header_and_library_have_the_same_functions() {
    let names = |text: &str, begins: fn(char) -> bool| {
        let mut names: Vec<String> = text
            .split(begins)
            .filter(|word| word.starts_with("hamlyn_am_") && !word.ends_with("_t"))
            .map(str::to_owned)
            .collect();
        names.sort();
        names.dedup();
        names
    };
    let header = std::fs::read_to_string(here().join("include/hamlyn_am.h")).unwrap();
    let structs = [
        "bundle",
        "endpoint",
        "name",
        "returned",
        "statistics",
        "forms",
    ];
    let declared = names(&header, |letter| {
        !(letter.is_ascii_alphanumeric() || letter == '_')
    });
    let is_function = |name: &String| {
        let rest = name.trim_start_matches("hamlyn_am_");
        !structs.contains(&rest)
    };
    let declared: Vec<String> = declared.into_iter().filter(is_function).collect();
    let this = std::env::current_exe().unwrap();
    let library = this.parent().unwrap().join("libhamlyn_am_c.so");
    let symbols = run_ok(
        Command::new("nm")
            .args(["-D", "--defined-only"])
            .arg(library),
    );
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let exported = names(&symbols, char::is_whitespace);
    assert!(declared.len() > 60, "{declared:?}");
    assert_eq!(declared, exported);
}
