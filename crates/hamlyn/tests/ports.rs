//! Ports and mailboxes on one host, as far as their paths differ there: in place, from the queue,
//! in cells and through the arena, over the duplex line.

use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::transport::Return;
use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::mailbox::{self, MailboxOptions};
use hamlyn::{FenceError, Manager, ManagerOptions, NewPort, SendError, Wait};

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
            let port = last.port.map(|port| port.to_bits());
            assert_eq!(port, Some(inbox.ticket().slot.to_bits()));
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
