//! Installs and builds the peers. A failure is reported, and the rest goes on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::catalogue::{Build, Library, Places};
use crate::interruption;
use crate::record::Circumstances;

/// How programs in C are compiled.
const OF_C: [&str; 5] = ["-std=gnu11", "-O3", "-march=native", "-Wall", "-Wextra"];

/// Prepares those of the libraries that are chosen, and notes of each its version, or why it is
/// left out.
pub(crate) fn all(
    libraries: &[Library],
    only: &[String],
    places: &Places,
    install: bool,
    circumstances: &mut Circumstances,
) -> Result<()> {
    for library in chosen(libraries, only)? {
        interruption::check()?;
        eprintln!("== {}", library.name);
        let name = library.name.to_owned();
        match prepare(&library, places, install) {
            Ok(version) => drop(circumstances.versions.insert(name, version)),
            Err(error) => {
                let reason = format!("{error:#}");
                eprintln!("{name} is left out: {reason}");
                circumstances.unavailable.insert(name, reason);
            }
        }
    }
    Ok(())
}

/// Says what it needs, installs what is lacking, and builds. The version on success.
fn prepare(library: &Library, places: &Places, install: bool) -> Result<String> {
    std::fs::create_dir_all(places.built()).context("a directory for programs")?;
    if install {
        run(Command::new(places.compare.join("install"))
            .arg(library.name)
            .arg(places.built()))
        .context("it could not be installed")?;
    }
    match library.build {
        Build::C {
            compiler,
            source,
            program,
            libraries,
        } => {
            run(Command::new(compiler)
                .args(OF_C)
                .arg("-o")
                .arg(places.built().join(program))
                .arg(c_source(source, places))
                .args(libraries))
            .context("it does not compile")?;
        }
        Build::Cargo { packages } => {
            run(cargo()
                .args(["build", "--release", "--quiet"])
                .args(packages.iter().flat_map(|package| ["--package", package]))
                .arg("--manifest-path")
                .arg(places.compare.join("Cargo.toml")))
            .context("it does not build")?;
        }
        Build::Face {
            package,
            source,
            headers,
            libraries,
        } => face(package, source, headers, libraries, places).context("it does not build")?,
        Build::Gasnet { conduit } => gasnet(conduit, places).context("it does not build")?,
        Build::Java { directory } => java(&places.compare.join("peers").join(directory), places)
            .context("it does not build")?,
        Build::Nothing => {}
    }
    version(library, places)
}

/// A library of the product, and a program in C with it.
fn face(
    package: &str,
    source: &str,
    headers: &str,
    libraries: &[&str],
    places: &Places,
) -> Result<()> {
    let product = places.compare.join("../..");
    let target = product.join("target");
    run(cargo()
        .args(["build", "--release", "--quiet", "--locked", "--package"])
        .arg(package)
        .arg("--manifest-path")
        .arg(product.join("Cargo.toml"))
        .arg("--target-dir")
        .arg(&target))?;
    let library = target.join("release").canonicalize()?;
    run(Command::new("cc")
        .args(OF_C)
        .arg("-I")
        .arg(product.join(headers))
        .arg("-o")
        .arg(places.built().join(source))
        .arg(c_source(source, places))
        .arg("-L")
        .arg(&library)
        .args(libraries)
        .arg(joined("-Wl,-rpath,", &library)))
}

/// A program with GASNet-EX, which needs a later C library than this system may have: it is linked
/// with that, and started by its loader.
fn gasnet(conduit: &str, places: &Places) -> Result<()> {
    let tree = places.later_debian();
    let library = tree.join("usr/lib/x86_64-linux-gnu");
    let headers = tree.join("usr/include/x86_64-linux-gnu");
    let loader = tree.join("usr/lib64/ld-linux-x86-64.so.2");
    // Its conduit over UDP is in C++.
    let libraries: &[&str] = match conduit {
        "udp" => &["-lamudp", "-l:libstdc++.so.6"],
        _ => &[],
    };
    run(Command::new("cc")
        .arg(joined("--sysroot=", &tree))
        .args(OF_C)
        .args(["-D_GNU_SOURCE=1", "-DGASNET_SEQ", "-isystem"])
        .arg(&headers)
        .arg("-isystem")
        .arg(headers.join(format!("{conduit}-conduit")))
        .arg("-o")
        .arg(places.built().join(format!("gasnet_{conduit}")))
        .arg(c_source("gasnet", places))
        .arg("-L")
        .arg(&library)
        .arg(format!("-lgasnet-{conduit}-seq"))
        .args(libraries)
        .arg("-lm")
        .arg(joined("-Wl,--dynamic-linker=", &loader))
        .arg(joined("-Wl,-rpath,", &library)))
}

