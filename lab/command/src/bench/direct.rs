//! User Direct Messaging beside the interface under it (decision 59): in turn, in the same seconds,
//! the same bytes as messages to ports that are answered. And what a receiver costs its sender that
//! takes nothing.
//!
//! Both ends are threads of this process, with an interface each.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use hamlyn::host::Supply;
use hamlyn::host::process::ProcessHost;
use hamlyn::{Address, Manager, ManagerOptions, NewPort, Port, Target, Ticket, Wait};
use hamlyn_cli::processors::{median, pin};
use hamlyn_cli::terminal::table;
use hamlyn_udm::{Group, GroupOptions, Udm, UdmOptions, WORDS_MAX};
use indicatif::ProgressBar;
use serde::Serialize;

use super::active::{Amount, Row, compare, host, in_window};
use super::interrupts;

const WAIT: Wait = Wait::millis(10_000);
/// Words of the messages that are measured.
const WORDS: [usize; 3] = [0, 4, WORDS_MAX];
const WORD_BYTES: usize = size_of::<u32>();
/// Messages to a receiver that takes nothing: more than a ring has, and little beside a log.
const HELD: u32 = 20_000;
/// Figures that are measured.
pub(super) const STEPS: u64 = 2 * WORDS.len() as u64 + 2;

/// Handlers: one that answers, the answer, and one that counts.
const ECHO: u16 = 0;
const ANSWER: u16 = 1;
const COUNT: u16 = 2;

/// The present work of the end that serves.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Node,
    Port,
    /// Nothing.
    Away,
    Over,
}

/// The figures that are reported.
#[derive(Serialize)]
pub(crate) struct Figures {
    /// Half of a round trip in nanoseconds, by the number of words.
    round_trip_ns: Vec<Row>,
    /// Messages a second that are not answered.
    messages_per_s: Vec<Row>,
    held: Held,
    #[serde(flatten)]
    interrupts: interrupts::Figures,
}

/// A message of one word to a receiver that takes nothing until all were sent, beside one that
/// takes all: nanoseconds to send it, and to take it.
#[derive(Serialize)]
struct Held {
    messages: u32,
    send_ns: f64,
    take_ns: f64,
}

impl Figures {
    pub(crate) fn print(&self) {
        let mut times = table(&["half a round trip", "UDM, ns", "interface", "quotient"]);
        for row in &self.round_trip_ns {
            times.add_row(row.cells(format!("{} words", row.length), 1.0, 0));
        }
        let mut rates = table(&["one way", "UDM, million/s", "interface", "quotient"]);
        for row in &self.messages_per_s {
            rates.add_row(row.cells(format!("{} words", row.length), 1e6, 1));
        }
        println!("What does User Direct Messaging cost?\n{times}\n{rates}");
        println!(
            "{} messages to a receiver that takes nothing: {:.0} ns to send one, {:.0} ns to take one later\n",
            self.held.messages, self.held.send_ns, self.held.take_ns
        );
        self.interrupts.print();
    }
}

/// Measures all, on these processors, this thread on the first.
pub(super) fn measure(processors: &[usize], effort: Amount, bar: &ProgressBar) -> Result<Figures> {
    let there = processors.get(1).copied().context("one processor only")?;
    let end = Arc::new(AtomicU8::new(End::Node as u8));
    let (round_trip_ns, messages_per_s, held) = std::thread::scope(|scope| {
        let served = Arc::clone(&end);
        let serving = scope.spawn(move || -> Result<()> {
            pin(&[there])?;
            serve(&served)
        });
        let measured = measure_at(&end, effort, bar);
        end.store(End::Over as u8, Relaxed);
        let served = serving.join().map_err(|_| anyhow!("the server panicked"))?;
        served.context("serving")?;
        measured
    })?;
    // Its processor is free again.
    let interrupts = interrupts::measure(there, effort, bar)?;
    Ok(Figures {
        round_trip_ns,
        messages_per_s,
        held,
        interrupts,
    })
}

