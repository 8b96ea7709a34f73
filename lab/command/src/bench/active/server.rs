//! The end that serves: a node, and an interface with a port and two slots.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::Options;
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Area, Holders, ManagerOptions, NewPort, NewSlot, RegionTicket, Target, Ticket, Wait,
};
use hamlyn_am::{Name, Node, NodeOptions, Tag};
use hamlyn_cli::processors::pin;

pub(super) const WAIT: Wait = Wait::millis(10_000);
/// Handlers of both sides.
pub(super) const ECHO: u8 = 1;
pub(super) const COUNT: u8 = 2;
pub(super) const STORED: u8 = 3;
pub(super) const ANSWER: u8 = 4;
pub(super) const WORKS: u8 = 5;
/// Work of some handlers, so that it is their server that is busy and not the one thread that is
/// all of their clients.
pub(super) const WORK: Duration = Duration::from_micros(1);
/// Bytes of a segment.
pub(super) const SEGMENT_BYTES: u64 = 4 << 20;

/// Handlers of the port: one that takes the ticket of the client's, one that answers, one that
/// does nothing.
pub(super) const HELLO: u16 = 0;
pub(super) const ANSWERED: u16 = 1;
pub(super) const COUNTED: u16 = 2;
/// Added to a handler's number for messages with data.
pub(super) const MEDIUM: u8 = 16;
/// Messages that are taken in one go.
const BATCH: usize = 64;

/// The end that is served at present.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Node,
    Port,
    Over,
}

/// What the client needs to know.
#[derive(Clone)]
pub(super) struct Names {
    pub(super) tag: Tag,
    /// One whose segment is private memory, and one whose segment is shared.
    pub(super) endpoints: [Name; 2],
    pub(super) many: Vec<Name>,
    pub(super) port: Ticket,
    pub(super) slots: [Ticket; 2],
    pub(super) region: RegionTicket,
    end: Arc<AtomicU8>,
}

impl Names {
    /// Has that end served from now on.
    pub(super) fn turn_to(&self, end: End) {
        self.end.store(end as u8, Relaxed);
    }
}

/// Runs the client beside a server on that processor, which has so many more endpoints.
pub(super) fn beside<T>(
    there: usize,
    options: NodeOptions,
    endpoints: usize,
    client: impl FnOnce(Names) -> Result<T>,
) -> Result<T> {
    let end = Arc::new(AtomicU8::new(End::Node as u8));
    let (say, said) = channel();
    std::thread::scope(|scope| {
        let served = Arc::clone(&end);
        let serving = scope.spawn(move || -> Result<()> {
            pin(&[there])?;
            serve(options, endpoints, &say, &served)
        });
        let measured = match said.recv() {
            Ok(names) => client(names),
            Err(_) => Err(anyhow!("the server did not begin")),
        };
        end.store(End::Over as u8, Relaxed);
        let served = serving.join().map_err(|_| anyhow!("the server panicked"))?;
        served.context("serving")?;
        measured
    })
}

fn serve(
    options: NodeOptions,
    endpoints: usize,
    say: &Sender<Names>,
    end: &Arc<AtomicU8>,
) -> Result<()> {
    let tag = Tag::new(7);
    let node = Node::open(host(), options)?;
    let bundle = node.bundle()?;
    let mut held = Vec::new();
    for _ in 0..2 + endpoints {
        let mut endpoint = bundle.endpoint()?;
        endpoint.set_tag(tag)?;
        endpoint.on_short(ECHO, |call, arguments| call.reply(ANSWER, arguments))?;
        endpoint.on_medium(ECHO + MEDIUM, |call, data, _| {
            call.reply(ANSWER, &[data.len() as u32])
        })?;
        endpoint.on_short(COUNT, |_, _| Ok(()))?;
        endpoint.on_short(WORKS, |_, _| {
            let begun = Instant::now();
            while begun.elapsed() < WORK {}
            Ok(())
        })?;
        endpoint.on_bulk(STORED, |_, _, _| Ok(()))?;
        held.push(endpoint);
    }
    held[0].new_segment(SEGMENT_BYTES)?;
    held[1].set_segment(Some((shared_area()?, SEGMENT_BYTES)))?;
    let manager = hamlyn::open_with(host(), ManagerOptions::default())?;
    let mut session = manager.session();
    let mut port = session.open_port(NewPort::new().handlers(4))?;
    let (private, shared) = (session.allocate(SEGMENT_BYTES)?, shared_area()?);
    let copied = session.open_slot(NewSlot::new(&private))?;
    let direct = session.open_slot(NewSlot::new(&shared).rights(Rights::ALL))?;
    let region = session.share(&direct, 0..SEGMENT_BYTES, Access::Writable, Holders::Linked)?;
    let names: Result<Vec<Name>, _> = held.iter().map(|endpoint| endpoint.name()).collect();
    let mut names = names?.into_iter();
    let two = [names.next(), names.next()].map(|name| name.context("an endpoint"));
    let [first, second] = two;
    say.send(Names {
        tag,
        endpoints: [first?, second?],
        many: names.collect(),
        port: port.ticket(),
        slots: [
            copied.fast_ticket(0, SEGMENT_BYTES)?,
            direct.fast_ticket(0, SEGMENT_BYTES)?,
        ],
        region: region.ticket(),
        end: Arc::clone(end),
    })?;
    let mut answers_to: Option<Target> = None;
    let mut answer = vec![0; 1 << 16];
    let mut hello = None;
    loop {
        let served = end.load(Relaxed);
        if served == End::Over as u8 {
            return Ok(());
        }
        // A client connects while this is at the other end, so that is polled, too.
        if served == End::Node as u8 {
            drop(session);
            for _ in 0..BATCH {
                bundle.poll()?;
            }
            session = manager.session();
            session.poll();
            continue;
        }
        let terminus = session.terminus();
        session.drain_messages(&mut port, terminus, BATCH, |message, outbox| {
            match message.handler() {
                HELLO => {
                    let mut bytes = [0; hamlyn::ticket::TICKET_BYTES];
                    if message.copy_to(&mut bytes) == bytes.len() {
                        hello = Ticket::from_bytes(&bytes).ok();
                    }
                }
                ANSWERED => {
                    if let Some(to) = &answers_to {
                        let length = message.copy_to(&mut answer);
                        // A question at a time: there is room.
                        let _ = outbox.send_message(to, 0, &answer[..length]);
                    }
                }
                _ => {}
            }
        })?;
        if let Some(ticket) = hello.take() {
            let to = session.target(&ticket, WAIT)?;
            session.send_message(&to, 0, &[], WAIT)?;
            answers_to = Some(to);
        }
    }
}

pub(crate) fn host() -> Options {
    let mut options = Options::default().in_namespace("bench");
    options.spin_ns = Some(u64::MAX / 4);
    options
}

/// Memory that others may store into.
pub(super) fn shared_area() -> Result<Area> {
    Ok(Area::shared(SharedOptions::reserved(SEGMENT_BYTES))?)
}
