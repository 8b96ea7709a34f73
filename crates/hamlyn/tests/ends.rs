//! How end points end: waits that are over, closing while the peer is slow, and dropping instead of
//! closing. Nothing that was accepted is lost unsaid, no room leaks, and no sender is let in any
//! more.

use std::ops::ControlFlow;

use crate::support::{LONG, namespace, open, open_shared, until};
use hamlyn::engine::refusal::Refusal;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::host::sharing::AnyThread;
use hamlyn::stream::{Receiver, Sender, StreamOptions};
use hamlyn::{
    FenceError, Host, Manager, ManagerOptions, Message, ReceiveError, SendError, Strategy, Wait,
    datagram, group, tagged_write,
};

/// So much memory that the link is full before.
fn options(piece_bytes: u32) -> StreamOptions {
    StreamOptions {
        pieces: (64 << 20) / piece_bytes,
        piece_bytes,
        limit_bytes: 64 << 20,
        ahead: false,
    }
}

fn take(receiver: &mut Receiver) -> Vec<u8> {
    let record = receiver.recv(LONG).expect("no error");
    record.expect("a record").to_vec()
}

/// Sends until the link and the work queue are full, as their receiver takes nothing; how many
/// records were accepted.
fn fill<H: Host>(sender: &mut Sender<H>, length: usize) -> u64 {
    const SHORT: Wait = Wait::millis(20);
    let mut accepted = 0;
    loop {
        let sent = sender.send(&vec![accepted as u8; length], SHORT);
        match sent {
            Ok(()) => accepted += 1,
            Err(SendError::WouldBlock { .. }) => return accepted,
            Err(error) => panic!("after {accepted} records: {error}"),
        }
    }
}

#[test]
fn a_stream_outlives_sends_that_time_out_in_the_middle_of_a_record() {
    // Records of many pieces, and of pieces of many packets.
    for (piece_bytes, length) in [
        (32 << 10, 800_000),
        (1 << 20, 3 << 20),
        (1 << 20, 1_000_000),
    ] {
        let namespace = namespace();
        let (here, there) = (open(&namespace), open_shared(&namespace));
        let mut receiver = Receiver::new(&here, options(piece_bytes)).unwrap();
        let seed = receiver.make_seed();
        let mut sender = Sender::grow(&there, &seed, LONG).unwrap();
        let accepted = fill(&mut sender, length);
        assert!(accepted > 0, "what was begun is accepted");
        // On a loaded machine, what was held back may find room just now.
        let is_closed = match sender.close(Wait::millis(1)) {
            Ok(()) => true,
            Err(SendError::WouldBlock { .. }) => false,
            other => panic!("{other:?}"),
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                if !is_closed {
                    sender.close(LONG).expect("it closes");
                }
                assert_eq!(there.session().slots_open(), 0);
                let late = sender.send(b"late", LONG);
                assert!(matches!(late, Err(SendError::Finished)), "{late:?}");
            });
            for number in 0..accepted {
                let bytes = take(&mut receiver);
                assert_eq!(bytes.len(), length, "record {number} of {accepted}");
                assert!(bytes.iter().all(|&byte| byte == number as u8));
            }
            let end = receiver.recv(LONG);
            assert!(matches!(end, Err(ReceiveError::Closed)), "{end:?}");
        });
    }
}

#[test]
fn a_sender_hears_that_its_receiver_closed_though_there_was_no_room_to_say_so() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut receiver = Receiver::new(&here, options(32 << 10)).unwrap();
    let seed = receiver.make_seed();
    let mut sender = Sender::grow(&there, &seed, LONG).unwrap();
    sender.send(b"hello", LONG).unwrap();
    take(&mut receiver);
    // Nothing goes to the sender's interface any more, until it looks.
    let area = there.session().allocate(64).unwrap();
    let slot = hamlyn::NewSlot::new(&area);
    let slot = there.session().open_slot(slot).unwrap();
    let ticket = slot.fast_ticket(0, 64).unwrap();
    let target = here.session().target(&ticket, LONG).unwrap();
    let terminus = here.terminus();
    let message = Message::new(&[1; 64]);
    while here
        .session()
        .send_msg(terminus, &target, &message, Wait::Poll)
        .is_ok()
    {}
    drop(receiver);
    until("the end", || {
        let sent = sender.send(b"more", Wait::Poll);
        here.wait(Wait::millis(1)).unwrap();
        matches!(sent, Err(SendError::ClosedByReceiver)).then_some(())
    });
}

