//! Ports and mailboxes on one host, as far as their paths differ there: in place, from the queue,
//! in cells and through the arena, over the duplex line.

use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::terminus::PostError;
use hamlyn::engine::transport::Return;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::ticket::{TicketError, TicketKind};
use hamlyn::{
    ConnectError, Event, FenceError, LinkEnd, Manager, ManagerOptions, Message, NewPort, SendError,
    Ticket, Wait, datagram, tagged_write,
};
use hamlyn_link::LinkFault;

use crate::support::raw_link::RawLink;

const WAIT: Wait = Wait::millis(10_000);

fn open(test: &str) -> Manager<ProcessHost> {
    let namespace = format!("ports-{test}-{}", std::process::id());
    let options = Options::default().in_namespace(&namespace);
    hamlyn::open_with(options, ManagerOptions::default()).expect("an interface opens")
}

fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length).map(|at| (seed * 31 + at * 7) as u8).collect()
}

#[test]
fn messages_of_every_length_are_read_where_they_lie() {
    let (here, there) = (open("lengths"), open("lengths"));
    let mut port = here
        .session()
        .open_port(NewPort::new().handlers(4096).group(u64::MAX))
        .expect("a port");
    let target = there
        .session()
        .target(&port.ticket(), WAIT)
        .expect("a link");
    let mut in_place = 0;
    for length in (0..1200).chain([4096, 65_536]) {
        let data = pattern(length, length);
        let handler = (length % 4096) as u16;
        there
            .session()
            .send_message(&target, handler, &data, Wait::Poll)
            .unwrap_or_else(|error| panic!("{length} bytes: {error}"));
        let mut session = here.session();
        for _peek in 0..2 {
            let message = session
                .recv_message(&mut port, WAIT)
                .expect("it is received")
                .expect("it came");
            assert_eq!((message.handler(), message.len()), (handler, length));
            let mut copy = vec![0; length];
            assert_eq!(message.copy_to(&mut copy), length);
            assert!(copy == data, "{length} bytes");
            for (number, word) in data.chunks(8).enumerate() {
                let mut bytes = [0; 8];
                bytes[..word.len()].copy_from_slice(word);
                assert_eq!(message.word(number), u64::from_le_bytes(bytes), "{length}");
            }
            assert_eq!(message.word(length.div_ceil(8)), 0);
            in_place += usize::from(message.is_in_place());
        }
        let message = session.next_message(&mut port).expect("received");
        message.expect("still there").dispose();
        assert!(session.next_message(&mut port).expect("received").is_none());
    }
    assert!(in_place > 2 * 1000, "{in_place} in place");
}

#[test]
fn questions_and_answers_go_over_the_line() {
    let (here, there) = (open("line"), open("line"));
    let mut ports = [&here, &there].map(|manager| {
        let opened = manager.session().open_port(NewPort::new().handlers(2));
        opened.expect("a port")
    });
    let to_here = there
        .session()
        .target(&ports[0].ticket(), WAIT)
        .expect("a link");
    let to_there = here
        .session()
        .target(&ports[1].ticket(), WAIT)
        .expect("a link");
    for round in 0..2000_u64 {
        let question = round.to_le_bytes();
        there
            .session()
            .send_message(&to_here, 1, &question, WAIT)
            .expect("sent");
        let answered = here
            .session()
            .await_messages(&mut ports[0], 1, WAIT, |message, outbox| {
                let answer = (message.word(0) * 3).to_le_bytes();
                let sent = outbox.send_message(&to_there, 0, &answer);
                assert!(matches!(sent, Ok(Some(_))));
            })
            .expect("drained");
        assert_eq!(answered, 1);
        let mut session = there.session();
        let answer = session.recv_message(&mut ports[1], WAIT).expect("received");
        let answer = answer.expect("it came");
        assert_eq!((answer.handler(), answer.word(0)), (0, round * 3));
        answer.dispose();
    }
}

