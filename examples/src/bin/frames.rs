//! Loaned messages: frames that their readers look at where the publisher wrote them.
//!
//! ```text
//! frames publish 3 2       # three frames, as soon as there are two readers
//! frames read              # prints the number, the length and the brightest byte of each
//! ```

use hamlyn::loans::PublisherOptions;
use hamlyn::{ReceiveError, Wait};
use hamlyn_examples::Outcome;

const WIDTH: usize = 640;
const HEIGHT: usize = 480;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["publish", frames, readers] => publish(frames.parse()?, readers.parse()?),
        ["read"] => read(),
        _ => Err("usage: frames publish FRAMES READERS | frames read".into()),
    }
}

fn publish(count: u8, readers: usize) -> Outcome {
    let camera = hamlyn::open("camera")?;
    let options = PublisherOptions {
        message_bytes: (WIDTH * HEIGHT) as u32,
        ..PublisherOptions::default()
    };
    let mut frames = camera.bind_publisher("frames", options)?;
    if frames.await_readers(readers, Wait::millis(10_000))? < readers {
        return Err("there are too few readers".into());
    }
    for number in 0..count {
        let mut frame = frames.loan(WIDTH * HEIGHT, Wait::Forever)?;
        // In place: what is written here is what the readers see.
        frame.fill(10);
        frame[WIDTH * usize::from(number)] = 100 + number;
        frame.publish(Wait::Forever)?;
    }
    // Every reader has what was published, whatever becomes of this program.
    frames.flush(Wait::millis(10_000))?;
    drop(frames);
    camera.flush(Wait::millis(1_000))?;
    Ok(())
}

fn read() -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut frames = me.connect_subscriber("camera/frames", Wait::millis(10_000))?;
    let mut line = [0; WIDTH];
    loop {
        let frame = match frames.recv(Wait::Forever) {
            Ok(Some(frame)) => frame,
            Ok(None) => continue,
            Err(ReceiveError::Closed | ReceiveError::PeerLost(_)) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let mut brightest = 0;
        for at in (0..frame.len()).step_by(WIDTH) {
            frame.read_at(at, &mut line)?;
            brightest = line.iter().copied().fold(brightest, u8::max);
        }
        println!("{}: {} bytes, {brightest}", frame.number(), frame.len());
    }
}