/// Others' refusals over the same link do not hide it.
#[test]
fn a_sender_hears_that_its_receiver_was_closed_before_it_came() {
    for fetches in [false, true] {
        let namespace = namespace();
        let (here, there) = (open(&namespace), open(&namespace));
        let area = here.session().allocate(64).unwrap();
        let slot = here
            .session()
            .open_slot(hamlyn::NewSlot::new(&area))
            .unwrap();
        let target = slot.fast_ticket(0, 64).unwrap();
        let target = there.session().target(&target, LONG).unwrap();
        here.session().revoke_slot(&slot).unwrap();
        // A sender looks when it has filled half of them.
        let few = StreamOptions {
            pieces: 8,
            ..options(32 << 10)
        };
        let receiver = Receiver::new(&here, few).unwrap();
        let seed = receiver.make_seed();
        drop(receiver);
        let mut sender = Sender::grow(&there, &seed, LONG).unwrap();
        let (message, terminus) = (Message::new(&[1; 8]), there.terminus());
        for _ in 0..3 {
            let mut session = there.session();
            session.send_msg(terminus, &target, &message, LONG).unwrap();
        }
        until("refusals", || {
            here.wait(Wait::millis(1)).unwrap();
            let refused = here.session().refusals().count(Refusal::SlotRevoked);
            (refused == 3).then_some(())
        });
        if fetches {
            // A program may want to hear of all that came back.
            while there.session().next_undelivered().is_some() {}
        }
        until("the end", || {
            let sent = sender.send(&[7; 600], Wait::Poll);
            matches!(sent, Err(SendError::ClosedByReceiver)).then_some(())
        });
        let told = there.session().next_undelivered().is_some();
        assert_eq!(told, !fetches);
    }
}