#[test]
fn a_mailbox_waits_for_nobody_and_refuses_beyond_its_bound() {
    let (here, there) = (open("mailbox"), open("mailbox"));
    let options = MailboxOptions {
        queue_bytes: 64 * 64,
        peer_bytes: Some(32 * 64),
    };
    let mut inbox = mailbox::Receiver::new(&here, options).expect("a mailbox");
    let outbox = mailbox::Sender::grow(&there, &inbox.ticket(), WAIT).expect("a link");
    for number in 0..40_u64 {
        outbox.send(&number.to_le_bytes(), WAIT).expect("sent");
    }
    // The receiver moves packets, but asks for no mail.
    let fenced = loop {
        here.session().poll();
        match outbox.fence(Wait::Poll) {
            Err(FenceError::TimedOut { .. }) => {}
            fenced => break fenced,
        }
    };
    match fenced {
        Err(FenceError::Refused { count, last }) => {
            assert_eq!(count, 8);
            assert_eq!(last.reason, Return::Refused(Refusal::QueueFull));
            // A slot may have the same number.
            assert_eq!(
                (last.kind, last.slot),
                (TicketKind::Port, inbox.ticket().slot)
            );
        }
        other => panic!("{other:?}"),
    }
    for number in 0..32_u64 {
        let mail = inbox.recv(WAIT).expect("received").expect("it came");
        assert_eq!(mail, number.to_le_bytes());
    }
    assert!(inbox.recv(Wait::Poll).expect("received").is_none());
    assert_eq!(inbox.info().expect("open").queued, 32);
}

#[test]
fn a_ticket_may_be_for_shorter_messages_and_for_no_place() {
    let (here, there) = (open("narrow"), open("narrow"));
    let port = here.session().open_port(NewPort::new()).expect("a port");
    let ticket = port.ticket();
    assert!(ticket.narrow(1, 1).is_err());
    for most in [0, 4, 60, 2000] {
        let narrow = ticket.narrow(0, most).expect("a shorter one");
        let outbox = mailbox::Sender::grow(&there, &narrow, WAIT).expect("a link");
        assert_eq!(outbox.message_bytes_max(), Some(most as usize));
        for length in [0, 1, 5, 56, 57, 1000, 2000, 2001, 5000] {
            let sent = outbox.send(&vec![1; length], Wait::Poll);
            let is_refused = matches!(sent, Err(SendError::OutsideTicket(_)));
            assert_eq!(
                is_refused,
                length as u64 > most,
                "{length} of {most}: {sent:?}"
            );
        }
    }
}

#[test]
fn a_ticket_that_was_made_up_harms_nobody() {
    let (here, there) = (open("made-up"), open("made-up"));
    let mut port = here.session().open_port(NewPort::new()).expect("a port");
    let good = there
        .session()
        .target(&port.ticket(), WAIT)
        .expect("a link");
    for slot in [u32::MAX, port.ticket().slot.to_bits() ^ 0x0100] {
        for key in [0, 7] {
            let bogus = Ticket {
                slot: SlotName::from_bits(slot),
                key: Key::from_bits(key),
                ..port.ticket()
            };
            let bad = there.session().target(&bogus, WAIT).expect("a link");
            for length in [0, 1, 100, 2000] {
                for _ in 0..3 {
                    let mut session = there.session();
                    let sent = session.send_message(&bad, 0, &vec![1; length], Wait::Poll);
                    sent.expect("it is sent");
                    here.session().poll();
                }
            }
        }
    }
    assert_eq!(here.session().refusals().count(Refusal::PortClosed), 48);
    there
        .session()
        .send_message(&good, 0, b"the link lives", WAIT)
        .expect("sent");
    let mut session = here.session();
    let message = session.recv_message(&mut port, WAIT).expect("received");
    assert_eq!(message.expect("it came").len(), 14);
}

