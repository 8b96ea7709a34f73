//! What `packaging/install.sh` installs: names and versions of the shared library, and programs
//! that find it by pkg-config and by CMake, or take the archive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

const PREFIX: &str = "/usr";
const VERSION: &str = env!("CARGO_PKG_VERSION");

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn install(archive: &Path, prefix: &str, to: &Path) -> Output {
    let script = here().join("packaging/install.sh");
    let mut command = Command::new(script);
    command.arg(archive).args([VERSION, prefix]).arg(to);
    command.output().unwrap()
}

/// The archive that was built for this test.
fn archive() -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().join("libhamlyn_c.a")
}

/// Where the library is installed, once for all tests.
fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed");
        let _ = std::fs::remove_dir_all(&to);
        let output = install(&archive(), PREFIX, &to);
        assert!(output.status.success(), "{}", text(&output.stderr));
        to
    })
}

fn library_folder() -> PathBuf {
    installed().join("usr/lib")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let errors = text(&output.stderr);
    assert!(output.status.success(), "{command:?}: {errors}");
    text(&output.stdout)
}

/// Whether a tool is there; else says that something is skipped.
fn have(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").output().is_ok();
    if !found {
        use std::io::Write;
        let said = format!("SKIPPED: no {tool}, so nothing is found by it\n");
        std::io::stderr().write_all(said.as_bytes()).unwrap();
    }
    found
}

/// The program is well, run beside nothing that has its name.
fn works(program: &Path) {
    let mut command = Command::new(program);
    let name = program.file_name().unwrap().to_string_lossy();
    command.env("LD_LIBRARY_PATH", library_folder());
    command.env("HAMLYN_NAMESPACE", format!("{name}-{}", std::process::id()));
    assert_eq!(run(&mut command), "it works\n", "{}", program.display());
}

