//! Runs the programs of the paper's Table 2, em3d and the polling granularity of 5.3, at small
//! sizes (Split-C 5.3, 5.4).
//!
//! Each program compares its result with a serial run and says so.

mod running;

use running::{Program, in_parallel, run};
use std::path::{Path, PathBuf};

/// Arguments, and numbers of processors that the algorithm allows.
const RUNS: &[(&str, &[&str], &[usize])] = &[
    ("radix", &["-n", "4096"], &[1, 2, 4]),
    ("radixb", &["-n", "4096"], &[1, 2, 4]),
    ("sample", &["-n", "1024"], &[1, 2, 4]),
    ("sampleb", &["-n", "4096"], &[1, 2, 4]),
    ("bitonic", &["-n", "4096"], &[1, 2, 4]),
    ("shell", &["-n", "6144"], &[1, 2, 3, 4]),
    ("fft", &["-n", "1024"], &[1, 2, 4]),
    ("fftb", &["-n", "1024"], &[1, 2, 4]),
    ("cannon", &["-n", "24"], &[1, 4, 9]),
    ("mm", &["-n", "32", "-b", "4"], &[1, 2, 3, 4]),
    ("wator", &["-n", "20", "-s", "2"], &[1, 2, 4]),
    ("p-ray", &["-s", "32", "-d", "10"], &[1, 2, 4]),
    ("em3d", &["-v", "0"], &[1, 2, 4]),
    ("em3d", &["-v", "1"], &[2, 4]),
    ("em3d", &["-v", "2"], &[2, 4]),
    ("em3d", &["-v", "3"], &[2, 4]),
    ("em3d", &["-v", "4"], &[2, 4]),
    ("em3d", &["-v", "5"], &[2, 4]),
    ("overlap", &["-n", "3"], &[1, 2, 3]),
    ("granularity", &["-g", "20"], &[1, 2, 4]),
    ("granularity", &["-g", "20", "-p", "0"], &[2]),
];

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/splitc")
}

#[test]
fn each_program_gives_the_result_of_a_serial_run() {
    let mut files: Vec<_> = RUNS
        .iter()
        .map(|(name, ..)| directory().join(format!("{name}.sc")))
        .collect();
    files.dedup();
    in_parallel(&files, |file| {
        let program = Program::compile(&[file], &["-O2", "-Wall"])?;
        let name = file.file_stem().unwrap().to_str().unwrap();
        for (_, arguments, procs) in RUNS.iter().filter(|(known, ..)| *known == name) {
            for &procs in *procs {
                let outcome = run(&program, procs, arguments);
                if !outcome.success || !outcome.output.ends_with("\nPASSED\n") {
                    return Err(format!("{arguments:?}, {procs} processors: {outcome:?}"));
                }
            }
        }
        Ok(())
    });
}

#[test]
fn every_program_is_run() {
    for entry in std::fs::read_dir(directory()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "sc") {
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(
                RUNS.iter().any(|(known, ..)| *known == name),
                "no run of {name}"
            );
        }
    }
}
