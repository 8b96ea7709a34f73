//! A file digested in parallel: each worker is told a part of the file, and sends its SHA-256. A
//! group makes one message of all digests, so the owner is woken once, whichever worker is the
//! last.
//!
//! ```text
//! digest gather FILE 3     # prints the SHA-256 of the digests of three parts
//! digest work              # three of them, at any time, before or after
//! ```

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use hamlyn::engine::counting::Counting;
use hamlyn::host::Supply;
use hamlyn::{Address, Wait};
use hamlyn_examples::Outcome;
use sha2::{Digest as _, Sha256};

const WAIT: Wait = Wait::millis(10_000);
/// All workers together may take that long.
const WORK: Wait = Wait::millis(60_000);
/// The number of a part, and its digest.
const RESULT_BYTES: usize = 8 + 32;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["gather", file, workers] => gather(file, workers.parse()?),
        ["work"] => work(),
        _ => Err("usage: digest gather FILE WORKERS | digest work".into()),
    }
}

fn gather(file: &str, workers: u64) -> Outcome {
    let path = std::fs::canonicalize(file)?;
    let path = path.to_str().ok_or("the name of the file is not UTF-8")?;
    let file_bytes = std::fs::metadata(path)?.len();
    if !(1..=1000).contains(&workers) {
        return Err("there must be 1 to 1000 workers".into());
    }
    let owner = hamlyn::open("digester")?;
    let place_bytes = workers as u32 * RESULT_BYTES as u32;
    let mut digests = owner.bind_group("digests", place_bytes, Counting::default())?;
    digests.begin_shared(&vec![RESULT_BYTES as u64; workers as usize])?;
    let part_bytes = file_bytes.div_ceil(workers);
    for number in 0..workers {
        let begin = file_bytes.min(number * part_bytes);
        let end = file_bytes.min(begin + part_bytes);
        // Offered once: no two workers get the same part.
        let part = format!("{number} {begin} {} {path}", end - begin);
        let mut interface = owner.session();
        interface.offer("part", Supply::Once, part.as_bytes())?;
    }

    let Some(results) = digests.recv(WORK)? else {
        return Err("a worker is missing, or has not finished in a minute".into());
    };
    let mut by_number = vec![None; workers as usize];
    for result in results.chunks_exact(RESULT_BYTES) {
        let (number, digest) = result.split_at(8);
        let number = u64::from_le_bytes(number.try_into()?) as usize;
        match by_number.get_mut(number) {
            Some(free @ None) => *free = Some(digest),
            _ => return Err(format!("part {number} came twice, or there is none").into()),
        }
    }
    let mut whole = Sha256::new();
    for digest in by_number.into_iter().flatten() {
        whole.update(digest);
    }
    for byte in whole.finalize() {
        print!("{byte:02x}");
    }
    println!();
    Ok(())
}

fn work() -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let part = me.session().ask(Address::Name("digester"), "part", WAIT)?;
    let part = String::from_utf8(part)?;
    let mut fields = part.splitn(4, ' ');
    let mut field = || fields.next().ok_or("the part has too few fields");
    let (number, begin, length) = (
        field()?.parse::<u64>()?,
        field()?.parse()?,
        field()?.parse()?,
    );
    let mut file = File::open(field()?)?;
    file.seek(SeekFrom::Start(begin))?;
    let mut part = file.take(length);

    let mut digest = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = part.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        digest.update(&buffer[..count]);
    }
    if part.limit() != 0 {
        return Err("the file has become shorter".into());
    }

    let mut result = number.to_le_bytes().to_vec();
    result.extend_from_slice(&digest.finalize());
    let mut digests = me.connect_group("digester/digests", WAIT)?;
    digests.send_last(0, &result, WAIT)?;
    // Handed over; it is there whether this program ends or not.
    if !me.flush(WAIT)? {
        return Err("the digest could not be handed over in time".into());
    }
    Ok(())
}
