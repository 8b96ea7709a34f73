//! What `faces/c/measure/count.c` does, in Rust: the calls whose instructions `hamlyn-lab bench
//! --c` sets beside those of a program in C.
//!
//! Each call is a function of its own that is not inlined, with bytes of which the compiler knows
//! nothing, as a call through C is.

use std::error::Error;
use std::hint::black_box;

use hamlyn::engine::terminus::{TerminusId, TerminusOptions};
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Interface, Manager, ManagerOptions, Message, NewSlot, Queue, Target, Wait};
use hamlyn::{datagram, mailbox, stream, tagged_write};

const BATCH: usize = 32;
const WARM_UP_BATCHES: u64 = 200;
const BYTES: usize = 16;
const AREA_BYTES: u64 = 4096;
const QUEUE_ENTRIES: usize = 1024;
const LONG: Wait = Wait::millis(5_000);

type Done = Result<(), Box<dyn Error + Send + Sync>>;

/// Both ends of a protocol, each call of which moves one message.
trait Ends {
    fn send(&mut self, bytes: &[u8], turn: usize) -> Done;
    fn receive(&mut self, turn: usize) -> Done;
}

fn place(turn: usize) -> u64 {
    (turn * BYTES) as u64
}

fn expect(is_it: bool) -> Done {
    match is_it {
        true => Ok(()),
        false => Err("another message came".into()),
    }
}

/// A program in C is told where a message lies. One in Rust asks.
#[inline(always)]
fn looked_at(bytes: &[u8]) {
    black_box(bytes.as_ptr());
}

struct FastMode {
    sending: Manager,
    receiving: Manager,
    terminus: TerminusId,
    target: Target,
    queue: Queue,
}

impl Ends for FastMode {
    #[inline(never)]
    fn send(&mut self, bytes: &[u8], turn: usize) -> Done {
        let message = Message::new(bytes).at(place(turn)).word(turn as u64);
        let (terminus, target) = (self.terminus, &self.target);
        let mut sending = self.sending.session();
        sending.send_msg(terminus, target, &message, Wait::Poll)?;
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, turn: usize) -> Done {
        let mut receiving = self.receiving.session();
        let came = receiving.rcv(&mut self.queue)?.ok_or("no message")?;
        expect(came.word == turn as u64)
    }
}

struct TaggedWrites(tagged_write::Receiver, tagged_write::Sender);

impl Ends for TaggedWrites {
    #[inline(never)]
    fn send(&mut self, bytes: &[u8], turn: usize) -> Done {
        self.1.send(place(turn), bytes, turn as u64, Wait::Poll)?;
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, turn: usize) -> Done {
        let tag = self.0.get_tag(Wait::Poll)?.ok_or("no tag")?;
        expect(tag == turn as u64)
    }
}

/// A receiver has room for one datagram, so there are as many as datagrams at a time.
struct Datagrams(Vec<(datagram::Receiver, datagram::Sender)>);

impl Ends for Datagrams {
    #[inline(never)]
    fn send(&mut self, bytes: &[u8], turn: usize) -> Done {
        self.0[turn].1.send(bytes, Wait::Poll)?;
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, turn: usize) -> Done {
        let datagram = self.0[turn].0.recv(Wait::Poll)?.ok_or("no datagram")?;
        looked_at(&datagram);
        Ok(())
    }
}

struct Stream(stream::Receiver, stream::Sender);

impl Ends for Stream {
    #[inline(never)]
    fn send(&mut self, bytes: &[u8], _: usize) -> Done {
        self.1.send(bytes, Wait::Poll)?;
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, _: usize) -> Done {
        let record = self.0.recv(Wait::Poll)?.ok_or("no record")?;
        looked_at(&record);
        Ok(())
    }
}

struct Mailbox(mailbox::Receiver, mailbox::Sender);

impl Ends for Mailbox {
    #[inline(never)]
    fn send(&mut self, bytes: &[u8], _: usize) -> Done {
        self.1.send(bytes, Wait::Poll)?;
        Ok(())
    }

    #[inline(never)]
    fn receive(&mut self, _: usize) -> Done {
        let mail = self.0.recv(Wait::Poll)?.ok_or("no mail")?;
        looked_at(&mail);
        Ok(())
    }
}

#[inline(never)]
fn send_some<E: Ends>(ends: &mut E, bytes: &[u8]) -> Done {
    for turn in 0..BATCH {
        ends.send(bytes, turn)?;
    }
    Ok(())
}