#[test]
fn each_record_is_shown_until_the_program_breaks_or_the_stream_ends() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open_shared(&namespace));
    let mut receiver = Receiver::new(&here, options(1 << 20)).unwrap();
    let mut sender = Sender::grow(&there, &receiver.make_seed(), LONG).unwrap();
    for number in 0..6 {
        sender.send(&[number; 9], LONG).unwrap();
    }
    let mut shown = Vec::new();
    let broke = receiver.for_each(LONG, |record| {
        shown.push(record.to_vec());
        match record[0] {
            2 => ControlFlow::Break("enough"),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(broke.unwrap(), Some("enough"));
    let mut show = |record: &[u8]| -> ControlFlow<()> {
        shown.push(record.to_vec());
        ControlFlow::Continue(())
    };
    // The time between two records is over; no record is shown twice.
    assert_eq!(receiver.for_each(Wait::Poll, &mut show).unwrap(), None);
    sender.send(&[6; 9], LONG).unwrap();
    sender.close(LONG).unwrap();
    assert_eq!(receiver.for_each(LONG, &mut show).unwrap(), None);
    assert_eq!(
        shown,
        (0..7).map(|number| vec![number; 9]).collect::<Vec<_>>()
    );
}

fn open_short(namespace: &str) -> Manager<ProcessHost<AnyThread>> {
    let options = ManagerOptions {
        queue_entries: 128,
        ..ManagerOptions::default()
    };
    hamlyn::open_shared(Options::default().in_namespace(namespace), options).unwrap()
}

#[test]
fn end_points_that_are_dropped_leave_nothing_and_let_nobody_in() {
    let namespace = namespace();
    let (here, there) = (open_short(&namespace), open(&namespace));
    let small = StreamOptions {
        pieces: 64,
        piece_bytes: 64,
        limit_bytes: 1 << 20,
        ahead: false,
    };
    for _ in 0..20 {
        let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
        inbox.ready();
        let tags = tagged_write::Receiver::new(&here, 64, 16).unwrap();
        let mut group = group::Receiver::new(&here, 64, Default::default()).unwrap();
        let member = group.begin().unwrap();
        let receiver = Receiver::new(&here, small).unwrap();
        let outbox = datagram::Sender::grow(&there, &inbox.ticket(), LONG).unwrap();
        let tagged = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
        let mut part = group::Sender::grow(&there, &member, LONG).unwrap();
        let mut stream = Sender::grow(&there, &receiver.make_seed(), LONG).unwrap();
        let before = here.session().refusals().count(Refusal::SlotClosed);
        // From another thread, as an end point may be.
        std::thread::scope(|scope| {
            scope.spawn(move || drop((inbox, tags, group, receiver)));
        });
        outbox.send(&[1; 16], LONG).unwrap();
        tagged.send(0, &[1; 16], 1, LONG).unwrap();
        part.send_last(0, &[1; 16], LONG).unwrap();
        stream.send(&[1; 16], LONG).unwrap();
        assert_eq!(there.session().flush(LONG), Ok(true));
        until("the refusals", || {
            here.wait(Wait::millis(1)).unwrap();
            assert_eq!(here.session().slots_open(), 0);
            // The greeting of the stream, too.
            let refused = here.session().refusals().count(Refusal::SlotClosed) - before;
            (refused == 5).then_some(())
        });
        drop(stream);
        there.poll_nowait().unwrap();
        assert_eq!(there.session().slots_open(), 0);
    }
}

#[test]
fn a_stream_whose_sender_was_dropped_says_whether_that_was_all() {
    for (holds_back, expected) in [(false, 5), (true, 8)] {
        let namespace = namespace();
        let (here, there) = (open(&namespace), open(&namespace));
        let options = StreamOptions {
            pieces: 8,
            piece_bytes: 1024,
            limit_bytes: 8 << 10,
            ahead: false,
        };
        let mut receiver = Receiver::new(&here, options).unwrap();
        let seed = receiver.make_seed();
        let mut sender = Sender::grow(&there, &seed, LONG).unwrap();
        let mut sent = 0_u64;
        // Beyond half of the pieces, small records are held back.
        for _ in 0..if holds_back { 20 } else { 4 } {
            sender.send(&sent.to_le_bytes(), LONG).unwrap();
            sent += 1;
        }
        drop(sender);
        there.poll_nowait().unwrap();
        let mut came = 0;
        let end = loop {
            match receiver.recv(LONG) {
                Ok(record) => {
                    let record = record.expect("a record, or the end");
                    assert_eq!(*record, u64::to_le_bytes(came));
                    came += 1;
                }
                Err(end) => break end,
            }
        };
        assert!(came <= sent && came < expected, "{came} of {sent}");
        if holds_back {
            assert_eq!(end, ReceiveError::Incomplete);
        } else {
            assert_eq!((came, end), (sent, ReceiveError::Closed));
        }
    }
}

/// What an end point that was closed had announced is out of the queue before others have its room.
#[test]
fn room_in_the_queue_is_given_on_only_when_it_is_free() {
    let namespace = namespace();
    let (here, there) = (open_short(&namespace), open(&namespace));
    let mut lost = 0;
    for round in 0..40 {
        // All of them announce themselves; nobody asks.
        let mut inboxes: Vec<_> = (0..100)
            .map(|_| datagram::Receiver::new(&here, 64).unwrap())
            .collect();
        for inbox in &mut inboxes {
            inbox.ready();
            let outbox = datagram::Sender::grow(&there, &inbox.ticket(), LONG).unwrap();
            outbox.send(&[1; 40], LONG).unwrap();
        }
        assert_eq!(there.session().flush(LONG), Ok(true));
        here.session().poll();
        until("all datagrams", || {
            (here.session().poll() == 0).then_some(())
        });
        if round % 2 == 0 {
            inboxes.into_iter().for_each(drop);
        } else {
            drop(inboxes);
        }
        lost += here.lost();
    }
    let mut inbox = datagram::Receiver::new(&here, 64).unwrap();
    inbox.ready();
    let none = inbox.recv(Wait::Poll).map(|came| came.is_some());
    assert_eq!(none, Ok(false), "overrun");
    assert_eq!(lost + here.lost(), 0);
}

/// What would be too many to wait are told of their ends all the same, if there is room.
#[test]
fn all_that_are_dropped_at_once_say_their_last_words_if_there_is_room() {
    const STREAMS: usize = 300;
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let small = StreamOptions {
        pieces: 2,
        piece_bytes: 64,
        limit_bytes: 128,
        ahead: false,
    };
    let mut receivers = Vec::new();
    let mut senders = Vec::new();
    for _ in 0..STREAMS {
        let mut receiver = Receiver::new(&here, small).unwrap();
        let seed = receiver.make_seed();
        let mut sender = Sender::grow(&there, &seed, LONG).unwrap();
        sender.send(b"all", LONG).unwrap();
        let bytes = take(&mut receiver);
        assert_eq!(bytes, b"all");
        receivers.push(receiver);
        senders.push(sender);
    }
    // While a call is under way, what they leave waits.
    let busy = there.session();
    drop(senders);
    drop(busy);
    there.poll_nowait().unwrap();
    for receiver in &mut receivers {
        let there = || there.poll_nowait().map(|_| ());
        let end = until("the last word", || {
            there().unwrap();
            let came = receiver.recv(Wait::Poll);
            came.map(|record| assert!(record.is_none())).err()
        });
        assert_eq!(end, ReceiveError::Closed);
    }
}

/// Otherwise half of what was to be said would pass for all of it.
#[test]
fn a_sender_that_is_dropped_by_a_panic_does_not_pass_for_closed() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut receiver = Receiver::new(&here, options(64 << 10)).unwrap();
    let mut sender = Sender::grow(&there, &receiver.make_seed(), LONG).unwrap();
    sender.send(b"one of two", LONG).unwrap();
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(move || {
        let _sender = sender;
        std::panic::resume_unwind(Box::new("between two records"));
    }));
    assert!(panicked.is_err());
    assert_eq!(take(&mut receiver), b"one of two");
    let end = receiver.recv(LONG);
    assert_eq!(end.map(drop), Err(ReceiveError::Incomplete));
}

