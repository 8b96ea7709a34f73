//! Active Messages beside the interface under them (decision 54): in turn, in the same seconds, the
//! same bytes as messages to ports that a handler answers, and bulk as messages to a slot.
//!
//! Both ends are threads of this process with a node and an interface each.

mod server;

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::ProcessHost;
use hamlyn::{Attached, Manager, ManagerOptions, Message, NewPort, Port, Target, Wait};
use hamlyn_am::{Bundle, Endpoint, Node, NodeOptions, Tag, Translation};
use hamlyn_cli::processors::median;
use hamlyn_cli::terminal::table;
use indicatif::ProgressBar;
use serde::Serialize;

pub(super) use server::host;
use server::{ANSWER, COUNT, ECHO, Names, SEGMENT_BYTES, STORED, WAIT, WORK, WORKS, beside};

/// Numbers of arguments of a round trip, lengths of mediums, and of transfers.
const ARGUMENTS: [usize; 4] = [0, 4, 8, 16];
const MEDIUM_BYTES: [usize; 3] = [256, 1024, 4096];
const BULK_BYTES: [usize; 3] = [16 << 10, 64 << 10, 1 << 20];
/// Requests of the one-way rate have so many.
const RATE_ARGUMENTS: usize = 4;
/// Calls between two looks at the clock.
const CALLS_PER_LOOK: u64 = 64;
/// A transfer goes to one of so many places of the segment, in turn.
const BULK_PLACES: usize = 4;
/// Bytes of a packet: a message in fast mode is one.
const PACKET_BYTES: usize = 64 << 10;
const _: () = assert!((BULK_PLACES * BULK_BYTES[BULK_BYTES.len() - 1]) as u64 <= SEGMENT_BYTES);
/// Endpoints of the server beyond one, and frames for them: twelve times fewer.
const ENDPOINTS: usize = 84;
const FRAMES: u16 = 7;

/// How much is measured of each figure.
#[derive(Clone, Copy)]
pub(super) struct Amount {
    pub(super) round_trips: u64,
    pub(super) bytes_per_run: usize,
    pub(super) window: Duration,
    /// Times that ours and the interface's are measured in turn; the medians are reported.
    pub(super) rounds: usize,
}

/// Figures that are measured.
pub(super) const STEPS: u64 =
    (ARGUMENTS.len() + MEDIUM_BYTES.len() + 1 + 2 * BULK_BYTES.len() + 1) as u64;

/// Of one kind and length: ours, the interface's, and the median of the quotients of neighbours.
#[derive(Serialize)]
pub(super) struct Row {
    pub(super) length: usize,
    ours: f64,
    interface: f64,
    quotient: f64,
}

/// The figures that are reported.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// Half of a round trip in nanoseconds, by the number of arguments.
    short_ns: Vec<Row>,
    /// The same by bytes of data.
    medium_ns: Vec<Row>,
    /// Requests a second whose handlers do not reply.
    requests_per_s: Row,
    /// Bytes a second of transfers, to private memory and to shared memory.
    copied_bytes_per_s: Vec<Row>,
    direct_bytes_per_s: Vec<Row>,
    /// Requests a second of a client for each of many endpoints, with a frame for each and with frames
    /// for one of twelve.
    paged: Paged,
}

#[derive(Serialize)]
struct Paged {
    endpoints: usize,
    frames: u16,
    resident_per_s: f64,
    paged_per_s: f64,
    quotient: f64,
}

impl Row {
    pub(super) fn of(length: usize, pairs: &[(f64, f64)]) -> Self {
        let of = |figure: fn(&(f64, f64)) -> f64| median(pairs.iter().map(figure).collect());
        Self {
            length,
            ours: of(|pair| pair.0),
            interface: of(|pair| pair.1),
            quotient: of(|pair| pair.0 / pair.1),
        }
    }

    /// The row of a table, its figures in that unit, with so many digits after the point.
    pub(super) fn cells(&self, name: String, unit: f64, digits: usize) -> [String; 4] {
        let figure = |figure: f64| format!("{:.digits$}", figure / unit);
        let quotient = format!("{:.2}", self.quotient);
        [name, figure(self.ours), figure(self.interface), quotient]
    }
}

