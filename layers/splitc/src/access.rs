//! Blocking access to global memory (`Split-C 2.1`): read and write, of any length, and atomic
//! changes of a word.

use std::time::Duration;

use hamlyn::one_sided::{Atomic, Operation, OperationError};
use hamlyn::{DirectWindow, Host, Wait};

use crate::address::GlobalAddress;
use crate::error::Error;
use crate::memory::describe;
use crate::peer::READ_BYTES;
use crate::runtime::{Program, Splitc};
use crate::waiting::Awaited;

/// How long an operation is waited for before anything else is attended to: longer than an
/// attentive processor takes.
const ATTENTIVE: Wait = Wait::For(Duration::from_micros(20));
/// How long room for an operation is waited for before anything else is attended to.
pub(crate) const ROOM: Wait = Wait::millis(10);
/// Of so many accesses, one looks whether an atomic procedure is asked for by a packet.
const ACCESSES_PER_LOOK: u32 = 8;
/// The same where requests come through memory, which every access looks at.
const DIRECT_ACCESSES_PER_LOOK: u32 = 256;
const _: () =
    assert!(ACCESSES_PER_LOOK.is_power_of_two() && DIRECT_ACCESSES_PER_LOOK.is_power_of_two());
/// Bytes of a long access that are under way at a time.
const PIECE_BYTES: usize = READ_BYTES as usize;

