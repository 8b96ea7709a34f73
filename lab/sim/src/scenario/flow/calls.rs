//! Calls of a service: replies at once, late and in any order; calls that are dropped, given up, or
//! outlive one of their ends.

use hamlyn::Wait;
use hamlyn::service::{
    Answered, CallError, Client, Deferred, Kept, Pending, ReplyError, Service, ServiceOptions,
};

use super::{FlowReceiver, FlowSender, Program, Step, Turn, wrong};
use crate::host::SimHost;
use crate::random::Random;
use crate::scenario::history::{Oracle, noise};
use crate::scenario::plan::Kind;
use crate::scenario::process;

/// Calls that a client may have outstanding.
const OUTSTANDING: u16 = 3;
/// Calls that the server puts off before it answers one of them.
const HELD_MAX: usize = 2;
/// A request begins with the number of its call.
const NUMBER_BYTES: u32 = 8;
const OPTIONS: ServiceOptions = ServiceOptions {
    request_bytes: NUMBER_BYTES + Kind::Service.longest_bytes(),
    reply_bytes: Kind::Service.longest_bytes(),
    outstanding: OUTSTANDING,
    clients: 8,
};
const CONNECT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(500));
const SHORT_WAIT: Wait = Wait::For(std::time::Duration::from_micros(30));
const CALL_WAIT: Wait = Wait::For(std::time::Duration::from_micros(200));
/// Tells bytes of replies from those of requests.
const REPLIES: u64 = 0x0072_6570_6c69_6573;

fn item(oracle: &Oracle<'_>) -> String {
    format!("calls-{}-{}", oracle.flow, oracle.life)
}

/// Where calls are answered.
pub(super) struct ServiceReceiver {
    service: Option<Service<SimHost>>,
    held: Vec<(Deferred, u64)>,
    random: Random,
    /// Calls that came since the service, or its client's lane, is there.
    taken: u32,
}

impl ServiceReceiver {
    pub(super) fn open(program: &Program, oracle: &Oracle<'_>) -> Result<Self, String> {
        let service = program.bind_service(&item(oracle), OPTIONS);
        Ok(Self {
            service: Some(service.map_err(wrong("binding a service"))?),
            held: Vec::new(),
            random: Random::new(oracle.seed()),
            taken: 0,
        })
    }

    fn reply_to(&mut self, oracle: &Oracle<'_>, number: u64) -> Vec<u8> {
        let longest = u64::from(OPTIONS.reply_bytes);
        let length = match self.random.below(3) {
            0 => self.random.below(17),
            1 => self.random.below(65),
            _ => self.random.below(longest + 1),
        };
        noise(oracle.seed() ^ REPLIES, number, length as usize)
    }

    /// Answers one of the calls that were put off, or drops it. False if there is none.
    fn release(&mut self, oracle: &Oracle<'_>) -> Result<bool, String> {
        if self.held.is_empty() {
            return Ok(false);
        }
        let at = self.random.below(self.held.len() as u64) as usize;
        let (call, number) = self.held.swap_remove(at);
        let reply = self.reply_to(oracle, number);
        let Some(service) = &mut self.service else {
            return Ok(true);
        };
        if let Some(request) = service.request(&call) {
            let sent =
                oracle.judge(|models| Ok(models.calls.request(number).map(<[u8]>::to_vec)))?;
            if sent.flatten().is_some_and(|sent| sent != request) {
                return Err(format!(
                    "the request of call {number} changed in its server's hands"
                ));
            }
        }
        let is_answered = self.random.below(4) != 0;
        let given = is_answered.then_some(reply.as_slice());
        oracle.judge(|models| {
            models.calls.answering(number, given);
            Ok(())
        })?;
        match is_answered {
            true => judge_answer(oracle, number, service.reply(call, &reply))?,
            false => drop(call),
        }
        Ok(true)
    }

