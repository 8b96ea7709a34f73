//! Rust, C and Python beside each other: records to and fro between two processes, in programs that
//! do the same (`faces/c/measure/echo.c`, `lab/counted/src/echo.rs`, `faces/python/measure/echo.py`).
//!
//! The languages take turns, and the median of all their batches is reported. Needs a checkout; the
//! library is built as it is shipped. Python is left out aloud where its package is not installed:
//! `HAMLYN_PYTHON` names the interpreter that has it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::json;

use super::comparison::in_checkout;
use super::{Effort, median};
use hamlyn_counted::c_face;

/// Bytes of the records.
const LENGTHS: [usize; 5] = [8, 64, 1_024, 16_384, 262_144];
/// Each language has so many turns at each length.
const TURNS: usize = 3;

/// A language, and how its program is started.
struct Face {
    name: &'static str,
    command: Vec<OsString>,
}

/// Nanoseconds one way, by language.
struct Row {
    length_bytes: usize,
    one_way_ns: Vec<f64>,
}

/// Measures them, and prints what was found.
///
/// # Errors
///
/// There is no checkout, no cargo or no C compiler, or a program fails.
pub(super) fn run(effort: Effort, as_json: bool) -> Result<()> {
    let source = in_checkout("faces/c/measure/echo.c").context(
        "the languages are set beside each other in a checkout of Hamlyn only: run this in one",
    )?;
    let face = source.parent().and_then(Path::parent);
    let face = face.context("the program lies in the folder of the C face")?;
    let directory = std::env::temp_dir().join(format!("hamlyn-faces-{}", std::process::id()));
    std::fs::create_dir(&directory).with_context(|| format!("making {}", directory.display()))?;
    let measured = faces(face, &source, &directory)
        .and_then(|faces| measure(&faces, effort, as_json).map(|rows| (faces, rows)));
    // What is left behind is told of by the next run.
    let _ = std::fs::remove_dir_all(&directory);
    let (faces, rows) = measured?;
    print(&faces, &rows, as_json)
}

fn faces(face: &Path, source: &Path, directory: &Path) -> Result<Vec<Face>> {
    let built = c_face::build(face)?;
    let compiled = directory.join("echo");
    c_face::compile(face, source, &compiled, &built)?;
    let mut faces = vec![
        Face {
            name: "Rust",
            command: vec![built.join(c_face::RUST_PROGRAM).into(), "echo".into()],
        },
        Face {
            name: "C",
            command: vec![compiled.into()],
        },
    ];
    let python = std::env::var_os("HAMLYN_PYTHON").unwrap_or_else(|| "python3".into());
    let program: PathBuf = face.join("../python/measure/echo.py");
    let has_it = Command::new(&python)
        // Without the folder in which this runs.
        .args([
            "-I",
            "-c",
            "import hamlyn; print(hamlyn.__version__, end='')",
        ])
        .stderr(Stdio::null())
        .output();
    let version = has_it.map(|output| output.stdout).unwrap_or_default();
    if version == env!("CARGO_PKG_VERSION").as_bytes() {
        faces.push(Face {
            name: "Python",
            command: vec![python, program.into()],
        });
    } else {
        eprintln!(
            "hamlyn: Python is left out: {} has no package hamlyn {} (pip install ./faces/python; HAMLYN_PYTHON names another interpreter)",
            python.display(),
            env!("CARGO_PKG_VERSION")
        );
    }
    Ok(faces)
}

fn measure(faces: &[Face], effort: Effort, as_json: bool) -> Result<Vec<Row>> {
    let turns = effort.depth.pick(TURNS, TURNS, 1);
    let steps = LENGTHS.len() * turns * faces.len();
    let bar = hamlyn_cli::terminal::steps_bar(steps as u64, "measuring", as_json);
    let rows = LENGTHS.into_iter().map(|length_bytes| {
        let mut batches = vec![Vec::new(); faces.len()];
        for turn in 0..turns {
            for (face, batches) in faces.iter().zip(&mut batches) {
                let namespace = format!("faces-{}-{length_bytes}-{turn}", std::process::id());
                // Batches of long records take as long as those of short ones.
                let count = (effort.round_trips as usize * 64 / (64 + length_bytes)).max(50);
                let order = [length_bytes.to_string(), count.to_string(), namespace];
                batches
                    .extend(run_pair(face, &order).with_context(|| {
                        format!("records of {length_bytes} B in {}", face.name)
                    })?);
                bar.inc(1);
            }
        }
        Ok(Row {
            length_bytes,
            one_way_ns: batches.into_iter().map(median).collect(),
        })
    });
    let rows = rows.collect();
    bar.finish_and_clear();
    rows
}

/// Two programs; what the one that leads prints. They are not kept on a processor each: that would
/// be one processor for all their threads, and a program that has but one does not poll.
fn run_pair(face: &Face, order: &[String]) -> Result<Vec<f64>> {
    let start = |role: &str| {
        Command::new(&face.command[0])
            .args(&face.command[1..])
            .arg(role)
            .args(order)
            // It names a folder where a library of an earlier build may lie, which would be taken
            // instead.
            .env_remove("LD_LIBRARY_PATH")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .with_context(|| format!("starting the program in {}", face.name))
    };
    let mut answers = start("answer")?;
    let led = start("lead").and_then(|leads| {
        let output = leads
            .wait_with_output()
            .context("waiting for the program")?;
        ensure!(output.status.success(), "the program that leads failed");
        let said = String::from_utf8(output.stdout).context("what it printed")?;
        let batches: Result<Vec<f64>, _> = said.lines().map(str::parse).collect();
        batches.context("what it printed")
    });
    if led.is_err() {
        // It would wait for a minute.
        let _ = answers.kill();
    }
    let answered = answers.wait().context("waiting for the program")?;
    let batches = led?;
    ensure!(answered.success(), "the program that answers failed");
    ensure!(
        !batches.is_empty(),
        "the program that leads printed nothing"
    );
    Ok(batches)
}

fn print(faces: &[Face], rows: &[Row], as_json: bool) -> Result<()> {
    if as_json {
        let rows = rows.iter().map(|row| {
            let one_way_ns: serde_json::Map<_, _> = (faces.iter().zip(&row.one_way_ns))
                .map(|(face, &found)| (face.name.to_owned(), json!(found)))
                .collect();
            json!({ "length_bytes": row.length_bytes, "one_way_ns": one_way_ns })
        });
        let all = json!({ "faces": rows.collect::<Vec<_>>() });
        println!("{}", serde_json::to_string_pretty(&all)?);
        return Ok(());
    }
    let names = faces.iter().map(|face| face.name);
    let heads: Vec<&str> = std::iter::once("bytes").chain(names).collect();
    let mut table = hamlyn_cli::terminal::table(&heads);
    for row in rows {
        let rust_ns = row.one_way_ns[0];
        let found = row.one_way_ns.iter();
        let found = found.map(|ns| format!("{ns:.0} ns (×{:.2})", ns / rust_ns));
        table.add_row(std::iter::once(row.length_bytes.to_string()).chain(found));
    }
    println!("How long does a record of a stream take one way, between two processes?\n{table}");
    Ok(())
}
