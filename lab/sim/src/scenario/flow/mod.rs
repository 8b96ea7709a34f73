//! The two ends of a flow, by kind: how a program sends and receives.

mod calls;
mod flood;
mod gather;
mod granted;
mod group;
mod hostile;
mod loans;
mod mailboxes;
mod one_sided;
mod places;
mod protocols;

use hamlyn::{Manager, SendError, Target, Ticket, Undelivered, Wait};

use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::Oracle;
use crate::scenario::plan::Kind;

/// Messages of a flow that may be in flight, where each has a place of its own.
const PLACES: u64 = 4;
/// Of a ticket on its way.
const TICKET_BYTES: usize = hamlyn::ticket::TICKET_BYTES;

pub(crate) type Program = Manager<SimHost>;

/// Where a flow ends.
pub(crate) trait FlowReceiver {
    /// What the other end needs.
    fn seed(&self, program: &Program) -> Result<Vec<u8>, String>;

    /// Takes what has come, waiting so long for it. Whether anything had. The loss of a peer is not
    /// an error here.
    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String>;

    /// Whether nothing is left to be done.
    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_through()
    }

    fn close(self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String>;
}

/// Where a flow begins.
pub(crate) trait FlowSender {
    /// Does what comes next, as far as that is possible.
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String>;

    /// A packet of this process came back; it may be of this line.
    fn came_back(&mut self, _: &Undelivered, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Whether nothing is left to be done.
    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        oracle.is_sent()
    }

    /// The flow begins anew: gives back what it has of the program. False while messages are at it.
    fn give_back(&mut self, _: &Program, _: &Oracle<'_>) -> Result<bool, String> {
        Ok(true)
    }

    fn close(self: Box<Self>, _: &Program, _: &Oracle<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// An sender's turn.
pub(crate) struct Turn<'a> {
    /// What is known of the flow.
    pub(crate) oracle: &'a Oracle<'a>,
    pub(crate) random: &'a mut Random,
    /// Whose turn it is.
    pub(crate) process: usize,
    /// Whether it is time for the next message.
    pub(crate) is_due: bool,
}

/// What an sender did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Nothing,
    /// Something, but for the next message.
    Moved,
    Sent,
    /// Its peer is lost.
    Lost,
}

/// How sending ended.
enum Sent<T> {
    Yes(T),
    /// There was no room, and nothing was sent.
    NotNow,
    /// A part of it was sent.
    Cut,
    /// Its peer is lost.
    Lost,
}

/// What went wrong in a call, as text: a violation, unless it was to be.
fn wrong<E: std::fmt::Display>(call: &'static str) -> impl Fn(E) -> String {
    move |error| format!("{call}: {error}")
}

fn outcome<T>(result: Result<T, SendError>) -> Result<Sent<T>, String> {
    Ok(match result {
        Ok(sent) => Sent::Yes(sent),
        Err(SendError::WouldBlock { .. }) => Sent::NotNow,
        Err(SendError::Cut { .. }) => Sent::Cut,
        Err(SendError::PeerLost(_) | SendError::ClosedByReceiver | SendError::Finished) => {
            Sent::Lost
        }
        Err(error) => return Err(wrong("sending")(error)),
    })
}

/// Sends that message of the flow.
fn send_message<T>(
    oracle: &Oracle<'_>,
    number: u64,
    send: impl FnOnce(&[u8]) -> Result<T, SendError>,
) -> Result<Sent<T>, String> {
    let data = oracle.content(number);
    oracle.sending(&data);
    let sent = outcome(send(&data)).map_err(|what| format!("message {number}: {what}"))?;
    if let Sent::NotNow | Sent::Cut = sent {
        oracle.unsent();
    }
    Ok(sent)
}

impl<T> Sent<T> {
    fn step(self) -> Step {
        match self {
            Sent::Yes(_) => Step::Sent,
            Sent::NotNow | Sent::Cut => Step::Nothing,
            Sent::Lost => Step::Lost,
        }
    }
}

/// What says which message it is, and how long.
fn word_of(number: u64, length: usize) -> u64 {
    number & 0xffff_ffff | (length as u64) << 32
}

