//! What random histories reach seldom or cannot see: single rules, each with a history of its own.

use hamlyn_engine::transport::{
    Association, CloseReason, Incoming, NackReason, ReceiveToken, Return, Settings,
};

use super::message::message;
use super::{Checked, quick};

fn check(is_right: bool, what: &str) -> Checked {
    if is_right { Ok(()) } else { Err(what.into()) }
}

/// One end, with a buffer for its frames.
pub struct Solo {
    pub association: Association,
    bytes: Vec<u8>,
}

impl Solo {
    pub fn new(settings: Settings) -> Self {
        Self {
            association: Association::new(settings).expect("good settings"),
            bytes: vec![0; settings.frame_bytes],
        }
    }

    /// Offers so many packets.
    pub fn offer(&mut self, packets: u64) -> Checked {
        for number in 0..packets {
            let message = message(number, self.association.payload_max_bytes());
            let offered = message.offer(&mut self.association, number);
            check(offered.is_ok(), "there is room")?;
        }
        Ok(())
    }

    /// The next frame.
    pub fn frame(&mut self, now_ns: u64) -> Option<Vec<u8>> {
        let outgoing = self.association.next_frame(now_ns, &mut self.bytes)?;
        Some(self.bytes[..outgoing.length_bytes].to_vec())
    }

    /// The frame that is sent when time has passed to the deadline, and when that is.
    pub fn frame_later(&mut self, now_ns: &mut u64) -> Checked<Vec<u8>> {
        for _ in 0..100 {
            if let Some(frame) = self.frame(*now_ns) {
                return Ok(frame);
            }
            let deadline_ns = self
                .association
                .deadline_ns()
                .ok_or("nothing to wait for")?;
            *now_ns = (*now_ns).max(deadline_ns);
        }
        Err("deadlines, and nothing is sent".into())
    }

    /// What a frame gives out, if anything.
    pub fn take(&mut self, now_ns: u64, frame: &[u8]) -> Option<ReceiveToken> {
        match self.association.take_frame(now_ns, 0, frame) {
            Incoming::Packets(token) => Some(token),
            Incoming::Nothing => None,
        }
    }

    /// Puts a frame off, and gives the answer.
    fn nack(&mut self, now_ns: u64, frame: &[u8]) -> Checked<Vec<u8>> {
        let token = self.take(now_ns, frame).ok_or("it is fresh")?;
        self.association
            .nack(now_ns, token, NackReason::NotResident);
        let mut at_ns = now_ns;
        self.frame_later(&mut at_ns)
    }
}

/// 4.4.4: a NACK of an earlier transmission is an answer, but unloading waits for that of the
/// latest.
pub fn suspension_waits_for_the_nack_of_the_latest_transmission() -> Checked {
    let (mut sender, mut receiver) = (Solo::new(quick()), Solo::new(quick()));
    let mut now_ns = 5_000_000;
    sender.offer(1)?;
    let first = sender.frame(now_ns).ok_or("it is sent")?;
    sender.association.prepare_suspend();
    check(!sender.association.can_suspend(), "it waits for an answer")?;
    let again = sender.frame_later(&mut now_ns)?;
    let nack = receiver.nack(now_ns, &first)?;
    let late_nack = receiver.nack(now_ns, &again)?;
    check(
        sender.take(now_ns, &nack).is_none(),
        "a NACK brings nothing",
    )?;
    check(
        !sender.association.can_suspend(),
        "suspended though the latest transmission may still be taken",
    )?;
    check(
        sender.take(now_ns, &late_nack).is_none(),
        "a NACK brings nothing",
    )?;
    check(
        sender.association.can_suspend(),
        "nothing can come any more",
    )?;
    let saved = sender
        .association
        .suspend()
        .map_err(|_| "it may be suspended")?;
    check(saved.frame_bytes() > 0, "the frame is kept")?;
    let mut sender = Association::resume(saved, now_ns);
    let mut bytes = vec![0; quick().frame_bytes];
    let outgoing = sender
        .next_frame(now_ns, &mut bytes)
        .ok_or("it is sent again")?;
    let frame = &bytes[..outgoing.length_bytes];
    let token = receiver.take(now_ns, frame).ok_or("now it is taken")?;
    receiver.association.taken(now_ns, token);
    check(receiver.take(now_ns, &first).is_none(), "it was taken")?;
    let acknowledgement = receiver.frame_later(&mut now_ns)?;
    let _ = sender.take_frame(now_ns, 0, &acknowledgement);
    check(sender.is_idle(), "it is acknowledged")
}

/// The receiver of a frame may be stopped: as long as its host answers, it is not dead. It takes
/// the frame in the end, once.
pub fn a_frame_that_waits_to_be_taken_is_answered() -> Checked {
    let settings = Settings {
        no_answer_ns: 1_000_000,
        ..quick()
    };
    let (mut sender, mut receiver) = (Solo::new(settings), Solo::new(settings));
    let mut now_ns = 5_000_000;
    sender.offer(1)?;
    let first = sender.frame(now_ns).ok_or("it is sent")?;
    let token = receiver.take(now_ns, &first).ok_or("it is fresh")?;
    for _ in 0..2 * usize::from(settings.retries_max) {
        let again = sender.frame_later(&mut now_ns)?;
        check(
            receiver.take(now_ns, &again).is_none(),
            "it is given out once",
        )?;
        let answer = receiver.frame_later(&mut now_ns)?;
        let _ = sender.take(now_ns, &answer);
    }
    check(
        sender.association.close_reason().is_none(),
        "the peer answers all the time",
    )?;
    receiver.association.taken(now_ns, token);
    let acknowledgement = receiver.frame_later(&mut now_ns)?;
    let _ = sender.take(now_ns, &acknowledgement);
    check(sender.association.is_idle(), "it is acknowledged")
}