#[test]
fn a_port_has_no_entries_and_an_end_point_its_kind_of_place() {
    let (here, there) = (open("kinds"), open("kinds"));
    let port = here.session().open_port(NewPort::new()).expect("a port");
    let wide = Ticket {
        metadata_index: 0,
        base: u64::MAX - 10,
        length_bytes: 1 << 40,
        ..port.ticket()
    };
    let read = Ticket::from_bytes(&wide.to_bytes());
    assert_eq!(read, Err(TicketError::Impossible { field: "entry" }));
    let target = there.session().target(&wide, WAIT).expect("a link");
    let (data, terminus) = (vec![1; 200_000], there.terminus());
    let sent = there
        .session()
        .send_msg(terminus, &target, &Message::new(&data), Wait::Poll);
    assert!(matches!(sent, Err(SendError::Refused(_))), "{sent:?}");
    let wrong = ConnectError::Ticket(TicketError::Kind {
        found: TicketKind::Port,
        expected: TicketKind::Slot,
    });
    let grown = datagram::Sender::grow(&there, &port.ticket(), WAIT);
    assert_eq!(grown.map(drop), Err(wrong.clone()));
    let grown = tagged_write::Sender::grow(&there, &port.ticket(), WAIT);
    assert_eq!(grown.map(drop), Err(wrong));
    let tags = tagged_write::Receiver::new(&here, 64, 16).expect("a receiver");
    let grown = mailbox::Sender::grow(&there, &tags.ticket(), WAIT);
    let kind = TicketError::Kind {
        found: TicketKind::Slot,
        expected: TicketKind::Port,
    };
    assert_eq!(grown.map(drop), Err(ConnectError::Ticket(kind)));
}

/// As `try_send`: no room is told apart from what never goes.
#[test]
fn an_outbox_refuses_what_can_never_go() {
    let (here, there) = (open("outbox"), open("outbox"));
    let mut port = here.session().open_port(NewPort::new()).expect("a port");
    let tags = tagged_write::Receiver::new(&there, 1 << 20, 16).expect("an area");
    let ticket = Ticket {
        metadata_index: 0,
        ..tags.ticket()
    };
    let to_area = here.session().target(&ticket, WAIT).expect("a link");
    let to_port = there
        .session()
        .target(&port.ticket(), WAIT)
        .expect("a link");
    let sent = there.session().send_message(&to_port, 0, b"x", WAIT);
    sent.expect("sent");
    let data = vec![1; 200_000];
    let mut answers = Vec::new();
    here.session()
        .await_messages(&mut port, 1, WAIT, |_, outbox| {
            answers.push(outbox.send(&to_area, &Message::new(&data)));
        })
        .expect("drained");
    let [Err(SendError::Refused(PostError::TooLongToQueue { .. }))] = answers[..] else {
        panic!("{answers:?}");
    };
}

/// A peer that uses an abbreviation which it had not said has broken the rules.
#[test]
fn an_abbreviation_of_nothing_ends_the_link_and_no_other() {
    let here = open("nothing");
    let namespace = format!("ports-nothing-{}", std::process::id());
    let mut port = here.session().open_port(NewPort::new()).expect("a port");
    let there = open("nothing");
    let good = there
        .session()
        .target(&port.ticket(), WAIT)
        .expect("a link");
    let identity = here.session().identity();
    let link = std::thread::spawn(move || {
        let link = RawLink::connect(&namespace, identity, 0xBAD).expect("a link");
        let first = 1 | 9 << 55 | 1 << 63;
        let at = link.to_victim_geometry.cells_offset();
        link.to_victim.store_u64(at, first).expect("mapped");
        link.ring();
        link
    });
    let lost = loop {
        let event = here.next_event(WAIT).expect("it waits");
        if let Event::PeerLeft { end, .. } = event.expect("an event") {
            break end;
        }
    };
    drop(link.join());
    assert_eq!(lost, LinkEnd::Fault(LinkFault::Abbreviation));
    there
        .session()
        .send_message(&good, 0, b"still here", WAIT)
        .expect("sent");
    let mut session = here.session();
    let message = session.recv_message(&mut port, WAIT).expect("received");
    assert_eq!(message.expect("it came").len(), 10);
}
