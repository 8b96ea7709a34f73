//! A program that was compiled before still runs: what it depends on is listed in
//! `abi/listing.txt`, and programs of each version in `abi` are compiled with its header, linked
//! with a library that has nothing but its symbols, and run with the library of now.
//!
//! What is added is entered by `HAMLYN_WRITE_ABI=1 cargo test -p hamlyn-c --test compatibility`.
//! What is gone or different breaks programs: it is refused until the number in the soname is
//! raised, the major one of the version.

#[path = "support/listing.rs"]
mod listing;
mod support;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use listing::{Listing, breaks, declared, listed, read, text_of};
use support::{all_passed_with, start_with_libraries};

const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Versions with programs.
const BEFORE: [&str; 1] = ["0.2"];

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("compatibility");
    std::fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The folder of the library, installed as its users have it, once for all tests.
fn libraries() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let this = std::env::current_exe().unwrap();
        let archive = this.parent().unwrap().join("libhamlyn_c.a");
        let to = scratch("installed");
        let _ = std::fs::remove_dir_all(&to);
        let mut install = Command::new(here().join("packaging/install.sh"));
        run(install.arg(archive).args([VERSION, "/usr"]).arg(&to));
        to.join("usr/lib")
    })
}

fn soname() -> String {
    let major = VERSION.split('.').next().unwrap();
    format!("libhamlyn.so.{major}")
}

/// What the header and the library of now offer.
fn now() -> Listing {
    let mut list = Command::new("nm");
    list.args([
        "-D",
        "--defined-only",
        "--format=posix",
        "--with-symbol-versions",
    ]);
    let exported = run(list.arg(libraries().join(soname())));
    let versions: Vec<(&str, &str)> = exported
        .lines()
        .filter_map(|line| line.split(' ').next()?.split_once("@@"))
        .collect();
    let version_of = |name: &str| {
        let found = versions.iter().find(|(symbol, _)| *symbol == name);
        let (_, version) = found.unwrap_or_else(|| panic!("{name} is not exported"));
        (*version).to_owned()
    };
    listed(
        &here().join("include/hamlyn.h"),
        &scratch("numbers"),
        version_of,
    )
}

#[test]
#[cfg(target_pointer_width = "64")]
fn what_programs_depend_on_is_still_there() {
    let path = here().join("abi/listing.txt");
    let now = now();
    let text = text_of(&soname(), &now);
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    if !committed.is_empty() {
        let (soname_before, before) = read(&committed);
        let broken = breaks(&before, &now);
        assert!(
            broken.is_empty() || soname_before != soname(),
            "programs that were linked with {soname_before} before may fail now:\n{}\nKeep what there was and add beside it, or raise the major \
             version. Before the first release, `rm faces/c/abi/listing.txt` lets the listing begin anew.",
            broken.join("\n")
        );
    }
    if std::env::var_os("HAMLYN_WRITE_ABI").is_some() {
        std::fs::write(&path, &text).unwrap();
        return;
    }
    assert!(
        committed == text,
        "abi/listing.txt lacks what is new: HAMLYN_WRITE_ABI=1 cargo test -p hamlyn-c --test compatibility"
    );
}

/// A library with the symbols of a version, and nothing behind them: programs are linked with it as
/// they were then.
fn library_before(version: &str) -> PathBuf {
    let header = here().join(format!("abi/{version}/hamlyn.h"));
    let functions = declared(&std::fs::read_to_string(header).unwrap()).functions;
    assert!(functions.len() > 150);
    let folder = scratch(&format!("before-{version}"));
    std::fs::create_dir_all(&folder).unwrap();
    let mut source = String::new();
    let mut map = format!("HAMLYN_{version} {{ global:\n");
    for name in functions.keys() {
        writeln!(source, "int {name}(void) {{ return 16; }}").unwrap();
        writeln!(map, "{name};").unwrap();
    }
    map += "local: *; };\n";
    std::fs::write(folder.join("before.c"), source).unwrap();
    std::fs::write(folder.join("before.map"), map).unwrap();
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "before.c", "-o", "libhamlyn.so"]);
    compiler.args([
        "-Wl,--version-script=before.map",
        &format!("-Wl,-soname,{}", soname()),
    ]);
    run(compiler.current_dir(&folder));
    folder
}

#[test]
fn programs_of_earlier_versions_run() {
    for version in BEFORE {
        let folder = library_before(version);
        for name in ["everything", "lower"] {
            let sources = here().join("abi").join(version);
            let program = folder.join(name);
            let mut compiler = Command::new("cc");
            compiler.args(["-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-I"]);
            compiler
                .arg(&sources)
                .arg(sources.join(format!("{name}.c")));
            compiler.arg("-o").arg(&program).arg("-L").arg(&folder);
            run(compiler.args(["-lhamlyn", "-lpthread"]));
            for strategy in ["0", "1"] {
                let namespace = format!("before-{name}-{strategy}-{}", std::process::id());
                let sides = ["ask", "serve"].map(|side| {
                    start_with_libraries(libraries(), &program, &namespace, &[side, strategy])
                });
                all_passed_with(sides.into(), "passed\n");
            }
        }
    }
}

