//! Request and reply: a service answers calls of many clients.

use std::ffi::{c_char, c_void};

use hamlyn::service::{self, CallError, ReplyError};

use crate::boundary::{bytes, call, read_or_default, room, text, wait_of};
use crate::datagram::{Message, NOTHING_CAME};
use crate::handle::{self, kind};
use crate::holding::Holding;
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::peer::{self, Peer};
use crate::status::{Error, Failure, Status};

/// What a service is opened with; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct ServiceOptions {
    /// Bytes of the longest request, up to 128 MiB. Default 4,096.
    pub request_bytes: u32,
    /// Bytes of the longest reply, up to 128 MiB. Default 4,096.
    pub reply_bytes: u32,
    /// Calls that each client may have outstanding, up to 4,096. Default 8.
    pub outstanding: u16,
    /// Clients at a time. Default: as many as the manager's queue has entries for, 256 at most.
    pub clients: u16,
}

impl ServiceOptions {
    fn read(self) -> service::ServiceOptions {
        let mut options = service::ServiceOptions::default();
        if self.request_bytes != 0 {
            options.request_bytes = self.request_bytes;
        }
        if self.reply_bytes != 0 {
            options.reply_bytes = self.reply_bytes;
        }
        if self.outstanding != 0 {
            options.outstanding = self.outstanding;
        }
        if self.clients != 0 {
            options.clients = self.clients;
        }
        options
    }
}

type Serving<H> = Holding<service::Service<H>, service::Call<'static, H>>;

/// A service.
#[derive(Debug)]
pub struct ServiceHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Service(pub(crate) Of<Serving<OneThread>, Serving<Threads>>);

kind!(ServiceHandle, Service, 8, "service");

/// A call that is answered later. Belongs to the thread that put it off.
#[derive(Debug)]
pub struct DeferredCallHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct DeferredCall(service::Deferred);

kind!(DeferredCallHandle, DeferredCall, 9, "deferred call");

type Calling<H> = Holding<service::Client<H>, service::Reply<'static, H>>;

/// A client of a service.
#[derive(Debug)]
pub struct ClientHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Client(pub(crate) Of<Calling<OneThread>, Calling<Threads>>);

kind!(ClientHandle, Client, 10, "client");

/// A call whose reply has not been taken. Closing it cancels it.
#[derive(Debug)]
pub struct PendingCallHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct PendingCall(service::Pending);

kind!(PendingCallHandle, PendingCall, 11, "pending call");

impl From<CallError> for Failure {
    fn from(error: CallError) -> Self {
        let status = match &error {
            CallError::TooLong { .. } => Status::TooLong,
            CallError::TimedOut { .. } | CallError::AllOutstanding { .. } => Status::TimedOut,
            CallError::Unanswered { .. } => Status::Refused,
            CallError::Dismissed { .. } => Status::Finished,
            CallError::PeerLost(_) => Status::PeerLost,
            CallError::Malformed { .. } => Status::Malformed,
            CallError::Send(send) => return send.clone().into(),
            CallError::Host(host) => return host.clone().into(),
            _ => Status::Invalid,
        };
        Self::of(status, &error)
    }
}

impl From<ReplyError> for Failure {
    fn from(error: ReplyError) -> Self {
        match error {
            ReplyError::TooLong { .. } => Self::of(Status::TooLong, &error),
            ReplyError::Host(host) => host.into(),
            _ => Self::of(Status::Invalid, &error),
        }
    }
}

/// Binds a service. Null for `options`: the defaults. Allocates; does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_service(
    manager: *mut ManagerHandle,
    item: *const c_char,
    options: *const ServiceOptions,
    service: *mut *mut ServiceHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the service", service)?;
        let item = text("the item", item)?;
        let options = read_or_default(options)
            .map_or_else(service::ServiceOptions::default, ServiceOptions::read);
        make_end!(manager, place, Service, manager => Holding::new(manager.bind_service(item, options)?))
    })
}

/// The next call: its request, where the client placed it. It is held until it is answered, put off, or dropped. Blocks for `wait_ns` at
/// most. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_next_call(
    service: *mut ServiceHandle,
    wait_ns: i64,
    request: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the request", request)?;
        handle::with(service, |Service(end)| {
            each!(end, end => match end.hold(|end| Ok(end.next(wait_of(wait_ns))?))? {
                Some(call) => place.put(Message::of(call)),
                None => return Err(NOTHING_CAME),
            });
            Ok(())
        })
    })
}

/// Who makes the call that is held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_call_peer(
    service: *mut ServiceHandle,
    peer: *mut Peer,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the peer", peer)?;
        handle::with(service, |Service(end)| {
            peer::put(place, each!(end, end => end.message()?.client()))
        })
    })
}

/// Answers the call that is held. Does not block: a reply for which there is no room is kept, within the bounds of the service. HAMLYN_OK also
/// if the client has given the call up or is gone. After HAMLYN_TOO_LONG the call has been dropped.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reply(
    service: *mut ServiceHandle,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        handle::with(service, |Service(end)| {
            each!(end, end => end.release()?.reply(data))?;
            Ok(())
        })
    })
}

