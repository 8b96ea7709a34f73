//! Grants and placed packets (decision 0006): what is refused, by name; and random histories
//! beside a reference model.

use hamlyn_engine::grant::{GrantId, GrantRefused, Holder};
use hamlyn_engine::limits::GRANTS_PER_SLOT_MAX;
use hamlyn_engine::limits::USER_METADATA_BYTES;
use hamlyn_engine::memory::{Denied, LinkId, Payload};
use hamlyn_engine::operation::REQUEST_WORDS;
use hamlyn_engine::packet::{Flags, Header};
use hamlyn_engine::receive::Received;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};
use proptest::prelude::*;

use crate::host::{Packet, VecArea, header};
use crate::scene::{KEY, Scene};

const ALICE: LinkId = link(1);
const BOB: LinkId = link(2);

const fn link(index: u32) -> LinkId {
    LinkId {
        index,
        generation: 1,
    }
}

/// A packet that says that `length` bytes were placed at `offset`.
fn placed(scene: &Scene, offset: u64, length: u32) -> Packet {
    let mut packet = Packet::new(header(scene.slot, scene.key, offset), &[], &[]);
    packet.header.length_bytes = length;
    packet.header.flags = Flags::PLACED;
    packet
}

fn take(scene: &mut Scene, holder: Option<LinkId>, packet: &Packet) -> Result<Received, Refusal> {
    scene
        .receiver
        .receive(holder.unwrap_or(link(7)), &packet.header, packet, None)
}

#[test]
fn a_placed_packet_is_announced_and_nothing_is_deposited() {
    let mut scene = Scene::new(Mode::Normal);
    scene
        .receiver
        .grant(scene.slot, 0..64, Holder::Peer(ALICE))
        .unwrap();
    let before = scene.area.bytes.borrow().clone();
    // Bytes that a link brings nevertheless go nowhere.
    let mut packet = placed(&scene, 8, 16);
    packet.data = vec![7; 16];
    assert_eq!(
        take(&mut scene, Some(ALICE), &packet),
        Ok(Received::Complete)
    );
    assert_eq!(*scene.area.bytes.borrow(), before);
    assert!(scene.reader.pop().unwrap().is_some());
}

#[test]
fn placed_packets_without_a_grant_are_refused_by_name() {
    let mut scene = Scene::new(Mode::Normal);
    let packet = placed(&scene, 0, 8);
    assert_eq!(
        take(&mut scene, Some(ALICE), &packet),
        Err(Refusal::NotGranted)
    );
    let grant = scene
        .receiver
        .grant(scene.slot, 32..64, Holder::Peer(ALICE))
        .unwrap();
    let refused = [
        (Some(BOB), 32, 8),
        (None, 32, 8),
        (Some(ALICE), 31, 8),
        (Some(ALICE), 57, 8),
        (Some(ALICE), 64, 0xff),
        (Some(ALICE), 64, 8),
    ];
    for (holder, offset, length) in refused {
        let packet = placed(&scene, offset, length);
        let refusal = take(&mut scene, holder, &packet).unwrap_err();
        let expected = if length == 0xff {
            Refusal::OutOfBounds
        } else {
            Refusal::NotGranted
        };
        assert_eq!(refusal, expected, "{holder:?} {offset} {length}");
    }
    // Who has a grant still needs the key.
    let mut packet = placed(&scene, 32, 8);
    packet.header.key = hamlyn_engine::key::Key::from_bits(KEY + 1);
    assert_eq!(take(&mut scene, Some(ALICE), &packet), Err(Refusal::BadKey));
    let packet = placed(&scene, 32, 32);
    assert!(take(&mut scene, Some(ALICE), &packet).is_ok());
    assert!(scene.receiver.end_grant(grant));
    assert!(!scene.receiver.end_grant(grant));
    assert_eq!(
        take(&mut scene, Some(ALICE), &packet),
        Err(Refusal::NotGranted)
    );
    assert_eq!(scene.receiver.refusals().count(Refusal::NotGranted), 7);
}

