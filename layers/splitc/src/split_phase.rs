//! Split-phase access (`Split-C 2.2`): gets and puts, which a sync completes, and signaling stores,
//! which their target counts.

use hamlyn::one_sided::OperationError;
use hamlyn::{Host, SendError, Wait};

use crate::access::{Location, ROOM, operation_error};
use crate::address::GlobalAddress;
use crate::control::Kind;
use crate::error::Error;
use crate::peer::{Begun, LANDING_BYTES, Outstanding, READ_BYTES};
use crate::runtime::{Program, Splitc};
use crate::waiting::Awaited;

/// Bytes of one operation of a long get, put or store: several of them are under way at a time.
const PIECE_BYTES: usize = 32 * 1024;
/// Stores of so many bytes are sent as a whole or not at all; gets of so many are delivered in one
/// piece.
const SHORT_BYTES: usize = 128;

const _: () = assert!(PIECE_BYTES as u64 <= (LANDING_BYTES - READ_BYTES) / 4);

/// Delivers bytes that are at hand; `read` copies those from a place on.
fn deliver<H: Host, P: Program<H>>(
    program: &mut P,
    to: u64,
    length_bytes: u64,
    read: impl Fn(u64, &mut [u8]),
) {
    if length_bytes <= SHORT_BYTES as u64 {
        // Most gets are of a word or two; to clear a long piece takes longer than they do.
        let mut piece = [0; SHORT_BYTES];
        let piece = &mut piece[..length_bytes as usize];
        read(0, piece);
        return program.deliver(to, piece);
    }
    let mut piece = [0; 4096];
    let mut done_bytes = 0;
    while done_bytes < length_bytes {
        let bytes = (length_bytes - done_bytes).min(piece.len() as u64);
        let piece = &mut piece[..bytes as usize];
        read(done_bytes, piece);
        program.deliver(to + done_bytes, piece);
        done_bytes += bytes;
    }
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Begins to read `length_bytes` bytes to the place `to` of the program's own memory
    /// ([`Program::deliver`]). They are there after the next [`Splitc::sync`].
    pub fn get_bytes(
        &mut self,
        to: u64,
        from: GlobalAddress,
        length_bytes: u64,
    ) -> Result<(), Error> {
        const WHAT: &str = "a get";
        match self.locate(WHAT, from, length_bytes)? {
            Location::Own { segment, offset } => {
                let area = &self.segments[segment].area;
                // It was found to lie in the area.
                let read = |at, piece: &mut [u8]| {
                    let _ = area.read_at(offset + at, piece);
                };
                deliver(&mut self.program, to, length_bytes, read);
                Ok(())
            }
            Location::Remote { segment, offset } => {
                if let Some(window) = self.window(from.proc(), segment) {
                    let window = window.clone();
                    // It was found to lie in the segment.
                    let read = |at, piece: &mut [u8]| {
                        let _ = window.read(offset + at, piece);
                    };
                    deliver(&mut self.program, to, length_bytes, read);
                    return Ok(());
                }
                let mut done_bytes = 0;
                while done_bytes < length_bytes {
                    let bytes = (length_bytes - done_bytes).min(PIECE_BYTES as u64);
                    let landing = self.landing(from.proc(), segment, bytes)?;
                    let at = offset + done_bytes;
                    let operation = self.begin(WHAT, from, |runtime, wait| {
                        let peer = runtime.peers[from.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.session();
                        interface.begin_read(initiator, at, landing, bytes, wait)
                    })?;
                    let peer = self.peer(from.proc())?;
                    peer.segments[segment].gets += 1;
                    peer.outstanding.push_back(Outstanding {
                        operation,
                        place: from.place(),
                        kind: Begun::Get {
                            segment,
                            landing,
                            length_bytes: bytes,
                            to: to + done_bytes,
                        },
                    });
                    done_bytes += bytes;
                }
                self.note_busy(from.proc());
                Ok(())
            }
        }
    }

    /// Begins to write bytes, which are copied when this returns. They are in their place after the
    /// next [`Splitc::sync`].
    pub fn put_bytes(&mut self, to: GlobalAddress, bytes: &[u8]) -> Result<(), Error> {
        const WHAT: &str = "a put";
        match self.locate(WHAT, to, bytes.len() as u64)? {
            Location::Own { segment, offset } => {
                // It was found to lie in the area.
                let _ = self.segments[segment].area.write_at(offset, bytes);
                Ok(())
            }
            Location::Remote { segment, offset } => {
                if let Some(window) = self.window(to.proc(), segment) {
                    // It was found to lie in the segment.
                    let _ = window.write(offset, bytes);
                    return Ok(());
                }
                for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                    let offset = offset + (index * PIECE_BYTES) as u64;
                    let operation = self.begin(WHAT, to, |runtime, wait| {
                        let peer = runtime.peers[to.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.session();
                        interface.begin_put(initiator, offset, piece, wait)
                    })?;
                    self.peer(to.proc())?.outstanding.push_back(Outstanding {
                        operation,
                        place: to.place(),
                        kind: Begun::Put { segment },
                    });
                }
                self.note_busy(to.proc());
                Ok(())
            }
        }
    }

    /// Stores bytes, which are copied when this returns. Their owner counts them: see
    /// [`Splitc::store_sync`].
    pub fn store_bytes(&mut self, to: GlobalAddress, bytes: &[u8]) -> Result<(), Error> {
        const WHAT: &str = "a store";
        let length_bytes = bytes.len() as u64;
        match self.locate(WHAT, to, length_bytes)? {
            Location::Own { segment, offset } => {
                // It was found to lie in the area.
                let _ = self.segments[segment].area.write_at(offset, bytes);
                let counter = self.layout.stored(self.job.proc);
                let stored = self.own_word(counter).wrapping_add(length_bytes);
                let _ = self.control.store_u64(counter, stored);
                Ok(())
            }
            Location::Remote { segment, offset } => {
                if let Some(window) = self.window(to.proc(), segment) {
                    // It was found to lie in the segment.
                    let _ = window.write(offset, bytes);
                    self.count_direct(to.proc(), length_bytes);
                    return Ok(());
                }
                let target = self.peer(to.proc())?.segments[segment].stores;
                let terminus = self.manager.terminus();
                // One that was sent in part cannot be sent again, so it is waited for; its target
                // takes packets whenever it waits.
                let wait = match bytes.len() > SHORT_BYTES {
                    true => Wait::Forever,
                    false => ROOM,
                };
                loop {
                    let mut interface = self.manager.session();
                    let stored = interface.store(terminus, &target, offset, bytes, wait);
                    drop(interface);
                    match stored {
                        Ok(()) => break,
                        Err(SendError::WouldBlock { .. }) => self.attend()?,
                        Err(SendError::PeerLost(lost)) => {
                            return Err(Error::Gone {
                                proc: to.proc(),
                                why: lost.end.to_string(),
                                what: WHAT,
                            });
                        }
                        Err(error) => return Err(error.into()),
                    }
                }
                self.stores_sent_bytes = self.stores_sent_bytes.wrapping_add(length_bytes);
                Ok(())
            }
        }
    }

    /// Counts bytes that were stored directly at another processor. Only this one writes that word;
    /// it appears after the bytes.
    fn count_direct(&mut self, proc: u32, length_bytes: u64) {
        let counter = self.layout.stored(self.job.proc);
        let peer = self.peers[proc as usize].as_mut();
        if let Some(window) = peer.and_then(|peer| peer.control().window()) {
            let stored = window.load_u64(counter).unwrap_or_default();
            let _ = window.store_u64(counter, stored.wrapping_add(length_bytes));
        }
    }

    /// Where a get of so many bytes lands. If there is no room, gets are completed first.
    fn landing(&mut self, proc: u32, segment: usize, length_bytes: u64) -> Result<u64, Error> {
        loop {
            let of = &mut self.peer(proc)?.segments[segment];
            if of.gets == 0 {
                of.landed_bytes = READ_BYTES;
            }
            let landing = of.landed_bytes;
            if landing + length_bytes <= LANDING_BYTES {
                of.landed_bytes += length_bytes;
                return Ok(landing);
            }
            self.finish_front(proc)?;
        }
    }

    pub(crate) fn note_busy(&mut self, proc: u32) {
        if let Some(peer) = &mut self.peers[proc as usize]
            && !peer.is_busy
        {
            peer.is_busy = true;
            self.busy.push(proc);
        }
    }

    /// Completes all gets, puts, and atomic procedures without a result that this processor began.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.is_in_procedure {
            return Err(Error::InProcedure { what: "sync" });
        }
        if self.is_direct {
            // What this processor has stored and put is to be seen.
            self.wake_sleepers();
        }
        // Atomic procedures that run meanwhile may begin more.
        let mut index = 0;
        while let Some(&proc) = self.busy.get(index) {
            while self.oldest(proc).is_some() {
                self.finish_front(proc)?;
            }
            index += 1;
        }
        for index in 0..self.busy.len() {
            self.finish_calls(self.busy[index])?;
        }
        self.forget_idle();
        Ok(())
    }

    /// Whether all gets and puts of this processor are complete (`is_sync`). Does not block.
    pub fn is_sync(&mut self) -> Result<bool, Error> {
        self.poll()?;
        let mut is_all = true;
        for index in 0..self.busy.len() {
            let proc = self.busy[index];
            while self.advance_front(proc)? {}
            let has_calls = !self.advance_calls(proc)?;
            is_all &= self.oldest(proc).is_none() && !has_calls;
        }
        self.forget_idle();
        Ok(is_all)
    }

    /// The oldest operation of a processor, if any is under way.
    fn oldest(&self, proc: u32) -> Option<&Outstanding> {
        self.peers[proc as usize].as_ref()?.outstanding.front()
    }

    /// Completes the oldest operation of a processor, so that there may be one more.
    pub(crate) fn finish_front(&mut self, proc: u32) -> Result<(), Error> {
        let Some(front) = self.oldest(proc) else {
            return Ok(());
        };
        let operation = front.operation;
        let awaited = Awaited::one(front.kind.what(), proc);
        self.wait_for(awaited, |runtime| {
            // An atomic procedure that ran meanwhile may have completed it.
            let is_it = |front: &Outstanding| front.operation == operation;
            if !runtime.oldest(proc).is_some_and(is_it) {
                return Ok(Some(()));
            }
            Ok(runtime.advance_front(proc)?.then_some(()))
        })
    }

    /// Takes the oldest operation of a processor if it is complete; whether it was.
    fn advance_front(&mut self, proc: u32) -> Result<bool, Error> {
        let Some(peer) = self.peers[proc as usize].as_mut() else {
            return Ok(false);
        };
        let Some(Outstanding {
            operation,
            place,
            kind,
        }) = peer.outstanding.pop_front()
        else {
            return Ok(false);
        };
        let finished = {
            let initiator = peer.initiator_of(&kind);
            let mut interface = self.manager.session();
            interface.finish(initiator, operation, Wait::Poll)
        };
        match finished {
            Ok(()) => {}
            Err(OperationError::TimedOut) => {
                peer.outstanding.push_front(Outstanding {
                    operation,
                    place,
                    kind,
                });
                return Ok(false);
            }
            Err(error) => {
                let address = GlobalAddress::new(proc, place);
                return Err(operation_error(kind.what(), address, error));
            }
        }
        match kind {
            Begun::Get {
                segment,
                landing,
                length_bytes,
                to,
            } => {
                let of = &mut peer.segments[segment];
                of.gets -= 1;
                let mut piece = [0; 4096];
                let mut done_bytes = 0;
                while done_bytes < length_bytes {
                    let bytes = (length_bytes - done_bytes).min(piece.len() as u64);
                    let piece = &mut piece[..bytes as usize];
                    let landed = of.initiator.landed(landing + done_bytes, piece);
                    landed.map_err(|error| {
                        operation_error("a get", GlobalAddress::new(proc, place), error)
                    })?;
                    self.program.deliver(to + done_bytes, piece);
                    done_bytes += bytes;
                }
            }
            Begun::Put { .. } => {}
        }
        Ok(true)
    }

    /// Forgets processors of which nothing is under way.
    fn forget_idle(&mut self) {
        let peers = &mut self.peers;
        self.busy.retain(|&proc| {
            let Some(peer) = &mut peers[proc as usize] else {
                return false;
            };
            let is_served = peer.requests_served == peer.requests;
            let is_idle = peer.outstanding.is_empty() && peer.calls.is_empty() && is_served;
            peer.is_busy = !is_idle;
            !is_idle
        });
    }

    /// How many bytes were stored here in all.
    fn stored_bytes(&self) -> u64 {
        let stored = |proc| self.own_word(self.layout.stored(proc));
        let direct = (0..self.job.procs).map(stored);
        direct.fold(self.stores_taken_bytes(), u64::wrapping_add)
    }

    /// How many of them came in packets.
    fn stores_taken_bytes(&self) -> u64 {
        if self.is_all_direct {
            return 0;
        }
        let slots = self.segments.iter().map(|segment| &segment.slot);
        let counts = slots.flat_map(|slot| {
            (0..self.job.procs).map(move |proc| slot.stored_bytes(proc as u16).unwrap_or(0))
        });
        counts.fold(0, u64::wrapping_add)
    }

    /// Waits until `bytes` more bytes were stored here than waits before have accounted for
    /// (`store_sync`). For ever, if nobody stores them.
    pub fn store_sync(&mut self, bytes: u64) -> Result<(), Error> {
        if self.is_in_procedure {
            return Err(Error::InProcedure { what: "store_sync" });
        }
        let awaited = Awaited {
            what: "store_sync",
            of: None,
            is_collective: true,
            is_announced: false,
        };
        let until = self.stores_consumed_bytes.wrapping_add(bytes);
        self.wait_for(awaited, |runtime| {
            let ahead = runtime.stored_bytes().wrapping_sub(until) as i64;
            Ok((ahead >= 0).then_some(()))
        })?;
        self.stores_consumed_bytes = until;
        Ok(())
    }

    /// Forgets what was stored here so far: the next `store_sync` counts from zero
    /// (`reset_store_sync` of the CM-5's library). Stores that are still on their way count when
    /// they come.
    pub fn reset_store_sync(&mut self) -> Result<(), Error> {
        if self.is_in_procedure {
            return Err(Error::InProcedure {
                what: "reset_store_sync",
            });
        }
        self.poll()?;
        self.stores_consumed_bytes = self.stored_bytes();
        Ok(())
    }

    /// Waits until all stores of all processors are in their places (`all_store_sync`, collective).
    pub fn all_store_sync(&mut self) -> Result<(), Error> {
        const WHAT: &str = "all_store_sync";
        self.enter(WHAT)?;
        if self.is_all_direct {
            // What was stored before a word of the barrier appears before it.
            self.barrier_rounds(WHAT)?;
        }
        // When everybody is here, nobody stores until the sums are equal.
        while !self.is_all_direct {
            let missing = self
                .stores_sent_bytes
                .wrapping_sub(self.stores_taken_bytes());
            let missing = self.reduce_to_first(Kind::StoreSync, missing, &u64::wrapping_add)?;
            if self.spread_from(Kind::StoreSync, 0, missing)? == 0 {
                break;
            }
            self.poll()?;
        }
        // Counted before anybody is let go: what the first to leave stores then belongs to a later
        // wait.
        self.stores_consumed_bytes = self.stored_bytes();
        self.barrier_rounds(WHAT)
    }
}

impl Begun {
    fn what(&self) -> &'static str {
        match self {
            Self::Get { .. } => "a get",
            Self::Put { .. } => "a put",
        }
    }
}
