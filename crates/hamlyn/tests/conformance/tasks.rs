//! Tasks that wait for end points, replies, queues, ports and completions are woken for these
//! (decision 0021).

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use hamlyn::mailbox::MailboxOptions;
use hamlyn::service::{Call, CallError, ServiceOptions};
use hamlyn::stream::{self, StreamSeed};
use hamlyn::{Manager, Message, NewPort, Source, Wait, Waiting, datagram, mailbox, tagged_write};

use crate::fences::fence_all;
use crate::low_level::{RxSlot, target};
use crate::peer::{self, Peer};
use crate::services::{client, service, start};
use crate::streams::options;
use crate::{Host, World};

const GROW: Wait = Wait::millis(10_000);

/// Counts how often a task was woken.
#[derive(Default)]
struct Woken(AtomicU64);

impl Woken {
    fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Woken {
    /// The count since this was last called.
    fn take(&self) -> u64 {
        self.0.swap(0, Ordering::Relaxed)
    }
}

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Drives the manager as a runtime would that has something else to do.
fn drive(peer: &Peer, driver: &mut Manager<Host>) {
    peer.with(|_| drop(driver.look(&mut Waiting::new(Wait::Poll)).unwrap()));
}

/// A receiver, whose messages say a number.
enum End {
    Tags(tagged_write::Receiver<Host>),
    Mail(mailbox::Receiver<Host>),
    Datagrams(datagram::Receiver<Host>),
    Stream(Box<stream::Receiver<Host>>),
}

/// How many kinds of them there are.
const KINDS: usize = 4;

impl End {
    fn open(peer: &Peer, number: usize) -> Self {
        peer.with(|manager| {
            let (end, ticket) = match number % KINDS {
                0 => {
                    let end = tagged_write::Receiver::new(manager, 64, 4).unwrap();
                    let ticket = end.ticket();
                    (Self::Tags(end), ticket)
                }
                1 => {
                    let options = MailboxOptions {
                        queue_bytes: 4096,
                        ..MailboxOptions::default()
                    };
                    let end = mailbox::Receiver::new(manager, options).unwrap();
                    let ticket = end.ticket();
                    (Self::Mail(end), ticket)
                }
                2 => {
                    let end = stream::Receiver::new(manager, options(8, 64, 512)).unwrap();
                    peer.put(&format!("end {number}"), &end.make_seed().to_bytes());
                    return Self::Stream(Box::new(end));
                }
                _ => {
                    let mut end = datagram::Receiver::new(manager, 64).unwrap();
                    end.ready();
                    let ticket = end.ticket();
                    (Self::Datagrams(end), ticket)
                }
            };
            peer.put_ticket(&format!("end {number}"), &ticket);
            end
        })
    }

    fn poll(&mut self, peer: &Peer, woken: &Arc<Woken>) -> Option<u64> {
        let waker = Waker::from(Arc::clone(woken));
        let mut context = Context::from_waker(&waker);
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap());
        let came = peer.with(|_| match self {
            Self::Tags(tags) => tags
                .poll_recv(&mut context)
                .map_ok(|came| came.tag)
                .map(Result::unwrap),
            Self::Mail(mail) => mail
                .poll_recv(&mut context)
                .map_ok(|came| number(&came))
                .map(Result::unwrap),
            Self::Datagrams(datagrams) => datagrams
                .poll_recv(&mut context)
                .map_ok(|came| number(&came))
                .map(Result::unwrap),
            Self::Stream(stream) => stream
                .poll_recv(&mut context)
                .map_ok(|came| number(&came))
                .map(Result::unwrap),
        });
        match came {
            Poll::Ready(number) => Some(number),
            Poll::Pending => None,
        }
    }
}

/// A sender to one of them.
enum Start {
    Tags(tagged_write::Sender<Host>),
    Mail(mailbox::Sender<Host>),
    Datagrams(datagram::Sender<Host>),
    Stream(Box<stream::Sender<Host>>),
}

impl Start {
    fn grow(peer: &Peer, number: usize) -> Self {
        let end = format!("end {number}");
        if number % KINDS == 2 {
            let seed = StreamSeed::from_bytes(&peer.get(&end)).unwrap();
            let sender = peer.with(|manager| stream::Sender::grow(manager, &seed, GROW));
            return Self::Stream(Box::new(sender.unwrap()));
        }
        let ticket = peer.get_ticket(&end);
        peer.with(|manager| match number % KINDS {
            0 => Self::Tags(tagged_write::Sender::grow(manager, &ticket, GROW).unwrap()),
            1 => Self::Mail(mailbox::Sender::grow(manager, &ticket, GROW).unwrap()),
            _ => Self::Datagrams(datagram::Sender::grow(manager, &ticket, GROW).unwrap()),
        })
    }

