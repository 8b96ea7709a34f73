//! Atomic procedures through memory (`Split-C 2.3`, `4.2.1`): where processors reach each other's
//! memory directly, a request is a line in a ring at its owner, one ring for each processor that
//! asks, and its result comes back in the same line. So a request takes the hand-over of a line and
//! some instructions, and as many may be under way as the ring has lines.
//!
//! A bit in the owner's word of attention says that a ring has something. The owner looks at that
//! word at its accesses, at its own requests and while it waits, and serves rings in turn, one
//! request after the other. Requests without a result are counted when they are served; a processor
//! looks at the count when its ring is full, and at its next sync.
//!
//! Requests with more bytes than fit the line are calls of the owner's service
//! ([`crate::procedure`]), in order with the others. Refused by the owner: a request with
//! impossible lengths, which is answered as one that failed.

use std::sync::atomic::{Ordering, fence};

use hamlyn::one_sided::{Atomic, Change, Width};
use hamlyn::{DirectWindow, Host, Message, Wait};

use crate::control::{
    ASKED, ASLEEP, ATTENTION, CALLED, FAILURE_BYTES, REQUESTS, RING_BITS, WOKEN, called_by,
};
use crate::error::Error;
use crate::runtime::{Program, Splitc};
use crate::waiting::Awaited;

/// Bytes of arguments, or of a result, that fit the line of a request.
pub(crate) const LINE_ARGUMENT_BYTES: usize = 40;
/// Where they lie in it: behind the header, the procedure and the place.
const ARGUMENTS_AT: u64 = 24;
const WORDS: usize = LINE_ARGUMENT_BYTES / 8;
/// Served requests of one ring after which its processor is told, if more follow.
const TOLD_EVERY: u64 = REQUESTS / 4;
/// How long a message that wakes a processor may wait for room.
const WAKES_WITHIN: Wait = Wait::millis(10);

const _: () = assert!(ARGUMENTS_AT as usize + LINE_ARGUMENT_BYTES == 64);
const _: () = assert!(LINE_ARGUMENT_BYTES.is_multiple_of(8) && LINE_ARGUMENT_BYTES <= 0xFF);

/// The first word of a request's line. It is written last, and says which request lies there; the
/// owner writes it again when the request has a result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Header(u64);

impl Header {
    const ANSWERED: u64 = 1 << 63;
    const FAILED: u64 = 1 << 62;

    fn new(number: u64, argument_bytes: usize, result_bytes: usize) -> Self {
        let lengths = (argument_bytes as u64) << 32 | (result_bytes as u64) << 40;
        Self(number & 0xFFFF_FFFF | lengths)
    }

    /// Whether this is the request of that number, and not an older one in the same line.
    fn is(self, number: u64) -> bool {
        self.0 as u32 == number as u32
    }

    fn argument_bytes(self) -> usize {
        (self.0 >> 32) as usize & 0xFF
    }

    fn result_bytes(self) -> usize {
        (self.0 >> 40) as usize & 0xFF
    }
}