/// The round trips, the rates, and messages that are held.
type Measured = (Vec<Row>, Vec<Row>, Held);

fn measure_at(end: &Arc<AtomicU8>, effort: Amount, bar: &ProgressBar) -> Result<Measured> {
    let mut client = Client::open(Arc::clone(end))?;
    let (rounds, trips, window) = (effort.rounds, effort.round_trips, effort.window);
    let round_trip_ns = by_words(
        (rounds, bar),
        &mut client,
        |client, words| client.round_trip(words, trips),
        |client, words| client.port_round_trip(words, trips),
    )?;
    let messages_per_s = by_words(
        (rounds, bar),
        &mut client,
        |client, words| client.messages(words, window),
        |client, words| client.port_messages(words, window),
    )?;
    let held = (0..rounds)
        .map(|_| client.held())
        .collect::<Result<Vec<_>>>()?;
    bar.inc(1);
    let of = |figure: fn(&(f64, f64)) -> f64| median(held.iter().map(figure).collect());
    let held = Held {
        messages: HELD,
        send_ns: of(|held| held.0),
        take_ns: of(|held| held.1),
    };
    Ok((round_trip_ns, messages_per_s, held))
}

/// Measures both in turn, for each number of words.
fn by_words(
    (rounds, bar): (usize, &ProgressBar),
    client: &mut Client,
    ours: impl Fn(&mut Client, usize) -> Result<f64>,
    interface: impl Fn(&mut Client, usize) -> Result<f64>,
) -> Result<Vec<Row>> {
    let row = |words| {
        let row = compare(
            rounds,
            words,
            client,
            |client| ours(client, words),
            |client| interface(client, words),
        );
        bar.inc(1);
        row
    };
    WORDS.into_iter().map(row).collect()
}

/// An end: a node of a group, and a port of another interface.
struct Node {
    manager: Manager<ProcessHost>,
    udm: Udm<u64>,
    port: Port,
}

impl Node {
    fn open(me: u32) -> Result<Self> {
        let name = |node: u32| format!("udm-{node}");
        let mut options = host();
        options.name = Some(name(me));
        let group = Group::new(
            hamlyn::open_with(options, ManagerOptions::default())?,
            GroupOptions {
                name: "bench".to_owned(),
                me,
                addresses: vec![name(0), name(1)],
            },
        )?;
        let mut options = host();
        options.name = Some(format!("port-{me}"));
        let manager = hamlyn::open_with(options, ManagerOptions::default())?;
        let port = manager.session().open_port(NewPort::new().handlers(4))?;
        let ticket = port.ticket().to_bytes();
        manager.session().offer("port", Supply::Always, &ticket)?;
        let mut udm = Udm::open(&group, "bench", UdmOptions::default(), 0, WAIT)?;
        udm.on(ECHO, |arrival| {
            let mut call = arrival.extract();
            let words: [u32; WORDS_MAX] = std::array::from_fn(|at| call.word(at));
            let (to, count) = (call.source(), call.message().words());
            // A question at a time: there is room.
            let _ = call.inject(to, ANSWER, &words[..count]);
            call
        })?;
        for counts in [ANSWER, COUNT] {
            udm.on(counts, |arrival| {
                let mut call = arrival.extract();
                *call.state() += 1;
                call
            })?;
        }
        Ok(Self { manager, udm, port })
    }

    /// The other one's port.
    fn target(&self, node: u32) -> Result<Target> {
        let mut session = self.manager.session();
        let name = format!("port-{node}");
        let ticket = Ticket::from_bytes(&session.ask(Address::Name(&name), "port", WAIT)?)?;
        Ok(session.target(&ticket, WAIT)?)
    }
}

