//! A library as it is installed: for the faces whose programs are jobs, which include this file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::jobs::{answer, include, run_ok, source};

/// A library that is installed below a folder of the test.
pub(crate) struct Installed {
    /// Its name, without `lib`.
    library: &'static str,
    to: PathBuf,
}

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A file that cargo has built beside this test.
fn beside(file: &str) -> PathBuf {
    let this = std::env::current_exe().unwrap();
    this.parent().unwrap().join(file)
}

impl Installed {
    /// Installs it from the archive of its package, and looks for each header.
    pub(crate) fn new(library: &'static str) -> Self {
        let to = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("installed_{library}"));
        let _ = std::fs::remove_dir_all(&to);
        let mut install = Command::new(here().join("../c/packaging/install.sh"));
        install.env("LIBRARY", library).env("FACE", here());
        install.arg(beside(&format!("lib{library}_c.a")));
        let version = env!("CARGO_PKG_VERSION");
        run_ok(install.args([version, "/usr"]).arg(&to));
        for header in include().read_dir().unwrap() {
            let header = header.unwrap().file_name();
            assert!(to.join("usr/include").join(&header).exists(), "{header:?}");
        }
        let shared = to.join(format!("usr/lib/lib{library}.so"));
        let dynamic = run_ok(Command::new("readelf").arg("-d").arg(&shared));
        let dynamic = String::from_utf8_lossy(&dynamic.stdout).into_owned();
        let soname = format!("[lib{library}.so.0]");
        assert!(dynamic.contains(&soname), "{dynamic}");
        Self { library, to }
    }

    fn libraries(&self) -> PathBuf {
        self.to.join("usr/lib")
    }

    /// A program of the tests is linked as pkg-config says, with the shared library and with the
    /// archive, and runs.
    pub(crate) fn serves_by_pkg_config(&self, program: &str) {
        if answer("pkg-config", &["--version"]).is_none() {
            eprintln!("== no pkg-config: the installed library is not linked with");
            return;
        }
        let (library, libraries) = (self.library, self.libraries());
        for is_static in [false, true] {
            let mut words = Command::new("pkg-config");
            words.env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"));
            words.env("PKG_CONFIG_SYSROOT_DIR", &self.to);
            words.env("PKG_CONFIG_ALLOW_SYSTEM_CFLAGS", "1");
            words.env("PKG_CONFIG_ALLOW_SYSTEM_LIBS", "1");
            words.args(["--cflags", "--libs", library]);
            if is_static {
                words.arg("--static");
            }
            let words = run_ok(&mut words);
            let words = String::from_utf8_lossy(&words.stdout).into_owned();
            let made = self.to.join(if is_static { "static" } else { "shared" });
            let mut cc = Command::new("cc");
            cc.arg(source(program)).arg("-o").arg(&made);
            for word in words.split_whitespace() {
                match word.strip_prefix("-l") {
                    Some(name) if is_static && name == library => {
                        cc.arg(libraries.join(format!("lib{library}.a")))
                    }
                    _ => cc.arg(word),
                };
            }
            run_ok(&mut cc);
            let folder = if is_static {
                Path::new("/")
            } else {
                &libraries
            };
            run_ok(Command::new(&made).env("LD_LIBRARY_PATH", folder));
        }
    }

    /// The same as CMake finds it.
    pub(crate) fn serves_by_cmake(&self, program: &str) {
        if answer("cmake", &["--version"]).is_none() {
            eprintln!("== no cmake: the installed library is not found by it");
            return;
        }
        let library = self.library;
        let (project, build) = (self.to.join("project"), self.to.join("build"));
        std::fs::create_dir_all(&project).unwrap();
        let text = format!(
            "cmake_minimum_required(VERSION 3.13)\nproject(installed C)\n\
             find_package({library} 0.1 REQUIRED)\n\
             add_executable(by_shared \"{source}\")\ntarget_link_libraries(by_shared {library}::{library})\n\
             add_executable(by_static \"{source}\")\ntarget_link_libraries(by_static {library}::{library}_static)\n",
            source = source(program).display()
        );
        std::fs::write(project.join("CMakeLists.txt"), text).unwrap();
        let mut command = Command::new("cmake");
        command.arg("-S").arg(&project).arg("-B").arg(&build);
        let prefix = self.to.join("usr");
        run_ok(command.arg(format!("-DCMAKE_PREFIX_PATH={}", prefix.display())));
        run_ok(Command::new("cmake").arg("--build").arg(&build));
        for made in ["by_shared", "by_static"] {
            run_ok(&mut Command::new(build.join(made)));
        }
    }
}

/// The functions of a library that begin so.
pub(crate) fn exported(library: &str, prefix: &str) -> BTreeSet<String> {
    let library = beside(&format!("lib{library}_c.so"));
    let mut nm = Command::new("nm");
    let symbols = run_ok(nm.args(["-D", "--defined-only"]).arg(library));
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let words = symbols.split_whitespace();
    words
        .filter(|word| word.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}

/// The words of a header that begin so.
pub(crate) fn declared(header: &str, prefix: &str) -> BTreeSet<String> {
    let text = std::fs::read_to_string(include().join(header)).unwrap();
    let words = text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    words
        .filter(|word| word.starts_with(prefix))
        .map(str::to_owned)
        .collect()
}
