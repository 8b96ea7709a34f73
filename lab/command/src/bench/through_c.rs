//! What a call through C costs ([`hamlyn_counted::c_face`]), as a table or for programs.

use std::path::Path;

use anyhow::{Context, Result};
use hamlyn_counted::c_face::{self, Figures};
use serde_json::{Map, Value, json};

use super::comparison::in_checkout;

/// A file of the C face, in a checkout.
const FILE: &str = "faces/c/measure/count.c";

/// Counts it, and prints it.
///
/// # Errors
///
/// There is no checkout, no cargo, no C compiler or no valgrind, or one of them fails.
pub(crate) fn run(as_json: bool) -> Result<()> {
    let file = in_checkout(FILE).context(
        "what a call through C costs is counted in a checkout of Hamlyn only: run this in one",
    )?;
    let face = file.parent().and_then(Path::parent);
    let all = c_face::count(face.context("the program lies in the folder of the C face")?)?;
    if as_json {
        println!("{}", serde_json::to_string_pretty(&json(&all))?);
        return Ok(());
    }
    let mut table = hamlyn_cli::terminal::table(&["instructions", "Rust", "C", "more through C"]);
    type Part = fn((f64, f64)) -> f64;
    let parts: [(&str, Part); 2] = [("send", |pair| pair.0), ("receive", |pair| pair.1)];
    for figures in all {
        for (what, of) in parts {
            let (rust, c) = (of(figures.rust), of(figures.c));
            table.add_row([
                format!("{}, {what}", figures.protocol.name()),
                format!("{rust:.1}"),
                format!("{c:.1}"),
                format!("{:+.1}", c - rust),
            ]);
        }
    }
    println!("How many instructions more does a call through C take?\n{table}");
    Ok(())
}

/// For programs.
fn json(all: &[Figures]) -> Value {
    let pair = |(send, receive): (f64, f64)| json!({"send": send, "receive": receive});
    let by_protocol = all.iter().map(|figures| {
        let of_one = json!({ "rust": pair(figures.rust), "c": pair(figures.c) });
        (figures.protocol.name().to_owned(), of_one)
    });
    let by_protocol: Map<_, _> = by_protocol.collect();
    json!({ "instructions_through_c": by_protocol })
}