/// 4.4.4: a NACK is feedback, so retries are counted anew.
pub fn a_nack_is_an_answer() -> Checked {
    let settings = Settings {
        retries_max: 3,
        no_answer_ns: 1,
        ..quick()
    };
    let (mut sender, mut receiver) = (Solo::new(settings), Solo::new(settings));
    let mut now_ns = 0;
    sender.offer(1)?;
    for _ in 0..20 {
        let frame = sender.frame_later(&mut now_ns)?;
        let nack = receiver.nack(now_ns, &frame)?;
        check(
            sender.take(now_ns, &nack).is_none(),
            "a NACK brings nothing",
        )?;
        check(
            sender.association.close_reason().is_none(),
            "there were answers",
        )?;
        // Then the next two are lost.
        for _ in 0..2 {
            sender.frame_later(&mut now_ns)?;
        }
        check(
            sender.association.close_reason().is_none(),
            "too few retries for that",
        )?;
    }
    let frame = sender.frame_later(&mut now_ns)?;
    let token = receiver.take(now_ns, &frame).ok_or("now it is taken")?;
    receiver.association.taken(now_ns, token);
    let acknowledgement = receiver.frame_later(&mut now_ns)?;
    check(
        sender.take(now_ns, &acknowledgement).is_none(),
        "nothing but an acknowledgement",
    )?;
    check(sender.association.is_idle(), "all is over")
}

/// 4.4.2: after 255 retries without an answer, which take several seconds, everything comes back.
pub fn silence_closes_after_255_retries() -> Checked {
    let mut sender = Solo::new(Settings::default());
    let mut now_ns = 1_000;
    sender.offer(200)?;
    let mut sent = 0;
    while sender.association.close_reason().is_none() {
        if sender.frame(now_ns).is_some() {
            sent += 1;
        } else if let Some(deadline_ns) = sender.association.deadline_ns() {
            now_ns = now_ns.max(deadline_ns);
        }
    }
    let close_reason = sender.association.close_reason();
    check(
        close_reason == Some(CloseReason::NoAnswer),
        "nobody answered",
    )?;
    // The first is sent 256 times, the others seldom: they have to wait for it.
    check((256..700).contains(&sent), &format!("{sent} frames"))?;
    check(
        (5_000_000_000..20_000_000_000).contains(&now_ns),
        &format!("after {now_ns} ns"),
    )?;
    ends(&mut sender, 200, CloseReason::NoAnswer)
}

/// A receiver that answers NACK for ever is unreachable, too.
pub fn no_progress_closes() -> Checked {
    let settings = Settings {
        no_progress_ns: 3_000_000_000,
        ..Settings::default()
    };
    let (mut sender, mut receiver) = (Solo::new(settings), Solo::new(settings));
    let mut now_ns = 0;
    sender.offer(200)?;
    let mut sent = 0;
    while let Ok(frame) = sender.frame_later(&mut now_ns) {
        sent += 1;
        let nack = receiver.nack(now_ns, &frame)?;
        check(
            sender.take(now_ns, &nack).is_none(),
            "a NACK brings nothing",
        )?;
    }
    check(now_ns == 3_000_000_000, &format!("after {now_ns} ns"))?;
    // It is asked less and less often, but asked.
    check((90..300).contains(&sent), &format!("{sent} frames"))?;
    ends(&mut sender, 200, CloseReason::NoProgress)
}

/// All packets came back for that reason, once, and nothing changes any more.
fn ends(sender: &mut Solo, packets: u64, why: CloseReason) -> Checked {
    let mut count = 0;
    while let Some(returned) = sender.association.next_return() {
        check(
            returned.reason == Return::Ended(why),
            "the close reason is the one returned",
        )?;
        check(returned.data[..8] == u64::to_le_bytes(count), "in order")?;
        count += 1;
    }
    check(count == packets, &format!("{count} packets came back"))?;
    check(
        sender.association.deadline_ns().is_none(),
        "nothing to wait for",
    )?;
    check(sender.offer(1).is_err(), "nothing is accepted any more")
}

/// All of these, with their names.
pub type Directed = (&'static str, fn() -> Checked);
pub const ALL: &[Directed] = &[
    (
        "a frame that waits to be taken is answered",
        a_frame_that_waits_to_be_taken_is_answered,
    ),
    (
        "suspension waits for the NACK of the latest transmission",
        suspension_waits_for_the_nack_of_the_latest_transmission,
    ),
    ("a NACK is an answer", a_nack_is_an_answer),
    (
        "silence closes after 255 retries",
        silence_closes_after_255_retries,
    ),
    ("no progress closes", no_progress_closes),
];
