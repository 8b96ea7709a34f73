//! The reading end.

use std::fmt;
use std::task::{Context, Poll};

use hamlyn_host::Host;
use hamlyn_host::process::ProcessHost;

use super::copies::Copies;
use super::list::List;
use super::returns::Came;
use super::wire::{
    FAREWELL, GREETING_BYTES, GREETING_FOR_COPIES, GREETING_FOR_VIEWS, GREETING_OFFSET, Lane,
};
use crate::error::{ConnectError, ReceiveError};

use crate::item::{EndPoint, ItemHeader};
use crate::manager::{Manager, ManagerRef};
use crate::message::{Message, Target};
use crate::peer::PeerIdentity;
use crate::remains::{LastWord, Leaving, Remains};
use crate::session::Session;
use crate::ticket::TICKET_BYTES;
use crate::wait::Wait;

pub(super) enum Route {
    Views(Box<List>),
    Copies(Box<Copies>),
}

/// The lane of a publisher that this reader has. When it is dropped, the publisher is told.
struct Connected {
    lane: Lane,
    door: Target,
    leaving: Leaving,
}

impl Drop for Connected {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            last_word: Some(LastWord::fast(self.door, FAREWELL)),
            ..Remains::default()
        });
    }
}

/// The reading end. See [the module](crate::loans).
pub struct Subscriber<H: Host = ProcessHost> {
    to: Connected,
    pub(super) route: Route,
    /// The number of the message after the last that came.
    following: Option<u64>,
    lost: u64,
    /// Why nothing comes any more.
    over: Option<ReceiveError>,
    pub(super) manager: ManagerRef<H>,
}

impl<H: Host> Subscriber<H> {
    pub(crate) fn connect(
        manager: &Manager<H>,
        to: EndPoint<'_>,
        header: ItemHeader,
        wait: Wait,
    ) -> Result<Self, ConnectError> {
        let mut session = manager.enter()?;
        let (to, route) = session.connect_to(to, header, wait, |session, lane, left| {
            let (to, route) = connect(session, lane, left)?;
            let door = to.door;
            Ok(((to, route), Some(door)))
        })?;
        Ok(Self {
            to,
            route,
            following: None,
            lost: 0,
            over: None,
            manager: manager.hold(),
        })
    }

    /// The message that [`Subscriber::recv`] shows.
    #[inline]
    pub(super) fn next_message(&mut self, wait: Wait) -> Result<Option<Came>, ReceiveError> {
        self.manager.check()?;
        if let Some(error) = &self.over {
            return Err(error.clone());
        }
        let is_latest = self.to.lane.is_latest();
        let from = self.following.unwrap_or(0);
        let came = match &mut self.route {
            Route::Views(list) => {
                let mut session = self.manager.enter()?;
                // Without a pool, messages stay in the list.
                let told = match list.pool {
                    Some(_) => session.take_at_hand(&list.queue),
                    None => None,
                };
                match told {
                    Some(told) if told.word == list.next && !is_latest => {
                        list.message(&told).map(Some)
                    }
                    told => {
                        let over = &mut self.over;
                        list.next_message(&mut session, told, over, from, wait)
                    }
                }
            }
            Route::Copies(copies) => {
                let door = &self.to.door;
                let mut session = self.manager.enter()?;
                let number =
                    session.wait_for(wait, |session| copies.look(session, door, is_latest));
                number.map(|number| number.map(Came::copied))
            }
        };
        let came = match came {
            Ok(Some(came)) => came,
            Ok(None) => return Ok(None),
            Err(error) => {
                // Waiting may succeed another time.
                if !matches!(error, ReceiveError::Host(_)) {
                    self.over = Some(error.clone());
                }
                return Err(error);
            }
        };
        // A publisher that lies about its numbers is believed, and misleads nobody else.
        let expected = self.following.unwrap_or(came.number);
        self.lost = self
            .lost
            .saturating_add(came.number.saturating_sub(expected));
        self.following = Some(came.number.saturating_add(1));
        Ok(Some(came))
    }

