//! A group: one notification when all parts of a picture have come, from any painter. A painter may
//! give a half of its part to a delegate, of which the owner of the picture need not know.
//!
//! ```text
//! gather own               # waits for two painters
//! gather paint a           # one paints all of its part
//! gather delegate b c      # the other has two delegates
//! ```

use hamlyn::engine::counting::Counting;
use hamlyn::group::{Member, Sender};
use hamlyn::{Manager, Wait};
use hamlyn_examples::Outcome;

const WAIT: Wait = Wait::millis(5_000);
const PART_BYTES: u64 = 32;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["own"] => own(),
        ["paint", color] => paint(color.as_bytes()),
        ["delegate", one, other] => delegate(one.as_bytes(), other.as_bytes()),
        _ => Err("usage: gather own | gather paint COLOR | gather delegate COLOR COLOR".into()),
    }
}

fn own() -> Outcome {
    let owner = hamlyn::open("gallery")?;
    let mut picture = owner.bind_group("picture", 2 * PART_BYTES as u32, Counting::default())?;
    picture.begin_shared(&[PART_BYTES, PART_BYTES])?;
    if let Some(picture) = picture.recv(Wait::Forever)? {
        println!("{}", String::from_utf8_lossy(picture));
    }
    Ok(())
}

fn paint(color: &[u8]) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut part = me.connect_group("gallery/picture", WAIT)?;
    part.send_last(0, &color.repeat(PART_BYTES as usize), Wait::Forever)?;
    // Handed over; it is there whether this program ends or not.
    me.flush(WAIT)?;
    Ok(())
}

fn delegate(one: &[u8], other: &[u8]) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let part = me.connect_group("gallery/picture", WAIT)?;
    let halves = part.into_member()?.divide(&[PART_BYTES / 2; 2])?;
    for (half, color) in halves.iter().zip([one, other]) {
        // A member is bytes: it could be sent to any process. These delegates are functions.
        paint_half(&me, &Member::from_bytes(&half.to_bytes())?, color)?;
    }
    // Handed over; it is there whether this program ends or not.
    me.flush(WAIT)?;
    Ok(())
}

fn paint_half(me: &Manager, half: &Member, color: &[u8]) -> Outcome {
    let mut half = Sender::grow(me, half, WAIT)?;
    half.send_last(0, &color.repeat(PART_BYTES as usize / 2), Wait::Forever)?;
    Ok(())
}
