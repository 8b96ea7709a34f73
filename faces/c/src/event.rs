//! Events: peers come and go, packets are refused, notifications are lost.

use hamlyn::{Direction, Event as Happened};

use crate::boundary::{TextRoom, call, room, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::handle;
use crate::manager::{Manager, ManagerHandle, each};
use crate::peer::Peer;
use crate::status::{Error, Status};

/// What happened.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EventKind {
    /// There is a link to a peer.
    PeerArrived = 0,
    /// A peer is gone.
    PeerLeft = 1,
    /// A packet of this manager was not delivered; the text says which, and why.
    PacketRefused = 2,
    /// `count` notifications were lost: open the manager with a longer queue.
    NotificationsLost = 3,
    /// `count` arrivals and departures are not told: ask for events more often.
    Missed = 4,
    /// Something that a later version of the library tells.
    Other = 5,
    /// `count` bytes wait for a peer that takes nothing, half of what it has room for or more.
    Buffering = 6,
    /// After that: the peer has taken all of them.
    Drained = 7,
    /// `count` bytes of a peer wait for this program, which did not take them: half of the room or
    /// more.
    BufferingIncoming = 8,
    /// After that: this program has taken all of them.
    DrainedIncoming = 9,
}

/// An event.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What happened.
    pub kind: EventKind,
    /// The peer that came or left, takes nothing, or sent what was not taken; zeros otherwise.
    pub peer: Peer,
    /// How many; 0 where nothing is counted.
    pub count: u64,
}

/// The next event. `text` is given what it says for people, and a zero; null: nobody reads it. Blocks for `wait_ns` at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_next_event(
    manager: *mut ManagerHandle,
    wait_ns: i64,
    event: *mut Event,
    text: *mut std::ffi::c_char,
    text_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the event", event)?;
        let text = TextRoom::of(text, text_bytes)?;
        handle::with(manager, |Manager(manager)| {
            let Some(happened) =
                each!(manager, manager => manager.end()?.next_event(wait_of(wait_ns)))?
            else {
                return Err(NOTHING_CAME);
            };
            text.put(&happened);
            place.put(Event::of(&happened));
            Ok(())
        })
    })
}

impl Event {
    fn of(happened: &Happened) -> Self {
        let nobody = Peer::default();
        let (kind, peer, count) = match *happened {
            Happened::PeerArrived { peer } => (EventKind::PeerArrived, peer.into(), 0),
            Happened::PeerLeft { peer, .. } => (EventKind::PeerLeft, peer.into(), 0),
            Happened::Refused(_) => (EventKind::PacketRefused, nobody, 0),
            Happened::Overrun { lost } => (EventKind::NotificationsLost, nobody, lost),
            Happened::Missed { count } => (EventKind::Missed, nobody, count),
            Happened::Buffering {
                peer,
                direction,
                waiting_bytes,
                ..
            } => {
                let kind = match direction {
                    Direction::Outgoing => EventKind::Buffering,
                    Direction::Incoming => EventKind::BufferingIncoming,
                };
                (kind, peer.into(), waiting_bytes)
            }
            Happened::Drained { peer, direction } => {
                let kind = match direction {
                    Direction::Outgoing => EventKind::Drained,
                    Direction::Incoming => EventKind::DrainedIncoming,
                };
                (kind, peer.into(), 0)
            }
            _ => (EventKind::Other, nobody, 0),
        };
        Self { kind, peer, count }
    }
}
