//! The promises of mailboxes. Parties tell of a message by its length and a hash, so the lines stay
//! short.

use std::collections::HashMap;

use hamlyn::engine::refusal::Refusal;

use super::{LONG_MS, Party, Status, World};

/// Lengths about the bounds of a cell, of the fast path, and of the cells of one message.
const LENGTHS: [usize; 9] = [0, 1, 8, 56, 57, 500, 1064, 1065, 4096];

/// The bytes of a message of that length.
pub(crate) fn pattern(seed: usize, length: usize) -> Vec<u8> {
    (0..length)
        .map(|at| (seed * 31 + length + at * 7) as u8)
        .collect()
}

/// The hash by which parties tell of bytes: FNV-1a, of 64 bits.
pub(crate) fn hash(bytes: &[u8]) -> u64 {
    let basis = 0xcbf2_9ce4_8422_2325;
    bytes.iter().fold(basis, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The answer to `recv_mail` when that message came from that process.
fn told(process: u32, seed: usize, length: usize) -> String {
    format!("{process} {length} {:x}", hash(&pattern(seed, length)))
}

/// A sender of mail fences, while the party that serves moves packets and asks for no mail.
fn fences(serves: &mut Party, sender: &mut Party) -> (i32, String) {
    sender.begins(&format!("fence_mailbox 0 {LONG_MS}"));
    serves.drives(sender)
}

pub(super) fn mail_of_every_length_arrives_whole_and_in_order(world: &World, mut serves: Party) {
    serves.does("bind_mailbox 0 0 mail 0");
    let mut senders = ["one", "two"].map(|name| world.party(name, 0));
    let mut expected = HashMap::new();
    for (sender, seed) in senders.iter_mut().zip(1..) {
        sender.does(&format!("connect_mailbox 0 {LONG_MS} serves/mail"));
        let longest: usize = sender.does("mail_bytes_max 0").parse().unwrap();
        assert!(longest > 4096, "{longest}");
        let too_long = format!("send_mail 0 {LONG_MS} {seed} {}", longest + 1);
        sender.fails(&too_long, Status::TooLong, &(longest + 1).to_string());
        // Twice, so that nothing that is left of a longer message shows in a shorter one.
        let lengths = [&LENGTHS[..], &[longest]].concat().repeat(2);
        let process = sender.child.id();
        let answers = lengths.iter().map(|length| told(process, seed, *length));
        expected.insert(process.to_string(), answers.collect::<Vec<_>>().into_iter());
        let list: Vec<String> = lengths.iter().map(usize::to_string).collect();
        sender.begins(&format!("send_mail 0 {LONG_MS} {seed} {}", list.join(",")));
    }
    let count: usize = expected.values().map(ExactSizeIterator::len).sum();
    for _mail in 0..count {
        let mail = serves.does(&format!("recv_mail 0 {LONG_MS}"));
        let process = mail.split(' ').next().unwrap();
        let next = expected.get_mut(process).and_then(Iterator::next);
        assert_eq!(Some(mail), next);
    }
    for mut sender in senders {
        assert_eq!(sender.ended().0, Status::Ok as i32);
        let (status, text) = fences(&mut serves, &mut sender);
        assert_eq!(status, Status::Ok as i32, "{text}");
    }
    serves.fails("recv_mail 0 0", Status::TimedOut, "nothing came");
}

pub(super) fn a_mailbox_that_nobody_asks_keeps_messages_and_refuses_beyond_its_bound(
    world: &World,
    mut serves: Party,
) {
    // Room for 16 short messages, of which one sender has half.
    serves.does("bind_mailbox 0 0 mail 1024");
    let reason = Refusal::QueueFull as u32;
    let mut senders = ["one", "two"].map(|name| world.party(name, 0));
    let mut processes = Vec::new();
    for (sender, seed) in senders.iter_mut().zip(1..) {
        sender.does(&format!("connect_mailbox 0 {LONG_MS} serves/mail"));
        let lengths = ["8"; 11].join(",");
        sender.does(&format!("send_mail 0 {LONG_MS} {seed} {lengths}"));
        let (status, text) = fences(&mut serves, sender);
        assert_eq!(status, Status::Refused as i32, "{text}");
        assert!(text.contains("queue is full"), "{text}");
        let kept = 8 * seed;
        let info = format!("{kept} {} {kept} {} {}", 64 * kept, 3 * seed, 3 * seed);
        assert_eq!(serves.does(&format!("mailbox_info 0 0 {reason}")), info);
        processes.push((sender.child.id(), seed));
    }
    for (process, seed) in processes {
        for _kept in 0..8 {
            let mail = serves.does(&format!("recv_mail 0 {LONG_MS}"));
            assert_eq!(mail, told(process, seed, 8));
        }
    }
    serves.fails("recv_mail 0 0", Status::TimedOut, "nothing came");
    // There is room again, and the fence has told all.
    let [mut one, _two] = senders;
    one.does(&format!("send_mail 0 {LONG_MS} 7 9"));
    let (status, text) = fences(&mut serves, &mut one);
    assert_eq!(status, Status::Ok as i32, "{text}");
    let mail = serves.does(&format!("recv_mail 0 {LONG_MS}"));
    assert_eq!(mail, told(one.child.id(), 7, 9));
}

pub(super) fn a_ticket_of_a_mailbox_is_good_until_it_is_taken_back(
    world: &World,
    mut serves: Party,
) {
    serves.does("bind_mailbox 0 0 - 0");
    let mut sender = world.party("one", 0);
    let process = sender.child.id();
    let ticket = serves.does("mailbox_ticket 0");
    sender.does(&format!("grow_mailbox 0 {LONG_MS} {ticket}"));
    sender.does(&format!("send_mail 0 {LONG_MS} 1 100"));
    // Once it has come, it stays.
    let (status, text) = fences(&mut serves, &mut sender);
    assert_eq!(status, Status::Ok as i32, "{text}");
    serves.does("revoke_mailbox 0");
    sender.does(&format!("send_mail 0 {LONG_MS} 1 200"));
    let (status, text) = fences(&mut serves, &mut sender);
    assert_eq!(status, Status::Refused as i32, "{text}");
    assert!(text.contains("wrong key"), "{text}");
    let mail = serves.does(&format!("recv_mail 0 {LONG_MS}"));
    assert_eq!(mail, told(process, 1, 100));
    serves.fails("recv_mail 0 0", Status::TimedOut, "nothing came");
    let ticket = serves.does("mailbox_ticket 0");
    sender.does(&format!("grow_mailbox 1 {LONG_MS} {ticket}"));
    sender.does(&format!("send_mail 1 {LONG_MS} 1 300"));
    let mail = serves.does(&format!("recv_mail 0 {LONG_MS}"));
    assert_eq!(mail, told(process, 1, 300));
}
