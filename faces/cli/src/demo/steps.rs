//! What is shown, one after the other. Each step is an error if it did not hold.

use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Mode;
use hamlyn::stream::StreamOptions;
use hamlyn::{Event, NewSlot, ReceiveError, Wait, datagram, group, stream, tagged_write};
use sha2::{Digest, Sha256};

use super::Stage;
use super::file;
use super::sender::Order;
use hamlyn_cli::actor::to_hex;

const WAIT: Wait = Wait::millis(10_000);
const SHORT_MESSAGES: u64 = 1_000_000;

pub(super) fn short_messages(stage: &mut Stage) -> Result<String> {
    let Stage {
        manager, senders, ..
    } = stage;
    let mut receiver = tagged_write::Receiver::new(manager, 512, 8192)?;
    let ticket = to_hex(&receiver.ticket().to_bytes());
    senders[0].order(&Order::Short {
        ticket,
        messages: SHORT_MESSAGES,
    })?;
    let mut start = Instant::now();
    for expected in 0..SHORT_MESSAGES {
        let tag = receiver.get_tag(WAIT)?.context("a message did not come")?;
        ensure!(tag == expected, "message {expected} expected, {tag} came");
        if expected == 0 {
            start = Instant::now();
        }
    }
    let rate = SHORT_MESSAGES as f64 / start.elapsed().as_secs_f64();
    let () = senders[0].answer()?;
    drop(receiver);
    Ok(format!(
        "{SHORT_MESSAGES} in order, {:.1} million a second",
        rate / 1e6
    ))
}

pub(super) fn stream(stage: &mut Stage) -> Result<String> {
    let Stage {
        manager,
        senders,
        megabytes,
        quiet,
        ..
    } = stage;
    let length = *megabytes << 20;
    let made = file::make(length)?;
    let mut receiver = stream::Receiver::new(manager, StreamOptions::default())?;
    let seed = to_hex(&receiver.make_seed().to_bytes());
    senders[1].order(&Order::Stream {
        seed,
        file: made.path().to_owned(),
    })?;
    let bar = if *quiet {
        indicatif::ProgressBar::hidden()
    } else {
        hamlyn_cli::terminal::bytes_bar(Some(length), "the file")
    };
    let mut digest = Sha256::new();
    let mut received = 0_u64;
    let start = Instant::now();
    loop {
        match receiver.recv(WAIT) {
            Ok(Some(record)) => {
                digest.update(&*record);
                received += record.len() as u64;
                bar.set_position(received);
            }
            Ok(None) => bail!("the stream stalled after {received} bytes"),
            Err(ReceiveError::Closed) => break,
            Err(error) => return Err(error.into()),
        }
    }
    let seconds = start.elapsed().as_secs_f64();
    bar.finish_and_clear();
    let ours = to_hex(&digest.finalize());
    let theirs: String = senders[1].answer()?;
    drop(receiver);
    ensure!(
        received == length,
        "{length} bytes expected, {received} came"
    );
    ensure!(ours == theirs, "the digests differ");
    Ok(format!(
        "{} at {:.2} GB/s with both ends digesting; SHA-256 {}… on both sides",
        indicatif::HumanBytes(received),
        received as f64 / 1e9 / seconds,
        &ours[..12]
    ))
}

pub(super) fn group(stage: &mut Stage) -> Result<String> {
    const PART_BYTES: u64 = 1 << 20;
    let Stage {
        manager, senders, ..
    } = stage;
    let mut receiver = group::Receiver::new(manager, 4 << 20, Default::default())?;
    let whole = receiver.begin()?;
    let members = whole.divide(&[PART_BYTES; 4])?;
    let mut parts: Vec<String> = members
        .iter()
        .map(|member| to_hex(&member.to_bytes()))
        .collect();
    // The fourth gives half of its part away; this process need not know its holder.
    let fourth = parts.pop().context("no fourth member")?;
    senders[3].order(&Order::Delegate { member: fourth })?;
    let halves: Vec<String> = senders[3].answer()?;
    parts.extend(halves);
    for (index, (sender, member)) in senders.iter_mut().zip(parts).enumerate() {
        sender.order(&Order::Group {
            member,
            fill: index as u8 + 1,
        })?;
    }
    let place = match receiver.recv(WAIT) {
        Ok(Some(place)) => place,
        Ok(None) => bail!("the group is incomplete"),
        Err(error) => return Err(error.into()),
    };
    let half = PART_BYTES as usize / 2;
    let right = place.chunks(half).enumerate().all(|(index, chunk)| {
        let fill = if index < 6 {
            index as u8 / 2 + 1
        } else {
            index as u8 - 2
        };
        chunk.iter().all(|&byte| byte == fill)
    });
    ensure!(right, "a member's part is wrong");
    for sender in senders.iter_mut() {
        let () = sender.answer()?;
    }
    drop(receiver);
    Ok("4 MiB from 5 processes, one notification, after the last packet".to_owned())
}

