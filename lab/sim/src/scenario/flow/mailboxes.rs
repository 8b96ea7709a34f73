//! Mailboxes: several senders who wait for nobody, and a receiver that lets messages wait in its
//! queue, gives its mailbox another key, and replaces it. What finds no room comes back.

use std::collections::BTreeMap;

use hamlyn::engine::memory::LinkId;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::ticket::TicketKind;
use hamlyn::{FenceError, ReceiveError, SendError, Ticket, Undelivered, Wait};

use super::{FlowReceiver, FlowSender, Program, Sent, Step, Turn, outcome, tickets, wrong};
use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::{End, Models, Oracle};
use crate::scenario::process;
use crate::time::{Span, Time};
use crate::world;

/// Messages of all senders that may be on their way. Refusals of fewer than 63 are remembered on
/// one host until they are fetched.
const WINDOW: u64 = 20;
/// Messages that are taken in one look.
const BATCH: u64 = 4;
/// For so long a receiver does something else.
const BUSY_NS: u64 = 300_000;
const SHORT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(30));
const FENCE_WAIT: Wait = Wait::For(std::time::Duration::from_micros(300));

/// A third of all queues are so wide that nothing is refused.
fn options(random: &mut Random) -> MailboxOptions {
    let wide = MailboxOptions::default();
    let queues = [wide.queue_bytes, wide.queue_bytes, 64, 320, 1_024, 8_192];
    let queue_bytes = *random.one_of(&queues).unwrap_or(&wide.queue_bytes);
    let peer_bytes = match random.below(3) {
        0 => Some(queue_bytes),
        1 if queue_bytes < wide.queue_bytes => Some(64),
        _ => None,
    };
    MailboxOptions {
        queue_bytes,
        peer_bytes,
    }
}

/// Messages that are known to be refused are over.
fn permit(oracle: &Oracle<'_>, refused: Option<Vec<u64>>) {
    for number in refused.unwrap_or_default() {
        oracle.permit(number);
    }
}

/// A mailbox whose program does not always look.
pub(super) struct MailboxReceiver {
    receiver: mailbox::Receiver<SimHost>,
    random: Random,
    busy_until: Time,
    /// Messages taken since it was renewed.
    taken: u32,
    renewed: u32,
    /// It takes no new messages, and is replaced when nothing is on its way.
    is_closing: bool,
    /// Which process each link leads to, as far as links were seen.
    senders: BTreeMap<LinkId, usize>,
}

impl MailboxReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let mut random = Random::new(oracle.seed());
        let receiver = mailbox::Receiver::new(program, options(&mut random));
        Ok(Self {
            receiver: receiver.map_err(wrong("opening"))?,
            random,
            busy_until: Time::ZERO,
            taken: 0,
            renewed: 0,
            is_closing: false,
            senders: BTreeMap::new(),
        })
    }

    /// Finds out which process sends over that link.
    fn sender(&mut self, program: &Program, oracle: &Oracle<'_>, from: LinkId) -> Option<usize> {
        let processes = 0..oracle.plan.processes.len();
        for (link, peer) in program.session().peers() {
            let named = |number: &usize| peer.name.as_deref() == Some(&process::name(*number));
            if let Some(number) = processes.clone().find(named) {
                self.senders.insert(link, number);
            }
        }
        self.senders.get(&from).copied()
    }

    /// Takes one message. Whether there was one.
    fn take(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let mail = match self.receiver.recv(wait) {
            Ok(Some(mail)) => mail,
            Ok(None) | Err(ReceiveError::PeerLost(_)) => return Ok(false),
            Err(error) => return Err(wrong("receiving mail")(error)),
        };
        let (bytes, from, identity) = (mail.to_vec(), mail.from(), mail.sender());
        if identity.is_none() && oracle.plan.is_lossless() {
            return Err("nobody sent a message".to_owned());
        }
        self.taken += 1;
        let sender = self.sender(program, oracle, from);
        let processes = &oracle.plan.processes;
        let to = oracle.known().to;
        let is_near = sender.is_some_and(|from| processes[from].node == processes[to].node);
        let is_ordered = is_near && oracle.plan.near_jitter_ns == 0;
        let came = oracle.judge(|models| models.mailing.came(sender, &bytes, is_ordered))?;
        if let Some(came) = came {
            oracle.came(came.number, &bytes);
            permit(oracle, Some(came.refused));
        }
        Ok(true)
    }

    /// Now and then the mailbox gets another key, or is replaced by another one once nothing is on
    /// its way. Messages with the key before come back.
    fn renew_if_due(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<bool, String> {
        let after = oracle.known().renewed_after;
        if after == 0 || oracle.is_old() {
            return Ok(false);
        }
        if self.is_closing {
            if !oracle.is_settled() {
                return Ok(false);
            }
            let receiver = mailbox::Receiver::new(program, options(&mut self.random));
            self.receiver = receiver.map_err(wrong("opening another"))?;
            self.is_closing = false;
        } else {
            if self.taken < after {
                return Ok(false);
            }
            self.taken = 0;
            self.renewed += 1;
            self.receiver.revoke().map_err(wrong("revoking"))?;
            self.is_closing = self.renewed.is_multiple_of(2);
            if self.is_closing {
                return Ok(true);
            }
        }
        oracle.tell(End::Sender, self.receiver.ticket().to_bytes().to_vec());
        Ok(true)
    }
}

