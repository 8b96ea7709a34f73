//! Lobbies: places under a name, for peers that nobody knows yet.
//!
//! A [`Lobby`] offers some places at a time, each of which one asker gets. A place is whatever its
//! owner opens for one peer, as [`Guest`] says: a [`Lane`](crate::lane::Lane) is one. The asker
//! gets the seed of the place, takes it, and presents itself there; then the owner lets it in
//! ([`Lobby::next`]).
//!
//! * An asker has [`GREETING`] to present itself. Then its place is taken back and another is
//!   offered, so whoever asks and vanishes keeps nobody out.
//! * The host counts places where they are given out. A program gets another one as long as it has
//!   less than twice of what it leaves, and another user or another host as long as all of its
//!   programs together have less than what is left. So one program ends with two thirds of the
//!   places, and another user with half. The owner's own process keeps to no share.
//! * Whoever asks in vain waits, as long as its call says, and then hears which it was: all places
//!   are taken, its share is, or the owner has no room for another one.
//! * Nobody is believed who it is but by its link: a greeting that names another interface than the
//!   one that it comes from costs the place.
//! * The interface's access list says who may ask at all.
//!
//! ```
//! use hamlyn::lane::{Lane, LaneOptions, LaneSender};
//! use hamlyn::lobby::{Lobby, LobbyOptions};
//! use hamlyn::Wait;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let name = format!("owner-{}", std::process::id());
//! let owner = hamlyn::open(&name)?;
//! let mut session = owner.session();
//! let (places, lanes) = (LobbyOptions::default(), LaneOptions::default());
//! let mut lobby = Lobby::<Lane>::bind(&mut session, "work", "sums/1", places, lanes)?;
//!
//! // Usually in another process.
//! let peer = hamlyn::open_unnamed()?;
//! let to = format!("{name}/work");
//! let wait = Wait::millis(1000);
//! let mut sender = LaneSender::connect_to(&mut peer.session(), &to, "sums/1", wait)?;
//! sender.send(&mut peer.session(), 7, b"hello", wait)?;
//!
//! let admitted = session.wait_for(wait, |session| lobby.next(session))?;
//! let mut admitted = admitted.ok_or("nobody came")?;
//! let message = admitted.guest.recv(&mut session, wait)?.ok_or("nothing came")?;
//! assert_eq!(admitted.guest.bytes(&message), b"hello");
//! # Ok(())
//! # }
//! ```

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use hamlyn_engine::memory::LinkId;
use hamlyn_host::{Destination, Host, HostError};

use crate::error::{ConnectError, OpenError};
use crate::item::{Bound, EndPoint, ItemHeader, TYPE_NAME_BYTES_MAX, TypeName};
use crate::message::Target;
use crate::protocol::Protocol;
use crate::remains::{Leaving, Remains};
use crate::session::Session;
use crate::wait::Wait;

/// Time that an asker has to present itself, from when its owner sees that it has asked.
pub const GREETING: Duration = Duration::from_secs(10);
const GREETING_NS: u64 = GREETING.as_nanos() as u64;
/// How often the owner looks who has asked: nobody wakes it for that.
const LOOK_EVERY: Duration = Duration::from_secs(5);

/// Options of a lobby.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LobbyOptions {
    /// Number of places, 1 to 65,535. Default 64.
    pub places: u16,
    /// Number of places that are open and offered at a time, 1 or more: so many peers may come at
    /// once. Default 4.
    pub offered: u16,
}

impl Default for LobbyOptions {
    fn default() -> Self {
        Self {
            places: 64,
            offered: 4,
        }
    }
}

/// A place, from when it is opened. When it is dropped, all that belongs to it is closed.
pub trait Guest: Sized {
    /// All that it is opened with.
    type Options;

    /// Opens a place. Must not wait.
    fn open<H: Host>(
        session: &mut Session<'_, H>,
        options: &Self::Options,
    ) -> Result<Self, OpenError>;

    /// The bytes that its asker gets: tickets and limits, which nobody else knows.
    fn seed(&self) -> Vec<u8>;

