//! A target that ends before it has answered: operations that were to be counted count as failed,
//! and those that were to be announced are announced (decision 0037).

use crate::support::{namespace, open};
use hamlyn::engine::slot::Rights;
use hamlyn::engine::terminus::{SendHandle, TerminusOptions};
use hamlyn::one_sided::{CompletionCounter, InitiatorOptions, OperationError};
use hamlyn::{Completion, CompletionError, FenceError, Message, NewSlot, Source, TrackError, Wait};

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

/// Each of what was tracked is told once, though nothing of it was done.
#[test]
fn completions_are_told_though_the_target_is_gone() {
    const MESSAGES: u64 = 400;
    let namespace = namespace();
    let (target, sender) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let new = NewSlot::new(&area).rights(Rights::ALL);
    let slot = target.session().open_slot(new).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let mut session = sender.session();
    let to = session.target(&ticket, LONG).unwrap();
    let queue = session.open_completions(512).unwrap();
    let mut initiator = session
        .open_initiator(to, InitiatorOptions::default())
        .unwrap();
    let put = session.begin_put(&mut initiator, 0, &[1; 8], LONG).unwrap();
    session
        .track_operation(&queue, &mut initiator, put, 1000)
        .unwrap();
    // More than the link has room for: some wait, and fail with it.
    let options = TerminusOptions {
        queue_entries: MESSAGES as usize,
        ..TerminusOptions::default()
    };
    let terminus = session.open_terminus(options).unwrap();
    for context in 0..MESSAGES {
        let sent = session
            .try_send(terminus, &to, &Message::new(&[1; 16]))
            .unwrap();
        session.track_send(&queue, sent.unwrap(), context).unwrap();
    }
    session.track_fence(&queue, to.link(), 1001).unwrap();

    drop((slot, area));
    drop(target);
    let mut ends = std::collections::BTreeMap::new();
    while ends.len() < MESSAGES as usize + 2 {
        let completion = session.await_completion(&queue, LONG).unwrap();
        let Completion { context, result } = completion.expect("each has an end");
        assert_eq!(ends.insert(context, result), None, "{context}");
    }
    assert_eq!(session.next_completion(&queue), None);
    let lost = |end: Option<Result<u64, CompletionError>>| match end {
        Some(Err(
            CompletionError::Operation(OperationError::PeerLost(_))
            | CompletionError::Fence(FenceError::PeerLost(_)),
        )) => {}
        other => panic!("{other:?}"),
    };
    lost(ends.remove(&1000));
    lost(ends.remove(&1001));
    let failed = ends.values().filter(|end| end.is_err()).count();
    assert!(failed > 0 && failed < MESSAGES as usize, "{failed}");
    let not_sent = Err(CompletionError::NotSent);
    assert!(ends.values().all(|end| *end == Ok(0) || *end == not_sent));
    // There is no link to fence.
    let late = session.track_fence(&queue, to.link(), 1);
    let told = session.next_completion(&queue);
    assert!(late.is_err() || matches!(told, Some(Completion { result: Err(_), .. })));
}

#[test]
fn a_tracked_fence_tells_of_refusals_though_its_link_ends_before_it_is_looked_at() {
    let namespace = namespace();
    let (target, sender) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let slot = target.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let to = sender.session().target(&ticket, LONG).unwrap();
    target.session().revoke_slot(&slot).unwrap();
    let queue = sender.session().open_completions(1).unwrap();
    let terminus = sender.terminus();
    let message = Message::new(&[1; 16]);
    sender
        .session()
        .send_msg(terminus, &to, &message, LONG)
        .unwrap();
    sender.session().track_fence(&queue, to.link(), 1).unwrap();
    for _ in 0..4 {
        target.session().poll();
    }
    sender.session().disconnect(to.link());
    let ended = sender
        .session()
        .await_completion(&queue, LONG)
        .unwrap()
        .unwrap();
    assert!(
        matches!(
            ended.result,
            Err(CompletionError::Fence(FenceError::Refused { count: 1, .. }))
        ),
        "{ended:?}"
    );
}

#[test]
fn a_wait_for_several_ends_for_a_packet_that_came_back() {
    let namespace = namespace();
    let (target, sender) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let slot = target.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let to = sender.session().target(&ticket, LONG).unwrap();
    target.session().revoke_slot(&slot).unwrap();
    let queue = sender.session().open_completions(1).unwrap();
    sender.session().track_refusals(&queue).unwrap();
    let terminus = sender.terminus();
    let message = Message::new(&[1; 16]);
    sender
        .session()
        .send_msg(terminus, &to, &message, LONG)
        .unwrap();
    for _ in 0..4 {
        target.session().poll();
    }
    let ready = sender
        .session()
        .await_any(&[Source::Completions(&queue)], Wait::millis(100));
    let next = sender.session().next_completion(&queue);
    assert!(next.is_some());
    assert_eq!(ready, Ok(Some(0)));
}

#[test]
fn a_message_that_was_never_sent_is_not_tracked() {
    let sender = open(&namespace());
    let queue = sender.session().open_completions(1).unwrap();
    let terminus = sender.terminus();
    let handle = SendHandle {
        terminus,
        sequence: u64::MAX,
    };
    let tracked = sender.session().track_send(&queue, handle, 1);
    assert_eq!(tracked, Err(TrackError::NoSuchMessage));
}

#[test]
fn a_packet_that_came_back_has_the_context_of_its_link_after_the_link_has_ended() {
    let namespace = namespace();
    let (target, sender) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let slot = target.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let to = sender.session().target(&ticket, LONG).unwrap();
    target.session().revoke_slot(&slot).unwrap();
    let queue = sender.session().open_completions(1).unwrap();
    sender.session().track_refusals(&queue).unwrap();
    assert!(sender.session().set_link_context(to.link(), 99));
    let terminus = sender.terminus();
    let message = Message::new(&[1; 16]);
    sender
        .session()
        .send_msg(terminus, &to, &message, LONG)
        .unwrap();
    for _ in 0..4 {
        target.session().poll();
    }
    sender.session().disconnect(to.link());
    assert_eq!(sender.session().link_context(to.link()), 99);
    let returned = sender.session().next_completion(&queue).unwrap();
    assert_eq!(returned.context, 99, "{returned:?}");
}
