//! Endpoints (`V 3.1`): names, tags, handlers, translations, and the calls that send.

use std::ops::Range;
use std::rc::Rc;

use hamlyn::host::process::ProcessHost;
use hamlyn::{Area, Host, LinkEnd, Session, Wait};

use crate::bulk::Bulk;
use crate::call::{Call, Deferred, Outcome, Reply};
use crate::error::{Error, Reason};
use crate::name::{Name, Tag, key_of};
use crate::peer::{EndpointId, ServedState};
use crate::poll::NodeState;
use crate::port::{EndpointState, Handler, Incoming};
use crate::returned::Returned;
use crate::send::{Attempt, Request, check};
use crate::shared::Shared;
use crate::state::State;
use crate::traffic::Again;
use crate::translation::{TRANSLATIONS_MAX, Translation};
use crate::wire::Category;

/// An endpoint, opened by [`Bundle::endpoint`](crate::Bundle::endpoint). When it is dropped, what
/// is sent to it comes back ([`Reason::BadEndpoint`](crate::Reason::BadEndpoint)), and what it has
/// outstanding ends silently.
///
/// Calls that send take a [`Wait`]; meanwhile they poll the bundle, so its handlers run. With
/// [`Wait::Poll`] they run no handlers and move no packets: they are [`Error::WouldBlock`] if
/// anything stands in the way.
pub struct Endpoint<H: Host = ProcessHost> {
    shared: Rc<Shared<H>>,
    id: EndpointId,
}

impl<H: Host> Drop for Endpoint<H> {
    fn drop(&mut self) {
        self.shared.dropped.endpoint(self.id);
        // At once, unless a handler runs.
        if let Ok((mut node, mut session)) = self.shared.enter() {
            // A port that cannot be closed is gone with its interface.
            let _ = node.clean_up(&mut session);
        }
    }
}

impl<H: Host> Endpoint<H> {
    pub(crate) fn new(shared: Rc<Shared<H>>, id: EndpointId) -> Self {
        Self { shared, id }
    }

    pub(crate) fn is_of(&self, shared: &Rc<Shared<H>>) -> bool {
        Rc::ptr_eq(&self.shared, shared)
    }

    pub(crate) fn id(&self) -> EndpointId {
        self.id
    }

    fn with<T>(&self, act: impl FnOnce(&mut EndpointState) -> T) -> Result<T, Error> {
        let (mut node, _session) = self.shared.enter()?;
        let endpoint = node.state.endpoints.get(self.id);
        // It lives as long as this does.
        endpoint.map(act).ok_or(Error::Stale)
    }

    /// Its name, which stays the same as long as the endpoint lives.
    pub fn name(&self) -> Result<Name, Error> {
        let (mut node, session) = self.shared.enter()?;
        let endpoint = node.state.endpoints.get(self.id).ok_or(Error::Stale)?;
        Ok(Name::new(session.identity(), endpoint.introduction))
    }

    /// Sets the tag, at any time. Messages that were sent with the one before and have not come
    /// yet come back ([`Reason::BadTag`]); those that came are taken, but for gets and questions of
    /// long transfers that were taken and have no answer yet: they come back. Nobody who has been
    /// told where the segment is writes there any more; if others have mapped its memory, its pages
    /// are copied. Whoever asks by a message that lies in the queue now is told once more.
    pub fn set_tag(&mut self, tag: Tag) -> Result<(), Error> {
        let (mut node, mut session) = self.shared.enter()?;
        node.state.shut_segment(&mut session, self.id)?;
        let endpoint = node.state.endpoints.get(self.id).ok_or(Error::Stale)?;
        let secret = endpoint.introduction.secret();
        session.rekey_port(&mut endpoint.port, key_of(&secret, tag))?;
        endpoint.tag = tag;
        // Their askers knew the tag before.
        node.state.return_asked(self.id, Reason::BadTag);
        Ok(())
    }

