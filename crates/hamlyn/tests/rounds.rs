//! Rounds of a group: each has its own members, and is received once.

use crate::support::{LONG, namespace, open};
use hamlyn::engine::counting::Counting;
use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, ReceiveError, Wait, group};

#[test]
fn a_round_is_received_once() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut receiver = group::Receiver::new(&here, 8, Counting::Bits32).unwrap();
    for round in 0..3_u8 {
        let nothing_begun = receiver.recv(Wait::Poll).map(|_| ());
        assert_eq!(nothing_begun, Err(ReceiveError::NotReady));
        let member = receiver.begin().unwrap();
        let mut sender = group::Sender::grow(&there, &member, LONG).unwrap();
        sender.send(0, &[round; 4], LONG).unwrap();
        assert_eq!(receiver.recv(Wait::Poll), Ok(None));
        sender.send_last(4, &[round; 4], LONG).unwrap();
        assert_eq!(receiver.recv(LONG), Ok(Some(&[round; 8][..])));
    }
}

/// A member that nobody asked for is withdrawn when the next round begins: a member that is asked
/// for after that has a part of the new round.
#[test]
fn who_asks_has_a_part_of_the_present_round() {
    let namespace = namespace();
    let named = Options::named("here").in_namespace(&namespace);
    let here = hamlyn::open_with(named, ManagerOptions::default()).unwrap();
    let there = open(&namespace);
    let mut receiver = here.bind_group("group", 8, Counting::Bits32).unwrap();
    receiver.begin_shared(&[4, 4]).unwrap();
    receiver.begin_shared(&[8]).unwrap();
    let mut sender = there.connect_group("here/group", LONG).unwrap();
    sender.send_last(0, &[7; 8], LONG).unwrap();
    assert_eq!(receiver.recv(LONG), Ok(Some(&[7; 8][..])));
}