impl Figures {
    pub(crate) fn print(&self) {
        let mut times = table(&["half a round trip", "AM, ns", "interface", "quotient"]);
        for (rows, unit) in [(&self.short_ns, "arguments"), (&self.medium_ns, "bytes")] {
            for row in rows {
                times.add_row(row.cells(format!("{} {unit}", row.length), 1.0, 0));
            }
        }
        let mut rates = table(&["one way", "AM", "interface", "quotient"]);
        let rate = &self.requests_per_s;
        let name = format!("requests of {} arguments, million/s", rate.length);
        rates.add_row(rate.cells(name, 1e6, 1));
        for (rows, memory) in [
            (&self.copied_bytes_per_s, "private"),
            (&self.direct_bytes_per_s, "shared"),
        ] {
            for row in rows {
                let name = format!("{} KiB to {memory} memory, GB/s", row.length >> 10);
                rates.add_row(row.cells(name, 1e9, 2));
            }
        }
        let paged = &self.paged;
        println!("What do Active Messages cost?\n{times}\n{rates}");
        println!(
            "{} endpoints, a client each, handlers of {} µs: {:.2} million/s with a frame for each, {:.2} with {} frames ({:.2})\n",
            paged.endpoints,
            WORK.as_micros(),
            paged.resident_per_s / 1e6,
            paged.paged_per_s / 1e6,
            paged.frames,
            paged.quotient
        );
    }
}

/// Measures all, on these processors, this thread on the first.
pub(super) fn measure(processors: &[usize], effort: Amount, bar: &ProgressBar) -> Result<Figures> {
    let there = processors.get(1).copied().context("one processor only")?;
    let trips = effort.round_trips;
    let rounds = effort.rounds;
    let (short_ns, medium_ns, requests_per_s, copied, direct) =
        beside(there, NodeOptions::default(), 0, |names| {
            let mut client = Client::open(names)?;
            let mut short = Vec::new();
            for count in ARGUMENTS {
                let length_bytes = 8 + 4 * count;
                short.push(compare(
                    rounds,
                    count,
                    &mut client,
                    |client| client.short(count, trips),
                    |client| client.port_round_trip(length_bytes, trips),
                )?);
                bar.inc(1);
            }
            let mut medium = Vec::new();
            for bytes in MEDIUM_BYTES {
                medium.push(compare(
                    rounds,
                    bytes,
                    &mut client,
                    |client| client.medium(bytes, trips),
                    |client| client.port_round_trip(8 + bytes, trips),
                )?);
                bar.inc(1);
            }
            let window = effort.window;
            let rate = compare(
                rounds,
                RATE_ARGUMENTS,
                &mut client,
                |client| client.requests(window),
                |client| client.port_messages(8 + 4 * RATE_ARGUMENTS, window),
            )?;
            bar.inc(1);
            let mut bulk = |is_shared| -> Result<Vec<Row>> {
                let mut rows = Vec::new();
                for bytes in BULK_BYTES {
                    let moved = effort.bytes_per_run.max(bytes);
                    rows.push(compare(
                        rounds,
                        bytes,
                        &mut client,
                        |client| client.transfers(is_shared, bytes, moved),
                        |client| client.slot_messages(is_shared, bytes, moved),
                    )?);
                    bar.inc(1);
                }
                Ok(rows)
            };
            let copied = bulk(false)?;
            let direct = bulk(true)?;
            Ok((short, medium, rate, copied, direct))
        })?;
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        let with = |frames| {
            let options = NodeOptions {
                frames,
                ..NodeOptions::default()
            };
            beside(there, options, ENDPOINTS, |names| {
                many_endpoints(&names, effort.window)
            })
        };
        let resident = with(NodeOptions::default().frames)?;
        pairs.push((with(FRAMES)?, resident));
    }
    bar.inc(1);
    let paged = Row::of(ENDPOINTS, &pairs);
    let paged = Paged {
        endpoints: ENDPOINTS,
        frames: FRAMES,
        resident_per_s: paged.interface,
        paged_per_s: paged.ours,
        quotient: paged.quotient,
    };
    Ok(Figures {
        short_ns,
        medium_ns,
        requests_per_s,
        copied_bytes_per_s: copied,
        direct_bytes_per_s: direct,
        paged,
    })
}

/// Measures both in turn.
pub(super) fn compare<C>(
    rounds: usize,
    length: usize,
    client: &mut C,
    ours: impl Fn(&mut C) -> Result<f64>,
    interface: impl Fn(&mut C) -> Result<f64>,
) -> Result<Row> {
    let mut pairs = Vec::new();
    for _ in 0..rounds {
        pairs.push((ours(client)?, interface(client)?));
    }
    Ok(Row::of(length, &pairs))
}

