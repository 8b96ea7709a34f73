//! Ends that are told though the target or its link is gone: of operations that were to be counted
//! (decision 0037), and of all that a completion queue tracks (decision 0050).

use crate::support::{namespace, open};
use hamlyn::engine::slot::Rights;
use hamlyn::engine::terminus::{SendHandle, TerminusOptions};
use hamlyn::host::process::Options;
use hamlyn::one_sided::{CompletionCounter, InitiatorOptions, OperationError};
use hamlyn::{
    Completion, CompletionError, CompletionQueue, FenceError, Manager, ManagerOptions, Message,
    NewSlot, Session, Source, Target, TrackError, Wait,
};

const LONG: Wait = Wait::millis(20_000);

#[test]
fn operations_are_counted_though_the_target_is_gone() {
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
    let counter = CompletionCounter::new();

    // The target's program takes nothing, so nothing is answered.
    for _ in 0..2 {
        let put = interface.begin_put(&mut access, 0, &[1; 8], LONG).unwrap();
        interface
            .count_completion(&mut access, put, &counter)
            .unwrap();
    }
    let early = interface.await_completions(&counter, 1, Wait::Poll);
    assert_eq!(early, Err(OperationError::TimedOut));

    drop((slot, area));
    drop(target);
    interface.await_completions(&counter, 2, LONG).unwrap();
    assert_eq!((counter.completed(), counter.failed()), (0, 2));
    assert_eq!(interface.outstanding(&access), 0);
}

/// Each of what was tracked is told once, though nothing of it was done.
#[test]
fn completions_are_told_though_the_target_is_gone() {
    const MESSAGES: u64 = 400;
    let namespace = namespace();
    // It lends no memory, so those wait that find no room in the ring.
    let mut lends_none = Options::default().in_namespace(&namespace);
    lends_none.buffer_bytes_per_peer = 0;
    let target = hamlyn::open_with(lends_none, ManagerOptions::default()).unwrap();
    let sender = open(&namespace);
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

/// A target that has refused a message, its sender, the place, and a queue of the sender's that was
/// prepared so before the message was sent, and so after.
fn refused(
    before: impl FnOnce(&mut Session<'_>, &CompletionQueue, &Target),
    after: impl FnOnce(&mut Session<'_>, &CompletionQueue, &Target),
) -> (Manager, Manager, Target, CompletionQueue) {
    let namespace = namespace();
    let (target, sender) = (open(&namespace), open(&namespace));
    let area = target.session().allocate(4096).unwrap();
    let slot = target.session().open_slot(NewSlot::new(&area)).unwrap();
    let ticket = slot.fast_ticket(0, 4096).unwrap();
    let mut session = sender.session();
    let to = session.target(&ticket, LONG).unwrap();
    target.session().revoke_slot(&slot).unwrap();
    let queue = session.open_completions(1).unwrap();
    before(&mut session, &queue, &to);
    let (terminus, message) = (session.terminus(), Message::new(&[1; 16]));
    session.send_msg(terminus, &to, &message, LONG).unwrap();
    after(&mut session, &queue, &to);
    drop(session);
    for _ in 0..4 {
        target.session().poll();
    }
    (target, sender, to, queue)
}

#[test]
fn a_tracked_fence_tells_of_refusals_though_its_link_ends_before_it_is_looked_at() {
    let track = |session: &mut Session<'_>, queue: &CompletionQueue, to: &Target| {
        session.track_fence(queue, to.link(), 1).unwrap();
    };
    let (_target, sender, to, queue) = refused(|_, _, _| (), track);
    let mut session = sender.session();
    session.disconnect(to.link());
    let ended = session.await_completion(&queue, LONG).unwrap().unwrap();
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
    let track = |session: &mut Session<'_>, queue: &CompletionQueue, _: &Target| {
        session.track_refusals(queue).unwrap();
    };
    let (_target, sender, _, queue) = refused(track, |_, _, _| ());
    let mut session = sender.session();
    let ready = session.await_any(&[Source::Completions(&queue)], Wait::millis(100));
    assert!(session.next_completion(&queue).is_some());
    assert_eq!(ready, Ok(Some(0)));
}

#[test]
fn a_packet_that_came_back_has_the_context_of_its_link_after_the_link_has_ended() {
    let track = |session: &mut Session<'_>, queue: &CompletionQueue, to: &Target| {
        session.track_refusals(queue).unwrap();
        assert!(session.set_link_context(to.link(), 99));
    };
    let (_target, sender, to, queue) = refused(track, |_, _, _| ());
    let mut session = sender.session();
    session.disconnect(to.link());
    assert_eq!(session.link_context(to.link()), 99);
    let returned = session.next_completion(&queue).unwrap();
    assert_eq!(returned.context, 99, "{returned:?}");
}

#[test]
fn a_message_that_was_never_sent_is_not_tracked() {
    let sender = open(&namespace());
    let mut session = sender.session();
    let queue = session.open_completions(1).unwrap();
    let handle = SendHandle {
        terminus: session.terminus(),
        sequence: u64::MAX,
    };
    let tracked = session.track_send(&queue, handle, 1);
    assert_eq!(tracked, Err(TrackError::NoSuchMessage));
}
