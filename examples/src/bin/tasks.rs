//! Tasks of tokio: one manager, several end points, each with a task that waits for it; nobody
//! blocks the runtime.
//!
//! ```text
//! tasks listen 3           # ends after three messages, whichever way they come
//! tasks say "over here"
//! tasks count 7
//! ```

use hamlyn::Wait;
use hamlyn_examples::Outcome;
use tokio::sync::mpsc::{Sender, channel};
use tokio::task::{LocalSet, spawn_local};

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["listen", count] => {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()?;
            LocalSet::new().block_on(&runtime, listen(count.parse()?))
        }
        ["say", text] => say(text),
        ["count", number] => count(number.parse()?),
        _ => Err("usage: tasks listen COUNT | tasks say TEXT | tasks count NUMBER".into()),
    }
}

async fn listen(count: usize) -> Outcome {
    let here = hamlyn::open("listener")?;
    let _driven = hamlyn_tokio::spawn_local(&here)?;
    let (lines, mut heard) = channel(8);
    spawn_local(texts(here.bind_datagram("texts", 256)?, lines.clone()));
    spawn_local(numbers(here.bind_tagged_write("numbers", 64, 64)?, lines));
    for _ in 0..count {
        println!("{}", heard.recv().await.ok_or("the tasks have ended")?);
    }
    Ok(())
}

async fn texts(mut inbox: hamlyn::datagram::Receiver, lines: Sender<String>) {
    while let Ok(message) = inbox.recv_async().await {
        let text = String::from_utf8_lossy(&message).into_owned();
        drop(message);
        if lines.send(text).await.is_err() {
            return;
        }
    }
}

async fn numbers(mut tags: hamlyn::tagged_write::Receiver, lines: Sender<String>) {
    while let Ok(tag) = tags.recv_async().await {
        if lines.send(format!("number {}", tag.tag)).await.is_err() {
            return;
        }
    }
}

fn say(text: &str) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let texts = me.connect_datagram("listener/texts", Wait::millis(5_000))?;
    texts.send(text.as_bytes(), Wait::Forever)?;
    me.flush(Wait::millis(5_000))?;
    Ok(())
}

fn count(number: u64) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let numbers = me.connect_tagged_write("listener/numbers", Wait::millis(5_000))?;
    numbers.send(0, &[], number, Wait::Forever)?;
    me.flush(Wait::millis(5_000))?;
    Ok(())
}
