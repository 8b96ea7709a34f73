//! One message and its descriptors over a connected socket, without blocking.

use super::codec::{self, MESSAGE_BYTES_MAX, Message, NotAMessage};
use super::disposal::{Disposal, ReceivedFile};
use crate::Errno;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::IoSliceMut;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;

/// Most descriptors of a message ([`Message::descriptors`]).
pub(super) const DESCRIPTORS_MAX: usize = 3;

/// Sent before a socket is closed on purpose. Every other byte is a ring of the doorbell.
pub(super) const GOODBYE: u8 = 0xff;

/// What arrived.
pub(super) struct ReceivedMessage {
    pub(super) message: Message,
    /// As many as belong to it.
    pub(super) descriptors: Vec<ReceivedFile>,
}

/// Why no valid message arrived. Descriptors that came are closed.
#[derive(Debug)]
pub(super) enum ReceiveError {
    /// Nothing is there yet.
    NotYet,
    /// The other end closed.
    PeerClosed,
    /// It is no message of this version.
    NotAMessage(NotAMessage),
    /// We have no room for the descriptors.
    OutOfDescriptors,
    /// The system failed.
    System(Errno),
}

/// Sends a message; a socket that has no room for it counts as an error, since
/// a handshake never fills one.
pub(super) fn send(
    socket: impl AsFd,
    message: &Message,
    descriptors: &[BorrowedFd<'_>],
) -> Result<(), Errno> {
    let bytes = codec::encode(message);
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno(rustix::io::Errno::INVAL.raw_os_error()));
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    loop {
        match rustix::net::sendmsg(&socket, &[IoSlice::new(&bytes)], &mut control, flags) {
            Ok(_) => return Ok(()),
            Err(rustix::io::Errno::INTR) => {}
            Err(errno) => return Err(Errno(errno.raw_os_error())),
        }
    }
}

/// Takes one message with its descriptors, if there is one, from a peer of
/// `user`. Descriptors that come out of it are memory files.
pub(super) fn receive(
    socket: impl AsFd,
    user: u32,
    disposal: &Disposal,
) -> Result<ReceivedMessage, ReceiveError> {
    match receive_once(&socket, user, disposal) {
        // A receiver that finds nothing looks afterwards whether the other end closed; messages
        // that it sent in between are still there. Once it has closed, nothing comes in between.
        Err(ReceiveError::PeerClosed) => match receive_once(&socket, user, disposal) {
            Err(ReceiveError::NotYet) => Err(ReceiveError::PeerClosed),
            arrived => arrived,
        },
        arrived => arrived,
    }
}

fn receive_once(
    socket: impl AsFd,
    user: u32,
    disposal: &Disposal,
) -> Result<ReceivedMessage, ReceiveError> {
    // One byte more than the longest message has, and one descriptor more: what is longer
    // is seen to be longer.
    let mut bytes = [0u8; MESSAGE_BYTES_MAX + 1];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX + 1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let mut into = [IoSliceMut::new(&mut bytes)];
    let mut received = rustix::net::recvmsg(&socket, &mut into, &mut control, flags);
    if matches!(received, Err(rustix::io::Errno::CONNRESET)) {
        // Reported once, before what the peer sent last.
        received = rustix::net::recvmsg(&socket, &mut into, &mut control, flags);
    }
    let received = match received {
        Ok(received) => received,
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {
            return Err(ReceiveError::NotYet);
        }
        Err(rustix::io::Errno::CONNRESET) => return Err(ReceiveError::PeerClosed),
        Err(errno) => return Err(ReceiveError::System(Errno(errno.raw_os_error()))),
    };
    let mut descriptors = Vec::with_capacity(DESCRIPTORS_MAX + 1);
    for ancillary in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = ancillary {
            descriptors.extend(rights);
        }
    }
    let (descriptors, had_others) = disposal.sift(user, descriptors);
    if received.bytes == 0 {
        return Err(ReceiveError::PeerClosed);
    }
    let bytes = bytes.get(..received.bytes).unwrap_or(&bytes);
    let message = codec::decode(bytes).map_err(ReceiveError::NotAMessage)?;
    // The kernel cuts a list of descriptors short for two reasons.
    if received.flags.contains(ReturnFlags::CTRUNC)
        && descriptors.len() <= DESCRIPTORS_MAX
        && !had_others
    {
        return Err(ReceiveError::OutOfDescriptors);
    }
    if had_others {
        let what = "it lent something that is not a memory file";
        return Err(ReceiveError::NotAMessage(NotAMessage::Invalid(what)));
    }
    if descriptors.len() != message.descriptors() {
        let what = "it came with the wrong number of descriptors";
        return Err(ReceiveError::NotAMessage(NotAMessage::Invalid(what)));
    }
    Ok(ReceivedMessage {
        message,
        descriptors,
    })
}

/// Drains the doorbell, up to a bound. Says whether the other end said
/// goodbye, and whether it closed.
pub(super) fn drain(socket: impl AsFd) -> Drained {
    // A peer that obeys the rules rings once for each time that we go to sleep.
    const TURNS: usize = 64;
    let mut drained = Drained::default();
    for _ in 0..TURNS {
        let mut byte = [0u8; 1];
        match rustix::net::recv(&socket, &mut byte, RecvFlags::DONTWAIT) {
            Ok((_, 0)) => {
                drained.peer_closed = true;
                break;
            }
            Ok(_) if byte == [GOODBYE] => drained.goodbye = true,
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Reported once, before what the peer sent last.
            Err(rustix::io::Errno::CONNRESET) => drained.peer_closed = true,
            Err(_) => break,
        }
    }
    drained
}

/// See [`drain`].
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Drained {
    pub(super) goodbye: bool,
    pub(super) peer_closed: bool,
}

/// Tells the other end that we close on purpose, and closes, even if a link
/// still holds the socket.
pub(super) fn close_control(socket: impl AsFd) {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    // Either may fail if the other end is gone, and then nobody needs it.
    let _ = rustix::net::send(&socket, &[GOODBYE], flags);
    let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
}

#[cfg(test)]
mod tests;
