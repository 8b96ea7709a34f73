//! Atomic procedures (`Split-C 2.3`, `4.2.1`): a processor asks the owner of a place to run a
//! procedure on it. The owner's program runs it when it polls or waits in the runtime, one at a
//! time, whatever the strategy is.
//!
//! Between processors that reach each other's memory directly, short requests go through it
//! ([`crate::direct_procedure`]). Any other request, and its answer, are a call of the owner's
//! service, so a processor that is asked too much is asked no more until it answers.

use hamlyn::service::{CallError, Client};
use hamlyn::{Host, Wait};

use crate::address::GlobalAddress;
use crate::control::CALLED;
use crate::error::Error;
use crate::runtime::{CALLS_MAX, Program, Splitc};
use crate::waiting::Awaited;

/// The item of the service.
pub(crate) const ATOMIC_ITEM: &str = "atomic";
/// Bytes of the arguments of a procedure.
pub const ARGUMENT_BYTES_MAX: usize = 4096;
/// Bytes of its result.
pub const RESULT_BYTES_MAX: usize = 4096;
/// Procedure, place, and bytes of the result.
const HEADER_BYTES: usize = 24;
pub(crate) const REQUEST_BYTES_MAX: usize = HEADER_BYTES + ARGUMENT_BYTES_MAX;
/// A byte that says whether the procedure ran, and its result, or why it did not.
pub(crate) const REPLY_BYTES_MAX: usize = 1 + RESULT_BYTES_MAX;

const DONE: u8 = 0;
const FAILED: u8 = 1;
/// Procedures that the runtime itself asks for have these numbers; no function has such an address.
pub(crate) const ALLOCATE: u64 = u64::MAX;
pub(crate) const FREE: u64 = u64::MAX - 1;

impl<H: Host, P: Program<H>> Splitc<H, P> {
    /// Has the owner of `place` run a procedure there, and waits until it has run if it has a
    /// result. Otherwise it has run after the next [`Splitc::sync`].
    pub fn atomic(
        &mut self,
        place: GlobalAddress,
        procedure: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        self.locate("an atomic procedure", place, 1)?;
        self.call(place, procedure, arguments, result)
    }

    /// The same, where the place need not be shared.
    pub(crate) fn call(
        &mut self,
        place: GlobalAddress,
        procedure: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), Error> {
        let proc = place.proc();
        if self.is_in_procedure {
            let what = "another atomic procedure";
            return Err(Error::InProcedure { what });
        }
        let lengths = [
            ("arguments", arguments.len(), ARGUMENT_BYTES_MAX),
            ("result", result.len(), RESULT_BYTES_MAX),
        ];
        for (what, length_bytes, limit_bytes) in lengths {
            if length_bytes > limit_bytes {
                return Err(Error::TooLong {
                    what,
                    length_bytes,
                    limit_bytes,
                });
            }
        }
        if proc == self.job.proc {
            self.attend()?;
            let ran = self.run(procedure, place.place(), arguments, result);
            return ran.map_err(|why| Error::Procedure { proc, why });
        }
        if self.asks_directly(proc, arguments, result) {
            if self.calls(proc) > 0 {
                // What was asked for first is done first.
                self.finish_calls(proc)?;
            }
            return self.ask_directly(proc, procedure, place.place(), arguments, result);
        }
        if !self.is_all_served(proc)? {
            self.finish_calls(proc)?;
        }
        let mut request = [0; REQUEST_BYTES_MAX];
        request[..8].copy_from_slice(&procedure.to_le_bytes());
        request[8..16].copy_from_slice(&place.place().to_le_bytes());
        request[16..24].copy_from_slice(&(result.len() as u64).to_le_bytes());
        let length = HEADER_BYTES + arguments.len();
        request[HEADER_BYTES..length].copy_from_slice(arguments);
        self.connect_client(proc)?;
        let awaited = Awaited::procedure(proc);
        while self.calls(proc) >= usize::from(CALLS_MAX) {
            self.wait_for(awaited, |runtime| {
                runtime.advance_calls(proc)?;
                Ok((runtime.calls(proc) < usize::from(CALLS_MAX)).then_some(()))
            })?;
        }
        let call = self.wait_for(awaited, |runtime| {
            let Some(client) = runtime.client(proc) else {
                return Ok(None);
            };
            match client.start(&request[..length], Wait::Poll) {
                Ok(call) => Ok(Some(call)),
                Err(CallError::TimedOut { .. }) => Ok(None),
                Err(error) => Err(call_error(proc, &error)),
            }
        })?;
        self.call_attention(proc, CALLED);
        if result.is_empty() {
            if let Some(peer) = &mut self.peers[proc as usize] {
                peer.calls.push_back(call);
            }
            self.note_busy(proc);
            return Ok(());
        }
        self.wait_for(awaited, |runtime| {
            let Some(client) = runtime.client(proc) else {
                return Ok(None);
            };
            let reply = client.reply(&call, Wait::Poll);
            match reply.map_err(|error| call_error(proc, &error))? {
                None => Ok(None),
                Some(reply) => read_reply(proc, &reply, result).map(Some),
            }
        })
    }

    fn client(&mut self, proc: u32) -> Option<&mut Client<H>> {
        self.peers[proc as usize].as_mut()?.client.as_mut()
    }

