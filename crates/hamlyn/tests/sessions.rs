//! Sessions: steps that never wait, and the wait that is made of them.

use crate::support;
use std::task::{Context, Poll, Waker};
use std::time::Instant;

use crate::support::{LONG, namespace, open};
use hamlyn::host::process::ProcessHost;
use hamlyn::{
    Manager, ManagerOptions, Message, NewSlot, ReceiveError, Sending, Strategy, Wait, tagged_write,
};

/// More messages than the deepest ring and the work queue hold.
const MANY: u64 = 10_000;

fn with_strategy(namespace: &str, strategy: Strategy) -> Manager<ProcessHost> {
    let host = hamlyn::host::process::Options::default().in_namespace(namespace);
    let options = ManagerOptions {
        strategy,
        ..ManagerOptions::default()
    };
    hamlyn::open_with(host, options).unwrap()
}

/// A message of one packet that is too long for the work queue waits for room in the link, as any
/// other.
#[test]
fn a_packet_that_finds_no_room_is_tried_again() {
    for strategy in Strategy::ALL {
        let namespace = namespace();
        let here = with_strategy(&namespace, strategy);
        let there = open(&namespace);
        let mut tags = tagged_write::Receiver::new(&there, 4096, 1 << 16).unwrap();
        let mut sender = tagged_write::Sender::grow(&here, &tags.ticket(), LONG).unwrap();
        let context = &mut Context::from_waker(Waker::noop());
        for length in [100, 129, 1000] {
            let data = vec![7; length];
            let mut sent = 0;
            while let Poll::Ready(accepted) = sender.poll_send(context, 0, &data, sent) {
                accepted.unwrap();
                sent += 1;
                assert!(sent < MANY, "{strategy:?}: all of them found room");
            }
            for tag in 0..sent {
                assert_eq!(tags.get_tag(LONG), Ok(Some(tag)), "{strategy:?}, {length}");
                here.session().poll();
            }
            let begun = Instant::now();
            while sender.poll_send(context, 0, &data, sent).is_pending() {
                assert!(begun.elapsed() < support::TIMEOUT, "{strategy:?}, {length}");
                there.session().poll();
                here.session().poll();
            }
            assert_eq!(tags.get_tag(LONG), Ok(Some(sent)));
        }
    }
}

/// A program that does nothing but try again gets on, though all its packets are for itself.
#[test]
fn trying_again_moves_packets() {
    let here = open(&namespace());
    let tags = tagged_write::Receiver::new(&here, 4096, 1 << 16).unwrap();
    let sender = tagged_write::Sender::grow(&here, &tags.ticket(), LONG).unwrap();
    for length in [16, 128, 129, 1000] {
        let data = vec![7; length];
        let begun = Instant::now();
        for tag in 0..MANY {
            while sender.send(0, &data, tag, Wait::Poll).is_err() {
                assert!(begun.elapsed() < support::TIMEOUT, "{length} bytes, {tag}");
            }
        }
    }
}

/// What one `Sending` has sent does not stand in the way of its next message.
#[test]
fn a_sending_is_used_again() {
    const BYTES: u64 = 200_000;
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let area = there.session().allocate(BYTES).unwrap();
    let mut queue = there.session().open_queue(16).unwrap();
    let new = NewSlot::new(&area).entries(1).queue(&queue);
    let slot = there.session().open_slot(new).unwrap();
    let entry = slot.metadata().unwrap().entry(0).unwrap();
    let mut session = here.session();
    let ticket = slot.ticket(0, 0, BYTES).unwrap();
    let target = session.target(&ticket, LONG).unwrap();
    let terminus = session.terminus();
    let mut sending = Sending::default();
    for byte in [1, 2] {
        let data = vec![byte; BYTES as usize];
        let message = Message::new(&data);
        let begun = Instant::now();
        loop {
            let sent = session.send_some(terminus, &target, &message, &mut sending);
            there.session().poll();
            if sent.unwrap().is_some() {
                break;
            }
            assert!(begun.elapsed() < support::TIMEOUT);
        }
        assert_eq!(sending.sent_bytes(), None, "nothing of the next message");
        let came = there.session().rcv_block(&mut queue, LONG).unwrap();
        assert!(came.is_some(), "message {byte}");
        let mut bytes = vec![0; BYTES as usize];
        area.read_at(0, &mut bytes).unwrap();
        assert!(bytes == data, "message {byte}");
        there
            .session()
            .between_packets(|| entry.reset_accumulator());
    }
}

/// A step is called at once, again when something has happened, and once more when the time is
/// over.
#[test]
fn a_wait_is_a_step_that_is_called_again() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut tags = tagged_write::Receiver::new(&here, 64, 16).unwrap();
    let sender = tagged_write::Sender::grow(&there, &tags.ticket(), LONG).unwrap();
    let mut looks = 0;
    let look = |looks: &mut u32| {
        *looks += 1;
        Ok::<Option<()>, ReceiveError>(None)
    };
    let found = here.session().wait_for(Wait::Poll, |_| look(&mut looks));
    assert_eq!((found, looks), (Ok(None), 1));
    let found = here
        .session()
        .wait_for(Wait::millis(5), |_| look(&mut looks));
    assert_eq!(found, Ok(None));
    assert!(looks > 2, "{looks}");
    let wrong = here
        .session()
        .wait_for(LONG, |_| Err::<Option<()>, _>(ReceiveError::NotReady));
    assert_eq!(wrong, Err(ReceiveError::NotReady));
    sender.send(0, &[], 7, LONG).unwrap();
    let activity = here.session().activity();
    let moved = here.session().wait_for(LONG, |session| {
        session.poll();
        Ok::<_, ReceiveError>((session.activity() != activity).then_some(()))
    });
    assert_eq!(moved, Ok(Some(())));
    assert_eq!(tags.get_tag(Wait::Poll), Ok(Some(7)));
}