    /// The greeting of whoever asked, if it has come; looks at all that has come. Must not wait.
    ///
    /// # Errors
    ///
    /// The place is to be taken back.
    fn greeting<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<Greeting>, Unwelcome>;
}

/// A greeting that came to a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Greeting {
    /// The link over which it came.
    pub link: LinkId,
    /// The interface whose tickets it brought; it must be that at the other end of the link.
    pub of: Destination,
}

/// Why an asker is not let in.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unwelcome {
    /// It left before it was heard.
    #[error("it left before it was heard")]
    Left,
    /// It broke the protocol ([`Lobby::misbehaved`]).
    #[error("it broke the protocol")]
    Misbehaved,
}

/// A place that counts as its peer's until this is dropped, whatever becomes of the guest.
#[derive(Debug)]
pub struct Place {
    item: String,
    number: u64,
    leaving: Leaving,
    _counted: Arc<()>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leaving.leave(Remains {
            place: Some((std::mem::take(&mut self.item), self.number)),
            ..Remains::default()
        });
    }
}

/// A guest that was let in. To evict it, drop it.
#[derive(Debug)]
pub struct Admitted<T> {
    /// The place, which is its peer's now.
    pub guest: T,
    /// The link over which the peer presented itself:
    /// [`identity_of`](crate::Interface::identity_of) says who that is.
    pub link: LinkId,
    /// To be kept as long as the guest is.
    pub place: Place,
}

/// A place that is offered, or was asked for.
struct Offered<T> {
    guest: T,
    place: Place,
    /// When it was seen that somebody had asked for it.
    asked_ns: Option<u64>,
}

/// Places that are offered under a name. See [the module](crate::lobby). When it is dropped, nobody
/// finds it any more; guests that were let in stay.
pub struct Lobby<T: Guest> {
    bound: Bound,
    options: LobbyOptions,
    of_guests: T::Options,
    /// In the order in which they are given out.
    offered: VecDeque<Offered<T>>,
    /// Held by each place, offered or filled.
    counted: Arc<()>,
    /// Those that were offered, and all places, when more were last offered.
    tidied: (usize, usize),
    /// When no more could be offered, if they could not.
    short_ns: Option<u64>,
    misbehaved: u64,
}

impl<T: Guest> Lobby<T> {
    /// Offers places under `item`, which is none of the manager's other items and has no slash.
    /// `protocol` is what the layer calls its protocol, 1 to 64 bytes, with its version: whoever
    /// asks for another one is told so. Does not block; allocates.
    ///
    /// # Errors
    ///
    /// A name or an option that cannot be, a name that is in use, or no room for the places that
    /// are offered first.
    pub fn bind<H: Host>(
        session: &mut Session<'_, H>,
        item: &str,
        protocol: &'static str,
        options: LobbyOptions,
        of_guests: T::Options,
    ) -> Result<Self, OpenError> {
        if !(1..=TYPE_NAME_BYTES_MAX).contains(&protocol.len()) {
            return Err(OpenError::Setting {
                setting: "bytes of the name of a lobby's protocol",
                value: protocol.len() as u64,
                reason: "it has 1 to 64",
            });
        }
        Self::bind_as(session, item, header(protocol), options, of_guests)
    }

    pub(crate) fn bind_as<H: Host>(
        session: &mut Session<'_, H>,
        item: &str,
        header: ItemHeader,
        options: LobbyOptions,
        of_guests: T::Options,
    ) -> Result<Self, OpenError> {
        session.check()?;
        for (setting, value) in [
            ("a lobby's places", options.places),
            ("a lobby's offered places", options.offered),
        ] {
            if value == 0 {
                return Err(OpenError::Setting {
                    setting,
                    value: 0,
                    reason: "there is one at least",
                });
            }
        }
        let mut lobby = Self {
            bound: session.core.bind_empty(item, header)?,
            options,
            of_guests,
            offered: VecDeque::new(),
            counted: Arc::default(),
            tidied: (0, 0),
            short_ns: None,
            misbehaved: 0,
        };
        lobby.offer(session)?;
        Ok(lobby)
    }

