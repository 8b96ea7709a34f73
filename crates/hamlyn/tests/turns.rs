//! Links are served in turn (`Hamlyn 2.8`: the switch serves its incoming ports round-robin),
//! whichever path their messages take.

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::stream::{Receiver, Sender, StreamOptions};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Ticket, Wait};

const WAIT: Wait = Wait::millis(10_000);
const FLOOD: u64 = 700;
const FEW: u64 = 5;
/// Set in the words of those who send little.
const FROM_THE_MODEST: u64 = 1 << 32;
/// In one cell, in several, and through the payload arena.
const LENGTHS_BYTES: [usize; 6] = [8, 24, 32, 64, 120, 1200];

fn open(namespace: &str) -> Manager<ProcessHost> {
    let namespace = format!("turns-{namespace}-{}", std::process::id());
    let mut options = Options::default().in_namespace(&namespace);
    // Room for the flood.
    options.cells = 4096;
    hamlyn::open_with(options, ManagerOptions::default()).expect("an interface opens")
}

/// Sends messages of that length without waiting.
fn send(manager: &Manager, ticket: &Ticket, words: std::ops::Range<u64>, length_bytes: usize) {
    let terminus = manager.terminus();
    let target = manager.session().target(ticket, WAIT).expect("a link");
    let data = vec![7; length_bytes];
    for word in words {
        manager
            .session()
            .send_msg(
                terminus,
                &target,
                &Message::new(&data).word(word),
                Wait::Poll,
            )
            .expect("there is room");
    }
    assert_eq!(manager.session().flush(WAIT), Ok(true));
}

/// Everything is in the rings before the receiver looks, so the order in which it takes the
/// messages is its own choice.
#[test]
fn a_flood_on_one_link_does_not_keep_another_waiting() {
    for length_bytes in LENGTHS_BYTES {
        let open = || open(&format!("flood-{length_bytes}"));
        let here = open();
        let area = here.session().allocate(4096).expect("an area");
        let mut queue = here.session().open_queue(1024).expect("a queue");
        let slot = here
            .session()
            .open_slot(NewSlot::new(&area).queue(&queue))
            .expect("a slot");
        let ticket = slot.fast_ticket(0, 4096).expect("a ticket");
        let senders = [open(), open()];
        send(&senders[0], &ticket, 0..FLOOD, length_bytes);
        let modest = FROM_THE_MODEST..FROM_THE_MODEST + FEW;
        send(&senders[1], &ticket, modest, length_bytes);

        // Both links, and the one to itself that is asked for here, are known before the first
        // packet is taken.
        while here.session().peers().count() < 3 {
            here.session()
                .target(&ticket, WAIT)
                .expect("a link to itself");
        }
        let mut order = Vec::new();
        while (order.len() as u64) < FLOOD + FEW {
            if let Some(notification) = here
                .session()
                .rcv_block(&mut queue, WAIT)
                .expect("no error")
            {
                order.push(notification.word);
            }
        }
        let last_of_few = order
            .iter()
            .rposition(|word| word & FROM_THE_MODEST != 0)
            .expect("they came");
        let taken_of_flood_before = last_of_few as u64 + 1 - FEW;
        assert!(
            taken_of_flood_before < FLOOD / 2,
            "{length_bytes} bytes: {taken_of_flood_before} of {FLOOD} were taken first"
        );
    }
}

/// The same of the records of a stream, beside a message that lands while they are taken.
#[test]
fn a_stream_does_not_keep_another_link_waiting() {
    const RECORDS: u64 = 900;
    for length_bytes in [8, 24, 32, 64, 120] {
        let open = || open(&format!("stream-{length_bytes}"));
        let (here, there, modest) = (open(), open(), open());
        let area = here.session().allocate(64).expect("an area");
        let slot = here
            .session()
            .open_slot(NewSlot::new(&area))
            .expect("a slot");
        let ticket = slot.fast_ticket(0, 64).expect("a ticket");
        let options = StreamOptions {
            pieces: 2048,
            piece_bytes: 128,
            limit_bytes: 1 << 20,
            ahead: false,
        };
        let mut receiver = Receiver::new(&here, options).expect("a receiver");
        let mut sender = Sender::grow(&there, &receiver.make_seed(), WAIT).expect("a sender");
        sender.send(&[1; 8], WAIT).expect("there is room");
        assert!(receiver.recv(WAIT).expect("a record").is_some());
        modest.session().target(&ticket, WAIT).expect("a link");
        while here.session().peers().count() < 2 {
            here.session().poll();
        }
        let record = vec![3; length_bytes];
        let sent = (0..RECORDS)
            .take_while(|_| sender.send(&record, Wait::Poll).is_ok())
            .count();
        assert!(sent > 100, "{length_bytes} bytes: {sent} records went");
        send(&modest, &ticket, 0..1, 8);
        let mut taken = 0;
        let mut landed = [0; 8];
        while landed != [7; 8] {
            assert!(
                taken < 300,
                "{length_bytes} bytes: {taken} of {sent} records were taken first"
            );
            if receiver.recv(Wait::Poll).expect("no error").is_some() {
                taken += 1;
            }
            area.read_at(0, &mut landed).expect("it lies in the area");
        }
    }
}