    fn send(&mut self, peer: &Peer, number: u64) {
        let bytes = number.to_le_bytes();
        let sent = peer.send(|_, _| match self {
            Self::Tags(tags) => tags.send(0, &bytes, number, GROW).map(drop),
            Self::Mail(mail) => mail.send(&bytes, GROW).map(drop),
            Self::Datagrams(datagrams) => datagrams.send(&bytes, GROW).map(drop),
            Self::Stream(stream) => stream.send(&bytes, GROW),
        });
        sent.unwrap();
    }
}

pub(crate) fn a_message_wakes_the_task_that_waits_for_it_and_no_other(world: &World) {
    const ENDS: usize = 100;
    const ROUNDS: usize = 10;
    let end_of_round = |round: usize| round * 37 % ENDS;
    world.run(&[
        &|peer| {
            let mut driver = peer.with(Clone::clone);
            let mut ends: Vec<_> = (0..ENDS)
                .map(|number| (End::open(peer, number), Arc::<Woken>::default()))
                .collect();
            peer.get("grown");
            // The senders of streams have presented themselves.
            for (end, woken) in &mut ends {
                assert_eq!(end.poll(peer, woken), None);
            }
            for round in 0..ROUNDS {
                peer.put(&format!("waiting {round}"), &[]);
                let (end, woken) = &mut ends[end_of_round(round)];
                let before = woken.count();
                // Outside of its turn, where it shares an interface.
                while woken.count() == before {
                    peer.until("a turn", |_, _| Some(()));
                    drive(peer, &mut driver);
                    peer::pause();
                }
                assert_eq!(end.poll(peer, woken), Some(round as u64));
                assert_eq!(end.poll(peer, woken), None);
                drive(peer, &mut driver);
                let all: u64 = ends.iter().map(|(_, woken)| woken.count()).sum();
                assert_eq!(all, round as u64 + 1, "wake-ups for {} messages", round + 1);
            }
            peer.put("counted", &[]);
        },
        &|peer| {
            let grow = |number| Start::grow(peer, number);
            let mut starts: Vec<_> = (0..ENDS).map(grow).collect();
            assert_eq!(fence_all(peer), Ok(()));
            peer.put("grown", &[]);
            for round in 0..ROUNDS {
                peer.get(&format!("waiting {round}"));
                starts[end_of_round(round)].send(peer, round as u64);
                peer.flush();
            }
            // A task hears of the end of its stream's sender, too.
            peer.get("counted");
        },
    ]);
}

pub(crate) fn a_reply_wakes_the_task_of_its_call_and_no_other(world: &World) {
    const CLIENTS: usize = 20;
    let options = ServiceOptions {
        // One program of another host has half of them.
        clients: 2 * CLIENTS as u16,
        outstanding: 1,
        request_bytes: 64,
        reply_bytes: 64,
    };
    world.run(&[
        &|peer| {
            let mut service = service(peer, options);
            let mut calls = Vec::new();
            while calls.len() < CLIENTS {
                let call =
                    peer.receive("a call", |_, wait| Ok(service.next(wait)?.map(Call::defer)));
                let number = service.request(&call).unwrap().to_vec();
                calls.push((number, call));
            }
            calls.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
            while let Some((number, call)) = calls.pop() {
                peer.get(&format!("waiting {}", calls.len()));
                peer.with(|_| service.reply(call, &number)).unwrap();
                peer.flush();
            }
        },
        &|peer| {
            let mut driver = peer.with(Clone::clone);
            let mut calls: Vec<_> = (0..CLIENTS)
                .map(|number| {
                    let mut client = client(peer);
                    let call = start(peer, &mut client, &[number as u8]);
                    let woken = Arc::<Woken>::default();
                    let reply = async move { Ok(client.reply_async(&call).await?.to_vec()) };
                    (Box::pin(reply), woken)
                })
                .collect();
            for (reply, woken) in &mut calls {
                assert!(poll(peer, reply, woken).is_pending());
            }
            while let Some((mut reply, woken)) = calls.pop() {
                let number = calls.len();
                peer.put(&format!("waiting {number}"), &[]);
                let came = loop {
                    while woken.take() == 0 {
                        peer.until("a turn", |_, _| Some(()));
                        drive(peer, &mut driver);
                        peer::pause();
                    }
                    if let Poll::Ready(came) = poll(peer, &mut reply, &woken) {
                        break came;
                    }
                };
                assert_eq!(came, Ok::<_, CallError>(vec![number as u8]));
                // The last task that waits is woken for anything.
                if number > 1 {
                    let others: u64 = calls.iter().map(|(_, woken)| woken.count()).sum();
                    assert_eq!(others, 0, "wake-ups of others for the reply {number}");
                }
            }
        },
    ]);
}