    /// The next guest who has presented itself, if one has: a step, for
    /// [`wait_for`](Session::wait_for). Offers other places in the stead of those that are taken,
    /// takes back those whose askers did not come, and has all waits of the interface look again in
    /// time for that. If no other place can be opened, those who ask are told, and the next look
    /// tries again. Does not block; allocates when somebody comes.
    pub fn next<H: Host>(
        &mut self,
        session: &mut Session<'_, H>,
    ) -> Result<Option<Admitted<T>>, HostError> {
        session.check().map_err(HostError::from)?;
        session.core.reap();
        session.poll();
        let admitted = self.hear(session);
        if self.note_asked(session) && admitted.is_none() {
            self.dismiss_late(session);
        }
        let is_long_short = self.short_ns.is_some_and(|since_ns| {
            session.host().now_ns().saturating_sub(since_ns) > LOOK_EVERY.as_nanos() as u64
        });
        if self.is_untidy() || self.short_ns.is_none() && self.lacks_offers() || is_long_short {
            self.offer_more(session);
        }
        Ok(admitted)
    }

    /// Number of places that guests have.
    pub fn taken(&self) -> usize {
        self.all() - self.offered.len()
    }

    /// Askers that lost their place because they broke the protocol before they were let in.
    pub fn misbehaved(&self) -> u64 {
        self.misbehaved
    }

    /// A guest that was let in broke the protocol.
    pub(crate) fn count_misbehaved(&mut self) {
        self.misbehaved += 1;
    }

    /// Places that are offered or taken.
    fn all(&self) -> usize {
        Arc::strong_count(&self.counted) - 1
    }

    /// Those that were not let in.
    pub(crate) fn guests_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.offered.iter_mut().map(|offered| &mut offered.guest)
    }

    /// True if there are to be more offers.
    fn lacks_offers(&self) -> bool {
        let is_open = |offered: &&Offered<T>| offered.asked_ns.is_none();
        let unasked = self.offered.iter().filter(is_open).count();
        unasked < usize::from(self.options.offered) && self.all() < usize::from(self.options.places)
    }

    /// Offers places until enough are. If no further one can be had, those who ask in vain are told
    /// so.
    fn offer<H: Host>(&mut self, session: &mut Session<'_, H>) -> Result<(), OpenError> {
        while self.lacks_offers() {
            let places = self.options.places;
            let opened = T::open(session, &self.of_guests).and_then(|guest| {
                // If it cannot be offered, all that the guest consists of is closed with it.
                let number = session
                    .core
                    .offer_place(&self.bound, places, &guest.seed())?;
                Ok((guest, number))
            });
            let (guest, number) = opened.inspect_err(|_| session.core.run_short(&self.bound))?;
            let place = Place {
                number,
                item: self.bound.item.clone(),
                leaving: self.bound.leaving.clone(),
                _counted: self.counted.clone(),
            };
            self.offered.push_back(Offered {
                guest,
                place,
                asked_ns: None,
            });
        }
        Ok(())
    }

    /// The same for a lobby whose guests are served all the same if there can be no more.
    pub(crate) fn offer_more<H: Host>(&mut self, session: &mut Session<'_, H>) {
        // Places that were given back, and what belonged to them.
        session.core.reap();
        self.short_ns = None;
        if let Err(error) = self.offer(session) {
            tracing::debug!(%error, item = self.bound.item, "no place for another guest");
            self.short_ns = Some(session.host().now_ns());
        }
        self.tidied = (self.offered.len(), self.all());
    }

    /// Lets in the next who has presented itself.
    pub(crate) fn hear<H: Host>(&mut self, session: &mut Session<'_, H>) -> Option<Admitted<T>> {
        let mut at = 0;
        while let Some(offered) = self.offered.get_mut(at) {
            let heard = match offered.guest.greeting(session) {
                Ok(None) => {
                    at += 1;
                    continue;
                }
                Ok(Some(greeting)) => match session.led_to(greeting.link, &greeting.of) {
                    Some(true) => Ok(greeting.link),
                    // The peer would have its owner write to somebody else.
                    Some(false) => Err(Unwelcome::Misbehaved),
                    // Its link has ended, and another may have its place.
                    None => Err(Unwelcome::Left),
                },
                Err(unwelcome) => Err(unwelcome),
            };
            // If it is not let in, all that the place consists of is closed here.
            let Offered { guest, place, .. } = self.offered.remove(at)?;
            match heard {
                Ok(link) => return Some(Admitted { guest, link, place }),
                Err(unwelcome) => {
                    tracing::debug!(%unwelcome, item = self.bound.item, "a place is taken back");
                    self.misbehaved += u64::from(unwelcome == Unwelcome::Misbehaved);
                }
            }
        }
        None
    }

    /// True if a place was taken or given back since more were last offered.
    pub(crate) fn is_untidy(&self) -> bool {
        self.tidied != (self.offered.len(), self.all())
    }

    /// True if no more could be offered when they last were to be.
    pub(crate) fn is_short(&self) -> bool {
        self.short_ns.is_some()
    }

    /// Notes who has asked, and has the owner look again in time. True if somebody who asked is
    /// late. Greetings that have come count, however long nobody looked: so the owner takes in what
    /// has come before [`Lobby::dismiss_late`].
    pub(crate) fn note_asked<H: Host>(&mut self, session: &mut Session<'_, H>) -> bool {
        session.look_within(LOOK_EVERY);
        let now_ns = session.host().now_ns();
        let unasked = session.core.offered_under(&self.bound);
        let asked = self.offered.len().saturating_sub(unasked);
        for offered in self.offered.iter_mut().take(asked) {
            offered.asked_ns.get_or_insert(now_ns);
        }
        self.offered.iter().any(|offered| offered.is_late(now_ns))
    }

    /// Takes back the places of those that did not present themselves in time.
    pub(crate) fn dismiss_late<H: Host>(&mut self, session: &Session<'_, H>) {
        let now_ns = session.host().now_ns();
        self.offered.retain(|offered| !offered.is_late(now_ns));
    }
}