/// Drops the call that is held: its client is told so.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_drop_call(
    service: *mut ServiceHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(service, |Service(end)| end.release())
    })
}

/// Puts the call that is held off: it is answered with hamlyn_reply_deferred, in any order. Its request stays where it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_defer_call(
    service: *mut ServiceHandle,
    deferred: *mut *mut DeferredCallHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the deferred call", deferred)?;
        let deferred = handle::with(service, |Service(end)| {
            Ok(each!(end, end => end.release()?.defer()))
        })?;
        place.put(handle::make(DeferredCall(deferred), false));
        Ok(())
    })
}

/// The request of a call that was put off. HAMLYN_PEER_LOST if its client is gone.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_deferred_request(
    service: *mut ServiceHandle,
    deferred: *mut DeferredCallHandle,
    request: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the request", request)?;
        handle::with(service, |Service(end)| {
            handle::with(deferred, |DeferredCall(deferred)| {
                each!(end, end => match end.end()?.request(deferred) {
                    Some(bytes) => place.put(Message::of(bytes)),
                    None => return Err(Failure::new(Status::PeerLost, "the client of this call is gone")),
                });
                Ok(())
            })
        })
    })
}

/// Answers a call that was put off, and closes it, whatever is returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reply_deferred(
    service: *mut ServiceHandle,
    deferred: *mut DeferredCallHandle,
    data: *const c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let Some(DeferredCall(deferred)) = handle::close(deferred)? else {
            return Err(Failure::new(
                Status::BadHandle,
                "this is no deferred call: it is null",
            ));
        };
        handle::with(service, |Service(end)| {
            each!(end, end => end.end()?.reply(deferred, data))?;
            Ok(())
        })
    })
}

/// Drops a call that was put off: its client is told so at the next call of the service. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_deferred_call(
    deferred: *mut DeferredCallHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(deferred).map(drop))
}

/// Takes away what the client of the call that is held has here, that call included: its calls fail, and those it makes from now on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_dismiss_client(
    service: *mut ServiceHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(service, |Service(end)| {
            each!(end, end => {
                let client = end.message()?.client();
                drop(end.release()?);
                if let Some(client) = client {
                    end.end()?.dismiss(client.link);
                }
            });
            Ok(())
        })
    })
}

/// Closes a service: its clients are told. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_service(
    service: *mut ServiceHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(service).map(drop))
}

/// Connects to a service. Blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_service(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    client: *mut *mut ClientHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the client", client)?;
        let to = text("the address", to)?;
        make_end!(manager, place, Client, manager => Holding::new(manager.connect_service(to, wait_of(wait_ns))?))
    })
}

/// Sends a request and waits for the reply, which is held until hamlyn_release_reply. The call is cancelled when the time is over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_call(
    client: *mut ClientHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    reply: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let place = room("the place for the reply", reply)?;
        handle::with(client, |Client(end)| {
            each!(end, end => {
                if let Some(reply) = end.hold(|end| Ok(Some(end.call(data, wait_of(wait_ns))?)))? {
                    place.put(Message::of(reply));
                }
            });
            Ok(())
        })
    })
}

/// Sends a request without waiting for the reply. Blocks, for `wait_ns` at most, only if as many calls are outstanding as may be, or if there
/// is no room to send.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_start_call(
    client: *mut ClientHandle,
    data: *const c_void,
    length_bytes: usize,
    wait_ns: i64,
    pending: *mut *mut PendingCallHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let data = bytes(data, length_bytes)?;
        let place = room("the place for the pending call", pending)?;
        let pending = handle::with(client, |Client(end)| {
            Ok(each!(end, end => end.end()?.start(data, wait_of(wait_ns)))?)
        })?;
        place.put(handle::make(PendingCall(pending), false));
        Ok(())
    })
}

/// Waits for the reply to a call that was started; the reply is held until hamlyn_release_reply. HAMLYN_TIMED_OUT if it did not come in
/// time: the call goes on, until it is closed. Calls may be asked for in any order.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_take_reply(
    client: *mut ClientHandle,
    pending: *mut PendingCallHandle,
    wait_ns: i64,
    reply: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the reply", reply)?;
        handle::with(client, |Client(end)| {
            handle::with(pending, |PendingCall(pending)| {
                each!(end, end => match end.hold(|end| Ok(end.reply(pending, wait_of(wait_ns))?))? {
                    Some(reply) => place.put(Message::of(reply)),
                    None => return Err(NOTHING_CAME),
                });
                Ok(())
            })
        })
    })
}

/// Gives the room of a reply back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_release_reply(
    client: *mut ClientHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::with(client, |Client(end)| end.release()))
}

/// Closes a call that was started; if its reply was not taken it is cancelled, of which the server learns at the client's next call. Null is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_pending_call(
    pending: *mut PendingCallHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(pending).map(drop))
}

/// Closes a client: its calls are cancelled. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_client(
    client: *mut ClientHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(client).map(drop))
}