#[inline(never)]
fn receive_some<E: Ends>(ends: &mut E) -> Done {
    for turn in 0..BATCH {
        ends.receive(turn)?;
    }
    Ok(())
}

#[inline(never)]
fn counted_sends<E: Ends>(ends: &mut E, bytes: &[u8]) -> Done {
    // Not the last thing that is done here, so it is a call and not a jump.
    black_box(send_some(ends, bytes))
}

#[inline(never)]
fn counted_receives<E: Ends>(ends: &mut E) -> Done {
    black_box(receive_some(ends))
}

fn count<E: Ends>(mut ends: E, batches: u64) -> Done {
    let bytes = black_box(&[7; BYTES][..]);
    for _ in 0..WARM_UP_BATCHES {
        send_some(&mut ends, bytes)?;
        receive_some(&mut ends)?;
    }
    for _ in 0..batches {
        counted_sends(&mut ends, bytes)?;
        counted_receives(&mut ends)?;
    }
    Ok(())
}

/// The receiver hears of the sender from the control thread of its host.
fn await_link(receiving: &mut Interface<ProcessHost>) {
    while receiving.peers().next().is_none() {
        receiving.poll();
    }
}

fn fast_mode(here: Manager, there: Manager) -> Result<FastMode, Box<dyn Error + Send + Sync>> {
    let (terminus, target, queue) = {
        let (mut sending, mut receiving) = (here.session(), there.session());
        let area = receiving.allocate(AREA_BYTES)?;
        let queue = receiving.open_queue(QUEUE_ENTRIES)?;
        let slot = receiving.open_slot(NewSlot::new(&area).queue(&queue))?;
        let target = sending.target(&slot.fast_ticket(0, AREA_BYTES)?, LONG)?;
        (
            sending.open_terminus(TerminusOptions::default())?,
            target,
            queue,
        )
    };
    Ok(FastMode {
        sending: here,
        receiving: there,
        terminus,
        target,
        queue,
    })
}

fn datagrams(here: &Manager, there: &Manager) -> Result<Datagrams, Box<dyn Error + Send + Sync>> {
    let ends = (0..BATCH).map(|_| {
        let mut receiver = datagram::Receiver::new(there, 64)?;
        receiver.ready();
        let sender = datagram::Sender::grow(here, &receiver.ticket(), LONG)?;
        Ok::<_, Box<dyn Error + Send + Sync>>((receiver, sender))
    });
    Ok(Datagrams(ends.collect::<Result<_, _>>()?))
}

/// Moves so many batches by that protocol, in a namespace of its own.
///
/// # Errors
///
/// No protocol is called so, or a call fails.
pub fn run(protocol: &str, batches: u64, namespace: &str) -> Done {
    let mut options = Options::default().in_namespace(namespace);
    // So that no sleep is counted.
    options.spin_ns = Some(u64::MAX / 4);
    let here = hamlyn::open_with(options.clone(), ManagerOptions::default())?;
    let there = hamlyn::open_with(options, ManagerOptions::default())?;
    let linked = || await_link(&mut there.session());
    match protocol {
        "fast_mode" => {
            let ends = fast_mode(here.clone(), there.clone())?;
            linked();
            count(ends, batches)
        }
        "tagged_write" => {
            let receiver = tagged_write::Receiver::new(&there, AREA_BYTES, QUEUE_ENTRIES)?;
            let sender = tagged_write::Sender::grow(&here, &receiver.ticket(), LONG)?;
            linked();
            count(TaggedWrites(receiver, sender), batches)
        }
        "datagram" => {
            let ends = datagrams(&here, &there)?;
            linked();
            count(ends, batches)
        }
        "stream" => {
            let receiver = stream::Receiver::new(&there, stream::StreamOptions::default())?;
            let sender = stream::Sender::grow(&here, &receiver.make_seed(), LONG)?;
            linked();
            count(Stream(receiver, sender), batches)
        }
        "mailbox" => {
            let options = mailbox::MailboxOptions::default();
            let receiver = mailbox::Receiver::new(&there, options)?;
            let sender = mailbox::Sender::grow(&here, &receiver.ticket(), LONG)?;
            linked();
            count(Mailbox(receiver, sender), batches)
        }
        _ => Err("no protocol is called so".into()),
    }
}