impl<T> Offered<T> {
    fn is_late(&self, now_ns: u64) -> bool {
        let since_ns = self
            .asked_ns
            .map(|asked_ns| now_ns.saturating_sub(asked_ns));
        since_ns.is_some_and(|since_ns| since_ns > GREETING_NS)
    }
}

impl<T: Guest> fmt::Debug for Lobby<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lobby")
            .field("bound", &self.bound)
            .field("options", &self.options)
            .field("taken", &self.taken())
            .finish_non_exhaustive()
    }
}

/// Asks for a place under `to`, an address (`name/item` or `host/name/item`) or what
/// [`Session::look_up`] found there, and has `take` make an end of its
/// seed: with the rest of the time it finds the place ([`Session::target`]), and sends its
/// greeting. It returns the end, and where the greeting went. Blocks for as long as `wait` says,
/// while nobody has the name, all places are taken, or the asker's share is.
///
/// `take` may be called again: if the place may have been taken back before the greeting came, the
/// owner's interface is asked, and then for another place if need be. So whoever has connected is
/// let in at the owner's next look, unless it breaks the protocol; and if the owner ends before
/// that, its end of the link says so.
///
/// # Errors
///
/// Those of the address, of another protocol under it, and of its owner; and those of `take`, after
/// which the next attempt has the same place, if want of time was the reason.
pub fn connect<'a, H: Host, E>(
    session: &mut Session<'_, H>,
    to: impl Into<EndPoint<'a>>,
    protocol: &'static str,
    wait: Wait,
    mut take: impl FnMut(&mut Session<'_, H>, &[u8], Wait) -> Result<(E, Target), ConnectError>,
) -> Result<E, ConnectError> {
    session.check()?;
    session.connect_to(to.into(), header(protocol), wait, |session, seed, left| {
        let (end, greeted) = take(session, seed, left)?;
        Ok((end, Some(greeted)))
    })
}

fn header(protocol: &'static str) -> ItemHeader {
    let name = TypeName {
        name: protocol,
        length_bytes: 0,
    };
    ItemHeader::new(Protocol::Layer, name)
}