/// The grant that covered the last packet is asked first. What takes its place is no better for
/// that.
#[test]
fn a_grant_that_covered_the_last_packet_is_asked_as_any_other() {
    let mut scene = Scene::new(Mode::Normal);
    let first = scene
        .receiver
        .grant(scene.slot, 0..32, Holder::Peer(ALICE))
        .unwrap();
    let second = scene
        .receiver
        .grant(scene.slot, 32..64, Holder::Peer(ALICE))
        .unwrap();
    let (low, high) = (placed(&scene, 0, 8), placed(&scene, 32, 8));
    assert!(take(&mut scene, Some(ALICE), &high).is_ok());
    // Its place is the first one's no more, nor anybody's.
    assert!(scene.receiver.end_grant(first));
    assert!(take(&mut scene, Some(ALICE), &high).is_ok());
    assert!(scene.receiver.end_grant(second));
    let refused = Err(Refusal::NotGranted);
    assert_eq!(take(&mut scene, Some(ALICE), &high), refused);
    // Another holder's grant takes it, over the same bytes.
    scene
        .receiver
        .grant(scene.slot, 32..64, Holder::Peer(BOB))
        .unwrap();
    assert_eq!(take(&mut scene, Some(ALICE), &high), refused);
    assert!(take(&mut scene, Some(BOB), &high).is_ok());
    assert_eq!(take(&mut scene, Some(ALICE), &high), refused);
    assert_eq!(take(&mut scene, Some(BOB), &low), refused);
    assert!(take(&mut scene, Some(BOB), &high).is_ok());
}

#[test]
fn all_that_are_linked_may_place_where_all_are_granted_and_nobody_where_others_only_read() {
    let mut scene = Scene::new(Mode::Normal);
    let (slot, reading) = (scene.slot, Holder::Nobody);
    let all = scene.receiver.grant(slot, 0..32, Holder::Linked).unwrap();
    scene.receiver.grant(slot, 32..64, reading).unwrap();
    let (written, read) = (placed(&scene, 0, 32), placed(&scene, 32, 8));
    for peer in [ALICE, BOB, link(7)] {
        assert!(take(&mut scene, Some(peer), &written).is_ok());
        let refused = take(&mut scene, Some(peer), &read);
        assert_eq!(refused, Err(Refusal::NotGranted));
        // One peer that is gone ends nothing for the others.
        scene.receiver.end_grants_of(peer);
    }
    assert!(scene.receiver.end_grant(all));
    let refused = take(&mut scene, Some(ALICE), &written);
    assert_eq!(refused, Err(Refusal::NotGranted));
}

/// A packet that came over a network.
#[derive(Clone)]
struct FromAfar(Packet);

impl Payload<VecArea> for FromAfar {
    fn shares_memory(&self) -> bool {
        false
    }

    fn metadata(&self, into: &mut [u8; USER_METADATA_BYTES], length_bytes: usize) {
        self.0.metadata(into, length_bytes);
    }

    fn words(&self) -> [u64; REQUEST_WORDS] {
        self.0.words()
    }

    fn deposit(&self, area: &VecArea, offset: u64) -> Result<(), Denied> {
        self.0.deposit(area, offset)
    }

    fn copy_to(&self, into: &mut [u8]) -> Result<(), Denied> {
        self.0.copy_to(into)
    }
}

#[test]
fn peers_of_other_hosts_place_nothing() {
    let mut scene = Scene::new(Mode::Normal);
    scene
        .receiver
        .grant(scene.slot, 0..64, Holder::Linked)
        .unwrap();
    scene
        .receiver
        .grant(scene.slot, 64..128, Holder::Peer(ALICE))
        .unwrap();
    for offset in [0, 64] {
        let packet = placed(&scene, offset, 8);
        let from_afar = FromAfar(packet.clone());
        let refused = scene
            .receiver
            .receive(ALICE, &packet.header, &from_afar, None);
        assert_eq!(refused, Err(Refusal::NotGranted));
        assert!(take(&mut scene, Some(ALICE), &packet).is_ok());
    }
}

