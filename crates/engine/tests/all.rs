//! All tests of the engine but `loom.rs`: one program is built much sooner than one for each file.

mod corpus;
mod counting;
mod fairness;
mod fast_path;
mod grants;
mod history;
mod host;
mod matrix;
mod matrix_path;
mod metadata_entries;
mod model;
mod no_io;
mod notifications;
mod operations;
mod points;
mod reception;
mod refusals;
mod scene;
mod send_areas;
mod slots;
mod streaming;
mod table;
mod termini;
mod transport;
mod transport_hostile;
mod transport_paths;
mod transport_queue;
mod transport_rates;
mod transport_refusals;
mod transport_rules;
mod transport_world;

/// A file that nobody names would not be run.
#[test]
fn every_file_is_named() {
    let package = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = std::fs::read_to_string(package.join("Cargo.toml")).unwrap();
    for entry in std::fs::read_dir(package.join("tests")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_suffix(".rs") else {
            continue;
        };
        let is_program = manifest.contains(&format!("name = \"{name}\""));
        let is_module = include_str!("all.rs").contains(&format!("\nmod {name};"));
        assert!(is_program || is_module, "tests/{name}.rs is not run");
    }
}
