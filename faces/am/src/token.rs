//! Tokens: a handler asks by its token about its message, and replies.

use std::ffi::{c_int, c_void};
use std::rc::Rc;

use hamlyn_am::{Call, CallError, Deferred, Endpoint, Error, Tag};
use hamlyn_boundary::kind_of;

use crate::boundary::{arguments, bytes, call, put};
use crate::dispatch::{Running, RunningMessage, is_running, running_of};
use crate::kind;
use crate::library::{Library, MEDIUM_BYTES_MAX};
use crate::names::CName;
use crate::state::{EndpointShared, Kept, tag_of};
use crate::status::{Failure, TOO_MANY};

const STALE: Failure = Failure::resource(
    "the token is none, or its handler has returned: keep it (AMX_KeepToken) to reply later",
);

fn running(token: *const c_void) -> Result<Running, Failure> {
    match token.is_null() {
        true => Err(Failure::bad("the token is null")),
        false => running_of(token).ok_or(STALE),
    }
}

/// Shows the endpoint of the message whose handler runs.
fn with_endpoint<T>(
    token: *const c_void,
    ask: impl FnOnce(&EndpointShared) -> T,
) -> Result<T, Failure> {
    let running = running(token)?;
    // SAFETY: its handler runs, so its endpoint is there.
    Ok(ask(unsafe { &*running.endpoint }))
}

/// Shows the request or reply whose handler runs, and its endpoint.
fn with_call<T>(
    token: *const c_void,
    ask: impl FnOnce(&mut Call<'_>, &EndpointShared) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let running = running(token)?;
    let RunningMessage::Call(call) = running.message else {
        return Err(Failure::resource(
            "the message came back: it has no reply, and AMX_GetReturned tells of it",
        ));
    };
    // SAFETY: its handler runs, so the layer's view is there, and nothing else uses it: handlers
    // do not nest, and this is the only reference, which ends here.
    let (call, endpoint) = unsafe { (&mut *call, &*running.endpoint) };
    ask(call, endpoint)
}

/// `AM_GetSourceEndpoint`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_source(token: *mut c_void, name: *mut CName) -> c_int {
    call(|_| {
        let source = with_call(token, |call, _| call.source().ok_or(UNKNOWN))?;
        put(name, CName::of(&source))
    })
}

const UNKNOWN: Failure = Failure::resource(
    "the sender is not known any more: it has ended, or more than 256 endpoints of its process have sent since",
);

/// `AMX_GetSourceId`: the translation of the sender.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_source_id(token: *mut c_void, number: *mut c_int) -> c_int {
    call(|_| {
        let found = with_call(token, |call, endpoint| {
            let source = call.source().ok_or(UNKNOWN)?;
            let found = endpoint.translations.borrow().number_of(&source);
            found.ok_or(Failure::resource("the endpoint has not mapped the sender"))
        })?;
        put(number, found)
    })
}

/// `AM_GetDestEndpoint`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_destination(
    token: *mut c_void,
    endpoint: *mut *mut c_void,
) -> c_int {
    call(|_| {
        let handle = with_endpoint(token, |endpoint| endpoint.handle)?;
        put(endpoint, handle)
    })
}

/// `AM_GetMsgTag`: the tag that opened the endpoint to the message.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_message_tag(token: *mut c_void, tag: *mut u64) -> c_int {
    call(|_| {
        let (dialect, own) =
            with_endpoint(token, |endpoint| (endpoint.dialect, endpoint.tag.get()))?;
        match tag_of(dialect, own) {
            Tag::Any => Err(Failure::resource(
                "the endpoint takes messages with any tag (AM_ALL): tags do not travel, so that of a message is not known",
            )),
            _ => put(tag, own),
        }
    })
}

/// `AMX_KeepToken`: the reply comes later, by the kept token.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_keep_token(token: *mut c_void, kept: *mut *mut c_void) -> c_int {
    call(|library| {
        if kept.is_null() {
            return Err(Failure::bad("the place for the token is null"));
        }
        let (request, endpoint) =
            with_call(token, |call, endpoint| Ok((call.defer()?, endpoint.handle)))?;
        let mut requests = library.kept.borrow_mut();
        let object = requests.insert(|_| Kept { request, endpoint });
        let (handle, _) = object.ok_or(TOO_MANY)?;
        put(kept, handle)
    })
}

/// `AMX_DropToken`: the request is answered by an empty reply.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_am_drop_token(kept: *mut c_void) -> c_int {
    call(|library| {
        let dropped = library.kept.borrow_mut().remove(kept);
        dropped.map(drop).ok_or(NOT_KEPT)
    })
}

const NOT_KEPT: Failure =
    Failure::resource("the token is not kept, or was used: a kept token serves for one reply");

/// Replies at once, in the handler, or by a kept token, outside.
fn reply(
    library: &Rc<Library>,
    token: *mut c_void,
    now: impl FnOnce(&mut Call<'_>) -> Result<(), CallError>,
    later: impl FnOnce(&Endpoint, Deferred) -> Result<(), Error>,
) -> Result<(), Failure> {
    if kind_of(token) != kind::KEPT {
        return with_call(token, |call, _| Ok(now(call)?));
    }
    if is_running() {
        return Err(Failure::resource(
            "a handler is running: a kept token is used when AM_Poll has returned",
        ));
    }
    let kept = library.kept.borrow_mut().remove(token);
    let Kept { request, endpoint } = kept.ok_or(NOT_KEPT)?;
    let endpoint = library.endpoint(endpoint)?;
    let inner = endpoint.endpoint.borrow();
    Ok(later(&inner, request)?)
}

fn check(handler: u8, length_bytes: usize) -> Result<(), Failure> {
    if handler == 0 {
        return Err(Failure::bad(
            "handler 0 is the one for messages that come back: reply to 1 to 255",
        ));
    }
    match length_bytes > MEDIUM_BYTES_MAX {
        true => Err(Failure::bad("a reply has AM_MaxMedium() bytes at most")),
        false => Ok(()),
    }
}

/// `AM_ReplyM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_reply(
    token: *mut c_void,
    handler: u8,
    count: c_int,
    values: *const u32,
) -> c_int {
    call(|library| {
        let arguments = arguments(values, count)?;
        check(handler, 0)?;
        reply(
            library,
            token,
            |call| call.reply(handler, arguments),
            |endpoint, request| endpoint.reply(request, handler, arguments),
        )
    })
}

/// `AM_ReplyIM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_reply_i(
    token: *mut c_void,
    handler: u8,
    data: *const c_void,
    length_bytes: usize,
    count: c_int,
    values: *const u32,
) -> c_int {
    call(|library| {
        let (arguments, data) = (arguments(values, count)?, bytes(data, length_bytes)?);
        check(handler, length_bytes)?;
        reply(
            library,
            token,
            |call| call.reply_medium(handler, data, arguments),
            |endpoint, request| endpoint.reply_medium(request, handler, data, arguments),
        )
    })
}

/// `AM_ReplyXferM`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_am_reply_xfer(
    token: *mut c_void,
    offset: usize,
    handler: u8,
    data: *const c_void,
    length_bytes: usize,
    count: c_int,
    values: *const u32,
) -> c_int {
    call(|library| {
        let (arguments, data) = (arguments(values, count)?, bytes(data, length_bytes)?);
        check(handler, length_bytes)?;
        let offset = offset as u64;
        reply(
            library,
            token,
            |call| call.reply_bulk(handler, offset, data, arguments),
            |endpoint, request| endpoint.reply_bulk(request, handler, offset, data, arguments),
        )
    })
}