fn serve(end: &AtomicU8) -> Result<()> {
    let mut node = Node::open(1)?;
    let to = node.target(0)?;
    node.udm.barrier(WAIT)?;
    let mut answer = [0; WORDS_MAX * WORD_BYTES];
    loop {
        match end.load(Relaxed) {
            over if over == End::Over as u8 => return Ok(()),
            away if away == End::Away as u8 => std::hint::spin_loop(),
            node_end if node_end == End::Node as u8 => {
                node.udm.poll(64)?;
            }
            _ => {
                let mut session = node.manager.session();
                let terminus = session.terminus();
                session.drain_messages(&mut node.port, terminus, 64, |message, outbox| {
                    if message.handler() == ECHO {
                        let length = message.copy_to(&mut answer);
                        // As above.
                        let _ = outbox.send_message(&to, ANSWER, &answer[..length]);
                    }
                })?;
            }
        }
    }
}

/// The end that begins.
struct Client {
    end: Arc<AtomicU8>,
    node: Node,
    to: Target,
}

impl Client {
    fn open(end: Arc<AtomicU8>) -> Result<Self> {
        let mut node = Node::open(0)?;
        let to = node.target(1)?;
        node.udm.barrier(WAIT)?;
        Ok(Self { end, node, to })
    }

    fn turn_to(&self, end: End) {
        self.end.store(end as u8, Relaxed);
    }

    fn round_trip(&mut self, words: usize, trips: u64) -> Result<f64> {
        self.turn_to(End::Node);
        let udm = &mut self.node.udm;
        let words = &[3; WORDS_MAX][..words];
        let begun = Instant::now();
        for _ in 0..trips {
            let before = *udm.state();
            udm.inject(1, ECHO, words)?;
            while *udm.state() == before {
                udm.serve(WAIT)?;
            }
        }
        Ok(half(begun.elapsed(), trips))
    }

    fn port_round_trip(&mut self, words: usize, trips: u64) -> Result<f64> {
        self.turn_to(End::Port);
        let mut session = self.node.manager.session();
        let message = &[3; WORDS_MAX * WORD_BYTES][..words * WORD_BYTES];
        let begun = Instant::now();
        for _ in 0..trips {
            session.send_message(&self.to, ECHO, message, WAIT)?;
            let answer = session.recv_message(&mut self.node.port, WAIT)?;
            let answer = answer.context("no answer came")?;
            ensure!(answer.len() == message.len(), "another length");
            for number in 0..message.len().div_ceil(8) {
                std::hint::black_box(answer.word(number));
            }
            answer.dispose();
        }
        Ok(half(begun.elapsed(), trips))
    }

    /// Messages a second, all of which are taken.
    fn messages(&mut self, words: usize, window: Duration) -> Result<f64> {
        self.turn_to(End::Node);
        let udm = &mut self.node.udm;
        let words = &[3; WORDS_MAX][..words];
        let rate = in_window(window, || Ok(udm.inject(1, COUNT, words)?))?;
        let _ = self.round_trip(0, 1)?;
        Ok(rate)
    }

    fn port_messages(&mut self, words: usize, window: Duration) -> Result<f64> {
        self.turn_to(End::Port);
        let mut session = self.node.manager.session();
        let message = &[3; WORDS_MAX * WORD_BYTES][..words * WORD_BYTES];
        let rate = in_window(window, || {
            session.send_message(&self.to, COUNT, message, WAIT)?;
            Ok(())
        })?;
        session.fence(WAIT)?;
        Ok(rate)
    }

    /// Nanoseconds of a message to send while the other end takes nothing, and to take later.
    fn held(&mut self) -> Result<(f64, f64)> {
        self.turn_to(End::Away);
        let begun = Instant::now();
        for number in 0..HELD {
            self.node.udm.inject(1, COUNT, &[number])?;
        }
        let sent = begun.elapsed();
        let begun = Instant::now();
        // Its answer comes behind all of them.
        let _ = self.round_trip(0, 1)?;
        let of = |span: Duration| span.as_nanos() as f64 / f64::from(HELD);
        Ok((of(sent), of(begun.elapsed())))
    }
}

fn half(span: Duration, trips: u64) -> f64 {
    span.as_nanos() as f64 / trips as f64 / 2.0
}