impl FlowReceiver for MailboxReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        Ok(self.receiver.ticket().to_bytes().to_vec())
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        if world::now() < self.busy_until {
            // Its interface takes messages in meanwhile, if it is this program that drives it.
            match wait {
                Wait::Poll => drop(program.session().poll()),
                // The loss of a peer interrupts it, which is told otherwise.
                _ => drop(program.wait(wait)),
            }
            return Ok(false);
        }
        let mut moved = self.renew_if_due(program, oracle)?;
        let mut wait = wait;
        for _ in 0..1 + self.random.below(BATCH) {
            if !self.take(program, oracle, wait)? {
                break;
            }
            (moved, wait) = (true, Wait::Poll);
        }
        if moved && self.random.below(4) == 0 {
            self.busy_until = world::now() + Span::from_ns(self.random.below(BUSY_NS));
        }
        Ok(moved)
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// One of those who send to a mailbox.
pub(super) struct MailboxSender {
    sender: mailbox::Sender<SimHost>,
    /// All tickets that it had.
    tickets: Vec<Ticket>,
    heard: usize,
    /// Which process it is.
    process: usize,
    /// A message that there was no room for yet.
    pending: Option<(u64, Vec<u8>)>,
    /// A fence was answered. What it found refused is told before the next step.
    is_fenced: bool,
}

impl MailboxSender {
    pub(super) fn grow(program: &Program, seed: &[u8]) -> Result<Option<Self>, String> {
        let ticket = tickets(seed)?[0];
        let sender = mailbox::Sender::grow(program, &ticket, Wait::Forever);
        Ok(sender.ok().map(|sender| Self {
            sender,
            tickets: vec![ticket],
            heard: 0,
            process: usize::MAX,
            pending: None,
            is_fenced: false,
        }))
    }

    /// Takes another ticket.
    fn hear(&mut self, program: &Program, told: &[u8]) -> Result<Step, String> {
        let ticket = tickets(told)?[0];
        self.heard += 1;
        let Ok(sender) = mailbox::Sender::grow(program, &ticket, Wait::Forever) else {
            return Ok(Step::Lost);
        };
        self.sender = sender;
        self.tickets.push(ticket);
        Ok(Step::Moved)
    }

    fn fence(&mut self) -> Result<Step, String> {
        match self.sender.fence(FENCE_WAIT) {
            // Refused messages come back one by one.
            Ok(()) | Err(FenceError::Refused { .. }) => {
                self.is_fenced = true;
                Ok(Step::Moved)
            }
            Err(FenceError::TimedOut { .. }) => Ok(Step::Nothing),
            Err(
                FenceError::PeerLost(_)
                | FenceError::NoSuchLink
                | FenceError::Send(SendError::PeerLost(_)),
            ) => Ok(Step::Lost),
            Err(error) => Err(wrong("a fence")(error)),
        }
    }

    /// The next message, as long as the link takes it.
    fn next(&self, oracle: &Oracle<'_>, most: usize) -> Option<(u64, Vec<u8>)> {
        let number = oracle.next(WINDOW)?;
        let mut data = oracle.content(number);
        data.truncate(most);
        oracle.sending(&data);
        Some((number, data))
    }

    fn send(&mut self, oracle: &Oracle<'_>, random: &mut Random) -> Result<Step, String> {
        let Some((number, data)) = self.pending.take() else {
            return Ok(Step::Nothing);
        };
        let wait = match random.below(4) {
            0 => Wait::Forever,
            1 => SHORT_WAIT,
            _ => Wait::Poll,
        };
        let process = self.process;
        oracle.judge(|models| {
            models.mailing.sending(process, number, &data);
            Ok(())
        })?;
        let sent = outcome(self.sender.send(&data, wait));
        match sent.map_err(|what| format!("message {number}: {what}"))? {
            Sent::NotNow => {
                let unsent = |models: &mut Models| models.mailing.unsent(process, number);
                permit(oracle, oracle.judge(unsent)?);
                self.pending = Some((number, data));
                Ok(Step::Nothing)
            }
            Sent::Cut => Err(format!("message {number} is one packet, and was cut")),
            sent => Ok(sent.step()),
        }
    }
}

impl FlowSender for MailboxSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let (oracle, random) = (turn.oracle, turn.random);
        self.process = turn.process;
        let (process, is_fenced) = (self.process, std::mem::take(&mut self.is_fenced));
        let is_outstanding = oracle.judge(|models| {
            if is_fenced {
                models.mailing.fenced(process);
            }
            Ok(models.mailing.is_outstanding(process))
        })?;
        if let Some(told) = oracle.told(End::Sender, self.heard) {
            return self.hear(program, &told);
        }
        let often = if oracle.is_sent() { 3 } else { 24 };
        if is_outstanding == Some(true) && random.below(often) == 0 {
            return self.fence();
        }
        if self.pending.is_none() && turn.is_due {
            let Some(most) = self.sender.message_bytes_max() else {
                return Ok(Step::Lost);
            };
            self.pending = self.next(oracle, most);
        }
        self.send(oracle, random)
    }

    fn came_back(&mut self, packet: &Undelivered, oracle: &Oracle<'_>) -> Result<(), String> {
        let is_ours =
            |ticket: &Ticket| packet.to == Some(ticket.destination) && packet.slot == ticket.slot;
        let Return::Refused(reason) = packet.reason else {
            // With its link, which ends the flow.
            return Ok(());
        };
        if packet.kind == TicketKind::Slot || !self.tickets.iter().any(is_ours) {
            return Ok(());
        }
        let is_renewed = oracle.known().renewed_after > 0 || oracle.is_old();
        match reason {
            Refusal::QueueFull => {}
            Refusal::BadKey | Refusal::PortClosed if is_renewed => {}
            _ => return Err(format!("a message came back: {reason}")),
        }
        let (process, length) = (self.process, packet.length_bytes as usize);
        let refused = oracle.judge(|models| models.mailing.refused(process, length))?;
        permit(oracle, refused);
        Ok(())
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        // Until all came, some may still come back.
        oracle.is_through()
    }
}