    fn calls(&self, proc: u32) -> usize {
        let peer = self.peers[proc as usize].as_ref();
        peer.map_or(0, |peer| peer.calls.len())
    }

    fn connect_client(&mut self, proc: u32) -> Result<(), Error> {
        self.peer(proc)?;
        if self.client(proc).is_some() {
            return Ok(());
        }
        let to = format!("{}/{ATOMIC_ITEM}", self.job.interface_address(proc));
        let awaited = Awaited::procedure(proc);
        let client = self.wait_for(awaited, |runtime| {
            // The owner makes room for callers while it polls; meanwhile others may wait for us.
            Ok(runtime.manager.connect_service(&to, Wait::millis(20)).ok())
        })?;
        self.peer(proc)?.client = Some(client);
        Ok(())
    }

    /// Takes the answers that have come to procedures without a result; whether all were carried
    /// out.
    pub(crate) fn advance_calls(&mut self, proc: u32) -> Result<bool, Error> {
        if !self.is_all_served(proc)? {
            return Ok(false);
        }
        let Some(peer) = &mut self.peers[proc as usize] else {
            return Ok(true);
        };
        let Some(client) = &mut peer.client else {
            return Ok(true);
        };
        while let Some(call) = peer.calls.front() {
            let reply = client.reply(call, Wait::Poll);
            let Some(reply) = reply.map_err(|error| call_error(proc, &error))? else {
                return Ok(false);
            };
            let read = read_reply(proc, &reply, &mut []);
            drop(reply);
            // Also one that failed is over.
            peer.calls.pop_front();
            read?;
        }
        Ok(true)
    }

    pub(crate) fn finish_calls(&mut self, proc: u32) -> Result<(), Error> {
        let awaited = Awaited::procedure(proc);
        self.wait_for(awaited, |runtime| {
            Ok(runtime.advance_calls(proc)?.then_some(()))
        })
    }

    /// Carries out the atomic procedures that others have asked for.
    pub(crate) fn attend(&mut self) -> Result<(), Error> {
        self.attend_called()?;
        self.attend_calls()
    }

    /// The same, of those that are asked for by calls of the service.
    pub(crate) fn attend_calls(&mut self) -> Result<(), Error> {
        if self.is_in_procedure {
            return Ok(());
        }
        let Some(mut service) = self.service.take() else {
            return Ok(());
        };
        let attended = loop {
            let call = match service.next(Wait::Poll) {
                Ok(Some(call)) => call,
                Ok(None) => break Ok(()),
                Err(error) => break Err(error.into()),
            };
            let mut request = std::mem::take(&mut self.request);
            request.clear();
            request.extend_from_slice(&call);
            let call = call.defer();
            let mut reply = std::mem::take(&mut self.result);
            self.answer(&request, &mut reply);
            let sent = service.reply(call, &reply);
            (self.request, self.result) = (request, reply);
            if let Err(error) = sent {
                break Err(Error::Procedure {
                    proc: self.job.proc,
                    why: error.to_string(),
                });
            }
        };
        self.service = Some(service);
        attended
    }

    fn answer(&mut self, request: &[u8], reply: &mut Vec<u8>) {
        reply.clear();
        reply.push(DONE);
        let ran = match read_request(request) {
            Some((procedure, place, result_bytes, arguments)) => {
                reply.resize(1 + result_bytes, 0);
                self.run(procedure, place, arguments, &mut reply[1..])
            }
            None => Err("the request is damaged".to_owned()),
        };
        if let Err(why) = ran {
            reply.clear();
            reply.push(FAILED);
            let length = why.len().min(RESULT_BYTES_MAX);
            reply.extend_from_slice(&why.as_bytes()[..length]);
        }
    }

    pub(crate) fn run(
        &mut self,
        procedure: u64,
        place: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), String> {
        self.is_in_procedure = true;
        let ran = match procedure {
            ALLOCATE | FREE => self.run_allocation(procedure, place, arguments, result),
            _ => P::procedure(self, procedure, place, arguments, result),
        };
        self.is_in_procedure = false;
        ran
    }
}

fn read_request(request: &[u8]) -> Option<(u64, u64, usize, &[u8])> {
    let (header, arguments) = request.split_first_chunk::<HEADER_BYTES>()?;
    let (words, _) = header.as_chunks::<8>();
    let [procedure, place, result_bytes] = [0, 1, 2].map(|word| u64::from_le_bytes(words[word]));
    let result_bytes = usize::try_from(result_bytes).ok()?;
    (result_bytes <= RESULT_BYTES_MAX).then_some((procedure, place, result_bytes, arguments))
}

fn read_reply(proc: u32, reply: &[u8], result: &mut [u8]) -> Result<(), Error> {
    let why = match reply.split_first() {
        Some((&DONE, bytes)) if bytes.len() == result.len() => {
            result.copy_from_slice(bytes);
            return Ok(());
        }
        Some((&FAILED, why)) => String::from_utf8_lossy(why).into_owned(),
        _ => "its answer is damaged".to_owned(),
    };
    Err(Error::Procedure { proc, why })
}

fn call_error(proc: u32, error: &CallError) -> Error {
    Error::Procedure {
        proc,
        why: error.to_string(),
    }
}
