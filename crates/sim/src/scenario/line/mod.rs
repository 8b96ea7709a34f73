//! The two ends of a line, by kind: what a program does to send and to receive.

mod flood;
mod gather;
mod granted;
mod group;
mod hostile;
mod places;
mod protocols;

use hamlyn::{Manager, SendError, Target, Ticket, Undelivered, Wait};

use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::ledger::Desk;
use crate::scenario::plan::Kind;

/// Messages of a line that may be under way, where each has a place of its own.
const PLACES: u64 = 4;
/// Of a ticket on its way.
const TICKET_BYTES: usize = hamlyn::ticket::TICKET_BYTES;

pub(crate) type Program = Manager<SimHost>;

/// Where a line ends.
pub(crate) trait Inlet {
    /// What the other end needs.
    fn seed(&self, program: &Program) -> Result<Vec<u8>, String>;

    /// Takes what has come, waiting so long for it. Whether anything had. The loss of a peer is not an error here.
    fn look(&mut self, program: &Program, desk: &Desk<'_>, wait: Wait) -> Result<bool, String>;

    /// Whether nothing is left to be done.
    fn is_done(&self, desk: &Desk<'_>) -> bool {
        desk.is_through()
    }

    fn close(self: Box<Self>, program: &Program, desk: &Desk<'_>) -> Result<(), String>;
}

/// Where a line begins.
pub(crate) trait Outlet {
    /// Does what comes next, as far as that is possible.
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String>;

    /// A packet of this party came back; it may be of this line.
    fn came_back(&mut self, _: &Undelivered, _: &Desk<'_>) -> Result<(), String> {
        Ok(())
    }

    /// Whether nothing is left to be done.
    fn is_done(&self, desk: &Desk<'_>) -> bool {
        desk.is_sent()
    }

    fn close(self: Box<Self>, _: &Program, _: &Desk<'_>) -> Result<(), String> {
        Ok(())
    }
}

/// An outlet's turn.
pub(crate) struct Turn<'a> {
    /// What is known of the line.
    pub(crate) desk: &'a Desk<'a>,
    pub(crate) random: &'a mut Random,
    /// Whose turn it is.
    pub(crate) party: usize,
    /// Whether it is time for the next message.
    pub(crate) is_due: bool,
}

/// What an outlet did.
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

/// Sends that message of the line.
fn send_message<T>(
    desk: &Desk<'_>,
    number: u64,
    send: impl FnOnce(&[u8]) -> Result<T, SendError>,
) -> Result<Sent<T>, String> {
    let data = desk.content(number);
    desk.sending(&data);
    let sent = outcome(send(&data)).map_err(|what| format!("message {number}: {what}"))?;
    if let Sent::NotNow | Sent::Cut = sent {
        desk.unsent();
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

/// Opens the end where the line ends.
pub(crate) fn open_inlet(program: &Program, desk: &Desk<'_>) -> Result<Box<dyn Inlet>, String> {
    Ok(match desk.known().kind {
        Kind::Datagram => Box::new(protocols::DatagramInlet::open(program)?),
        Kind::Tagged => Box::new(protocols::TaggedInlet::open(program, desk)?),
        Kind::Stream => Box::new(protocols::StreamInlet::open(program)?),
        Kind::Group => Box::new(group::GroupInlet::open(program, desk)?),
        Kind::Flood => Box::new(flood::FloodInlet::open(program, desk)?),
        Kind::Granted => Box::new(granted::GrantedInlet::open(program, desk)?),
        Kind::Hostile => Box::new(hostile::Victim::open(program)?),
        Kind::Fast | Kind::Counted | Kind::OneShot | Kind::Silent | Kind::Gather => {
            Box::new(places::Places::open(program, desk)?)
        }
    })
}

/// Grows the end where the line begins. Nothing if its peer is gone.
pub(crate) fn grow_outlet(
    program: &Program,
    desk: &Desk<'_>,
    seed: &[u8],
) -> Result<Option<Box<dyn Outlet>>, String> {
    // Whatever fails here fails because of the peer's end; what else could, the conformance suite shows.
    fn boxed<T: Outlet + 'static>(outlet: T) -> Box<dyn Outlet> {
        Box::new(outlet)
    }
    Ok(match desk.known().kind {
        Kind::Datagram => protocols::DatagramOutlet::grow(program, seed)?.map(boxed),
        Kind::Tagged => protocols::TaggedOutlet::grow(program, seed)?.map(boxed),
        Kind::Stream => protocols::StreamOutlet::grow(program, seed)?.map(boxed),
        Kind::Group => Some(boxed(group::GroupOutlet::default())),
        Kind::Flood => targets(program, seed)?.map(|to| boxed(flood::FloodOutlet(to))),
        Kind::Granted => targets(program, seed)?.map(|to| boxed(granted::GrantedOutlet::new(to))),
        Kind::Hostile => targets(program, seed)?.map(|to| boxed(hostile::Attacker::new(to))),
        Kind::Gather => gather::GatherOutlet::grow(program, desk, seed)?.map(boxed),
        Kind::Fast | Kind::Counted | Kind::OneShot | Kind::Silent => {
            targets(program, seed)?.map(|to| boxed(places::PlacesOutlet::new(to)))
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
        .map(|ticket| program.interface().target(ticket, Wait::Forever).ok())
        .collect())
}
