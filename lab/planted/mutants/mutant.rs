//! The switch of mutants: which one is on in this process (decision 0032).
//!
//! This module exists only in the copy of the tree that `cargo run -p xtask -- mutants` makes. No product has a switch.

extern crate std;

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::io::Write as _;
use std::sync::OnceLock;

/// The mutant that is on.
const ON_VARIABLE: &str = "HAMLYN_MUTANT";
/// A file in which every process notes which mutants it reaches.
const REACHED_VARIABLE: &str = "HAMLYN_MUTANTS_REACHED";

const NONE: u32 = u32::MAX;
const UNREAD: u32 = u32::MAX - 1;
/// All that are off are noted when they are reached.
const NOTED: u32 = u32::MAX - 2;
const MUTANTS_MAX: usize = 20_000;

static ON: AtomicU32 = AtomicU32::new(UNREAD);
static IS_NOTED: [AtomicBool; MUTANTS_MAX] = [const { AtomicBool::new(false) }; MUTANTS_MAX];

/// Whether that mutant is on.
#[inline]
pub fn is_on(mutant: u32) -> bool {
    let on = ON.load(Relaxed);
    if on >= NOTED { asked(on, mutant) } else { on == mutant }
}

#[cold]
fn asked(mut on: u32, mutant: u32) -> bool {
    if on == UNREAD {
        let given = std::env::var(ON_VARIABLE).ok().and_then(|text| text.parse().ok());
        let is_noting = std::env::var_os(REACHED_VARIABLE).is_some();
        on = given.unwrap_or(if is_noting { NOTED } else { NONE });
        ON.store(on, Relaxed);
    }
    if on == NOTED && !IS_NOTED[mutant as usize].swap(true, Relaxed) {
        note(mutant);
    }
    on == mutant
}

fn note(mutant: u32) {
    static FILE: OnceLock<Option<std::fs::File>> = OnceLock::new();
    let file = FILE.get_or_init(|| {
        let path = std::env::var_os(REACHED_VARIABLE)?;
        std::fs::OpenOptions::new().create(true).append(true).open(path).ok()
    });
    if let Some(mut file) = file.as_ref() {
        // One write, so lines of several processes do not mix.
        let _ = file.write_all(std::format!("{mutant}\n").as_bytes());
    }
}
