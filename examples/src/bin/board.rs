//! Tagged remote writes: many writers fill one table in the memory of its owner. Each writes its
//! own rows, without a lock, a copy or a call of the kernel; a tag says which row is new.
//!
//! ```text
//! board show 4             # ends after four scores
//! board score 2 100        # row 2
//! ```

use hamlyn::Wait;
use hamlyn_examples::Outcome;

const ROWS: u64 = 64;
const ROW_BYTES: u64 = 16;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["show", scores] => show(scores.parse()?),
        ["score", row, points] => score(row.parse()?, points.parse()?),
        _ => Err("usage: board show SCORES | board score ROW POINTS".into()),
    }
}

fn show(scores: usize) -> Outcome {
    let owner = hamlyn::open("scores")?;
    let mut board = owner.bind_tagged_write("board", ROWS * ROW_BYTES, 1024)?;
    for _ in 0..scores {
        if let Some(row) = board.recv(Wait::Forever)? {
            let points = board.area().load_u64(row.tag % ROWS * ROW_BYTES);
            let writer = board.sender(&row).map_or(0, |writer| writer.process);
            println!(
                "row {}: {} (by process {writer})",
                row.tag,
                points.unwrap_or(0)
            );
        }
    }
    Ok(())
}

fn score(row: u64, points: u64) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let board = me.connect_tagged_write("scores/board", Wait::millis(5_000))?;
    let mut bytes = [0; ROW_BYTES as usize];
    bytes[..8].copy_from_slice(&points.to_le_bytes());
    board.send(row * ROW_BYTES, &bytes, row, Wait::Forever)?;
    // Handed over; it is there whether this program ends or not.
    me.flush(Wait::millis(5_000))?;
    Ok(())
}
