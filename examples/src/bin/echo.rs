//! A layer of one's own: active messages of one word. Each names a handler, which runs at the
//! receiver and may answer. The layer stands on ports and sessions, and writes no loop that waits
//! (`docs/writing-a-layer.md`).
//!
//! ```text
//! echo serve 1000          # answers so many questions, and ends
//! echo ask 1000            # asks so many, and waits for all answers
//! ```

use std::collections::{HashMap, VecDeque};
use std::error::Error;

use hamlyn::engine::memory::LinkId;
use hamlyn::host::Supply;
use hamlyn::{
    Address, CompletionQueue, Manager, NewPort, Port, SendError, Session, Target, Ticket, Wait,
};
use hamlyn_examples::Outcome;

const LONG: Wait = Wait::millis(20_000);
/// Under this item each end offers the ticket to which its messages go.
const ITEM: &str = "active-messages";
/// Messages that are handled in one go: then whatever else there is to attend to has its turn.
const MESSAGES_MAX: usize = 256;

/// A message: the number of a handler, and its argument.
#[derive(Clone, Copy)]
struct Active {
    handler: u16,
    argument: u64,
}

/// Runs at the receiver, while the message lies where it came, and may answer its sender.
type Handler<'h> = Box<dyn FnMut(u64) -> Option<Active> + 'h>;

/// An end of the layer: it sends messages, and runs handlers of those that come.
struct Endpoint<'h> {
    port: Port,
    handlers: Vec<Handler<'h>>,
    /// Where answers to those links go.
    peers: HashMap<LinkId, Target>,
    /// Answers to peers that are not known yet, or for which there was no room.
    unsent: VecDeque<(LinkId, Active)>,
    /// Messages that came back.
    returned: CompletionQueue,
}

impl<'h> Endpoint<'h> {
    fn open(session: &mut Session<'_>, handlers: Vec<Handler<'h>>) -> Result<Self, Box<dyn Error>> {
        let new = NewPort::new().handlers(handlers.len() as u16);
        let port = session.open_port(new)?;
        session.offer(ITEM, Supply::Always, &port.ticket().to_bytes())?;
        let returned = session.open_completions(1)?;
        session.track_refusals(&returned)?;
        Ok(Self {
            port,
            handlers,
            peers: HashMap::new(),
            unsent: VecDeque::new(),
            returned,
        })
    }

    /// Sends a message, and runs handlers while there is no room for it.
    fn send(&mut self, session: &mut Session<'_>, to: &Target, message: Active) -> Outcome {
        self.wait_for(session, |_, session| Ok(try_send(session, to, message)?))
    }

    /// Runs handlers until `step` finds something.
    fn wait_for<T>(
        &mut self,
        session: &mut Session<'_>,
        mut step: impl FnMut(&mut Self, &mut Session<'_>) -> Result<Option<T>, Box<dyn Error>>,
    ) -> Result<T, Box<dyn Error>> {
        let found = session.wait_for(LONG, |session| {
            self.run(session)?;
            step(self, session)
        })?;
        found.ok_or_else(|| "nothing came in time".into())
    }

    /// Runs the handlers of messages that have come. Does not wait but for the ticket of a new
    /// peer.
    fn run(&mut self, session: &mut Session<'_>) -> Outcome {
        if let Some(completion) = session.next_completion(&self.returned) {
            // A message was refused: its receiver is gone, or too slow.
            completion.result?;
        }
        let (handlers, peers, unsent) = (&mut self.handlers, &self.peers, &mut self.unsent);
        let terminus = session.terminus();
        session.drain_messages(&mut self.port, terminus, MESSAGES_MAX, |message, outbox| {
            let handler = handlers.get_mut(usize::from(message.handler()));
            let answer = handler.and_then(|handler| handler(message.word(0)));
            if let Some(answer) = answer {
                let to = peers.get(&message.from());
                let sent = to.map(|to| {
                    let argument = answer.argument.to_le_bytes();
                    outbox.send_message(to, answer.handler, &argument)
                });
                if !matches!(sent, Some(Ok(Some(_)))) {
                    unsent.push_back((message.from(), answer));
                }
            }
        })?;
        // A peer that has no room holds up no other.
        for _ in 0..self.unsent.len() {
            let Some((link, answer)) = self.unsent.pop_front() else {
                break;
            };
            let to = self.peer(session, link)?;
            if try_send(session, &to, answer)?.is_none() {
                self.unsent.push_back((link, answer));
            }
        }
        Ok(())
    }

    /// Where answers to the peer of that link go: to the ticket that it offers itself.
    fn peer(&mut self, session: &mut Session<'_>, link: LinkId) -> Result<Target, Box<dyn Error>> {
        if let Some(known) = self.peers.get(&link) {
            return Ok(*known);
        }
        // The kernel or the handshake vouches for it.
        let peer = session.identity_of(link).ok_or("it left long ago")?;
        let target = connect(session, Address::Destination(peer.interface))?;
        self.peers.insert(link, target);
        Ok(target)
    }
}

/// The end at that address.
fn connect(session: &mut Session<'_>, to: Address<'_>) -> Result<Target, Box<dyn Error>> {
    let ticket = Ticket::from_bytes(&session.ask(to, ITEM, LONG)?)?;
    Ok(session.target(&ticket, LONG)?)
}

fn try_send(
    session: &mut Session<'_>,
    to: &Target,
    message: Active,
) -> Result<Option<()>, SendError> {
    let (terminus, argument) = (session.terminus(), message.argument.to_le_bytes());
    let sent = session.try_send_message(terminus, to, message.handler, &argument)?;
    Ok(sent.map(drop))
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", questions] => serve(&hamlyn::open("echo")?, questions.parse()?),
        ["ask", questions] => ask(&hamlyn::open_unnamed()?, questions.parse()?),
        _ => Err("usage: echo serve QUESTIONS | echo ask QUESTIONS".into()),
    }
}

fn serve(manager: &Manager, questions: u64) -> Outcome {
    let answered = std::cell::Cell::new(0);
    let echo: Handler<'_> = Box::new(|argument| {
        answered.set(answered.get() + 1);
        Some(Active {
            handler: 0,
            argument,
        })
    });
    let session = &mut manager.session();
    let mut end = Endpoint::open(session, vec![echo])?;
    end.wait_for(session, |end, _| {
        let is_done = answered.get() == questions && end.unsent.is_empty();
        Ok(is_done.then_some(()))
    })?;
    session.flush(LONG)?;
    println!("{questions} questions answered");
    Ok(())
}

fn ask(manager: &Manager, questions: u64) -> Outcome {
    let (answers, sum) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    let count: Handler<'_> = Box::new(|argument| {
        answers.set(answers.get() + 1);
        sum.set(sum.get() + argument);
        None
    });
    let session = &mut manager.session();
    let mut end = Endpoint::open(session, vec![count])?;
    let server = connect(session, Address::Name("echo"))?;
    for argument in 0..questions {
        end.send(
            session,
            &server,
            Active {
                handler: 0,
                argument,
            },
        )?;
    }
    end.wait_for(session, |_, _| {
        Ok((answers.get() == questions).then_some(()))
    })?;
    println!("{questions} answers, their sum {}", sum.get());
    Ok(())
}
