//! A target that ends before it has answered: operations that were to be counted count as failed,
//! and those that were to be announced are announced (decision 0037).

use crate::support::{namespace, open};
use hamlyn::engine::slot::Rights;
use hamlyn::one_sided::{CompletionCounter, InitiatorOptions, OperationError};
use hamlyn::{NewSlot, Wait};

const LONG: Wait = Wait::millis(20_000);

#[test]
fn ends_are_told_though_the_target_is_gone() {
    let namespace = namespace();
    let (target, initiator) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let slot = target
        .session()
        .open_slot(NewSlot::new(&area).rights(Rights::ALL));
    let slot = slot.unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let mut interface = initiator.session();
    let to = interface.target(&ticket, LONG).unwrap();
    let mut access = interface
        .open_initiator(to, InitiatorOptions::default())
        .unwrap();
    let mut queue = interface.open_queue(4).unwrap();
    let counter = CompletionCounter::new();

    // The target's program takes nothing, so nothing is answered.
    for _ in 0..2 {
        let put = interface.begin_put(&mut access, 0, &[1; 8], LONG).unwrap();
        interface
            .count_completion(&mut access, put, &counter)
            .unwrap();
    }
    let put = interface.begin_put(&mut access, 8, &[1; 8], LONG).unwrap();
    interface
        .announce_completion(&mut access, put, &queue, 7)
        .unwrap();
    let early = interface.await_completions(&counter, 1, Wait::Poll);
    assert_eq!(early, Err(OperationError::TimedOut));
    assert_eq!(interface.rcv(&mut queue).unwrap(), None);

    drop((slot, area));
    drop(target);
    interface.await_completions(&counter, 2, LONG).unwrap();
    assert_eq!((counter.completed(), counter.failed()), (0, 2));
    let announced = interface.rcv_block(&mut queue, LONG).unwrap().unwrap();
    assert_eq!((announced.word, announced.slot), (7, access.slot()));
    let result = interface.finish(&mut access, put, Wait::Poll);
    assert!(
        matches!(result, Err(OperationError::PeerLost(_))),
        "{result:?}"
    );
    assert_eq!(interface.outstanding(&access), 0);
}