/// Where global memory is.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Location {
    /// At that offset of this processor's segment of that number.
    Own { segment: usize, offset: u64 },
    /// The same of another processor.
    Remote { segment: usize, offset: u64 },
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Where those bytes are, if their owner shares them.
    pub(crate) fn locate(
        &mut self,
        what: &'static str,
        address: GlobalAddress,
        length_bytes: u64,
    ) -> Result<Location, Error> {
        if address.is_null() {
            return Err(Error::Null { what });
        }
        let (proc, place) = (address.proc(), address.place());
        if proc >= self.job.procs {
            let procs = self.job.procs;
            return Err(Error::NoSuchProcessor {
                what,
                address,
                procs,
            });
        }
        if proc == self.job.proc {
            for (segment, own) in self.segments.iter().enumerate() {
                if let Some(offset) = own.span.offset(place, length_bytes) {
                    return Ok(Location::Own { segment, offset });
                }
            }
        } else if let Some((segment, offset)) = self.peer(proc)?.find(place, length_bytes) {
            return Ok(Location::Remote { segment, offset });
        }
        let shared = match proc == self.job.proc {
            true => describe(self.segments.iter().map(|segment| segment.span)),
            false => describe(self.peer(proc)?.segments.iter().map(|segment| segment.span)),
        };
        Err(Error::NotShared {
            what,
            address,
            length_bytes,
            shared,
        })
    }

    /// Reads `into.len()` bytes. Blocks until they are there.
    pub fn read_bytes(&mut self, from: GlobalAddress, into: &mut [u8]) -> Result<(), Error> {
        const WHAT: &str = "a read";
        match self.locate(WHAT, from, into.len() as u64)? {
            Location::Own { segment, offset } => {
                // It was found to lie in the area.
                let _ = self.segments[segment].area.read_at(offset, into);
                self.look_at_own()
            }
            Location::Remote { segment, offset } => {
                self.look_now_and_then()?;
                if let Some(window) = self.window(from.proc(), segment) {
                    // It was found to lie in the segment.
                    let _ = window.read(offset, into);
                    return Ok(());
                }
                if let Ok(word) = <&mut [u8; 8]>::try_from(&mut *into) {
                    let begun = self.begin(WHAT, from, |runtime, wait| {
                        let peer = runtime.peers[from.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.session();
                        interface.begin_read_word(initiator, offset, wait)
                    });
                    *word = self
                        .finish_operation(WHAT, from, segment, begun?)?
                        .to_le_bytes();
                    return Ok(());
                }
                for (index, piece) in into.chunks_mut(PIECE_BYTES).enumerate() {
                    let offset = offset + (index * PIECE_BYTES) as u64;
                    let length_bytes = piece.len() as u64;
                    let begun = self.begin(WHAT, from, |runtime, wait| {
                        let peer = runtime.peers[from.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.session();
                        interface.begin_read(initiator, offset, 0, length_bytes, wait)
                    });
                    self.finish_operation(WHAT, from, segment, begun?)?;
                    let initiator = &self.peer(from.proc())?.segments[segment].initiator;
                    let landed = initiator.landed(0, piece);
                    landed.map_err(|error| operation_error(WHAT, from, error))?;
                }
                Ok(())
            }
        }
    }

    /// Writes bytes. Blocks until they are in their place.
    pub fn write_bytes(&mut self, to: GlobalAddress, bytes: &[u8]) -> Result<(), Error> {
        const WHAT: &str = "a write";
        match self.locate(WHAT, to, bytes.len() as u64)? {
            Location::Own { segment, offset } => {
                // It was found to lie in the area.
                let _ = self.segments[segment].area.write_at(offset, bytes);
                self.look_at_own()
            }
            Location::Remote { segment, offset } => {
                self.look_now_and_then()?;
                if let Some(window) = self.window(to.proc(), segment) {
                    // It was found to lie in the segment.
                    let _ = window.write(offset, bytes);
                    return Ok(());
                }
                for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                    let offset = offset + (index * PIECE_BYTES) as u64;
                    let begun = self.begin(WHAT, to, |runtime, wait| {
                        let peer = runtime.peers[to.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.session();
                        interface.begin_put(initiator, offset, piece, wait)
                    });
                    self.finish_operation(WHAT, to, segment, begun?)?;
                }
                Ok(())
            }
        }
    }

    /// Changes a word at once and for all, and returns what it was before. The address must be a
    /// multiple of the width.
    pub fn change(&mut self, address: GlobalAddress, atomic: Atomic) -> Result<u64, Error> {
        const WHAT: &str = "an atomic change";
        let width_bytes = atomic.width.bytes();
        let location = self.locate(WHAT, address, width_bytes)?;
        if !address.place().is_multiple_of(width_bytes) {
            return Err(Error::Unaligned {
                address,
                width_bytes,
            });
        }
        match location {
            Location::Own { segment, offset } => {
                let changed = self.segments[segment].area.change_at(offset, &atomic);
                self.look_at_own()?;
                changed.map_err(|_| Error::BadOperation {
                    what: "there is no such change of a word of that width",
                })
            }
            Location::Remote { segment, offset } => {
                self.look_now_and_then()?;
                if let Some(window) = self.window(address.proc(), segment)
                    && let Ok(before) = window.change(offset, &atomic)
                {
                    return Ok(before);
                }
                let begun = self.begin(WHAT, address, |runtime, wait| {
                    let peer = runtime.peers[address.proc() as usize].as_mut();
                    let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                    let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                    let mut interface = runtime.manager.session();
                    interface.begin_atomic(initiator, offset, atomic, wait)
                });
                self.finish_operation(WHAT, address, segment, begun?)
            }
        }
    }

    /// A word of another processor's control area, if it answers in time.
    pub(crate) fn read_control(&mut self, proc: u32, place: u64, wait: Wait) -> Result<u64, Error> {
        let peer = self.peers[proc as usize].as_mut();
        let control = peer.map(|peer| peer.control());
        let control = control.ok_or(Error::BadOperation {
            what: "a processor that is not connected",
        })?;
        let read = self.manager.session().read_word(control, place, wait);
        let address = GlobalAddress::new(proc, place);
        read.map_err(|error| operation_error("a look at a processor", address, error))
    }

    /// The mapping of a segment of another processor, if there is one.
    pub(crate) fn window(&self, proc: u32, segment: usize) -> Option<&DirectWindow> {
        let peer = self.peers[proc as usize].as_ref()?;
        peer.segments[segment].initiator.window()
    }

    fn look_now_and_then(&mut self) -> Result<(), Error> {
        self.accesses = self.accesses.wrapping_add(1);
        let per_look = match self.is_all_direct {
            true => DIRECT_ACCESSES_PER_LOOK,
            false => ACCESSES_PER_LOOK,
        };
        // A division would take longer than the access.
        if self.accesses & (per_look - 1) == 0 {
            return self.attend();
        }
        self.attend_called()
    }

    /// After an access to this processor's own memory, at which others may wait to be served.
    fn look_at_own(&mut self) -> Result<(), Error> {
        // Alone, a processor serves nobody.
        match self.is_all_direct || self.job.procs == 1 {
            true => self.look_now_and_then(),
            false => self.poll(),
        }
    }

    /// Begins an operation, as soon as there is room.
    pub(crate) fn begin(
        &mut self,
        what: &'static str,
        address: GlobalAddress,
        mut begin: impl FnMut(&mut Self, Wait) -> Result<Operation, OperationError>,
    ) -> Result<Operation, Error> {
        loop {
            match begin(self, ROOM) {
                Ok(operation) => return Ok(operation),
                Err(OperationError::WouldBlock) => self.attend()?,
                Err(OperationError::TooMany) => self.finish_front(address.proc())?,
                Err(error) => return Err(operation_error(what, address, error)),
            }
        }
    }

    /// Waits for an operation on that segment; with the word that it brought.
    pub(crate) fn finish_operation(
        &mut self,
        what: &'static str,
        address: GlobalAddress,
        segment: usize,
        operation: Operation,
    ) -> Result<u64, Error> {
        let proc = address.proc();
        let look = |runtime: &mut Self, wait| {
            let peer = runtime.peers[proc as usize].as_mut();
            let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
            let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
            let mut interface = runtime.manager.session();
            interface.finish_word(initiator, operation, wait)
        };
        match look(self, ATTENTIVE) {
            Ok(word) => return Ok(word),
            Err(OperationError::TimedOut) => {}
            Err(error) => return Err(operation_error(what, address, error)),
        }
        let awaited = Awaited::one(what, proc);
        self.wait_for(awaited, |runtime| match look(runtime, Wait::Poll) {
            Ok(word) => Ok(Some(word)),
            Err(OperationError::TimedOut) => Ok(None),
            Err(error) => Err(operation_error(what, address, error)),
        })
    }
}

pub(crate) fn operation_error(
    what: &'static str,
    address: GlobalAddress,
    error: OperationError,
) -> Error {
    match error {
        OperationError::PeerLost(lost) => Error::Gone {
            proc: address.proc(),
            why: lost.end.to_string(),
            what,
        },
        error => Error::Operation {
            what,
            address,
            error,
        },
    }
}