/// An atomic change of the word of attention.
fn change(change: Change, operand: u64) -> Atomic {
    Atomic::new(change, Width::Bits64, operand)
}

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Whether a request with so many bytes goes through memory.
    pub(crate) fn asks_directly(&self, proc: u32, arguments: &[u8], result: &[u8]) -> bool {
        arguments.len() <= LINE_ARGUMENT_BYTES
            && result.len() <= LINE_ARGUMENT_BYTES
            && self.control_window(proc).is_some()
    }

    pub(crate) fn control_window(&self, proc: u32) -> Option<&DirectWindow> {
        self.peers[proc as usize].as_ref()?.control_window()
    }

    /// Asks through memory; waits for the result if there is one.
    pub(crate) fn ask_directly(
        &mut self,
        proc: u32,
        procedure: u64,
        place: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        self.attend_called()?;
        let Some(peer) = self.peers[proc as usize].as_ref() else {
            return Ok(());
        };
        let number = peer.requests + 1;
        if number - peer.requests_served > REQUESTS {
            self.await_served(proc, number - REQUESTS)?;
        }
        let line = self.layout.request(self.job.proc, number);
        let header = Header::new(number, arguments.len(), result.len());
        let Some(window) = self.control_window(proc) else {
            return Err(self.gone(proc));
        };
        // Words appear in order, so the header says that the others are there. The places of the
        // layout lie in the area.
        let _ = window.store_u64(line + 8, procedure);
        let _ = window.store_u64(line + 16, place);
        for (index, bytes) in arguments.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            let at = line + ARGUMENTS_AT + 8 * index as u64;
            let _ = window.store_u64(at, u64::from_le_bytes(word));
        }
        let _ = window.store_u64(line, header.0);
        self.call_attention(proc, called_by(self.job.proc));
        if let Some(peer) = &mut self.peers[proc as usize] {
            peer.requests = number;
        }
        if result.is_empty() {
            self.note_busy(proc);
            return Ok(());
        }
        self.await_result(proc, line, result)
    }

    fn await_result(&mut self, proc: u32, line: u64, result: &mut [u8]) -> Result<(), Error> {
        self.wait_for(Awaited::procedure(proc), |runtime| {
            let Some(window) = runtime.control_window(proc) else {
                // The processor was lost, which the wait finds.
                return Ok(None);
            };
            let header = window.load_u64(line).unwrap_or_default();
            if header & Header::ANSWERED == 0 {
                return Ok(None);
            }
            if header & Header::FAILED != 0 {
                return Err(runtime.failure(proc));
            }
            for (index, bytes) in result.chunks_mut(8).enumerate() {
                let at = line + ARGUMENTS_AT + 8 * index as u64;
                let word = window.load_u64(at).unwrap_or_default().to_le_bytes();
                bytes.copy_from_slice(&word[..bytes.len()]);
            }
            Ok(Some(()))
        })
    }

    /// Whether all requests of this processor to that one up to that number were served; an error
    /// if one failed.
    fn is_served(&mut self, proc: u32, number: u64) -> Result<bool, Error> {
        let served = self.layout.served(self.job.proc);
        let Some(peer) = &mut self.peers[proc as usize] else {
            return Ok(true);
        };
        if peer.requests_served >= number && peer.requests_served == peer.requests {
            return Ok(true);
        }
        let Some(window) = peer.control_window() else {
            // The processor was lost, which the wait finds.
            return Ok(false);
        };
        let count = window.load_u64(served).unwrap_or_default();
        let failed = window.load_u64(served + 8).unwrap_or_default();
        peer.requests_served = count;
        if failed > peer.requests_failed {
            peer.requests_failed = failed;
            return Err(self.failure(proc));
        }
        Ok(count >= number)
    }

    pub(crate) fn await_served(&mut self, proc: u32, number: u64) -> Result<(), Error> {
        self.wait_for(Awaited::procedure(proc), |runtime| {
            Ok(runtime.is_served(proc, number)?.then_some(()))
        })
    }

    /// Whether all that this processor asked that one for through memory was done.
    pub(crate) fn is_all_served(&mut self, proc: u32) -> Result<bool, Error> {
        let peer = self.peers[proc as usize].as_ref();
        let asked = peer.map_or(0, |peer| peer.requests);
        self.is_served(proc, asked)
    }

    /// Why the owner says that it failed.
    #[cold]
    fn failure(&self, proc: u32) -> Error {
        let at = self.layout.failure(self.job.proc);
        let mut text = [0; FAILURE_BYTES as usize - 8];
        let mut length_bytes = 0;
        if let Some(window) = self.control_window(proc) {
            let said = window.load_u64(at).unwrap_or_default();
            length_bytes = usize::try_from(said).unwrap_or(0).min(text.len());
            let _ = window.read(at + 8, &mut text[..length_bytes]);
        }
        let why = String::from_utf8_lossy(&text[..length_bytes]).into_owned();
        Error::Procedure { proc, why }
    }

    #[cold]
    fn gone(&self, proc: u32) -> Error {
        Error::Gone {
            proc,
            why: "its memory can no longer be reached".to_owned(),
            what: "an atomic procedure",
        }
    }

    /// Sets a bit in the word of attention of another processor, and wakes it if it sleeps.
    pub(crate) fn call_attention(&mut self, proc: u32, bit: u64) {
        let Some(window) = self.control_window(proc) else {
            return;
        };
        // Between the request and the look at the word: its owner clears the bit before it looks at
        // the ring.
        fence(Ordering::SeqCst);
        let word = window.load_u64(ATTENTION).unwrap_or_default();
        if word & bit != 0 && word & ASLEEP == 0 {
            return;
        }
        let before = window.change(ATTENTION, &change(Change::Or, bit));
        if before.unwrap_or_default() & ASLEEP != 0 {
            self.wake(proc);
        }
    }

    /// Wakes another processor if it sleeps: to be called after what it may wait for was stored.
    #[inline]
    pub(crate) fn wake_if_asleep(&mut self, proc: u32) {
        let Some(window) = self.control_window(proc) else {
            return;
        };
        // Between what was stored and the look: a processor says that it sleeps before it looks for
        // the last time.
        fence(Ordering::SeqCst);
        if window.load_u64(ATTENTION).unwrap_or_default() & ASLEEP != 0 {
            self.wake(proc);
        }
    }

    #[cold]
    fn wake(&mut self, proc: u32) {
        let Some(peer) = &self.peers[proc as usize] else {
            return;
        };
        let Some(window) = peer.control_window() else {
            return;
        };
        let before = window.change(ATTENTION, &change(Change::And, !ASLEEP));
        if before.unwrap_or_default() & ASLEEP == 0 {
            // Another processor has woken it, or it woke by itself.
            return;
        }
        let target = peer.control_target();
        let message = Message::new(&[1; 8]).at(WOKEN);
        let terminus = self.manager.terminus();
        let mut interface = self.manager.session();
        // One that was not sent costs time and nothing else: the processor looks again by itself
        // after a while. That it is gone is found where it is waited for.
        let _ = interface.send_msg(terminus, &target, &message, WAKES_WITHIN);
    }

    /// Wakes all processors that sleep: they may wait for what this one has stored, which nothing
    /// else tells them.
    pub(crate) fn wake_sleepers(&mut self) {
        // As in `wake_if_asleep`, once for all.
        fence(Ordering::SeqCst);
        for proc in 0..self.job.procs {
            let window = self.control_window(proc);
            let word = window.map(|window| window.load_u64(ATTENTION).unwrap_or_default());
            if word.is_some_and(|word| word & ASLEEP != 0) {
                self.wake(proc);
            }
        }
    }

    /// This processor is about to sleep, and looks once more before it does.
    pub(crate) fn announce_sleep(&mut self) {
        // The place lies in the area.
        let _ = self
            .control
            .change_at(ATTENTION, &change(Change::Or, ASLEEP));
    }

    /// It is awake.
    pub(crate) fn end_sleep(&mut self) {
        let _ = self
            .control
            .change_at(ATTENTION, &change(Change::And, !ASLEEP));
    }

    /// Carries out what others have called attention to through memory. A load, if there is
    /// nothing.
    #[inline]
    pub(crate) fn attend_called(&mut self) -> Result<(), Error> {
        if self.is_direct && !self.is_in_procedure && self.own_word(ATTENTION) & ASKED != 0 {
            return self.attend_rings();
        }
        Ok(())
    }

    #[inline(never)]
    fn attend_rings(&mut self) -> Result<(), Error> {
        let asked = self.own_word(ATTENTION) & ASKED;
        if asked & CALLED != 0 {
            self.clear_attention(CALLED);
            self.attend_calls()?;
        }
        let rings = asked & !CALLED;
        // The bits stay as long as something comes, so that a processor that asks again and again
        // finds its bit set.
        if rings != 0 && !self.serve_all(rings) {
            self.clear_attention(rings);
            // What came before they were cleared is not announced again.
            self.serve_all(rings);
        }
        Ok(())
    }

    fn clear_attention(&mut self, bits: u64) {
        // The place lies in the area.
        let _ = self
            .control
            .change_at(ATTENTION, &change(Change::And, !bits));
    }

    /// Gives the rings of those bits a turn each; whether there was any request.
    fn serve_all(&mut self, mut rings: u64) -> bool {
        let mut is_any = false;
        while rings != 0 {
            let mut proc = rings.trailing_zeros();
            rings &= rings - 1;
            while proc < self.job.procs {
                is_any |= self.serve(proc);
                proc += RING_BITS;
            }
        }
        is_any
    }

    /// Serves the requests of one processor, as many as its ring has lines at most; whether there
    /// were any.
    fn serve(&mut self, from: u32) -> bool {
        let first = self.rings_served[from as usize];
        let mut number = first;
        while number - first < REQUESTS {
            let line = self.layout.request(from, number + 1);
            let header = Header(self.own_word(line));
            if !header.is(number + 1) {
                break;
            }
            number += 1;
            self.serve_one(from, number, line, header);
            if (number - first).is_multiple_of(TOLD_EVERY) {
                let _ = self.control.store_u64(self.layout.served(from), number);
            }
        }
        if number == first {
            return false;
        }
        self.rings_served[from as usize] = number;
        // The places of the layout lie in the area.
        let _ = self.control.store_u64(self.layout.served(from), number);
        if number - first == REQUESTS {
            // There may be more, after the others had their turn.
            let again = change(Change::Or, called_by(from));
            let _ = self.control.change_at(ATTENTION, &again);
        }
        self.wake_if_asleep(from);
        true
    }

    fn serve_one(&mut self, from: u32, number: u64, line: u64, header: Header) {
        let procedure = self.own_word(line + 8);
        let place = self.own_word(line + 16);
        let (argument_bytes, result_bytes) = (header.argument_bytes(), header.result_bytes());
        let mut arguments = [0; LINE_ARGUMENT_BYTES];
        let mut result = [0; LINE_ARGUMENT_BYTES];
        let used = argument_bytes.min(LINE_ARGUMENT_BYTES).div_ceil(8);
        for (index, bytes) in arguments.as_chunks_mut::<8>().0[..used]
            .iter_mut()
            .enumerate()
        {
            *bytes = self
                .own_word(line + ARGUMENTS_AT + 8 * index as u64)
                .to_le_bytes();
        }
        let lengths = (
            arguments.get(..argument_bytes),
            result.get_mut(..result_bytes),
        );
        let ran = match lengths {
            (Some(arguments), Some(result)) => self.run(procedure, place, arguments, result),
            _ => Err("the request is damaged".to_owned()),
        };
        let mut answer = header.0 | Header::ANSWERED;
        if let Err(why) = ran {
            self.tell_failure(from, &why);
            answer |= Header::FAILED;
            if result_bytes == 0 {
                let _ = self.control.store_u64(self.layout.served(from) + 8, number);
            }
        }
        if result_bytes == 0 {
            return;
        }
        let used = result_bytes.div_ceil(8).min(WORDS);
        for (index, word) in result.as_chunks::<8>().0[..used].iter().enumerate() {
            let at = line + ARGUMENTS_AT + 8 * index as u64;
            let _ = self.control.store_u64(at, u64::from_le_bytes(*word));
        }
        let _ = self.control.store_u64(line, answer);
    }

    #[cold]
    fn tell_failure(&self, to: u32, why: &str) {
        let at = self.layout.failure(to);
        let length_bytes = why.len().min(FAILURE_BYTES as usize - 8);
        // The places of the layout lie in the area.
        let _ = self
            .control
            .write_at(at + 8, &why.as_bytes()[..length_bytes]);
        let _ = self.control.store_u64(at, length_bytes as u64);
    }
}

#[cfg(test)]
mod tests;
