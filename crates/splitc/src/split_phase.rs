//! Split-phase access (`Split-C 2.2`): gets and puts, which a sync completes, and signaling stores, which their target counts.

use hamlyn::one_sided::{Atomic, Change, OperationError, Width};
use hamlyn::{Host, Wait};

use crate::access::{Location, operation_error};
use crate::address::GlobalAddress;
use crate::error::Error;
use crate::peer::{Begun, LANDING_BYTES, Outstanding, READ_BYTES};
use crate::runtime::{Awaited, Program, Splitc};

/// Bytes of one operation of a long get, put or store: several of them are under way at a time.
const PIECE_BYTES: usize = 32 * 1024;

const _: () = assert!(PIECE_BYTES as u64 <= (LANDING_BYTES - READ_BYTES) / 4);

/// Which of a processor's operations.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    GetsAndPuts,
    Stores,
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Begins to read `length_bytes` bytes to the place `to` of the program's own memory ([`Program::deliver`]). They are there after
    /// the next [`Splitc::sync`].
    pub fn get_bytes(
        &mut self,
        to: u64,
        from: GlobalAddress,
        length_bytes: u64,
    ) -> Result<(), Error> {
        const WHAT: &str = "a get";
        match self.locate(WHAT, from, length_bytes)? {
            Location::Own { segment, offset } => {
                let mut piece = [0; 4096];
                let mut done_bytes = 0;
                while done_bytes < length_bytes {
                    let bytes = (length_bytes - done_bytes).min(piece.len() as u64);
                    let piece = &mut piece[..bytes as usize];
                    // It was found to lie in the area.
                    let area = &self.segments[segment].area;
                    let _ = area.read_at(offset + done_bytes, piece);
                    self.program.deliver(to + done_bytes, piece);
                    done_bytes += bytes;
                }
                Ok(())
            }
            Location::Remote { segment, offset } => {
                if let Some(window) = self.window(from.proc(), segment) {
                    let window = window.clone();
                    let mut piece = [0; 4096];
                    let mut done_bytes = 0;
                    while done_bytes < length_bytes {
                        let bytes = (length_bytes - done_bytes).min(piece.len() as u64);
                        let piece = &mut piece[..bytes as usize];
                        // It was found to lie in the segment.
                        let _ = window.read(offset + done_bytes, piece);
                        self.program.deliver(to + done_bytes, piece);
                        done_bytes += bytes;
                    }
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
                        let mut interface = runtime.manager.interface();
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

    /// Begins to write bytes, which are copied when this returns. They are in their place after the next [`Splitc::sync`].
    pub fn put_bytes(&mut self, to: GlobalAddress, bytes: &[u8]) -> Result<(), Error> {
        self.put_pieces("a put", to, bytes, Queue::GetsAndPuts)
    }

    /// Stores bytes, which are copied when this returns. Their owner counts them: see [`Splitc::store_sync`].
    pub fn store_bytes(&mut self, to: GlobalAddress, bytes: &[u8]) -> Result<(), Error> {
        self.put_pieces("a store", to, bytes, Queue::Stores)
    }

    fn put_pieces(
        &mut self,
        what: &'static str,
        to: GlobalAddress,
        bytes: &[u8],
        queue: Queue,
    ) -> Result<(), Error> {
        match self.locate(what, to, bytes.len() as u64)? {
            Location::Own { segment, offset } => {
                // It was found to lie in the area.
                let _ = self.segments[segment].area.write_at(offset, bytes);
                if queue == Queue::Stores {
                    let counter = self.layout.stored(self.job.proc);
                    let stored = self.own_word(counter).wrapping_add(bytes.len() as u64);
                    let _ = self.control.store_u64(counter, stored);
                }
                Ok(())
            }
            Location::Remote { segment, offset } => {
                if let Some(window) = self.window(to.proc(), segment) {
                    // It was found to lie in the segment.
                    let _ = window.write(offset, bytes);
                    if queue == Queue::Stores {
                        self.count_direct(to.proc(), bytes.len() as u64);
                    }
                    return Ok(());
                }
                for (index, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
                    let offset = offset + (index * PIECE_BYTES) as u64;
                    let operation = self.begin(what, to, |runtime, wait| {
                        let peer = runtime.peers[to.proc() as usize].as_mut();
                        let initiator = peer.map(|peer| &mut peer.segments[segment].initiator);
                        let initiator = initiator.ok_or(OperationError::NotOutstanding)?;
                        let mut interface = runtime.manager.interface();
                        interface.begin_put(initiator, offset, piece, wait)
                    })?;
                    let length_bytes = piece.len() as u64;
                    let peer = self.peer(to.proc())?;
                    let (line, kind) = match queue {
                        Queue::GetsAndPuts => (&mut peer.outstanding, Begun::Put { segment }),
                        Queue::Stores => {
                            let kind = Begun::Store {
                                segment,
                                length_bytes,
                            };
                            (&mut peer.stores, kind)
                        }
                    };
                    line.push_back(Outstanding {
                        operation,
                        place: to.place(),
                        kind,
                    });
                }
                self.note_busy(to.proc());
                Ok(())
            }
        }
    }

    /// Counts bytes that were stored directly at another processor. Only this one writes that word; it appears after the bytes.
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
            self.finish_front(proc, Queue::GetsAndPuts)?;
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
        self.finish_queue(Queue::GetsAndPuts)?;
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
            while self.advance_front(proc, Queue::GetsAndPuts)? {}
            let has_calls = !self.advance_calls(proc)?;
            is_all &= self.line(proc, Queue::GetsAndPuts).is_none() && !has_calls;
        }
        self.forget_idle();
        Ok(is_all)
    }

    /// Completes all stores of this processor, and tells their targets.
    pub(crate) fn finish_stores(&mut self) -> Result<(), Error> {
        self.finish_queue(Queue::Stores)?;
        for index in 0..self.busy.len() {
            self.count_stores(self.busy[index])?;
        }
        self.finish_queue(Queue::Stores)?;
        self.forget_idle();
        Ok(())
    }

    fn finish_queue(&mut self, queue: Queue) -> Result<(), Error> {
        // Atomic procedures that run meanwhile may begin more.
        let mut index = 0;
        while let Some(&proc) = self.busy.get(index) {
            while self.line(proc, queue).is_some() {
                self.finish_front(proc, queue)?;
            }
            index += 1;
        }
        Ok(())
    }

    /// Does what is to be done for stores that are under way. Does not block.
    pub(crate) fn advance_stores(&mut self) -> Result<(), Error> {
        for index in 0..self.busy.len() {
            let proc = self.busy[index];
            while self.advance_front(proc, Queue::Stores)? {}
            if self.line(proc, Queue::Stores).is_none() {
                self.count_stores(proc)?;
            }
        }
        Ok(())
    }

    /// Tells the target how many more bytes are in their place.
    fn count_stores(&mut self, proc: u32) -> Result<(), Error> {
        let counter = self.layout.stored(self.job.proc);
        let peer = self.peers[proc as usize].as_mut();
        let Some(peer) = peer.filter(|peer| peer.uncounted_bytes > 0) else {
            return Ok(());
        };
        let atomic = Atomic {
            change: Change::Add,
            width: Width::Bits64,
            operand: peer.uncounted_bytes,
            expected: 0,
        };
        let mut interface = self.manager.interface();
        match interface.begin_atomic(peer.control(), counter, atomic, Wait::Poll) {
            Ok(operation) => {
                peer.uncounted_bytes = 0;
                peer.stores.push_back(Outstanding {
                    operation,
                    place: counter,
                    kind: Begun::Count,
                });
                Ok(())
            }
            // It is tried again.
            Err(OperationError::WouldBlock | OperationError::TooMany) => Ok(()),
            Err(error) => {
                let address = GlobalAddress::new(proc, counter);
                Err(operation_error("a store", address, error))
            }
        }
    }

    /// The oldest operation of a processor, if any is under way.
    fn line(&self, proc: u32, queue: Queue) -> Option<&Outstanding> {
        let peer = self.peers[proc as usize].as_ref()?;
        match queue {
            Queue::GetsAndPuts => peer.outstanding.front(),
            Queue::Stores => peer.stores.front(),
        }
    }

    /// Completes any operation, so that there may be one more.
    pub(crate) fn finish_oldest(&mut self, proc: u32) -> Result<(), Error> {
        match self.line(proc, Queue::GetsAndPuts) {
            Some(_) => self.finish_front(proc, Queue::GetsAndPuts),
            None => self.finish_front(proc, Queue::Stores),
        }
    }

    fn finish_front(&mut self, proc: u32, queue: Queue) -> Result<(), Error> {
        let Some(front) = self.line(proc, queue) else {
            return Ok(());
        };
        let operation = front.operation;
        let awaited = Awaited {
            what: front.kind.what(),
            of: Some(proc),
            is_collective: false,
        };
        self.wait_for(awaited, |runtime| {
            // An atomic procedure that ran meanwhile may have completed it.
            let is_it = |front: &Outstanding| front.operation == operation;
            if !runtime.line(proc, queue).is_some_and(is_it) {
                return Ok(Some(()));
            }
            Ok(runtime.advance_front(proc, queue)?.then_some(()))
        })
    }

    /// Takes the oldest operation of a processor if it is complete; whether it was.
    fn advance_front(&mut self, proc: u32, queue: Queue) -> Result<bool, Error> {
        let Some(peer) = self.peers[proc as usize].as_mut() else {
            return Ok(false);
        };
        let line = match queue {
            Queue::GetsAndPuts => &mut peer.outstanding,
            Queue::Stores => &mut peer.stores,
        };
        let Some(Outstanding {
            operation,
            place,
            kind,
        }) = line.pop_front()
        else {
            return Ok(false);
        };
        let finished = {
            let initiator = peer.initiator_of(&kind);
            let mut interface = self.manager.interface();
            interface.finish(initiator, operation, Wait::Poll)
        };
        match finished {
            Ok(()) => {}
            Err(OperationError::TimedOut) => {
                let line = match queue {
                    Queue::GetsAndPuts => &mut peer.outstanding,
                    Queue::Stores => &mut peer.stores,
                };
                line.push_front(Outstanding {
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
            Begun::Store { length_bytes, .. } => peer.uncounted_bytes += length_bytes,
            Begun::Put { .. } | Begun::Count => {}
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
            let is_idle = peer.outstanding.is_empty()
                && peer.stores.is_empty()
                && peer.uncounted_bytes == 0
                && peer.calls.is_empty();
            peer.is_busy = !is_idle;
            !is_idle
        });
    }

    /// How many bytes were stored here in all.
    fn stored_bytes(&self) -> u64 {
        let stored = |proc| self.own_word(self.layout.stored(proc));
        (0..self.job.procs)
            .map(stored)
            .fold(0, |sum: u64, stored| sum.wrapping_add(stored))
    }

    /// Waits until `bytes` more bytes were stored here than waits before have accounted for (`store_sync`). For ever, if nobody
    /// stores them.
    pub fn store_sync(&mut self, bytes: u64) -> Result<(), Error> {
        if self.is_in_procedure {
            return Err(Error::InProcedure { what: "store_sync" });
        }
        let awaited = Awaited {
            what: "store_sync",
            of: None,
            is_collective: true,
        };
        let until = self.stores_consumed_bytes.wrapping_add(bytes);
        self.wait_for(awaited, |runtime| {
            let ahead = runtime.stored_bytes().wrapping_sub(until) as i64;
            Ok((ahead >= 0).then_some(()))
        })?;
        self.stores_consumed_bytes = until;
        Ok(())
    }

    /// Waits until all stores of all processors are in their places (`all_store_sync`, collective).
    pub fn all_store_sync(&mut self) -> Result<(), Error> {
        self.enter("all_store_sync")?;
        self.finish_stores()?;
        self.barrier_rounds("all_store_sync")?;
        self.stores_consumed_bytes = self.stored_bytes();
        Ok(())
    }
}

impl Begun {
    fn what(&self) -> &'static str {
        match self {
            Self::Get { .. } => "a get",
            Self::Put { .. } => "a put",
            Self::Store { .. } | Self::Count => "a store",
        }
    }
}