/// What pkg-config says that a program needs, with the installed tree in place of a system's.
fn pkg_config(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new("pkg-config");
    command.env("PKG_CONFIG_LIBDIR", library_folder().join("pkgconfig"));
    command.env("PKG_CONFIG_SYSROOT_DIR", installed());
    // The folders of a system are named too, since these are in a sysroot.
    command.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
    command.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
    let words = run(command.args(arguments).arg("hamlyn"));
    words.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_shared_library_has_names_and_versions() {
    let library = library_folder().join("libhamlyn.so");
    let target = std::fs::canonicalize(&library).unwrap();
    assert!(
        target.ends_with(format!("libhamlyn.so.{VERSION}")),
        "{}",
        target.display()
    );
    let dynamic = run(Command::new("readelf").arg("-d").arg(&library));
    let major = VERSION.split('.').next().unwrap();
    assert!(
        dynamic.contains(&format!("[libhamlyn.so.{major}]")),
        "{dynamic}"
    );
    assert!(
        library_folder()
            .join(format!("libhamlyn.so.{major}"))
            .exists()
    );

    // What cargo's library exports, which `abi.rs` compares with the header.
    let all = exported(&archive().with_extension("so"), &[]);
    assert!(all.len() > 50);
    let versioned: BTreeSet<String> = all
        .iter()
        .map(|name| format!("{name}@@HAMLYN_0.2"))
        .collect();
    let mut found = exported(&library, &["--with-symbol-versions"]);
    // The version itself is one, too.
    found.retain(|name| !name.starts_with("HAMLYN_"));
    assert_eq!(found, versioned);
}

fn exported(library: &Path, options: &[&str]) -> BTreeSet<String> {
    let mut list = Command::new("nm");
    list.args(["-D", "--defined-only", "--format=posix"]);
    let names = run(list.args(options).arg(library));
    let first = |line: &str| line.split(' ').next().map(str::to_owned);
    names.lines().filter_map(first).collect()
}

#[test]
fn nothing_else_of_the_archive_is_global() {
    let mut list = Command::new("nm");
    list.args(["-g", "--defined-only", "--format=posix"]);
    let global = run(list.arg(library_folder().join("libhamlyn.a")));
    let names: Vec<&str> = global
        .lines()
        .filter(|line| line.contains(' '))
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert!(names.len() > 50);
    let foreign: Vec<&&str> = names
        .iter()
        .filter(|name| !name.starts_with("hamlyn_"))
        .collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}

#[test]
fn programs_find_the_library_by_pkg_config() {
    if !have("pkg-config") {
        return;
    }
    assert_eq!(pkg_config(&["--modversion"]), [VERSION]);
    let to = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let programs = [
        ("shared-c", "cc", "installed.c", &[][..]),
        ("shared-cpp", "c++", "installed.cpp", &["-std=c++17"][..]),
        ("static-c", "cc", "installed.c", &["-static-libgcc"][..]),
    ];
    for (name, compiler, source, options) in programs {
        let program = to.join(format!("by-{name}"));
        let mut command = Command::new(compiler);
        command.args(options).arg("-o").arg(&program);
        command.arg(here().join("tests/programs").join(source));
        if name.starts_with("static") {
            // A linker takes the archive if it is told so, or if there is no shared library.
            command.args(pkg_config(&["--cflags"])).arg("-Wl,-Bstatic");
            command
                .args(pkg_config(&["--libs-only-L", "--libs-only-l"]))
                .arg("-Wl,-Bdynamic");
            command.args(
                pkg_config(&["--static", "--libs"])
                    .iter()
                    .filter(|it| *it != "-lhamlyn"),
            );
        } else {
            command.args(pkg_config(&["--cflags", "--libs"]));
        }
        run(&mut command);
        let needed = run(Command::new("readelf").arg("-d").arg(&program));
        assert_eq!(
            needed.contains("libhamlyn.so"),
            !name.starts_with("static"),
            "{name}: {needed}"
        );
        works(&program);
    }
}

#[test]
fn programs_find_the_library_by_cmake_wherever_it_was_moved() {
    if !have("cmake") {
        return;
    }
    let work = Path::new(env!("CARGO_TARGET_TMPDIR")).join("by-cmake");
    let _ = std::fs::remove_dir_all(&work);
    std::fs::create_dir_all(&work).unwrap();
    let moved = work.join("moved");
    run(Command::new("cp")
        .arg("-a")
        .arg(installed().join("usr"))
        .arg(&moved));
    let build = work.join("build");
    let programs = here().join("tests/programs");
    let configure = |version: &str| {
        let mut command = Command::new("cmake");
        command
            .arg("-S")
            .arg(programs.join("cmake"))
            .arg("-B")
            .arg(&build);
        command.arg(format!("-DCMAKE_PREFIX_PATH={}", moved.display()));
        command.arg(format!("-DSOURCES={}", programs.display()));
        command.arg(format!("-DWANTED={version}"));
        command.output().unwrap()
    };
    let refused = configure("0.2");
    assert!(!refused.status.success());
    assert!(
        text(&refused.stderr).contains("0.2"),
        "{}",
        text(&refused.stderr)
    );
    let output = configure("0.1");
    assert!(output.status.success(), "{}", text(&output.stderr));
    run(Command::new("cmake").arg("--build").arg(&build));
    for name in ["shared_c", "shared_cpp", "static_c"] {
        works(&build.join(name));
    }

    std::fs::remove_file(moved.join(format!("lib/libhamlyn.so.{VERSION}"))).unwrap();
    let broken = configure("0.1");
    assert!(!broken.status.success());
    let said = text(&broken.stderr);
    assert!(said.contains("install hamlyn again"), "{said}");
}

#[test]
fn what_cannot_be_installed_is_said() {
    let to = Path::new(env!("CARGO_TARGET_TMPDIR")).join("not-installed");
    let output = install(&archive(), "usr", &to);
    assert!(text(&output.stderr).contains("PREFIX must begin with /"));
    assert!(!output.status.success());
    let output = install(Path::new("/nowhere/libhamlyn_c.a"), PREFIX, &to);
    assert!(text(&output.stderr).contains("build it first"));
    assert!(!output.status.success());
    assert!(!to.exists());
}