/// Requests a second of as many clients as endpoints, each with a node and an endpoint of its own,
/// which send as many as their credits allow in turn.
fn many_endpoints(names: &Names, window: Duration) -> Result<f64> {
    let mut clients = Vec::new();
    for name in &names.many {
        let (bundle, endpoint) = endpoint()?;
        let to = endpoint.map(name, names.tag, WAIT)?;
        clients.push((bundle, endpoint, to));
    }
    ensure!(!clients.is_empty(), "no endpoints");
    let (begun, mut sent) = (Instant::now(), 0_u64);
    while begun.elapsed() < window {
        for (bundle, endpoint, to) in &clients {
            while accepted(endpoint.request(to, WORKS, &[1], Wait::Poll))? {
                sent += 1;
            }
            bundle.poll()?;
        }
    }
    let rate = sent as f64 / begun.elapsed().as_secs_f64();
    for (bundle, endpoint, _) in &clients {
        while endpoint.outstanding()? > 0 {
            bundle.serve(WAIT)?;
        }
    }
    Ok(rate)
}

/// True if a request was accepted; false if it has to wait.
fn accepted(sent: Result<(), hamlyn_am::Error>) -> Result<bool> {
    match sent {
        Ok(()) => Ok(true),
        Err(hamlyn_am::Error::WouldBlock(_)) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

/// An endpoint of a client, in a node of its own.
fn endpoint() -> Result<(Bundle, Endpoint)> {
    let bundle = Node::open(host(), NodeOptions::default())?.bundle()?;
    let mut endpoint = bundle.endpoint()?;
    endpoint.set_tag(Tag::new(1))?;
    Ok((bundle, endpoint))
}

/// Calls in a second of what is done again and again for so long.
pub(super) fn in_window(window: Duration, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    let (begun, mut calls) = (Instant::now(), 0_u64);
    loop {
        for _ in 0..CALLS_PER_LOOK {
            act()?;
        }
        calls += CALLS_PER_LOOK;
        let elapsed = begun.elapsed();
        if elapsed >= window {
            return Ok(calls as f64 / elapsed.as_secs_f64());
        }
    }
}

/// The end that begins.
struct Client {
    names: Names,
    bundle: Bundle,
    endpoint: Endpoint,
    to: [Translation; 2],
    /// The number of answers that came.
    answers: Rc<Cell<u64>>,
    manager: Manager<ProcessHost>,
    port: Port,
    target: Target,
    slots: [Target; 2],
    _attached: Attached,
    bytes: Vec<u8>,
}

impl Client {
    fn open(names: Names) -> Result<Self> {
        let (bundle, mut endpoint) = endpoint()?;
        let answers = Rc::new(Cell::new(0));
        let seen = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, _| {
            seen.set(seen.get() + 1);
            Ok(())
        })?;
        let to = [
            endpoint.map(&names.endpoints[0], names.tag, WAIT)?,
            endpoint.map(&names.endpoints[1], names.tag, WAIT)?,
        ];
        let manager = hamlyn::open_with(host(), ManagerOptions::default())?;
        let mut session = manager.session();
        let mut port = session.open_port(NewPort::new().handlers(4))?;
        let target = session.target(&names.port, WAIT)?;
        let slots = [
            session.target(&names.slots[0], WAIT)?,
            session.target(&names.slots[1], WAIT)?,
        ];
        let attached = session.attach(&names.region, WAIT)?;
        // It answers there from now on, first this.
        names.turn_to(server::End::Port);
        session.send_message(&target, server::HELLO, &port.ticket().to_bytes(), WAIT)?;
        let greeting = session.recv_message(&mut port, WAIT)?;
        greeting.context("no greeting came")?.dispose();
        drop(session);
        Ok(Self {
            names,
            bundle,
            endpoint,
            to,
            answers,
            manager,
            port,
            target,
            slots,
            _attached: attached,
            bytes: vec![7; BULK_BYTES[BULK_BYTES.len() - 1]],
        })
    }

    fn turn_to(&self, end: server::End) {
        self.names.turn_to(end);
    }

    /// Half of a round trip of a short message.
    fn short(&mut self, count: usize, trips: u64) -> Result<f64> {
        self.turn_to(server::End::Node);
        let arguments = [3; hamlyn_am::ARGUMENTS_MAX];
        let arguments = &arguments[..count];
        self.answered(trips, |endpoint, to| {
            Ok(endpoint.request(to, ECHO, arguments, WAIT)?)
        })
    }

    /// Of a medium one.
    fn medium(&mut self, bytes: usize, trips: u64) -> Result<f64> {
        self.turn_to(server::End::Node);
        let data = std::mem::take(&mut self.bytes);
        let half_ns = self.answered(trips, |endpoint, to| {
            Ok(endpoint.request_medium(to, ECHO + server::MEDIUM, &data[..bytes], &[], WAIT)?)
        });
        self.bytes = data;
        half_ns
    }

    fn answered(
        &mut self,
        trips: u64,
        request: impl Fn(&Endpoint, &Translation) -> Result<()>,
    ) -> Result<f64> {
        let begun = Instant::now();
        for _ in 0..trips {
            let before = self.answers.get();
            request(&self.endpoint, &self.to[0])?;
            while self.answers.get() == before {
                ensure!(self.bundle.serve(WAIT)? > 0, "no answer came");
            }
        }
        Ok(begun.elapsed().as_nanos() as f64 / trips as f64 / 2.0)
    }

    /// Half of a round trip of a message to a port, which its handler answers.
    fn port_round_trip(&mut self, length_bytes: usize, trips: u64) -> Result<f64> {
        self.turn_to(server::End::Port);
        let mut session = self.manager.session();
        let mut read = vec![0; length_bytes];
        let begun = Instant::now();
        for _ in 0..trips {
            let message = &self.bytes[..length_bytes];
            session.send_message(&self.target, server::ANSWERED, message, WAIT)?;
            let answer = session.recv_message(&mut self.port, WAIT)?;
            let answer = answer.context("no answer came")?;
            ensure!(answer.copy_to(&mut read) == length_bytes, "another length");
            answer.dispose();
        }
        Ok(begun.elapsed().as_nanos() as f64 / trips as f64 / 2.0)
    }

    /// Requests a second that nobody replies to, all of which are taken.
    fn requests(&mut self, window: Duration) -> Result<f64> {
        self.turn_to(server::End::Node);
        let arguments = [3; RATE_ARGUMENTS];
        let rate = in_window(window, || {
            Ok(self
                .endpoint
                .request(&self.to[0], COUNT, &arguments, WAIT)?)
        })?;
        while self.endpoint.outstanding()? > 0 {
            self.bundle.serve(WAIT)?;
        }
        Ok(rate)
    }

    /// Messages a second to a port.
    fn port_messages(&mut self, length_bytes: usize, window: Duration) -> Result<f64> {
        self.turn_to(server::End::Port);
        let mut session = self.manager.session();
        let message = &self.bytes[..length_bytes];
        let rate = in_window(window, || {
            session.send_message(&self.target, server::COUNTED, message, WAIT)?;
            Ok(())
        })?;
        session.fence(WAIT)?;
        Ok(rate)
    }

    /// Bytes a second of transfers, until the handler of the last one has been answered.
    fn transfers(&mut self, is_shared: bool, bytes: usize, moved: usize) -> Result<f64> {
        self.turn_to(server::End::Node);
        let to = &self.to[usize::from(is_shared)];
        let begun = Instant::now();
        for turn in 0..moved / bytes {
            let place = (turn % BULK_PLACES * bytes) as u64;
            let data = &self.bytes[..bytes];
            self.endpoint.transfer(to, STORED, place, data, &[], WAIT)?;
        }
        while self.endpoint.outstanding()? > 0 {
            self.bundle.serve(WAIT)?;
        }
        Ok((moved / bytes * bytes) as f64 / begun.elapsed().as_secs_f64())
    }

    /// Bytes a second of messages to a slot, until all are in their place.
    fn slot_messages(&mut self, is_shared: bool, bytes: usize, moved: usize) -> Result<f64> {
        self.turn_to(server::End::Port);
        let terminus = self.manager.terminus();
        let mut session = self.manager.session();
        let target = &self.slots[usize::from(is_shared)];
        let begun = Instant::now();
        for turn in 0..moved / bytes {
            let place = (turn % BULK_PLACES * bytes) as u64;
            for at in (0..bytes).step_by(PACKET_BYTES) {
                let piece = &self.bytes[at..bytes.min(at + PACKET_BYTES)];
                let message = Message::new(piece).at(place + at as u64);
                session.send_msg(terminus, target, &message, WAIT)?;
            }
        }
        session.fence(WAIT)?;
        Ok((moved / bytes * bytes) as f64 / begun.elapsed().as_secs_f64())
    }
}
