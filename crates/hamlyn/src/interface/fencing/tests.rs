//! Fences that are given up before they are answered.

use hamlyn_host::process::{Options, ProcessHost};

use super::*;
use crate::datagram::{Receiver, Sender};
use crate::manager::{Manager, ManagerOptions};
use crate::wait::Wait;

const LONG: Wait = Wait::millis(20_000);

fn open(namespace: &str) -> Manager<ProcessHost> {
    let host = Options::default().in_namespace(namespace);
    crate::open_with(host, ManagerOptions::default()).unwrap()
}

/// A fence while that peer takes packets.
fn fenced(here: &Manager<ProcessHost>, there: &Manager<ProcessHost>) -> Result<(), FenceError> {
    loop {
        there.session().poll();
        match here.fence(Wait::Poll) {
            Err(FenceError::TimedOut { .. }) => {}
            fenced => return fenced,
        }
    }
}

/// One peer has answered, and another has not; then the fence is given up. The link to the first
/// may have ended since.
#[test]
fn what_a_fence_was_told_is_told_by_the_next() {
    for ends in [false, true] {
        let namespace = format!("fencing{}", std::process::id());
        let [here, there, silent] = [(); 3].map(|()| open(&namespace));
        let not_ready = [&there, &silent].map(|peer| Receiver::new(peer, 64).unwrap());
        for inbox in &not_ready {
            let sender = Sender::grow(&here, &inbox.ticket(), LONG).unwrap();
            sender.send(b"refused", LONG).unwrap();
        }
        let mut fence = here.enter().unwrap().begin_fence();
        while fence.refusals.is_empty() {
            there.session().poll();
            let is_over = here.enter().unwrap().continue_fence(&mut fence);
            assert!(!is_over, "a peer that takes nothing has answered");
        }
        drop(fence);
        let to_there = not_ready[0].ticket().destination;
        if ends {
            let link = here.enter().unwrap().link_to(&to_there).unwrap();
            here.session().disconnect(link);
        }
        let to_silent = not_ready[1].ticket().destination;
        let told = [here.fence(Wait::Poll), fenced(&here, &silent)];
        for (fenced, to) in told.into_iter().zip([to_there, to_silent]) {
            let Err(FenceError::Refused { count: 1, last }) = fenced else {
                panic!("{fenced:?}");
            };
            assert_eq!(last.to, Some(to));
        }
        assert_eq!(here.fence(Wait::Poll), Ok(()));
    }
}

#[test]
fn a_fence_that_was_told_of_nothing_leaves_nothing() {
    let namespace = format!("fencing-none{}", std::process::id());
    let [here, there] = [(); 2].map(|()| open(&namespace));
    let inbox = Receiver::new(&there, 64).unwrap();
    let sender = Sender::grow(&here, &inbox.ticket(), LONG).unwrap();
    for _ in 0..100 {
        sender.send(b"refused", LONG).unwrap();
        let mut fence = here.enter().unwrap().begin_fence();
        assert!(!here.enter().unwrap().continue_fence(&mut fence));
    }
    assert!(here.enter().unwrap().untold.take().is_empty());
    let fenced = fenced(&here, &there);
    assert!(
        matches!(fenced, Err(FenceError::Refused { count: 100, .. })),
        "{fenced:?}"
    );
}