    /// Its tag.
    pub fn tag(&self) -> Result<Tag, Error> {
        self.with(|endpoint| endpoint.tag)
    }

    /// True if it has a frame ([`NodeOptions::frames`](crate::NodeOptions::frames)).
    pub fn is_resident(&self) -> Result<bool, Error> {
        self.with(|endpoint| endpoint.is_resident)
    }

    /// Requests and transfers of it that are neither answered nor returned.
    pub fn outstanding(&self) -> Result<u32, Error> {
        let (mut node, _session) = self.shared.enter()?;
        let waiting = node.state.transfers.waiting(self.id);
        let endpoint = node.state.endpoints.get(self.id).ok_or(Error::Stale)?;
        Ok(endpoint.outstanding + waiting)
    }

    // Handlers.

    fn set(&mut self, number: u8, handler: Option<Handler>) -> Result<(), Error> {
        if number == 0 {
            return Err(Error::ReservedHandler);
        }
        self.with(|endpoint| {
            let handlers = &mut endpoint.receiving.handlers;
            let at = usize::from(number);
            if handlers.len() <= at {
                handlers.resize_with(at + 1, || None);
            }
            handlers[at] = handler;
        })
    }

    /// Sets handler `number`, 1 to 255, for short messages. Allocates.
    pub fn on_short(
        &mut self,
        number: u8,
        handler: impl FnMut(&mut Call<'_>, &[u32]) -> Outcome + 'static,
    ) -> Result<(), Error> {
        self.set(number, Some(Handler::Short(Box::new(handler))))
    }

    /// Sets handler `number` for medium messages. It is shown the data where they lie, or where
    /// they were copied if their sender could still write them. Allocates.
    pub fn on_medium(
        &mut self,
        number: u8,
        handler: impl FnMut(&mut Call<'_>, &[u8], &[u32]) -> Outcome + 'static,
    ) -> Result<(), Error> {
        self.set(number, Some(Handler::Medium(Box::new(handler))))
    }

    /// Sets handler `number` for bulk messages and gets: it is told the range of the own segment in
    /// which the data are. Allocates.
    pub fn on_bulk(
        &mut self,
        number: u8,
        handler: impl FnMut(&mut Call<'_>, Range<u64>, &[u32]) -> Outcome + 'static,
    ) -> Result<(), Error> {
        self.set(number, Some(Handler::Bulk(Box::new(handler))))
    }

    /// Sets handler `number` for messages of any kind, as the handlers of C are: it is told which
    /// kind it has. Allocates.
    pub fn on_any(
        &mut self,
        number: u8,
        handler: impl FnMut(&mut Call<'_>, Incoming<'_>, &[u32]) -> Outcome + 'static,
    ) -> Result<(), Error> {
        self.set(number, Some(Handler::Any(Box::new(handler))))
    }

    /// Removes handler `number`: messages for it come back
    /// ([`Reason::BadHandler`](crate::Reason::BadHandler)).
    pub fn clear_handler(&mut self, number: u8) -> Result<(), Error> {
        self.set(number, None)
    }

    /// Sets the function for messages that come back, handler 0. Without one they are counted
    /// ([`Statistics`](crate::Statistics)) and dropped. One that comes back as its peer is gone does
    /// so when all that the peer had sent to this bundle was given to handlers. Allocates.
    pub fn on_returned(
        &mut self,
        handler: impl FnMut(&Returned<'_>) + 'static,
    ) -> Result<(), Error> {
        self.with(|endpoint| endpoint.receiving.returned = Some(Box::new(handler)))
    }

    // The segment.

    /// Sets the segment to the first `length_bytes` of an area, into which bulk messages go and
    /// from which gets read; or to none. At any time: a message that comes later keeps to it, and
    /// when this has returned, nobody writes into the segment before.
    ///
    /// Those who have the tag may write the segment at any time. If it is all of an
    /// [`Area::shared`](hamlyn::Area::shared), senders of this host map it and store their data
    /// themselves, also while a handler looks at them.
    ///
    /// # Errors
    ///
    /// The range does not lie in the area; or memory that others have mapped cannot be taken back
    /// ([`Error::Segment`]), and nothing has changed.
    pub fn set_segment(&mut self, segment: Option<(Area, u64)>) -> Result<(), Error> {
        if let Some((area, length_bytes)) = &segment
            && *length_bytes > 0
            && area.read_at(*length_bytes - 1, &mut [0]).is_err()
        {
            return Err(Error::OutsideSegment {
                offset: 0,
                length_bytes: *length_bytes,
                segment_bytes: 0,
            });
        }
        let (mut node, mut session) = self.shared.enter()?;
        node.set_segment(&mut session, self.id, segment)
    }

    /// Sets a segment of that length, zeroed: the area is both this endpoint's and the caller's.
    /// Allocates.
    pub fn new_segment(&mut self, length_bytes: u64) -> Result<Area, Error> {
        let area = {
            let (_node, mut session) = self.shared.enter()?;
            session.allocate(length_bytes)?
        };
        self.set_segment(Some((area.clone(), length_bytes)))?;
        Ok(area)
    }

    // Translations.

    /// Maps a name, to send to that endpoint with that tag. Connects to its node, if there is no
    /// link, as long as `wait` says; nothing is received meanwhile. Allocates.
    ///
    /// Nothing is asked of the endpoint: one that is gone, or has another tag, returns messages.
    pub fn map(&self, name: &Name, tag: Tag, wait: Wait) -> Result<Translation, Error> {
        let ticket = name.ticket(tag).ok_or(Error::NoTag)?;
        let any = name.ticket(Tag::Any).ok_or(Error::NoTag)?;
        let (mut node, mut session) = self.shared.enter()?;
        let target = session.target(&ticket, wait)?;
        let link = target.link();
        let interface = session.identity_of(link).map(|identity| identity.interface);
        let state = &mut node.state;
        if let Some(peer) = state.peers.enter(link) {
            peer.known.interface = peer.known.interface.or(interface);
            // Until the peer says itself where answers go: the name may be anybody's word.
            let replies = name.introduction.replies(name.interface());
            if peer.replies.is_none() {
                peer.replies = target.with_ticket(replies);
            }
        }
        let targets = [target, target.with_ticket(any).unwrap_or(target)];
        let endpoint = state.endpoints.get(self.id).ok_or(Error::Stale)?;
        let mapped = endpoint.translations.map(self.id, *name, tag, targets);
        mapped.ok_or(Error::TooMany {
            what: "translations for an endpoint",
            most: TRANSLATIONS_MAX,
        })
    }

    /// Unmaps a translation. Its requests that are outstanding end as they would have.
    pub fn unmap(&self, translation: Translation) -> Result<(), Error> {
        let number = self.number_of(&translation)?;
        match self.with(|endpoint| endpoint.translations.unmap(&translation))? {
            true => Ok(()),
            false => Err(Error::NotMapped { number }),
        }
    }

    /// The end of a translation's link, if it has ended: nothing is sent over it any more, and the
    /// name must be mapped again.
    pub fn link_end(&self, translation: &Translation) -> Result<Option<LinkEnd>, Error> {
        self.number_of(translation)?;
        let (mut node, session) = self.shared.enter()?;
        let link = node.state.endpoints.mapped(translation)?.link;
        Ok(session.link_end(link))
    }

    /// True if the link of a translation has ended and nothing more comes over it, though messages
    /// of it may wait for polls. So after this, a poll that takes fewer than it may has taken all
    /// that its peer had sent.
    pub fn is_drained(&self, translation: &Translation) -> Result<bool, Error> {
        self.number_of(translation)?;
        let (mut node, session) = self.shared.enter()?;
        let link = node.state.endpoints.mapped(translation)?.link;
        Ok(session.is_drained(link))
    }

    /// The name and the tag that a translation maps.
    pub fn mapped(&self, translation: &Translation) -> Result<(Name, Tag), Error> {
        let number = self.number_of(translation)?;
        let mapped = self.with(|endpoint| {
            let mapped = endpoint.translations.get(translation)?;
            Some((mapped.name, mapped.tag))
        })?;
        mapped.ok_or(Error::NotMapped { number })
    }

    /// Its number, if it is of this endpoint.
    fn number_of(&self, translation: &Translation) -> Result<u32, Error> {
        let number = translation.number;
        match translation.endpoint == self.id {
            true => Ok(number),
            false => Err(Error::NotMapped { number }),
        }
    }

    // Requests.

    /// Sends a request for handler `handler` with up to 16 arguments (`AM_RequestM`).
    #[inline]
    pub fn request(
        &self,
        over: &Translation,
        handler: u8,
        arguments: &[u32],
        wait: Wait,
    ) -> Result<(), Error> {
        self.number_of(over)?;
        let request = Request::short(handler, arguments);
        self.until_sent(wait, |node, session| node.attempt(session, over, &request))
    }

    /// Sends a request with data, which the handler is shown (`AM_RequestIM`). They are copied.
    /// Data of more than about 50 bytes take memory, which is kept for the next request of this
    /// size. [`Endpoint::medium_bytes_max`] says how many there may be.
    pub fn request_medium(
        &self,
        over: &Translation,
        handler: u8,
        data: &[u8],
        arguments: &[u32],
        wait: Wait,
    ) -> Result<(), Error> {
        let request = self.medium(over, handler, data, arguments)?;
        self.until_sent(wait, |node, session| node.attempt(session, over, &request))
    }

    fn medium<'a>(
        &self,
        over: &Translation,
        handler: u8,
        data: &'a [u8],
        arguments: &'a [u32],
    ) -> Result<Request<'a>, Error> {
        let most = self.medium_bytes_max(over)?;
        if data.len() > most {
            return Err(Error::TooLong {
                length_bytes: data.len() as u64,
                most_bytes: most as u64,
                remedy: "send it in parts, or as a transfer",
            });
        }
        Ok(Request {
            category: Category::Medium,
            data,
            ..Request::short(handler, arguments)
        })
    }

    /// Bytes of data of the longest medium message over that translation: as many as the node's
    /// options say, or fewer if packets of its link are shorter.
    pub fn medium_bytes_max(&self, over: &Translation) -> Result<usize, Error> {
        self.number_of(over)?;
        let (mut node, session) = self.shared.enter()?;
        node.state.medium_bytes_max(&session, over)
    }

    /// Sends data to `offset` of the remote segment, and runs a bulk handler there when all of them
    /// are in their place (`AM_RequestXferM`; with [`Wait::Poll`], `AM_RequestXferAsyncM`). When
    /// this returns, the caller's data are free; the rest happens as the bundle is polled.
    ///
    /// Data that are too long for a medium message are written straight into the segment. A call
    /// that waits takes them from where they are, and lasts until all of them are sent; if it is the
    /// first over this translation to that handler, or if the call never waits, they are copied, and
    /// sent as the bundle is polled. Data that were not copied are not
    /// [returned](crate::Returned::data) if the receiver changes or ends when this has returned. A
    /// call that waits maps a segment of shared memory the first time, which blocks for 100 ms at
    /// most.
    ///
    /// Transfers to the same bytes, of which one is not answered yet, may land in any order. After an
    /// error some of the data may be written.
    pub fn transfer(
        &self,
        over: &Translation,
        handler: u8,
        offset: u64,
        data: &[u8],
        arguments: &[u32],
        wait: Wait,
    ) -> Result<(), Error> {
        self.number_of(over)?;
        check(handler, arguments)?;
        let bulk = Bulk {
            handler,
            offset,
            data,
            arguments,
        };
        let mut lending = Lending {
            shared: &self.shared,
            number: None,
        };
        self.until_sent(wait, |node, session| {
            node.transfer(session, over, bulk, wait, &mut lending.number)
        })
    }

    /// Reads `from` of the remote segment into the own one, from `to` on, and runs bulk handler
    /// `handler` of this endpoint when all of it is there (`AM_GetXferM`). Comes back if `from`
    /// does not lie in the remote segment.
    pub fn get(
        &self,
        over: &Translation,
        handler: u8,
        from: Range<u64>,
        to: u64,
        arguments: &[u32],
        wait: Wait,
    ) -> Result<(), Error> {
        self.number_of(over)?;
        check(handler, arguments)?;
        self.until_sent(wait, |node, session| {
            node.get(session, over, handler, &from, to, arguments)
        })
    }

    /// Polls until an attempt is a request that was sent.
    #[inline]
    fn until_sent(
        &self,
        wait: Wait,
        mut attempt: impl FnMut(&mut NodeState, &mut Session<'_, H>) -> Attempt,
    ) -> Result<(), Error> {
        let (bundle, mut blocked) = {
            let (mut node, mut session) = self.shared.enter()?;
            match attempt(&mut node, &mut session)? {
                Ok(()) => return Ok(()),
                Err(blocked) if wait == Wait::Poll => return Err(Error::WouldBlock(blocked)),
                Err(blocked) => {
                    let endpoint = node.state.endpoints.get(self.id).ok_or(Error::Stale)?;
                    (endpoint.bundle, blocked)
                }
            }
        };
        let waited = self.shared.wait_for(bundle, wait, |node, session| {
            let attempted = attempt(node, session)?;
            if let Err(by) = attempted {
                blocked = by;
            }
            Ok(attempted.ok())
        })?;
        waited.ok_or(Error::WouldBlock(blocked))
    }

    // Deferred replies.

    /// Replies to a request whose reply was deferred. If it is the data or the arguments that
    /// cannot be, the request is answered by an empty reply. Never waits.
    pub fn reply(&self, to: Deferred, handler: u8, arguments: &[u32]) -> Result<(), Error> {
        self.reply_by(to, Reply::short(handler, arguments))
    }

    /// The same with data, as [`Call::reply_medium`].
    pub fn reply_medium(
        &self,
        to: Deferred,
        handler: u8,
        data: &[u8],
        arguments: &[u32],
    ) -> Result<(), Error> {
        self.reply_by(to, Reply::medium(handler, data, arguments))
    }

    /// The same with data for the segment of the requester, as [`Call::reply_bulk`].
    pub fn reply_bulk(
        &self,
        to: Deferred,
        handler: u8,
        offset: u64,
        data: &[u8],
        arguments: &[u32],
    ) -> Result<(), Error> {
        self.reply_by(to, Reply::bulk(handler, offset, data, arguments))
    }

    fn reply_by(&self, to: Deferred, reply: Reply<'_>) -> Result<(), Error> {
        if !to.is_of(&self.shared.dropped) {
            return Err(Error::OtherNode { what: "request" });
        }
        let (mut node, mut session) = self.shared.enter()?;
        let State { peers, traffic, .. } = &mut node.state;
        let request = peers.request(to.link, to.stamp);
        let Some(request) = request.filter(|request| request.state == ServedState::Open) else {
            to.end();
            return Err(Error::Stale);
        };
        reply.write(&mut request.answer, to.endpoint, traffic)?;
        request.state = ServedState::Unsent;
        traffic.statistics.replies_sent += 1;
        traffic.again(to.link, Again::Answer(to.stamp), 0);
        to.end();
        node.state.send_due(&mut session);
        Ok(())
    }
}

/// The data of a call are in the hands of a transfer. However the call ends, that has them no longer.
struct Lending<'a, H: Host> {
    shared: &'a Shared<H>,
    number: Option<u32>,
}

impl<H: Host> Drop for Lending<'_, H> {
    fn drop(&mut self) {
        if let Some(number) = self.number
            && let Ok((mut node, _session)) = self.shared.enter()
        {
            node.end_lending(number);
        }
    }
}

impl<H: Host> std::fmt::Debug for Endpoint<H> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
