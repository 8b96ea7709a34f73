//! A key-value table in the memory of its owner that many writers fill by tagged writes, without a
//! lock or a call of the kernel. Each writer is told rows of its own; the tag of a write says which
//! row is new. Writers must not disturb each other: they are trusted with the whole table. For
//! others there are slots in paranoid mode (docs/security.md).
//!
//! ```text
//! table own 3              # prints the table when three pairs have come
//! table put tea=2 milk=1
//! table put salt=7
//! ```

use std::collections::BTreeMap;

use hamlyn::host::Supply;
use hamlyn::{Address, FenceError, Wait};
use hamlyn_examples::Outcome;

const WAIT: Wait = Wait::millis(10_000);
const WRITERS: u64 = 8;
const ROWS_EACH: u64 = 16;
const ROWS: u64 = WRITERS * ROWS_EACH;
/// A row is a key and a value, each filled up with zeros.
const KEY_BYTES: usize = 24;
const ROW_BYTES: usize = 64;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["own", pairs] => own(pairs.parse()?),
        ["put", ref pairs @ ..] => put(pairs),
        _ => Err("usage: table own PAIRS | table put KEY=VALUE...".into()),
    }
}

fn own(pairs: usize) -> Outcome {
    let owner = hamlyn::open("table")?;
    let mut table = owner.bind_tagged_write("pairs", ROWS * ROW_BYTES as u64, ROWS as usize)?;
    for writer in 0..WRITERS {
        // Offered once: no two writers get the same rows.
        let first_row = (writer * ROWS_EACH).to_string();
        let mut interface = owner.session();
        interface.offer("rows", Supply::Once, first_row.as_bytes())?;
    }

    let mut row_of = BTreeMap::new();
    let mut row = [0; ROW_BYTES];
    for _ in 0..pairs {
        let Some(tag) = table.get_tag(Wait::Forever)? else {
            return Err("nothing has come".into());
        };
        // Another may send any tag: what names no row is an error of the area.
        table
            .area()
            .read_at(tag.saturating_mul(ROW_BYTES as u64), &mut row)?;
        row_of.insert(text(&row[..KEY_BYTES]), tag);
    }
    for (key, tag) in &row_of {
        table.area().read_at(tag * ROW_BYTES as u64, &mut row)?;
        println!("{key}={}", text(&row[KEY_BYTES..]));
    }
    Ok(())
}

/// The text before the zeros.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|&byte| byte == 0);
    String::from_utf8_lossy(&bytes[..end.unwrap_or(bytes.len())]).into_owned()
}

fn put(pairs: &[&str]) -> Outcome {
    if pairs.len() as u64 > ROWS_EACH {
        return Err(format!("a writer has {ROWS_EACH} rows").into());
    }
    let me = hamlyn::open_unnamed()?;
    let first_row = me.session().ask(Address::Name("table"), "rows", WAIT)?;
    let first_row: u64 = std::str::from_utf8(&first_row)?.parse()?;
    let table = me.connect_tagged_write("table/pairs", WAIT)?;
    for (number, pair) in (first_row..).zip(pairs) {
        let (key, value) = pair.split_once('=').ok_or("a pair is KEY=VALUE")?;
        if key.len() > KEY_BYTES || value.len() > ROW_BYTES - KEY_BYTES {
            return Err(format!("{pair}: a key has up to 24 bytes, a value up to 40").into());
        }
        let mut row = [0; ROW_BYTES];
        row[..key.len()].copy_from_slice(key.as_bytes());
        row[KEY_BYTES..][..value.len()].copy_from_slice(value.as_bytes());
        table.send(number * ROW_BYTES as u64, &row, number, WAIT)?;
    }
    // All rows are in their place; or the owner has what it wanted, and is gone.
    match table.fence(WAIT) {
        Ok(()) | Err(FenceError::PeerLost(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