    /// Ends the service with what it holds and binds it anew, or takes its client's lane away.
    fn renew(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        self.taken = 0;
        ending(oracle)?;
        if self.random.below(2) == 0 {
            let name = process::name(oracle.known().from);
            let is_client = |peer: &hamlyn::host::Peer| peer.name.as_deref() == Some(&name);
            let links: Vec<_> = program
                .session()
                .peers()
                .filter(|(_, peer)| is_client(peer))
                .map(|(link, _)| link)
                .collect();
            let service = self.service.as_mut();
            service.map(|service| links.into_iter().any(|link| service.dismiss(link)));
            return ending(oracle);
        }
        if self.random.below(2) == 0 {
            self.held.clear();
        }
        self.service = None;
        ending(oracle)?;
        let service = program.bind_service(&item(oracle), OPTIONS);
        let mut service = service.map_err(wrong("binding a service anew"))?;
        for (call, number) in self.held.drain(..) {
            let answered = service.reply(call, &[]);
            if answered != Ok(Answered::ClientGone) {
                return Err(format!(
                    "call {number} of a service that ended is {answered:?}"
                ));
            }
        }
        self.service = Some(service);
        Ok(())
    }

    fn take(&mut self, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let choice = self.random.below(8);
        let reply = self.reply_to(oracle, oracle.sent());
        let Some(service) = &mut self.service else {
            return Ok(false);
        };
        let next = service.next(wait).map_err(wrong("waiting for a call"))?;
        let Some(call) = next else {
            return Ok(false);
        };
        let Some(number) = oracle.judge(|models| models.calls.came(&call))? else {
            return Ok(true);
        };
        self.taken += 1;
        let given = match choice {
            0 => None,
            1..=4 => Some(reply.as_slice()),
            _ => {
                self.held.push((call.defer(), number));
                return Ok(true);
            }
        };
        oracle.judge(|models| {
            models.calls.answering(number, given);
            Ok(())
        })?;
        match given {
            Some(reply) => judge_answer(oracle, number, call.reply(reply))?,
            None => drop(call),
        }
        Ok(true)
    }
}

/// Judges what a service says of a reply.
fn judge_answer(
    oracle: &Oracle<'_>,
    number: u64,
    answered: Result<Answered, ReplyError>,
) -> Result<(), String> {
    let judged = oracle.judge(|models| match answered {
        Ok(Answered::Sent) => Ok(Ok(())),
        Ok(Answered::Cancelled) => models.calls.cancelled(number).map(Ok),
        // A client that was killed gave nothing up.
        Ok(Answered::ClientGone) if !oracle.plan.is_lossless() => Ok(Ok(())),
        Ok(Answered::ClientGone) => models.calls.client_gone(number).map(Ok),
        Err(error) => Ok(Err(wrong("replying")(error))),
    })?;
    judged.unwrap_or(Ok(()))
}

impl FlowReceiver for ServiceReceiver {
    fn seed(&self, _: &Program) -> Result<Vec<u8>, String> {
        // Clients find the service by its item.
        Ok(vec![0])
    }

    fn look(&mut self, program: &Program, oracle: &Oracle<'_>, wait: Wait) -> Result<bool, String> {
        let renewed_after = oracle.known().renewed_after;
        if renewed_after > 0 && self.taken > renewed_after && !oracle.is_old() {
            self.renew(program, oracle)?;
            return Ok(true);
        }
        // A server that waits, or has no more to come, does not keep others waiting.
        let is_full = self.held.len() > HELD_MAX || wait != Wait::Poll;
        if (is_full || self.random.below(6) == 0) && self.release(oracle)? {
            return Ok(true);
        }
        let wait = if self.held.is_empty() {
            wait
        } else {
            Wait::Poll
        };
        self.take(oracle, wait)
    }

    fn close(mut self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        ending(oracle)?;
        if self.random.below(2) == 0 {
            self.held.clear();
        }
        let misbehaved = self.service.as_ref().map_or(0, Service::misbehaved);
        drop(self);
        program.session().poll();
        ending(oracle)?;
        match misbehaved {
            0 => Ok(()),
            _ => Err(format!(
                "{misbehaved} clients are said to break the protocol"
            )),
        }
    }
}

/// A service is about to end, or to dismiss its clients, or has done so: a client that comes in
/// between may still find what it offered.
fn ending(oracle: &Oracle<'_>) -> Result<(), String> {
    let judged = oracle.judge(|models| {
        models.calls.ending();
        Ok(())
    });
    judged.map(drop)
}

/// A client, and what it has outstanding.
struct Connection {
    client: Client<SimHost>,
    /// Its number in the model.
    number: u64,
    pending: Vec<(Pending, u64)>,
    kept: Vec<(Kept, Vec<u8>)>,
    asked: u32,
}