#[test]
fn paranoid_slots_never_grant_nor_believe() {
    for mode in [Mode::Paranoid, Mode::ParanoidOneShot] {
        let mut scene = Scene::new(mode);
        let refused = scene
            .receiver
            .grant(scene.slot, 32..96, Holder::Peer(ALICE));
        assert_eq!(refused, Err(GrantRefused::Paranoid(scene.slot)));
        let packet = placed(&scene, 40, 8);
        assert_eq!(
            take(&mut scene, Some(ALICE), &packet),
            Err(Refusal::NotGranted)
        );
        // The entry is not spent by it.
        let good = Packet::new(header(scene.slot, scene.key, 40), &[], &[1; 8]);
        assert_eq!(take(&mut scene, Some(ALICE), &good), Ok(Received::Complete));
    }
    // The same is granted in normal mode: what is refused above is refused for the mode.
    let mut scene = Scene::new(Mode::Normal);
    assert!(
        scene
            .receiver
            .grant(scene.slot, 32..96, Holder::Peer(ALICE))
            .is_ok()
    );
}

#[test]
fn what_cannot_be_granted_is_refused() {
    let mut scene = Scene::new(Mode::Normal);
    let slot = scene.slot;
    #[expect(clippy::reversed_empty_ranges, reason = "that is refused")]
    for range in [0..0, 0..129, 128..129, 5..2, u64::MAX..0] {
        let refused = scene.receiver.grant(slot, range, Holder::Peer(ALICE));
        assert!(matches!(refused, Err(GrantRefused::OutsideSlot { .. })));
    }
    for at in 0..GRANTS_PER_SLOT_MAX as u64 {
        scene
            .receiver
            .grant(slot, at..at + 1, Holder::Peer(ALICE))
            .unwrap();
        let again = scene.receiver.grant(slot, at..at + 1, Holder::Peer(BOB));
        assert!(matches!(
            again,
            Err(GrantRefused::Overlaps { .. } | GrantRefused::TooMany)
        ));
    }
    assert_eq!(
        scene.receiver.grant(slot, 100..101, Holder::Peer(ALICE)),
        Err(GrantRefused::TooMany)
    );
    assert_eq!(
        scene.receiver.slot_info(slot).unwrap().grants,
        GRANTS_PER_SLOT_MAX
    );
    scene.receiver.end_grants_of(ALICE);
    assert_eq!(scene.receiver.slot_info(slot).unwrap().grants, 0);
    scene.receiver.close_slot(slot).unwrap();
    assert_eq!(
        scene.receiver.grant(slot, 0..1, Holder::Peer(ALICE)),
        Err(GrantRefused::NotOpen(slot))
    );
}

/// What the model remembers of a grant.
type Known = (GrantId, usize, Holder, std::ops::Range<u64>);

#[derive(Clone, Debug)]
enum Step {
    Grant(usize, u64, u64, Holder),
    End(usize),
    Lose(LinkId),
    Reopen(usize),
    Place(usize, u64, u32, LinkId),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let holder = || prop_oneof![Just(ALICE), Just(BOB)];
    let holders = || {
        prop_oneof![
            4 => holder().prop_map(Holder::Peer),
            1 => Just(Holder::Linked),
            1 => Just(Holder::Nobody),
        ]
    };
    let slot = || 0..2_usize;
    proptest::collection::vec(
        prop_oneof![
            4 => (slot(), 0..130_u64, 0..80_u64, holders()).prop_map(|(s, a, l, h)| Step::Grant(s, a, l, h)),
            1 => (0..8_usize).prop_map(Step::End),
            1 => holder().prop_map(Step::Lose),
            1 => slot().prop_map(Step::Reopen),
            8 => (slot(), 0..130_u64, 0..40_u32, holder()).prop_map(|(s, a, l, h)| Step::Place(s, a, l, h)),
        ],
        1..80,
    )
}

