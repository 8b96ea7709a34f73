//! Names of links, and losses that are heard of early or late.

use hamlyn_engine::receive_observer::Unobserved;
use hamlyn_host::process::{Options, ProcessHost};
use hamlyn_host::{Address, Connected, Host};
use hamlyn_link::Link;

use super::*;

type End = <<ProcessHost as Host>::Link as Link>::Receive;

fn inbound() -> Inbound<End, Unobserved> {
    Inbound::new(Receiver::new(None), None)
}

/// The receiving end of a link that nothing comes over.
fn end() -> End {
    let mut host = ProcessHost::open(Options::default()).unwrap();
    let itself = Address::Destination(host.identity());
    match host.connect(itself, u64::MAX) {
        Ok(Connected::New(_, link)) => link.split().1,
        _ => unreachable!("one is always there"),
    }
}

/// What the application is told after a poll.
fn ended(inbound: &mut Inbound<End, Unobserved>) -> Option<(LinkId, LinkEnd)> {
    inbound.poll(None);
    inbound.next_ended()
}

const LOST: LinkEnd = LinkEnd::Lost(LossCause::Died);

#[test]
fn a_loss_that_is_heard_of_before_its_link_is_not_forgotten() {
    let mut inbound = inbound();
    // The application is connecting, and the network processor hears of this first.
    assert_eq!(inbound.lose(7, LossCause::Died), None);
    let other = inbound.insert(6, end());
    assert_eq!(ended(&mut inbound), None);
    let id = inbound.insert(7, end());
    assert_eq!(ended(&mut inbound), Some((id, LOST)));
    assert_eq!(ended(&mut inbound), None);
    assert_eq!(inbound.lose(6, LossCause::Died), Some(other));
}

#[test]
fn a_loss_that_comes_after_the_end_is_not_taken_for_an_early_one() {
    let mut inbound = inbound();
    let id = inbound.insert(6, end());
    inbound.take_out(id.index as usize);
    assert_eq!(inbound.lose(7, LossCause::Died), None);
    // Its end was not heard of yet, so the host has not been told either.
    assert_eq!(inbound.lose(6, LossCause::Died), None);
    let id = inbound.insert(7, end());
    assert_eq!(ended(&mut inbound), Some((id, LOST)));
}

#[test]
fn a_name_is_not_given_again_before_its_end_was_heard() {
    let mut inbound = inbound();
    let first = inbound.insert(1, end());
    assert_eq!(inbound.lose(1, LossCause::Died), Some(first));
    assert_eq!(ended(&mut inbound), Some((first, LOST)));
    let second = inbound.insert(2, end());
    assert_ne!(second.index, first.index, "the application knows it as up");
    inbound.release(first);
    let third = inbound.insert(3, end());
    assert_eq!(third.index, first.index);
    assert_ne!(third, first);
    // Releasing a link that is there frees nothing.
    inbound.release(third);
    assert_ne!(inbound.insert(4, end()).index, third.index);
}