pub(super) fn forged_key(stage: &mut Stage) -> Result<String> {
    refused_at_plain_slot(stage, Refusal::BadKey, |ticket| Order::Forge { ticket })
}

pub(super) fn bound_overrun(stage: &mut Stage) -> Result<String> {
    refused_at_plain_slot(stage, Refusal::OutOfBounds, |ticket| Order::Overrun {
        ticket,
    })
}

/// Has a sender do something wrong to a slot and sees that it is refused for that very
/// reason and that nothing was written.
fn refused_at_plain_slot(
    stage: &mut Stage,
    reason: Refusal,
    order: fn(String) -> Order,
) -> Result<String> {
    const LENGTH: u64 = 4096;
    let Stage {
        manager, senders, ..
    } = stage;
    // The slot is the first half of its area; the other half must stay as it is.
    let area = manager.session().allocate(2 * LENGTH)?;
    let slot = manager
        .session()
        .open_slot(NewSlot::new(&area).range(0..LENGTH).mode(Mode::Normal))?;
    let ticket = to_hex(&slot.fast_ticket(0, LENGTH)?.to_bytes());
    senders[2].order(&order(ticket))?;
    let () = senders[2].answer()?;
    let start = Instant::now();
    while manager.session().slot_info(&slot)?.refusals.total() == 0 {
        manager.session().poll();
        ensure!(start.elapsed().as_secs() < 10, "nothing was refused");
    }
    let refusals = manager.session().slot_info(&slot)?.refusals;
    ensure!(
        refusals.count(reason) == 1,
        "refused for another reason: {refusals:?}"
    );
    let mut bytes = vec![0; 2 * LENGTH as usize];
    area.read_at(0, &mut bytes)
        .ok()
        .context("reading the area")?;
    ensure!(
        bytes.iter().all(|&byte| byte == 0),
        "memory was written all the same"
    );
    manager.session().close_slot(slot)?;
    Ok(format!("refused: {reason}; not a byte was written"))
}

pub(super) fn replay(stage: &mut Stage) -> Result<String> {
    let Stage {
        manager, senders, ..
    } = stage;
    let mut receiver = datagram::Receiver::new(manager, 64)?;
    receiver.ready();
    let ticket = to_hex(&receiver.ticket().to_bytes());
    senders[2].order(&Order::Replay { ticket })?;
    let () = senders[2].answer()?;
    let datagram = receiver
        .recv(WAIT)?
        .context("the first message did not come")?;
    ensure!(*datagram == *b"once", "the first message is wrong");
    datagram.keep();
    let start = Instant::now();
    while receiver.info()?.refusals.total() == 0 {
        manager.session().poll();
        ensure!(
            start.elapsed().as_secs() < 10,
            "the second message was not refused"
        );
    }
    let refusals = receiver.info()?.refusals;
    ensure!(
        refusals.count(Refusal::EntrySpent) == 1,
        "refused for another reason: {refusals:?}"
    );
    ensure!(
        receiver.latest() == Some(b"once".as_slice()),
        "the first message was overwritten"
    );
    drop(receiver);
    Ok(format!(
        "the second is refused: {}; the first is unharmed",
        Refusal::EntrySpent
    ))
}

pub(super) fn killed_peer(stage: &mut Stage) -> Result<String> {
    const LENGTH: usize = 64 << 20;
    let Stage {
        manager, senders, ..
    } = stage;
    let area = manager.session().allocate(LENGTH as u64)?;
    let mut queue = manager.session().open_queue(16)?;
    let slot = manager
        .session()
        .open_slot(NewSlot::new(&area).queue(&queue).entries(1))?;
    let ticket = to_hex(&slot.ticket(0, 0, LENGTH as u64)?.to_bytes());
    let victim = &mut senders[4];
    victim.order(&Order::Endless {
        ticket,
        length_bytes: LENGTH,
    })?;
    let () = victim.answer()?;
    // Some of the message arrives, then its sender is killed.
    let entry = slot
        .metadata()
        .and_then(|area| area.entry(0))
        .context("no entry")?;
    while entry.accumulator() == 0 {
        manager.session().poll();
    }
    let killed = Instant::now();
    victim.kill()?;
    let told = loop {
        let event = manager.next_event(WAIT)?;
        if let Event::PeerLeft { end, .. } = event.context("the death was not noticed")? {
            break end;
        }
    };
    let after = killed.elapsed();
    let announced = manager.session().rcv(&mut queue)?;
    ensure!(announced.is_none(), "a message that was cut was announced");
    ensure!(after.as_millis() <= 100, "noticed only after {after:?}");
    let partly = entry.accumulator();
    manager.session().close_slot(slot)?;
    manager.session().close_queue(queue);
    Ok(format!(
        "{partly} packets of it had come; the wait ended {:.1} ms after the kill: {}",
        after.as_secs_f64() * 1e3,
        told
    ))
}