/// How a call of the client ended that did not do what it was to.
enum Failed {
    /// The lane is gone.
    Dismissed,
    /// The server is.
    Lost,
}

/// Where calls are made.
pub(super) struct ServiceSender {
    to: String,
    connection: Option<Connection>,
    /// The connection of the last attempt, if that came to nothing.
    attempt: Option<u64>,
}

impl ServiceSender {
    pub(super) fn new(oracle: &Oracle<'_>) -> Self {
        let to = process::name(oracle.known().to);
        Self {
            to: format!("{to}/{}", item(oracle)),
            connection: None,
            attempt: None,
        }
    }

    fn connect(&mut self, program: &Program, oracle: &Oracle<'_>) -> Result<Step, String> {
        let attempt = self.attempt;
        let number = oracle.judge(|models| Ok(models.calls.connecting(attempt)))?;
        let Some(number) = number else {
            return Ok(Step::Nothing);
        };
        // A server that does not look offers no lanes, and one that was killed none any more.
        let Ok(client) = program.connect_service(&self.to, CONNECT_WAIT) else {
            self.attempt = Some(number);
            return Ok(Step::Nothing);
        };
        self.attempt = None;
        self.connection = Some(Connection {
            client,
            number,
            pending: Vec::new(),
            kept: Vec::new(),
            asked: 0,
        });
        Ok(Step::Moved)
    }

    /// Drops the client with all that it has outstanding.
    fn disconnect(&mut self, oracle: &Oracle<'_>, random: &mut Random) -> Result<(), String> {
        let Some(connection) = self.connection.take() else {
            return Ok(());
        };
        let Connection {
            client,
            number,
            pending,
            kept,
            ..
        } = connection;
        oracle.judge(|models| {
            models.calls.disconnecting(number);
            Ok(())
        })?;
        for (_, call) in &pending {
            oracle.permit(*call);
        }
        if random.below(2) == 0 {
            drop(pending);
        }
        drop(client);
        drop(kept);
        Ok(())
    }
}

impl Connection {
    /// Looks after one of the calls that are outstanding.
    fn take_reply(
        &mut self,
        oracle: &Oracle<'_>,
        random: &mut Random,
    ) -> Result<Result<bool, Failed>, String> {
        if self.pending.is_empty() {
            return Ok(Ok(false));
        }
        let at = random.below(self.pending.len() as u64) as usize;
        if random.below(24) == 0 {
            let (call, number) = self.pending.swap_remove(at);
            give_up(oracle, number)?;
            drop(call);
            return Ok(Ok(true));
        }
        let wait = match random.below(8) {
            0 => SHORT_WAIT,
            _ => Wait::Poll,
        };
        let (call, number) = (&self.pending[at].0, self.pending[at].1);
        match self.client.reply(call, wait) {
            Ok(None) => return Ok(Ok(false)),
            Ok(Some(reply)) => {
                let bytes = reply.to_vec();
                let kept = (random.below(4) == 0).then(|| reply.keep());
                replied(oracle, number, &bytes)?;
                self.kept.extend(kept.map(|kept| (kept, bytes)));
            }
            Err(CallError::Unanswered { .. }) => unanswered(oracle, number)?,
            Err(error) => return failed(oracle, self.number, error).map(Err),
        }
        self.pending.swap_remove(at);
        Ok(Ok(true))
    }

    fn release(&mut self) -> Result<(), String> {
        let Some((kept, bytes)) = self.kept.pop() else {
            return Ok(());
        };
        match self.client.view(&kept) == Some(bytes.as_slice()) {
            true => Ok(()),
            false => Err("a reply changed in its client's hands".to_owned()),
        }
    }

