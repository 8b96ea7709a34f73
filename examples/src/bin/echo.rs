//! A layer of one's own: active messages of one word. Each names a handler, which runs at the
//! receiver and may answer. The layer stands on sessions, and writes no loop that waits.
//!
//! ```text
//! echo serve 1000          # answers so many questions, and ends
//! echo ask 1000            # asks so many, and waits for all answers
//! ```

use std::collections::VecDeque;
use std::error::Error;

use hamlyn::engine::memory::LinkId;
use hamlyn::host::Supply;
use hamlyn::{Address, Manager, Message, NewSlot, Queue, Session, Slot, Target, Ticket, Wait};
use hamlyn_examples::Outcome;

const LONG: Wait = Wait::millis(20_000);
/// The handler has so many bits of a message's word, its argument the others.
const HANDLER_BITS: u32 = 8;
/// Under this item each end offers the ticket to which its messages go.
const ITEM: &str = "active-messages";

/// A message: the number of a handler, and its argument.
#[derive(Clone, Copy)]
struct Active {
    handler: u8,
    argument: u64,
}

/// Runs at the receiver, and may answer the sender.
type Handler<'h> = Box<dyn FnMut(u64) -> Option<Active> + 'h>;

/// An end of the layer: it sends messages, and runs handlers of those that come.
struct Endpoint<'h> {
    queue: Queue,
    handlers: Vec<Handler<'h>>,
    /// Where answers to those links go.
    peers: Vec<(LinkId, Target)>,
    /// Answers for which there was no room yet.
    unsent: VecDeque<(Target, Active)>,
    _slot: Slot,
}

impl<'h> Endpoint<'h> {
    fn open(session: &mut Session<'_>, handlers: Vec<Handler<'h>>) -> Result<Self, Box<dyn Error>> {
        let area = session.allocate(64)?;
        let queue = session.open_queue(4096)?;
        let slot = session.open_slot(NewSlot::new(&area).queue(&queue))?;
        let ticket = slot.fast_ticket(0, 64)?;
        session.offer(ITEM, Supply::Always, &ticket.to_bytes())?;
        Ok(Self {
            queue,
            handlers,
            peers: Vec::new(),
            unsent: VecDeque::new(),
            _slot: slot,
        })
    }

    /// Sends a message, and runs handlers while there is no room for it.
    fn send(&mut self, session: &mut Session<'_>, to: &Target, message: Active) -> Outcome {
        self.wait_for(session, |_, session| try_send(session, to, message))
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

    /// Runs the handlers of all messages that have come. Does not wait but for the ticket of a new
    /// peer.
    fn run(&mut self, session: &mut Session<'_>) -> Outcome {
        while let Some(&(to, answer)) = self.unsent.front() {
            if try_send(session, &to, answer)?.is_none() {
                break;
            }
            self.unsent.pop_front();
        }
        while let Some(message) = session.rcv(&mut self.queue)? {
            let handler = self.handlers.get_mut(usize::from(message.word as u8));
            let answer = handler.and_then(|handler| handler(message.word >> HANDLER_BITS));
            if let Some(answer) = answer {
                let to = self.peer(session, message.from)?;
                self.unsent.push_back((to, answer));
            }
        }
        Ok(())
    }

    /// Where answers to the peer of that link go: to the ticket that it offers itself.
    fn peer(&mut self, session: &mut Session<'_>, link: LinkId) -> Result<Target, Box<dyn Error>> {
        if let Some((_, known)) = self.peers.iter().find(|(known, _)| *known == link) {
            return Ok(*known);
        }
        // The kernel or the handshake vouches for it.
        let peer = session.identity_of(link).ok_or("it left long ago")?;
        let target = connect(session, Address::Destination(peer.interface))?;
        self.peers.push((link, target));
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
) -> Result<Option<()>, Box<dyn Error>> {
    let word = message.argument << HANDLER_BITS | u64::from(message.handler);
    let terminus = session.terminus();
    let sent = session.try_send(terminus, to, &Message::new(&[]).word(word))?;
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