/// The number of the message, and its length.
fn parts_of(word: u64) -> (u64, usize) {
    (word & 0xffff_ffff, (word >> 32) as usize)
}

/// Opens the end where the flow ends.
pub(crate) fn open_receiver(
    program: &Program,
    oracle: &Oracle<'_>,
) -> Result<Box<dyn FlowReceiver>, String> {
    Ok(match oracle.known().kind {
        Kind::Datagram => Box::new(protocols::DatagramReceiver::open(program)?),
        Kind::Tagged => Box::new(protocols::TaggedReceiver::open(program, oracle)?),
        Kind::Stream => Box::new(protocols::StreamReceiver::open(program)?),
        Kind::Group => Box::new(group::GroupReceiver::open(program, oracle)?),
        Kind::Flood => Box::new(flood::FloodReceiver::open(program, oracle)?),
        Kind::Granted => Box::new(granted::GrantedReceiver::open(program, oracle)?),
        Kind::Hostile => Box::new(hostile::Victim::open(program)?),
        Kind::Service => Box::new(calls::ServiceReceiver::open(program, oracle)?),
        Kind::OneSided => Box::new(one_sided::Owner::open(program, oracle)?),
        Kind::Loans => Box::new(loans::LoansPublisher::open(program, oracle)?),
        Kind::Mailbox => Box::new(mailboxes::MailboxReceiver::open(program, oracle)?),
        Kind::Fast | Kind::Counted | Kind::OneShot | Kind::Silent | Kind::Gather => {
            Box::new(places::Places::open(program, oracle)?)
        }
    })
}

/// Grows the end where the flow begins. Nothing if its peer is gone.
pub(crate) fn grow_sender(
    program: &Program,
    oracle: &Oracle<'_>,
    seed: &[u8],
) -> Result<Option<Box<dyn FlowSender>>, String> {
    // Whatever fails here fails because of the peer's end; what else could, the conformance suite
    // shows.
    fn boxed<T: FlowSender + 'static>(sender: T) -> Box<dyn FlowSender> {
        Box::new(sender)
    }
    Ok(match oracle.known().kind {
        Kind::Datagram => protocols::DatagramSender::grow(program, seed)?.map(boxed),
        Kind::Tagged => protocols::TaggedSender::grow(program, seed)?.map(boxed),
        Kind::Stream => protocols::StreamSender::grow(program, seed)?.map(boxed),
        Kind::Group => Some(boxed(group::GroupSender::default())),
        Kind::Service => Some(boxed(calls::ServiceSender::new(oracle))),
        Kind::Flood => targets(program, seed)?.map(|to| boxed(flood::FloodSender(to))),
        Kind::Granted => targets(program, seed)?.map(|to| boxed(granted::GrantedSender::new(to))),
        Kind::Hostile => targets(program, seed)?.map(|to| boxed(hostile::Attacker::new(to))),
        Kind::Gather => gather::GatherSender::grow(program, oracle, seed)?.map(boxed),
        Kind::OneSided => one_sided::OneSidedSender::grow(program, seed)?.map(boxed),
        Kind::Loans => Some(boxed(loans::LoansReader::new(oracle))),
        Kind::Mailbox => mailboxes::MailboxSender::grow(program, seed)?.map(boxed),
        Kind::Fast | Kind::Counted | Kind::OneShot | Kind::Silent => {
            targets(program, seed)?.map(|to| boxed(places::PlacesSender::new(to)))
        }
    })
}

fn tickets(bytes: &[u8]) -> Result<Vec<Ticket>, String> {
    let all = bytes.chunks_exact(TICKET_BYTES).map(Ticket::from_bytes);
    all.collect::<Result<_, _>>().map_err(wrong("a ticket"))
}

/// Tickets made usable. Nothing if their interface is gone.
fn targets(program: &Program, bytes: &[u8]) -> Result<Option<Vec<Target>>, String> {
    Ok(tickets(bytes)?
        .iter()
        .map(|ticket| program.session().target(ticket, Wait::Forever).ok())
        .collect())
}