pub(crate) fn a_task_waits_for_one_source(world: &World) {
    const ROUNDS: usize = 16;
    const SOURCES: usize = 4;
    world.run(&[
        &|peer| {
            let mut driver = peer.with(Clone::clone);
            // One handle serves any number of futures.
            let handle = peer.with(Clone::clone);
            let mut first = RxSlot::new(peer, 64, |new| new);
            let mut second = RxSlot::new(peer, 64, |new| new);
            let mut port = peer
                .with(|manager| manager.session().open_port(NewPort::new()))
                .unwrap();
            let completions = peer
                .with(|manager| manager.session().open_completions(4))
                .unwrap();
            peer.put_ticket("first", &first.slot.fast_ticket(0, 64).unwrap());
            peer.put_ticket("second", &second.slot.fast_ticket(0, 64).unwrap());
            peer.put_ticket("port", &port.ticket());
            let to = target(peer, &peer.get_ticket("answers"));
            for round in 0..ROUNDS {
                let of = round % SOURCES;
                // It has left when it is tracked, so nothing moves then.
                let sent = peer.send(|manager, wait| {
                    let mut session = manager.session();
                    let terminus = session.terminus();
                    session.send_msg(terminus, &to, &Message::new(&[]), wait)
                });
                peer.flush();
                for _ in 0..4 {
                    drive(peer, &mut driver);
                }
                {
                    let sources = [
                        Source::Messages(&first.queue),
                        Source::Messages(&second.queue),
                        Source::Port(&port),
                        Source::Completions(&completions),
                    ];
                    let mut tasks =
                        sources.map(|source| (handle.ready(source), Arc::<Woken>::default()));
                    for (ready, woken) in &mut tasks {
                        assert_eq!(poll(peer, ready, woken), Poll::Pending);
                    }
                    match of {
                        3 => peer.with(|manager| {
                            let mut session = manager.session();
                            let sent = sent.unwrap();
                            session.track_send(&completions, sent, 7).unwrap();
                        }),
                        _ => peer.put(&format!("round {round}"), &[]),
                    }
                    let woken = Arc::clone(&tasks[of].1);
                    while woken.count() == 0 {
                        peer.until("a turn", |_, _| Some(()));
                        drive(peer, &mut driver);
                        peer::pause();
                    }
                    for (index, (ready, woken)) in tasks.iter_mut().enumerate() {
                        let is_it = index == of;
                        assert_eq!(woken.count(), u64::from(is_it), "{index} of {of}");
                        let expected = if is_it {
                            Poll::Ready(Ok(()))
                        } else {
                            Poll::Pending
                        };
                        assert_eq!(poll(peer, ready, woken), expected);
                    }
                }
                match of {
                    0 => assert_eq!(first.next(peer).word, round as u64),
                    1 => assert_eq!(second.next(peer).word, round as u64),
                    2 => peer.with(|manager| {
                        let mut session = manager.session();
                        let message = session.next_message(&mut port).unwrap().unwrap();
                        assert_eq!(message.word(0), round as u64);
                        message.dispose();
                    }),
                    _ => {
                        let ended = peer.with(|manager| {
                            let mut session = manager.session();
                            session.next_completion(&completions)
                        });
                        assert_eq!(ended.map(|ended| ended.context), Some(7));
                    }
                }
            }
            peer.put("through", &[]);
        },
        &|peer| {
            let answers = RxSlot::new(peer, 64, |new| new);
            peer.put_ticket("answers", &answers.slot.fast_ticket(0, 64).unwrap());
            let slots = ["first", "second"].map(|slot| target(peer, &peer.get_ticket(slot)));
            let port = target(peer, &peer.get_ticket("port"));
            for round in (0..ROUNDS).filter(|round| round % SOURCES != 3) {
                peer.get(&format!("round {round}"));
                let word = round as u64;
                let sent = peer.send(|manager, wait| {
                    let mut session = manager.session();
                    let terminus = session.terminus();
                    match slots.get(round % SOURCES) {
                        Some(slot) => {
                            let message = Message::new(&[]).word(word);
                            session.send_msg(terminus, slot, &message, wait).map(drop)
                        }
                        None => session
                            .send_message(&port, 0, &word.to_le_bytes(), wait)
                            .map(drop),
                    }
                });
                sent.unwrap();
                peer.flush();
            }
            peer.get("through");
        },
    ]);
}

fn poll<F: Future + Unpin>(peer: &Peer, future: &mut F, woken: &Arc<Woken>) -> Poll<F::Output> {
    let waker = Waker::from(Arc::clone(woken));
    let mut context = Context::from_waker(&waker);
    peer.with(|_| Pin::new(future).poll(&mut context))
}
