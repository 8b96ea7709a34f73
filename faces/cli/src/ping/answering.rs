//! The answering side: serves everybody who asks, several at once.
//!
//! A ticket is offered once, so that everybody who asks has a receiver of their own. There are
//! always some in stock; those that were given to somebody who never said hello are closed when too
//! many of them have come together, the oldest first.

use std::collections::VecDeque;
use std::process::ExitCode;

use anyhow::Result;
use hamlyn::datagram::{Receiver, Sender};
use hamlyn::host::Supply;
use hamlyn::host::process::ProcessHost;
use hamlyn::{Destination, Manager, ReceiveError, Ticket, Wait};

use super::message::{self, Clock, ITEM, SIZE_BYTES_MAX};
use super::{Arguments, POLL_SPAN, Stop};

/// Tickets that are offered at a time.
const STOCK: u64 = 16;
/// Receivers that were offered, and that nobody has said hello to.
const SILENT_MAX: usize = 64;
/// Those who are served at a time at most.
const CLIENTS_MAX: usize = 1024;
/// Newcomers are looked for when nobody was served, and at each such round: a client in service
/// must not wait for those who are not there.
const ROUNDS: u64 = 256;
/// How long an answer may wait for room.
const ROOM: Wait = Wait::millis(100);

/// A client in service.
struct Client {
    receiver: Receiver,
    sender: Sender,
    peer: Destination,
    shown: String,
    answered: u64,
}

struct Responder<'a> {
    arguments: &'a Arguments,
    manager: Manager<ProcessHost>,
    /// The oldest first: in this order their tickets are given away.
    silent: VecDeque<Receiver>,
    /// Tickets that were ever offered.
    offered: u64,
    clients: Vec<Client>,
    answer: Vec<u8>,
}

pub(super) fn run(
    arguments: &Arguments,
    manager: Manager<ProcessHost>,
    stop: &Stop,
) -> Result<ExitCode> {
    let mut responder = Responder {
        arguments,
        manager,
        silent: VecDeque::new(),
        offered: 0,
        clients: Vec::new(),
        answer: Vec::new(),
    };
    responder.restock()?;
    responder.introduce();
    let mut round = 0_u64;
    while !stop.is_wanted() {
        let served = responder.serve()?;
        if !served || round.is_multiple_of(ROUNDS) {
            responder.welcome()?;
            responder.restock()?;
            responder.see_off()?;
        }
        round += 1;
        responder.manager.wait(Wait::For(POLL_SPAN))?;
    }
    for client in &responder.clients {
        responder.say(&format!("{}: {} answered", client.shown, client.answered));
    }
    Ok(ExitCode::SUCCESS)
}

impl Responder<'_> {
    fn say(&self, what: &str) {
        if !self.arguments.quiet {
            eprintln!("{what}");
        }
    }

    fn introduce(&self) {
        let name = &self.arguments.name;
        let interface = self.manager.session();
        let host = interface.host().host_name();
        self.say(&match host {
            Some(host) => format!("answering as {name}; on other hosts it is {host}/{name}"),
            None => format!("answering as {name} on this host"),
        });
    }

    /// Offers tickets, so that there are always some.
    fn restock(&mut self) -> Result<()> {
        let given = self.manager.session().host().rendezvous_counters().answered;
        while self.offered < given + STOCK {
            let mut receiver = Receiver::new(&self.manager, SIZE_BYTES_MAX)?;
            receiver.ready();
            let ticket = receiver.ticket().to_bytes();
            self.manager.session().offer(ITEM, Supply::Once, &ticket)?;
            self.offered += 1;
            self.silent.push_back(receiver);
        }
        while self.silent.len() > SILENT_MAX {
            if let Some(receiver) = self.silent.pop_front() {
                drop(receiver);
            }
        }
        Ok(())
    }

    /// Answers what has come; whether anything had.
    fn serve(&mut self) -> Result<bool> {
        let mut served = false;
        for client in &mut self.clients {
            loop {
                let received = client.receiver.recv(Wait::Poll);
                let Some(datagram) = taken(received)? else {
                    break;
                };
                let came_ns = Clock::now_ns();
                served = true;
                let is_answered = message::answer(&datagram, came_ns, &mut self.answer).is_some();
                // Its sender goes on when it has the answer, so the receiver must be ready by then.
                drop(datagram);
                if is_answered {
                    let _ = &mut self.manager;
                    let sent = client.sender.send(&self.answer, ROOM);
                    client.answered += u64::from(sent.is_ok());
                }
            }
        }
        Ok(served)
    }

    /// Greets those who have said hello.
    fn welcome(&mut self) -> Result<()> {
        let mut index = 0;
        while index < self.silent.len() {
            let receiver = &mut self.silent[index];
            let Some(datagram) = taken(receiver.recv(Wait::Poll))? else {
                index += 1;
                continue;
            };
            let size_bytes = message::read_hello(&datagram);
            let reply = datagram.reply_ticket();
            drop(datagram);
            let Some(receiver) = self.silent.remove(index) else {
                break;
            };
            match (size_bytes, reply) {
                (Some(size_bytes), Some(reply)) if self.clients.len() < CLIENTS_MAX => {
                    self.admit(receiver, &reply, size_bytes)?;
                }
                // It says nothing that we know.
                _ => drop(receiver),
            }
        }
        Ok(())
    }

    fn admit(&mut self, mut receiver: Receiver, reply: &Ticket, size_bytes: u32) -> Result<()> {
        let manager = &mut self.manager;
        // Over the link by which the hello came; a client without a link is not looked for.
        let interface = manager.session();
        let peer = interface
            .peers()
            .find(|(_, peer)| peer.destination.is_same(&reply.destination))
            .map(|(_, peer)| peer.clone());
        drop(interface);
        let Some(peer) = peer else {
            return Ok(());
        };
        let Ok(sender) = Sender::grow(manager, reply, Wait::Poll) else {
            return Ok(());
        };
        // Before it is told that it may ask.
        receiver.ready();
        let back = message::hello_back(Clock::own());
        if sender.send(&back, ROOM).is_err() {
            return Ok(());
        }
        let Destination {
            node,
            user,
            interface,
        } = peer.destination;
        let own = manager.session().identity().node;
        let shown = match node {
            _ if node == 0 || node == own => format!("process {} of user {user}", peer.process),
            _ => format!("interface {interface:016x} of user {user}, on another host"),
        };
        self.say(&format!("{shown}: asks with {size_bytes} bytes"));
        self.clients.push(Client {
            receiver,
            sender,
            peer: peer.destination,
            shown,
            answered: 0,
        });
        Ok(())
    }

    /// Forgets those whose link has ended.
    fn see_off(&mut self) -> Result<()> {
        let mut index = 0;
        while let Some(client) = self.clients.get(index) {
            let interface = self.manager.session();
            if interface
                .peers()
                .any(|(_, peer)| peer.destination.is_same(&client.peer))
            {
                index += 1;
                continue;
            }
            drop(interface);
            let client = self.clients.swap_remove(index);
            self.say(&format!("{}: {} answered", client.shown, client.answered));
            drop(client.receiver);
        }
        Ok(())
    }
}

/// What was received. That somebody sends what is no datagram is no error here.
fn taken<T>(received: Result<Option<T>, ReceiveError>) -> Result<Option<T>, ReceiveError> {
    match received {
        Err(ReceiveError::Malformed { .. }) => Ok(None),
        other => other,
    }
}
