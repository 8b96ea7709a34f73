//! A handler's view of its message: its sender, and a way to reply.

use std::fmt;
use std::rc::Rc;

use hamlyn::engine::memory::LinkId;

use crate::dropped::Dropped;
use crate::error::CallError;
use crate::name::Name;
use crate::peer::{EndpointId, Known};
use crate::traffic::Traffic;
use crate::wire::{ARGUMENTS_MAX, Category, Head, Kept, Place, Stamp};

/// Result of a handler. The poll that ran it tells the first error when it has taken all messages
/// of its turn; the request is answered all the same.
pub type Outcome = Result<(), CallError>;

/// A message under its handler. A handler of a request may reply once, or defer its reply.
///
/// Replies are copied when they are made, and leave when the handler returns. They wait for nobody:
/// a request holds the memory for its reply. A handler must not wait for messages.
pub struct Call<'a> {
    pub(crate) link: LinkId,
    pub(crate) source: u16,
    pub(crate) known: &'a Known,
    /// Under a reply, the endpoint that sent it.
    pub(crate) replier: Option<&'a Name>,
    /// None under a reply.
    pub(crate) answer: Option<Answer<'a>>,
}

/// The answer of a request.
pub(crate) struct Answer<'a> {
    pub(crate) kept: &'a mut Kept,
    pub(crate) stamp: Stamp,
    pub(crate) endpoint: EndpointId,
    pub(crate) state: AnswerState,
    pub(crate) traffic: &'a Traffic,
}

/// The result of a handler, as far as the reply goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum AnswerState {
    Nothing,
    Replied,
    Deferred,
}

/// A reply to be written.
#[derive(Clone, Copy)]
pub(crate) struct Reply<'a> {
    pub(crate) category: Category,
    pub(crate) handler: u8,
    pub(crate) arguments: &'a [u32],
    pub(crate) data: &'a [u8],
    pub(crate) offset: u64,
}

impl<'a> Reply<'a> {
    pub(crate) const fn short(handler: u8, arguments: &'a [u32]) -> Self {
        Self {
            category: Category::Short,
            handler,
            arguments,
            data: &[],
            offset: 0,
        }
    }

    pub(crate) const fn medium(handler: u8, data: &'a [u8], arguments: &'a [u32]) -> Self {
        Self {
            category: Category::Medium,
            data,
            ..Self::short(handler, arguments)
        }
    }

    pub(crate) const fn bulk(
        handler: u8,
        offset: u64,
        data: &'a [u8],
        arguments: &'a [u32],
    ) -> Self {
        Self {
            category: Category::Bulk,
            offset,
            ..Self::medium(handler, data, arguments)
        }
    }

    /// Writes a reply to where it is kept.
    #[inline]
    pub(crate) fn write(
        &self,
        kept: &mut Kept,
        source: EndpointId,
        traffic: &Traffic,
    ) -> Result<(), CallError> {
        let Self {
            category,
            handler,
            arguments,
            data,
            offset,
        } = *self;
        if handler == 0 {
            return Err(CallError::ReservedHandler);
        }
        if arguments.len() > ARGUMENTS_MAX {
            let count = arguments.len();
            return Err(CallError::TooManyArguments { count });
        }
        let most_bytes = traffic.options.medium_bytes_max as usize;
        let head = Head::new(category, handler).of_endpoint(source.index);
        if category == Category::Short {
            kept.write_short(head, arguments);
            return Ok(());
        }
        if data.len() > most_bytes {
            let length_bytes = data.len();
            return Err(CallError::TooLong {
                length_bytes,
                most_bytes,
            });
        }
        let place = Place {
            offset,
            length_bytes: data.len() as u64,
        };
        kept.write(head, arguments, place, data, None, &traffic.spares);
        Ok(())
    }
}

impl Call<'_> {
    /// Replies with a short message for handler `handler` of the requester.
    #[inline]
    pub fn reply(&mut self, handler: u8, arguments: &[u32]) -> Outcome {
        self.reply_by(Reply::short(handler, arguments))
    }

    /// Replies with a medium message. Data of more than about 50 bytes take memory, which is kept
    /// for the next reply of this size.
    pub fn reply_medium(&mut self, handler: u8, data: &[u8], arguments: &[u32]) -> Outcome {
        self.reply_by(Reply::medium(handler, data, arguments))
    }

    /// Replies with data for the requester's segment, as many as a medium message has.
    pub fn reply_bulk(
        &mut self,
        handler: u8,
        offset: u64,
        data: &[u8],
        arguments: &[u32],
    ) -> Outcome {
        self.reply_by(Reply::bulk(handler, offset, data, arguments))
    }

    fn reply_by(&mut self, reply: Reply<'_>) -> Outcome {
        let answer = unanswered(&mut self.answer)?;
        reply.write(answer.kept, answer.endpoint, answer.traffic)?;
        answer.state = AnswerState::Replied;
        Ok(())
    }

    /// The reply is sent later, by [`Endpoint::reply`](crate::Endpoint::reply) and its like. Until
    /// then the requester's credit is not free.
    pub fn defer(&mut self) -> Result<Deferred, CallError> {
        let link = self.link;
        let answer = unanswered(&mut self.answer)?;
        answer.state = AnswerState::Deferred;
        Ok(Deferred {
            link,
            stamp: answer.stamp,
            endpoint: answer.endpoint,
            dropped: Rc::clone(&answer.traffic.dropped),
            is_over: false,
        })
    }

    /// True if the message is a request, which may be replied to.
    pub fn is_request(&self) -> bool {
        self.answer.is_some()
    }

    /// The name of the endpoint that sent the message, which can be mapped. Of a reply: the one to
    /// which the request went. Of a request: nothing if its interface ended long ago, or if more
    /// endpoints of its node than 256 have sent requests meanwhile.
    pub fn source(&self) -> Option<Name> {
        match self.replier {
            Some(replier) => Some(*replier),
            None => self.known.name_of(self.source),
        }
    }

    /// The link by which the message came, for which the kernel or the handshake vouches:
    /// [`Node::identity_of`](crate::Node::identity_of).
    pub fn link(&self) -> LinkId {
        self.link
    }
}

/// The answer of a request that has none yet.
fn unanswered<'c, 'a>(answer: &'c mut Option<Answer<'a>>) -> Result<&'c mut Answer<'a>, CallError> {
    let answer = answer.as_mut().ok_or(CallError::NotARequest)?;
    match answer.state {
        AnswerState::Nothing => Ok(answer),
        AnswerState::Replied | AnswerState::Deferred => Err(CallError::AlreadyReplied),
    }
}

impl fmt::Debug for Call<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("link", &self.link)
            .field("is_request", &self.is_request())
            .finish_non_exhaustive()
    }
}

/// A request whose reply was deferred ([`Call::defer`]). Dropping it sends an empty reply.
#[derive(Debug)]
#[must_use = "dropping it answers the request by an empty reply"]
pub struct Deferred {
    pub(crate) link: LinkId,
    pub(crate) stamp: Stamp,
    /// The endpoint that took the request.
    pub(crate) endpoint: EndpointId,
    dropped: Rc<Dropped>,
    is_over: bool,
}

impl Deferred {
    /// True if it is of the node that cleans up there.
    pub(crate) fn is_of(&self, dropped: &Rc<Dropped>) -> bool {
        Rc::ptr_eq(&self.dropped, dropped)
    }

    /// The reply was sent, or nobody waits for it.
    pub(crate) fn end(mut self) {
        self.is_over = true;
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        if !self.is_over {
            self.dropped.request(self.link, self.stamp);
        }
    }
}
