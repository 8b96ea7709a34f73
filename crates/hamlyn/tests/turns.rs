//! Links are served in turn (`Hamlyn 2.8`: the switch serves its incoming ports round-robin).

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Message, NewSlot, Wait};

const WAIT: Wait = Wait::millis(10_000);
const FLOOD: u64 = 700;
const FEW: u64 = 5;
/// Set in the words of those who send little.
const FROM_THE_MODEST: u64 = 1 << 32;

fn open() -> Manager<ProcessHost> {
    let mut options = Options::default().in_namespace(&format!("turns-{}", std::process::id()));
    // Room for the flood.
    options.cells = 1024;
    hamlyn::open_with(options, ManagerOptions::default()).expect("an interface opens")
}

/// Everything is in the rings before the receiver looks, so the order in which it takes the
/// messages is its own choice.
#[test]
fn a_flood_on_one_link_does_not_keep_another_waiting() {
    let here = open();
    let area = here.session().allocate(64).expect("an area");
    let mut queue = here.session().open_queue(1024).expect("a queue");
    let slot = here
        .session()
        .open_slot(NewSlot::new(&area).queue(&queue))
        .expect("a slot");
    let ticket = slot.fast_ticket(0, 64).expect("a ticket");

    let mut senders = [(open(), 0, FLOOD), (open(), FROM_THE_MODEST, FEW)];
    for (manager, mark, count) in &mut senders {
        let terminus = manager.terminus();
        let target = manager.session().target(&ticket, WAIT).expect("a link");
        for number in 0..*count {
            let message = Message::new(&[7; 8]).word(*mark | number);
            manager
                .session()
                .send_msg(terminus, &target, &message, Wait::Poll)
                .expect("there is room");
        }
        assert_eq!(manager.session().flush(WAIT), Ok(true));
    }

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
        "{taken_of_flood_before} of {FLOOD} were taken first"
    );
}