/// Each version has a folder of its programs, and each folder is of a version.
#[test]
fn every_version_is_tried() {
    let folders = std::fs::read_dir(here().join("abi")).unwrap();
    let mut found: Vec<String> = folders
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.path().is_dir())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    found.sort();
    assert_eq!(found, BEFORE);
}

/// A header that has one of each, and what a change of it does.
const SAMPLE: &str = "
#include <stdint.h>
#include <stddef.h>
/* Not { code; } */
#define SAMPLE_POLL 0
#ifdef __cplusplus
extern \"C\" {
#endif // __cplusplus
typedef enum { SAMPLE_OK = 0, SAMPLE_LOST = 8, } sample_status;
typedef struct sample_manager sample_manager;
typedef struct {
    uint32_t low;
    uint8_t bytes[12];
} sample_ticket;
typedef struct {
    size_t struct_bytes;
    const char *name;
} sample_options;
sample_status sample_open(const sample_options *options,
                          sample_manager **manager);
static inline int sample_is_ok(sample_status status) { if (status) { return 0; } return 1; }
#ifdef __cplusplus
}  // extern \"C\"
#endif
";

fn sample(name: &str, text: &str) -> Listing {
    let path = scratch(&format!("{name}.h"));
    std::fs::write(&path, text).unwrap();
    listed(&path, &scratch(name), |_| "V1".to_owned())
}

#[test]
#[cfg(target_pointer_width = "64")]
fn a_listing_tells_what_breaks_programs() {
    let before = sample("sample-before", SAMPLE);
    let text = text_of("libsample.so.0", &before);
    for line in [
        "libsample.so.0\n",
        "constant SAMPLE_LOST: 8\n",
        "constant SAMPLE_POLL: 0\n",
        "enum sample_status: 4 bytes\n",
        "field sample_ticket.bytes: at 4, 12 bytes\n",
        "function sample_open: V1, sample_status (const sample_options *, sample_manager **)\n",
        "handle sample_manager: opaque\n",
        "inline sample_is_ok: in the header\n",
        "struct sample_ticket: 16 bytes, at multiples of 4\n",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    assert_eq!(text.lines().count(), 14, "{text}");
    assert_eq!(read(&text), ("libsample.so.0".to_owned(), before.clone()));

    let after = |what: &str, with: &str| {
        let changed = SAMPLE.replace(what, with);
        assert_ne!(changed, SAMPLE);
        breaks(&before, &sample("sample-after", &changed))
    };
    let none: [&str; 0] = [];
    // What may be added, and a name that nobody depends on.
    assert_eq!(
        after("SAMPLE_LOST = 8,", "SAMPLE_LOST = 8, SAMPLE_CUT = 9,"),
        none
    );
    assert_eq!(after("*name;", "*name; uint64_t length_bytes;"), none);
    assert_eq!(
        after("sample_manager **manager", "sample_manager **opened"),
        none
    );
    assert_eq!(
        after(
            "static inline",
            "int sample_close(sample_manager *);\nstatic inline"
        ),
        none
    );
    // What breaks them.
    assert_eq!(
        after("LOST = 8", "LOST = 9"),
        ["constant SAMPLE_LOST was 8, is 9"]
    );
    assert_eq!(
        after("SAMPLE_POLL 0", "SAMPLE_POLL 1"),
        ["constant SAMPLE_POLL was 0, is 1"]
    );
    assert_eq!(
        after("const sample_options *options", "sample_options *options"),
        [
            "function sample_open was V1, sample_status (const sample_options *, sample_manager **), is V1, sample_status (sample_options *, sample_manager **)"
        ]
    );
    assert_eq!(
        after("sample_open(", "sample_open_as("),
        ["function sample_open is gone"]
    );
    assert_eq!(
        after("uint32_t low;", "uint32_t low; uint32_t high;"),
        [
            "field sample_ticket.bytes was at 4, 12 bytes, is at 8, 12 bytes",
            "struct sample_ticket was 16 bytes, at multiples of 4, is 20 bytes, at multiples of 4",
            "field sample_ticket.high is new in a structure that cannot grow",
        ]
    );
    assert_eq!(
        after("const char *name;", "uint64_t flags; const char *name;"),
        ["field sample_options.name was at 8, 8 bytes, is at 16, 8 bytes"]
    );
    assert_eq!(
        after("    const char *name;\n", ""),
        [
            "field sample_options.name is gone",
            "struct sample_options was 16 bytes, at multiples of 8, is 8 bytes, at multiples of 8",
        ]
    );
}
