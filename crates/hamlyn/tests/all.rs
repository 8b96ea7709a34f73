//! Most tests of the library: one program is built much sooner than one for each file. Those that
//! start other processes, fork, count descriptors or processor time are programs of their own.

mod support;

mod bad_input;
mod blocking_reads;
mod completion_of_the_lost;
mod connecting;
mod corpus;
mod ends;
mod hostile;
mod hostile_loans;
mod hostile_memory;
mod hostile_single;
mod latest_value;
mod many_peers;
mod passed_tags;
mod protocol_faults;
mod rounds;
mod services;
mod sessions;
mod sleepers;
mod stream_order;
mod threads;
mod turns;

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