fn c_source(name: &str, places: &Places) -> PathBuf {
    let directory = places.compare.join("peers").join(name);
    directory.join(format!("{name}.c"))
}

fn joined(option: &str, path: &Path) -> OsString {
    let mut word = OsString::from(option);
    word.push(path);
    word
}

fn cargo() -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    Command::new(cargo)
}

/// Fetches what the `pom.xml` names, and compiles the one class.
fn java(directory: &Path, places: &Places) -> Result<()> {
    let classes = places.built().join("aeron");
    std::fs::create_dir_all(&classes)?;
    let pom = directory.join("pom.xml");
    let wanted = std::fs::read_to_string(&pom)?;
    let fetched = classes.join("fetched.xml");
    // What was fetched for the same file is there.
    if std::fs::read_to_string(&fetched).ok().as_ref() != Some(&wanted) {
        let mut output = OsString::from("-DoutputDirectory=");
        output.push(&classes);
        run(Command::new("mvn")
            .args(["--quiet", "--batch-mode", "--file"])
            .arg(&pom)
            .arg("dependency:copy-dependencies")
            .arg(output))?;
        std::fs::write(&fetched, &wanted)?;
    }
    run(Command::new("javac")
        .args(["-Xlint:all,-options", "-cp"])
        .arg(classes.join("*"))
        .arg("-d")
        .arg(&classes)
        .arg(directory.join("Peer.java")))
}

/// Runs a command that says on standard error what it does, and nothing when it succeeds.
fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .with_context(|| format!("{name} cannot be run"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        let text = if errors.trim().is_empty() {
            String::from_utf8_lossy(&output.stdout)
        } else {
            errors
        };
        let line = text
            .lines()
            .find(|line| line.contains("rror"))
            .or_else(|| text.lines().last())
            .unwrap_or("it said nothing");
        bail!("{name}: {}", line.trim());
    }
    eprint!("{errors}");
    Ok(())
}

fn version(library: &Library, places: &Places) -> Result<String> {
    let (first, rest) = library
        .version
        .split_first()
        .context("no way to tell the version")?;
    let output = Command::new(first)
        .args(rest)
        .current_dir(&places.compare)
        .env("COMPARE_BUILT", places.built())
        .output()
        .with_context(|| format!("{first} cannot be run"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    // A package of Cargo is named by a URL that ends in its version.
    let version = text.trim().rsplit(['#', '@']).next().unwrap_or_default();
    if !output.status.success() || version.is_empty() {
        bail!("{} does not tell its version", library.name);
    }
    Ok(version.to_owned())
}

/// Those of the libraries that were asked for; without a list, all. The machine and ours are always
/// there.
fn chosen(libraries: &[Library], only: &[String]) -> Result<Vec<Library>> {
    for name in only {
        if !libraries.iter().any(|library| library.name == name) {
            let known: Vec<_> = libraries.iter().map(|library| library.name).collect();
            bail!(
                "--only: there is no {name:?}; there are {}",
                known.join(", ")
            );
        }
    }
    Ok(libraries
        .iter()
        .filter(|library| {
            only.is_empty()
                || only.iter().any(|name| name == library.name)
                || [crate::catalogue::HAMLYN, crate::catalogue::MACHINE].contains(&library.name)
        })
        .copied()
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::LIBRARIES;

    #[test]
    fn ours_are_always_chosen() {
        let names = |only: &[&str]| -> Vec<&str> {
            let only: Vec<String> = only.iter().map(|&name| name.to_owned()).collect();
            chosen(LIBRARIES, &only)
                .unwrap()
                .iter()
                .map(|library| library.name)
                .collect()
        };
        assert_eq!(names(&["ucx"]), ["machine", "hamlyn", "ucx"]);
        assert_eq!(names(&[]).len(), LIBRARIES.len());
        assert!(chosen(LIBRARIES, &["nobody".to_owned()]).is_err());
    }

    #[test]
    fn failures_say_why() {
        let error = run(Command::new("sh").args(["-c", "echo an error >&2; exit 1"])).unwrap_err();
        assert!(error.to_string().contains("an error"), "{error}");
        assert!(run(&mut Command::new("/nonexistent/program")).is_err());
        assert!(run(Command::new("sh").args(["-c", "exit 0"])).is_ok());
    }
}