/// Its sender ended, and another peer has the place of its link, before the datagram is looked at:
/// nobody can say any more whose reply ticket it brought. It comes without.
#[test]
fn a_datagram_outlives_its_sender_without_its_reply_ticket() {
    let namespace = namespace();
    let here = open(&namespace);
    let mut receiver = datagram::Receiver::new(&here, 64).unwrap();
    receiver.ready();
    let links = |what, count| {
        until(what, || {
            here.session().poll();
            (here.session().peers().count() == count).then_some(())
        });
    };
    {
        let there = open(&namespace);
        let answers = datagram::Receiver::new(&there, 64).unwrap();
        let sender = datagram::Sender::grow(&there, &receiver.ticket(), LONG).unwrap();
        let reply = answers.ticket();
        sender.send_to(0, b"question", Some(&reply), LONG).unwrap();
        assert!(there.session().flush(LONG).unwrap());
        links("the sender is linked", 1);
    }
    links("the sender's end is heard", 0);
    let next = open(&namespace);
    let other = datagram::Sender::grow(&next, &receiver.ticket(), LONG).unwrap();
    links("another has its place", 1);
    let datagram = receiver.recv(LONG).expect("it is no malformed one");
    let datagram = datagram.expect("a datagram");
    assert_eq!(&*datagram, b"question");
    assert_eq!(datagram.reply_ticket(), None);
    assert_eq!(datagram.sender(), None);
    drop(other);
}

/// A program that ends when it has what it waited for, as that of the README does: its sender's
/// fence, put before or afterwards, finds that all is in its place.
#[test]
fn a_fence_to_a_program_that_has_ended_says_what_it_had_taken() {
    for strategy in Strategy::ALL {
        for (asks_before, length) in [true, false]
            .into_iter()
            .flat_map(|asks| [0, 8, 40, 300, 3_000, 30_000].map(|length| (asks, length)))
        {
            let namespace = namespace();
            let host = Options::default().in_namespace(&namespace);
            let options = ManagerOptions {
                strategy,
                ..Default::default()
            };
            let (here, there) = (
                open(&namespace),
                hamlyn::open_shared(host, options).unwrap(),
            );
            let mut inbox = datagram::Receiver::new(&there, 30_000).unwrap();
            let outbox = datagram::Sender::grow(&here, &inbox.ticket(), LONG).unwrap();
            inbox.ready();
            let data = vec![7; length];
            outbox.send(&data, LONG).unwrap();
            if asks_before {
                // As it asks once more, this may be over.
                let _ = outbox.fence(Wait::Poll);
            }
            assert_eq!(*inbox.recv(LONG).unwrap().unwrap(), *data);
            drop((inbox, there));
            assert_eq!(outbox.fence(LONG), Ok(()), "{strategy:?}, {length} bytes");
            assert_eq!(here.fence(LONG), Ok(()));
        }
    }
}

/// One that ends without having taken what was sent does not have it.
#[test]
fn a_fence_to_a_program_that_took_nothing_names_it() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut inbox = datagram::Receiver::new(&there, 100).unwrap();
    let outbox = datagram::Sender::grow(&here, &inbox.ticket(), LONG).unwrap();
    inbox.ready();
    outbox.send(b"not taken", LONG).unwrap();
    drop((inbox, there));
    let fenced = outbox.fence(LONG);
    assert!(matches!(fenced, Err(FenceError::PeerLost(_))), "{fenced:?}");
}

/// The word that it has closed lies behind much else when the end of its link is heard.
#[test]
fn a_receiver_that_closes_and_ends_is_not_called_lost() {
    const OTHERS: usize = 200;
    for strategy in Strategy::ALL {
        for rounds in 0..10 {
            let namespace = namespace();
            let options = ManagerOptions {
                strategy,
                ..ManagerOptions::default()
            };
            let host = Options::default().in_namespace(&namespace);
            let here = hamlyn::open_with(host, options).unwrap();
            let there = open(&namespace);
            let mut receiver = Receiver::new(&there, StreamOptions::default()).unwrap();
            let mut sender = Sender::grow(&here, &receiver.make_seed(), LONG).unwrap();
            for number in 0..=rounds {
                sender.send(&[number], LONG).unwrap();
                assert_eq!(take(&mut receiver), [number]);
            }
            let tags = tagged_write::Receiver::new(&here, 64, OTHERS).unwrap();
            let others = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
            for _ in 0..OTHERS {
                let _ = others.send(0, b"beside", 1, Wait::Poll);
            }
            drop(receiver);
            assert!(there.flush(LONG).unwrap());
            drop(there);
            let ended = until("the end", || sender.send(b"more", Wait::millis(1)).err());
            assert_eq!(ended, SendError::ClosedByReceiver, "{strategy:?}");
        }
    }
}