    /// Makes the next call, and waits for the reply now and then.
    fn ask(
        &mut self,
        oracle: &Oracle<'_>,
        random: &mut Random,
        number: u64,
    ) -> Result<Result<Step, Failed>, String> {
        let data = oracle.content(number);
        let request = [number.to_le_bytes().as_slice(), &data].concat();
        oracle.judge(|models| {
            models.calls.asking(number, self.number, &request);
            Ok(())
        })?;
        oracle.sending(&data);
        if random.below(6) == 0 {
            self.asked += 1;
            let failed = match self.client.call(&request, CALL_WAIT) {
                Ok(reply) => {
                    let bytes = reply.to_vec();
                    drop(reply);
                    replied(oracle, number, &bytes)?;
                    return Ok(Ok(Step::Sent));
                }
                Err(CallError::Unanswered { .. }) => {
                    unanswered(oracle, number)?;
                    return Ok(Ok(Step::Sent));
                }
                Err(
                    CallError::TimedOut { .. }
                    | CallError::AllOutstanding { .. }
                    | CallError::AllKept { .. },
                ) => None,
                Err(error) => Some(failed(oracle, self.number, error)?),
            };
            give_up(oracle, number)?;
            return Ok(failed.map_or(Ok(Step::Sent), Err));
        }
        let wait = match random.below(4) {
            0 => SHORT_WAIT,
            _ => Wait::Poll,
        };
        let failed = match self.client.start(&request, wait) {
            Ok(call) => {
                self.asked += 1;
                self.pending.push((call, number));
                return Ok(Ok(Step::Sent));
            }
            Err(CallError::TimedOut { .. } | CallError::AllOutstanding { .. }) => Ok(Step::Nothing),
            Err(CallError::AllKept { .. }) if self.kept.len() >= OUTSTANDING.into() => {
                Ok(Step::Nothing)
            }
            Err(error) => Err(failed(oracle, self.number, error)?),
        };
        oracle.judge(|models| models.calls.unasked(number))?;
        oracle.unsent();
        Ok(failed)
    }
}

fn failed(oracle: &Oracle<'_>, connection: u64, error: CallError) -> Result<Failed, String> {
    match error {
        CallError::Dismissed { .. } => {
            oracle.judge(|models| models.calls.dismissed(connection))?;
            Ok(Failed::Dismissed)
        }
        CallError::PeerLost(_) => Ok(Failed::Lost),
        error => Err(wrong("a call")(error)),
    }
}

fn replied(oracle: &Oracle<'_>, number: u64, reply: &[u8]) -> Result<(), String> {
    oracle.judge(|models| models.calls.replied(number, reply))?;
    oracle.came(number, &oracle.content(number));
    Ok(())
}

fn unanswered(oracle: &Oracle<'_>, number: u64) -> Result<(), String> {
    oracle.judge(|models| models.calls.unanswered(number))?;
    oracle.permit(number);
    Ok(())
}

fn give_up(oracle: &Oracle<'_>, number: u64) -> Result<(), String> {
    oracle.judge(|models| {
        models.calls.giving_up(number);
        Ok(())
    })?;
    oracle.permit(number);
    Ok(())
}

impl FlowSender for ServiceSender {
    fn step(&mut self, program: &Program, turn: Turn<'_>) -> Result<Step, String> {
        let (oracle, random) = (turn.oracle, turn.random);
        let renewed_after = oracle.known().renewed_after;
        let Some(connection) = &mut self.connection else {
            return match oracle.is_sent() {
                true => Ok(Step::Nothing),
                false => self.connect(program, oracle),
            };
        };
        if renewed_after > 0 && connection.asked >= renewed_after {
            self.disconnect(oracle, random)?;
            return Ok(Step::Moved);
        }
        if random.below(3) == 0 || connection.kept.len() >= OUTSTANDING.into() {
            connection.release()?;
        }
        let done = match connection.take_reply(oracle, random)? {
            Ok(false) => match oracle.next(OUTSTANDING.into()).filter(|_| turn.is_due) {
                Some(number) => connection.ask(oracle, random, number)?,
                None => Ok(Step::Nothing),
            },
            Ok(true) => Ok(Step::Moved),
            Err(failed) => Err(failed),
        };
        match done {
            Ok(step) => Ok(step),
            Err(Failed::Dismissed) => {
                self.disconnect(oracle, random)?;
                Ok(Step::Moved)
            }
            Err(Failed::Lost) => Ok(Step::Lost),
        }
    }

    fn is_done(&self, oracle: &Oracle<'_>) -> bool {
        let is_idle = |connection: &Connection| connection.pending.is_empty();
        oracle.is_ended() || oracle.is_sent() && self.connection.as_ref().is_none_or(is_idle)
    }

    fn close(mut self: Box<Self>, program: &Program, oracle: &Oracle<'_>) -> Result<(), String> {
        let seed = oracle.seed();
        self.disconnect(oracle, &mut Random::new(seed))?;
        program.session().poll();
        Ok(())
    }
}
