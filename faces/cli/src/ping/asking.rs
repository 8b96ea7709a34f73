//! The asking side: one message after the other, and what became of each.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::datagram::{Receiver, Sender};
use hamlyn::engine::memory::LinkId;
use hamlyn::host::Peer;
use hamlyn::host::process::ProcessHost;
use hamlyn::{
    Address, ConnectionState, Destination, Event, Manager, PeerLost, SendError, Ticket, Wait,
};
use indicatif::ProgressBar;

use super::message::{self, Answer, Clock, ITEM};
use super::report::{Ended, Path, Report, Times};
use super::{Arguments, POLL_SPAN, Stop};

/// Messages after which the state of the way is looked at: it cannot be asked for when the peer is
/// gone.
const STATE_EVERY: u64 = 1024;

struct Asker<'a> {
    arguments: &'a Arguments,
    stop: &'a Stop,
    manager: Manager<ProcessHost>,
    receiver: Receiver,
    sender: Sender,
    peer: Destination,
    link: LinkId,
    report: Report,
    ask: Vec<u8>,
}

/// What became of one message.
enum Outcome {
    Answered,
    Unanswered,
    Lost(PeerLost),
    Stopped,
}

pub(super) fn run(
    arguments: &Arguments,
    manager: Manager<ProcessHost>,
    stop: &Stop,
) -> Result<ExitCode> {
    let mut asker = greet(arguments, manager, stop)?;
    asker.run()?;
    let report = asker.report;
    report.print(arguments.json)?;
    let is_whole = report.answered > 0 && !matches!(report.ended, Ended::Lost(_));
    Ok(match is_whole {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

/// Finds the answering process and sends it a hello.
fn greet<'a>(
    arguments: &'a Arguments,
    manager: Manager<ProcessHost>,
    stop: &'a Stop,
) -> Result<Asker<'a>> {
    let until = Instant::now() + Duration::from_secs(arguments.wait);
    let ticket = ask_for_ticket(arguments, &manager, until, stop)?;
    let ticket = Ticket::from_bytes(&ticket)?;
    let left = || Wait::For(until.saturating_duration_since(Instant::now()));
    let mut receiver = Receiver::new(&manager, arguments.size)?;
    receiver.ready();
    let sender = Sender::grow(&manager, &ticket, left())?;
    let own = receiver.ticket();
    let hello = message::hello(arguments.size);
    let sent_ns = Clock::now_ns();
    sender.send_to(0, &hello, Some(&own), left())?;
    let back = loop {
        if let Some(datagram) = receiver.recv(Wait::For(POLL_SPAN))? {
            break datagram.to_vec();
        }
        ensure!(
            !stop.is_wanted(),
            "interrupted before {} answered",
            arguments.name
        );
        ensure!(
            Instant::now() < until,
            "{} does not say hello: is it `hamlyn ping --listen`, and does it allow this user?",
            arguments.name
        );
    };
    let clock = message::read_hello_back(&back)
        .with_context(|| format!("{} speaks another version", arguments.name))?;
    let first_ns = Clock::now_ns() - sent_ns;
    let peer = ticket.destination;
    let (link, far) = linked(&manager, &peer).context("the link ended at once")?;
    let wire = manager.session().connection_state(link);
    let times = match wire {
        // The kernel says that both are here; then they read one clock, unless their namespaces
        // differ.
        None if clock.is_same(Clock::own()) => Times::measured(),
        None => Times::halved("the two processes are in different namespaces of time"),
        Some(_) => Times::halved("two hosts have two clocks"),
    };
    let path = Path::new(&far, wire);
    let report = Report::new(&arguments.name, arguments.size, path, times, first_ns);
    Ok(Asker {
        arguments,
        stop,
        manager,
        receiver,
        sender,
        peer,
        link,
        report,
        ask: vec![0; arguments.size as usize],
    })
}

/// Asks for a ticket in short waits, so that an interrupt ends it.
fn ask_for_ticket(
    arguments: &Arguments,
    manager: &Manager<ProcessHost>,
    until: Instant,
    stop: &Stop,
) -> Result<Vec<u8>> {
    use hamlyn::host::ConnectError::{Absent, AbsentHere, Host, NotOffered, Stalled};
    use hamlyn::host::HostError::NoRoute;
    loop {
        // Another host must have time to answer.
        let left = until.saturating_duration_since(Instant::now());
        let wait = Wait::For(left.min(Duration::from_secs(1)));
        let to = Address::Name(&arguments.name);
        match manager.session().ask(to, ITEM, wait) {
            Ok(ticket) => return Ok(ticket),
            Err(
                error @ (Absent { .. }
                | AbsentHere { .. }
                | NotOffered { .. }
                | Stalled { .. }
                | Host(NoRoute { .. })),
            ) => {
                ensure!(!stop.is_wanted(), "interrupted: {error}");
                if Instant::now() >= until {
                    return Err(error.into());
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn linked(manager: &Manager<ProcessHost>, to: &Destination) -> Option<(LinkId, Peer)> {
    let interface = manager.session();
    let mut peers = interface.peers();
    let (link, peer) = peers.find(|(_, peer)| peer.destination.is_same(to))?;
    Some((link, peer.clone()))
}

impl Asker<'_> {
    fn run(&mut self) -> Result<()> {
        let Arguments {
            count, interval, ..
        } = *self.arguments;
        let quiet = self.arguments.quiet || self.arguments.json;
        let bar = match count {
            0 => hamlyn_cli::terminal::spinner(quiet),
            count => hamlyn_cli::terminal::steps_bar(count, &self.arguments.name, quiet),
        };
        let mut due = Instant::now();
        while count == 0 || self.report.sent < count {
            let outcome = match self.turn(&bar)? {
                Outcome::Answered | Outcome::Unanswered => {
                    due += interval;
                    // What took longer than an interval is not made up for.
                    due = due.max(Instant::now());
                    match count != 0 && self.report.sent == count {
                        true => Outcome::Answered,
                        false => self.pause(due)?,
                    }
                }
                end => end,
            };
            match outcome {
                Outcome::Lost(lost) => {
                    self.report.ended = Ended::Lost(lost.to_string());
                    break;
                }
                Outcome::Stopped => {
                    self.report.ended = Ended::Interrupted;
                    break;
                }
                Outcome::Answered | Outcome::Unanswered => {}
            }
        }
        bar.finish_and_clear();
        self.note_state();
        self.note_undelivered();
        Ok(())
    }

    fn note_state(&mut self) {
        if let Some(state) = self.state() {
            self.report.path.note(state);
        }
    }

    fn state(&self) -> Option<ConnectionState> {
        self.manager.session().connection_state(self.link)
    }

    fn note_undelivered(&mut self) {
        while let Some(back) = self.manager.session().next_undelivered() {
            self.report.note_undelivered(back.reason.to_string());
        }
    }

    /// One message, and its answer.
    fn turn(&mut self, bar: &ProgressBar) -> Result<Outcome> {
        let number = self.report.sent;
        message::ask(number, &mut self.ask);
        let room = Wait::For(self.arguments.timeout);
        let sent_ns = Clock::now_ns();
        self.report.sent += 1;
        let _ = &mut self.manager;
        match self.sender.send(&self.ask, room) {
            Ok(_) => {}
            Err(SendError::WouldBlock { .. } | SendError::Cut { .. }) => {
                self.report.no_room += 1;
                return Ok(Outcome::Unanswered);
            }
            Err(SendError::PeerLost(lost)) => return Ok(Outcome::Lost(lost)),
            Err(error) => return Err(error.into()),
        }
        let until = Instant::now() + self.arguments.timeout;
        let outcome = self.await_answer(number, sent_ns, until)?;
        if number.is_multiple_of(STATE_EVERY) || !matches!(outcome, Outcome::Answered) {
            self.note_state();
        }
        self.note_undelivered();
        match outcome {
            Outcome::Unanswered => self.report.late_or_lost += 1,
            Outcome::Answered => {
                bar.inc(1);
                if !bar.is_hidden() {
                    bar.set_message(self.report.latest());
                }
            }
            Outcome::Lost(_) | Outcome::Stopped => {}
        }
        Ok(outcome)
    }

    fn await_answer(&mut self, number: u64, sent_ns: u64, until: Instant) -> Result<Outcome> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.next_answer(left.min(POLL_SPAN))? {
                Next::Answer(answer, came_ns, is_whole) => {
                    if answer.number != number as u32 {
                        // To a message that was given up.
                        self.report.late += 1;
                    } else if !is_whole {
                        self.report.damaged += 1;
                        return Ok(Outcome::Unanswered);
                    } else {
                        self.report.note_answer(sent_ns, &answer, came_ns);
                        return Ok(Outcome::Answered);
                    }
                }
                Next::Lost(lost) => return Ok(Outcome::Lost(lost)),
                Next::Nothing if self.stop.is_wanted() => {
                    // It was given no time: it does not count as lost.
                    self.report.sent -= 1;
                    return Ok(Outcome::Stopped);
                }
                Next::Nothing if left.is_zero() => return Ok(Outcome::Unanswered),
                Next::Nothing => {}
            }
        }
    }

    /// Waits until the next message is due; hears meanwhile of what comes late, and of a loss.
    fn pause(&mut self, due: Instant) -> Result<Outcome> {
        loop {
            if self.stop.is_wanted() {
                return Ok(Outcome::Stopped);
            }
            let left = due.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(Outcome::Answered);
            }
            match self.next_answer(left.min(POLL_SPAN))? {
                Next::Answer(..) => self.report.late += 1,
                Next::Lost(lost) => return Ok(Outcome::Lost(lost)),
                Next::Nothing => {}
            }
        }
    }

    fn next_answer(&mut self, within: Duration) -> Result<Next> {
        match self.receiver.recv(Wait::For(within)) {
            Ok(Some(datagram)) => {
                let came_ns = Clock::now_ns();
                let answer = Answer::read(&datagram, self.ask.len());
                let is_whole = datagram.get(16..) == self.ask.get(16..);
                match answer {
                    Some(answer) => Ok(Next::Answer(answer, came_ns, is_whole)),
                    None => {
                        self.report.damaged += 1;
                        Ok(Next::Nothing)
                    }
                }
            }
            Ok(None) => {
                while let Some(event) = self.manager.next_event(Wait::Poll)? {
                    match event {
                        Event::PeerLeft { peer, end } if peer.interface.is_same(&self.peer) => {
                            let peer = peer.interface;
                            return Ok(Next::Lost(PeerLost { peer, end }));
                        }
                        Event::Refused(back) => {
                            self.report.note_undelivered(back.reason.to_string());
                        }
                        _ => {}
                    }
                }
                Ok(Next::Nothing)
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// What came.
enum Next {
    Answer(Answer, u64, bool),
    Lost(PeerLost),
    Nothing,
}
