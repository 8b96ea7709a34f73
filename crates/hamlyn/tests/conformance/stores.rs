//! Signaling stores (decision 0037): the target knows how many bytes came, from whom, and that they
//! are in their place.

use hamlyn::{Area, NewSlot, SendError, Slot, Target, Wait};

use crate::World;
use crate::low_level::target;
use crate::peer::{Peer, pattern};

const PART: u64 = 400 << 10;
/// Sizes around those of cells, packets and several of each.
const SIZES: [usize; 14] = [
    1, 8, 16, 17, 24, 25, 64, 255, 4096, 8192, 65_535, 65_537, 100_000, 0,
];

fn total() -> u64 {
    SIZES.iter().map(|size| *size as u64).sum()
}

/// A slot with a part and a count for each of some sources.
fn open(peer: &Peer, sources: usize) -> (Area, Slot) {
    peer.with(|manager| {
        let mut interface = manager.session();
        let area = interface.allocate(PART * sources as u64).unwrap();
        let new = NewSlot::new(&area).counting_stores(sources);
        let slot = interface.open_slot(new).unwrap();
        (area, slot)
    })
}

fn store(peer: &Peer, to: &Target, offset: u64, bytes: &[u8]) -> Result<(), SendError> {
    peer.with(|manager| {
        let (terminus, wait) = (manager.terminus(), Wait::millis(20_000));
        let mut interface = manager.session();
        interface.store(terminus, to, offset, bytes, wait)
    })
}

/// Waits until so many bytes were counted.
fn counted(peer: &Peer, slot: &Slot, entry: u16, bytes: u64) {
    peer.until("the count", |manager, _| {
        manager.session().poll();
        let stored = slot.stored_bytes(entry).unwrap();
        assert!(stored <= bytes, "{stored} bytes of {bytes}");
        (stored == bytes).then_some(())
    });
}

pub(crate) fn stores_are_counted_apart_and_are_in_their_place(world: &World) {
    let source = |peer: &mut Peer, number: u64| {
        let to = target(peer, &peer.get_ticket(&format!("part {number}")));
        let mut at = 0;
        for (turn, size) in SIZES.into_iter().enumerate() {
            let bytes = pattern(number * 100 + turn as u64, size);
            store(peer, &to, at, &bytes).unwrap();
            at += size as u64;
        }
        peer.flush();
        peer.get("through");
    };
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, 2);
            for number in 0..2 {
                let part = slot.ticket(number, u64::from(number) * PART, PART).unwrap();
                peer.put_ticket(&format!("part {number}"), &part);
            }
            for number in 0..2 {
                counted(peer, &slot, number, total());
                let mut at = u64::from(number) * PART;
                for (turn, size) in SIZES.into_iter().enumerate() {
                    let mut found = vec![0; size];
                    area.read_at(at, &mut found).unwrap();
                    let expected = pattern(u64::from(number) * 100 + turn as u64, size);
                    assert!(found == expected, "{size} bytes of source {number}");
                    at += size as u64;
                }
            }
            assert_eq!(slot.stored_bytes(2), None);
            let refusals = peer.with(|manager| manager.session().refusals());
            assert_eq!(refusals.total(), 0);
            peer.put("through", &[]);
        },
        &|peer| source(peer, 0),
        &|peer| source(peer, 1),
    ]);
}

pub(crate) fn stores_that_cannot_be_counted_are_refused(world: &World) {
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, 1);
            let narrow = peer.with(|manager| {
                let new = NewSlot::new(&area).entries(1);
                manager.session().open_slot(new).unwrap()
            });
            peer.put_ticket("fast", &slot.fast_ticket(0, 64).unwrap());
            peer.put_ticket("narrow", &narrow.ticket(0, 0, 64).unwrap());
            peer.put_ticket("good", &slot.ticket(0, 0, 64).unwrap());
            counted(peer, &slot, 0, 64);
            peer.put("through", &[]);
        },
        &|peer| {
            for key in ["fast", "narrow"] {
                let to = target(peer, &peer.get_ticket(key));
                let refused = store(peer, &to, 0, &[1; 8]).unwrap_err();
                assert!(matches!(refused, SendError::NotCounted { .. }), "{refused}");
            }
            let to = target(peer, &peer.get_ticket("good"));
            for (offset, size) in [(57, 8), (65, 0), (u64::MAX, 1), (0, 65)] {
                let refused = store(peer, &to, offset, &vec![1; size]).unwrap_err();
                assert!(matches!(refused, SendError::OutsideTicket(_)), "{refused}");
            }
            store(peer, &to, 64, &[]).unwrap();
            store(peer, &to, 0, &[2; 64]).unwrap();
            peer.flush();
            peer.get("through");
        },
    ]);
}

#[allow(
    dead_code,
    reason = "peers that share an interface poll it for each other"
)]
/// With a network processor that receives, the target's program looks at its memory and does
/// nothing else.
pub(crate) fn a_target_that_only_looks_sees_the_count(world: &World) {
    world.run(&[
        &|peer| {
            let (area, slot) = open(peer, 1);
            peer.put_ticket("ticket", &slot.ticket(0, 0, PART).unwrap());
            peer.linked();
            peer.put("linked", &[]);
            peer.until("the count", |_, _| {
                (slot.stored_bytes(0) == Some(8 * 1000)).then_some(())
            });
            for number in 0..1000 {
                assert_eq!(area.load_u64(8 * number), Ok(number + 1));
            }
            peer.put("through", &[]);
        },
        &|peer| {
            let to = target(peer, &peer.get_ticket("ticket"));
            peer.get("linked");
            for number in 0..1000_u64 {
                store(peer, &to, 8 * number, &(number + 1).to_le_bytes()).unwrap();
            }
            peer.with(|manager| manager.session().flush(Wait::millis(5_000)))
                .unwrap();
            peer.get("through");
        },
    ]);
}