    /// The message that [`Subscriber::poll_recv`] shows.
    pub(super) fn poll_message(
        &mut self,
        context: &Context<'_>,
    ) -> Poll<Result<Came, ReceiveError>> {
        // Before the look, so that nothing is missed in between.
        if let Err(error) = self.manager.register_waker(context.waker()) {
            return Poll::Ready(Err(error.into()));
        }
        if let Route::Views(list) = &self.route {
            list.will_wake_when_released(context.waker());
        }
        if let Some(found) = self.next_message(Wait::Poll).transpose() {
            self.manager.stop_waiting();
            return Poll::Ready(found);
        }
        self.manager.wait_as_task(match &self.route {
            Route::Views(list) => list.interest(),
            Route::Copies(copies) => copies.interest(&self.to.door),
        });
        Poll::Pending
    }

    /// Messages that this reader did not get, between the first and the last that it got: gaps in
    /// their numbers.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether messages are read where the publisher wrote them; otherwise they are copied to
    /// here. With [`SlowReaders::Latest`](super::SlowReaders::Latest) the newest is copied if it
    /// was not announced to this reader.
    pub fn reads_in_place(&self) -> bool {
        matches!(self.route, Route::Views(_))
    }

    /// How many samples this reader may have that are not given back.
    pub fn depth(&self) -> u16 {
        self.to.lane.depth
    }

    /// Bytes of the longest message.
    pub fn message_bytes_max(&self) -> u32 {
        self.to.lane.message_bytes
    }

    /// The publisher, as the kernel or the handshake vouches. Nothing if its link ended long ago.
    pub fn publisher(&self) -> Option<PeerIdentity> {
        let link = self.to.door.link();
        self.manager.enter().ok()?.identity_of(link)
    }

    /// Gives back samples that were kept and are dropped, as the next [`Subscriber::recv`] would:
    /// for a program that makes none for long.
    pub fn reclaim(&mut self) {
        if let Route::Views(list) = &mut self.route
            && let Ok(mut session) = self.manager.enter()
        {
            list.returns.give_back_released(&mut session);
        }
    }
}

impl<H: Host> fmt::Debug for Subscriber<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscriber")
            .field("lane", &self.to.lane)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

/// Becomes a reader of the lane that is in those bytes.
fn connect<H: Host>(
    session: &mut Session<'_, H>,
    lane: &[u8],
    left: Wait,
) -> Result<(Connected, Route), ConnectError> {
    let lane = Lane::from_bytes(lane).ok_or(ConnectError::Seed {
        what: "malformed lane descriptor",
    })?;
    let door = session.target(&lane.door, left)?;
    let board = door.with_ticket(lane.board).ok_or(ConnectError::Seed {
        what: "its board is another interface's",
    })?;
    let here = session.identity();
    let is_near = lane.door.destination.node == here.node && lane.door.destination != here;
    let mut greeting = [0; GREETING_BYTES];
    let (word, route) = if is_near {
        let mut list = List::open(session, lane, door, board)?;
        list.fetch_shown(session)?;
        greeting[..TICKET_BYTES].copy_from_slice(&list.slot.whole_fast().to_bytes());
        (GREETING_FOR_VIEWS, Route::Views(Box::new(list)))
    } else {
        let copies = Copies::open(session, &lane)?;
        greeting = copies.seed().to_bytes();
        (GREETING_FOR_COPIES, Route::Copies(Box::new(copies)))
    };
    let message = Message::new(&greeting).at(GREETING_OFFSET).word(word);
    session.send(&door, &message, left)?;
    // Not before: a farewell would give away the place, which the next attempt may have.
    let to = Connected {
        lane,
        door,
        leaving: session.leaving.clone(),
    };
    Ok((to, route))
}