proptest! {
    /// A placed packet is let in if and only if one grant in force of its sender covers it.
    #[test]
    fn random_histories_agree_with_the_model(steps in steps()) {
        const BYTES: u64 = 128;
        let mut receiver = Scene::new(Mode::Normal).receiver;
        let area = VecArea::new(BYTES as usize);
        let open = |receiver: &mut hamlyn_engine::receive::Receiver<VecArea>| {
            receiver.open_slot(SlotOptions {
                area: area.clone(),
                base: 0,
                length_bytes: BYTES,
                key: hamlyn_engine::key::Key::from_bits(KEY),
                rights: Rights::WRITE,
                mode: Mode::Normal,
                metadata: Some(hamlyn_engine::metadata::MetadataArea::new(1).unwrap()),
                queue: None,
                counting: hamlyn_engine::counting::Counting::Bits32,
            }).unwrap()
        };
        let mut slots = [open(&mut receiver), open(&mut receiver)];
        let mut known: Vec<Known> = Vec::new();
        let mut ended: Vec<GrantId> = Vec::new();
        for step in steps {
            match step {
                Step::Grant(slot, start, length, holder) => {
                    let range = start..start + length;
                    let fits = length > 0 && range.end <= BYTES;
                    let same = known.iter().filter(|(_, of, ..)| *of == slot);
                    let overlaps = same.clone().any(|(.., other)| start < other.end && other.start < range.end);
                    let room = same.count() < GRANTS_PER_SLOT_MAX;
                    let granted = receiver.grant(slots[slot], range.clone(), holder);
                    prop_assert_eq!(granted.is_ok(), fits && !overlaps && room);
                    if let Ok(id) = granted {
                        prop_assert!(!ended.contains(&id) && known.iter().all(|(other, ..)| *other != id));
                        known.push((id, slot, holder, range));
                    }
                }
                Step::End(at) if at < known.len() => {
                    let (id, ..) = known.remove(at);
                    prop_assert!(receiver.end_grant(id));
                    ended.push(id);
                }
                Step::End(_) => {
                    for id in &ended {
                        prop_assert!(!receiver.end_grant(*id));
                    }
                }
                Step::Lose(peer) => {
                    receiver.end_grants_of(peer);
                    let holder = Holder::Peer(peer);
                    ended.extend(known.iter().filter(|(_, _, of, _)| *of == holder).map(|(id, ..)| *id));
                    known.retain(|(_, _, of, _)| *of != holder);
                }
                Step::Reopen(slot) => {
                    receiver.close_slot(slots[slot]).unwrap();
                    slots[slot] = open(&mut receiver);
                    ended.extend(known.iter().filter(|(_, of, ..)| *of == slot).map(|(id, ..)| *id));
                    known.retain(|(_, of, ..)| *of != slot);
                }
                Step::Place(slot, offset, length, holder) => {
                    let header = Header {
                        length_bytes: length,
                        flags: Flags::PLACED,
                        ..header(slots[slot], KEY, offset)
                    };
                    let packet = Packet { header, metadata: Vec::new(), data: Vec::new() };
                    let end = offset + u64::from(length);
                    let covered = known.iter().any(|(_, of, by, range)| {
                        *of == slot && by.includes(holder) && range.start <= offset && end <= range.end
                    });
                    let expected = if end > BYTES {
                        Err(Refusal::OutOfBounds)
                    } else if covered {
                        Ok(Received::Complete)
                    } else {
                        Err(Refusal::NotGranted)
                    };
                    prop_assert_eq!(receiver.receive(holder, &packet.header, &packet, None), expected);
                }
            }
        }
    }
}
