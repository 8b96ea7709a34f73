//! The promises of completion queues. A party tells of a completion by its context, its status, its
//! word, 1 if it is a packet that came back, and the text of the error.

use std::collections::BTreeMap;

use super::{LONG_MS, Party, SERVES, Status, World};

/// A completion as a party tells of it: status, word, whether it came back, text.
type End = (i32, u64, bool, String);

/// The next `count` completions of a party, by context, while the party that serves moves packets.
fn ends(serves: &mut Party, asks: &mut Party, count: usize) -> BTreeMap<u64, End> {
    let mut ends = BTreeMap::new();
    for _ in 0..count {
        asks.begins(&format!("next_completion 0 {LONG_MS}"));
        let (status, told) = serves.drives(asks);
        assert_eq!(status, Status::Ok as i32, "{told}");
        let mut words = told.splitn(5, ' ');
        let mut number = || words.next().unwrap().parse::<u64>().unwrap();
        let (context, status, word, returned) = (number(), number(), number(), number());
        let text = words.next().unwrap_or_default().to_owned();
        let end = (status as i32, word, returned != 0, text);
        assert_eq!(ends.insert(context, end), None, "{context} ended twice");
    }
    asks.fails("next_completion 0 0", Status::TimedOut, "nothing came");
    ends
}

fn connect(world: &World, serves: &mut Party) -> Party {
    serves.does("offer_slot 0 0 slot");
    let mut asks = world.party("asks", 0);
    asks.does(&format!("connect_slot 0 {LONG_MS} {SERVES} slot"));
    asks.does("open_completions 0 0 8");
    asks
}

/// Stops a party, and waits until none of its threads runs any more.
fn stop(party: &Party) {
    party.signal("-STOP");
    let tasks = format!("/proc/{}/task", party.child.id());
    let is_stopped = || {
        std::fs::read_dir(&tasks).unwrap().all(|task| {
            let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap();
            // The state is behind the name, which may have spaces.
            stat.rsplit_once(')')
                .is_some_and(|(_, rest)| rest.starts_with(" T"))
        })
    };
    while !is_stopped() {
        std::thread::yield_now();
    }
}

fn fine(word: u64) -> End {
    (Status::Ok as i32, word, false, String::new())
}

pub(super) fn what_is_tracked_ends_with_its_own_number(world: &World, mut serves: Party) {
    let mut asks = connect(world, &mut serves);
    asks.fails("next_completion 0 0", Status::TimedOut, "nothing came");
    asks.does(&format!("send_tracked 0 {LONG_MS} hello 1"));
    asks.does("fence_tracked 0 0 2");
    asks.does(&format!("add_tracked 0 {LONG_MS} 5 3"));
    asks.does(&format!("add_tracked 0 {LONG_MS} 7 {}", u64::MAX));
    let found = ends(&mut serves, &mut asks, 4);
    assert_eq!(found[&1], fine(0));
    assert_eq!(found[&2], fine(0));
    assert_eq!(found[&3], fine(0));
    assert_eq!(found[&u64::MAX], fine(5));
    assert_eq!(serves.does("read_slot 0 0 5"), "hello");
}

pub(super) fn what_fails_ends_with_its_reason(world: &World, mut serves: Party) {
    let mut asks = connect(world, &mut serves);
    asks.does("set_link_context 0 0 99");
    asks.does("track_refusals 0");
    serves.does("revoke_slot 0");
    asks.does(&format!("send_tracked 0 {LONG_MS} late 1"));
    asks.does("fence_tracked 0 0 2");
    let found = ends(&mut serves, &mut asks, 3);
    assert_eq!(found[&1], fine(0));
    for (context, is_returned) in [(2, false), (99, true)] {
        let (status, word, returned, text) = &found[&context];
        assert_eq!((*status, *word), (Status::Refused as i32, 0), "{text}");
        assert_eq!(*returned, is_returned);
        assert!(text.contains("revoked"), "{text}");
    }
    // A peer that is gone ends what waits for it.
    stop(&serves);
    asks.does(&format!("add_tracked 0 {LONG_MS} 5 3"));
    asks.does("fence_tracked 0 0 4");
    serves.is_killed();
    let mut waits = BTreeMap::new();
    while waits.len() < 2 {
        let told = asks.does(&format!("next_completion 0 {LONG_MS}"));
        let mut words = told.split(' ');
        let context: u64 = words.next().unwrap().parse().unwrap();
        waits.insert(context, words.next().unwrap().parse::<i32>().unwrap());
    }
    let lost = Status::PeerLost as i32;
    assert_eq!(waits, BTreeMap::from([(3, lost), (4, lost)]));
}
