//! A peer that writes cells of single packets as it likes, with its own hands: the fast path of
//! reception lets in what the general path lets in, and refuses by the same names.

use std::sync::atomic::Ordering;

use crate::support::raw_link::RawLink;
use crate::support::{namespace, open, until};
use hamlyn::engine::key::Key;
use hamlyn::engine::limits::FAST_INDEX;
use hamlyn::engine::refusal::Refusal;
use hamlyn::engine::slot::Rights;
use hamlyn::host::process::ProcessHost;
use hamlyn::one_sided::{Change, InitiatorOptions};
use hamlyn::region::SharedOptions;
use hamlyn::{Area, LinkEnd, Manager, NewSlot, Queue, Slot, Wait};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_link::LinkFault;
use hamlyn_link::cell::{Data, Metadata, Placement, encode};

const AREA_BYTES: u64 = 8192;
const DATA_BYTES: u32 = 1000;
/// Where in the payload arena the data lie.
const PLACE: u32 = 64;

struct Scene {
    victim: Manager<ProcessHost>,
    queue: Queue,
    area: Area,
    slot: Slot,
    link: RawLink,
    cells: usize,
}

impl Scene {
    fn new() -> Self {
        Self::with_rights(Rights::WRITE)
    }

    fn with_rights(rights: Rights) -> Self {
        let namespace = namespace();
        let victim = open(&namespace);
        let area = Area::shared(SharedOptions::reserved(AREA_BYTES)).unwrap();
        let mut queue = victim.session().open_queue(64).unwrap();
        let slot = victim
            .session()
            .open_slot(NewSlot::new(&area).queue(&queue).entries(2).rights(rights))
            .unwrap();
        let destination = slot.fast_ticket(0, 1).unwrap().destination;
        let link = RawLink::connect(&namespace, destination, 0xBAD).unwrap();
        until("the link", || {
            victim.session().poll();
            victim.session().peers().next().map(|_| ())
        });
        // Found empty, so the next may be handed over.
        assert_eq!(victim.session().rcv(&mut queue).unwrap(), None);
        Self {
            victim,
            queue,
            area,
            slot,
            link,
            cells: 0,
        }
    }

    fn header(&self) -> Header {
        let ticket = self.slot.fast_ticket(0, AREA_BYTES).unwrap();
        Header {
            slot: ticket.slot,
            metadata_index: FAST_INDEX,
            key: ticket.key,
            offset: 128,
            length_bytes: DATA_BYTES,
            word: 5,
            metadata_length_bytes: 0,
            flags: Flags::NONE,
            kind: Kind::WRITE,
        }
    }

    /// Writes the next cell, as a sender does.
    fn write(&mut self, header: &Header, place: u32) {
        let data = if header.flags.is_placed() {
            Data::Placed
        } else {
            Data::PayloadArena(place)
        };
        let metadata = Metadata::Word(header.word);
        let mut cell = encode(header, &Placement { data, metadata });
        let cells_of_ring = self.cells_of_ring();
        let (generation, place) = (self.cells / cells_of_ring, self.cells % cells_of_ring);
        // The flag of a cell is the number of its generation, the first one's is 1.
        cell[0] |= generation as u64 + 1;
        let at = self.link.to_victim_geometry.cells_offset() + 64 * place;
        for word in (0..8).rev() {
            let to = self.link.to_victim.atomic_u64(at + 8 * word).unwrap();
            to.store(cell[word], Ordering::Release);
        }
        self.cells += 1;
    }

    fn store(&self, byte: u8) {
        self.store_bytes(&vec![byte; DATA_BYTES as usize]);
    }

    fn store_bytes(&self, data: &[u8]) {
        let at = self.link.to_victim_geometry.arena_offset() + PLACE as usize;
        self.link.to_victim.copy_in(at, data).unwrap();
    }

    fn cells_of_ring(&self) -> usize {
        self.link.to_victim_geometry.cells() as usize
    }

    fn landed(&self) -> Vec<u8> {
        let mut bytes = vec![0; AREA_BYTES as usize];
        self.area.read_at(0, &mut bytes).unwrap();
        bytes
    }

    fn refused(&mut self, header: &Header, reason: Refusal) {
        let before = self.victim.session().refusals().count(reason);
        let landed = self.landed();
        self.write(header, PLACE);
        assert_eq!(
            self.victim.session().rcv(&mut self.queue).unwrap(),
            None,
            "{reason:?}"
        );
        assert_eq!(
            self.victim.session().refusals().count(reason),
            before + 1,
            "{reason:?}"
        );
        assert_eq!(self.landed(), landed, "{reason:?}");
    }

    fn delivered(&mut self, header: &Header, byte: u8) {
        self.store(byte);
        self.write(header, PLACE);
        let notification = self.victim.session().rcv(&mut self.queue).unwrap().unwrap();
        assert_eq!(notification.metadata_index, header.metadata_index);
        let from = header.offset as usize;
        let bytes = &self.landed()[from..from + header.length_bytes as usize];
        assert!(bytes.iter().all(|&landed| landed == byte));
    }
}

#[test]
fn single_packets_are_refused_by_the_names_that_others_have() {
    let mut scene = Scene::new();
    let right = scene.header();
    let named = Header {
        metadata_index: 1,
        word: 0x77,
        metadata_length_bytes: 8,
        ..right
    };
    let placed = Header {
        flags: Flags::PLACED,
        ..right
    };
    let (index, generation) = (right.slot.index(), right.slot.generation());
    let lies = [
        (
            Header {
                key: Key::from_bits(!right.key.to_bits()),
                ..right
            },
            Refusal::BadKey,
        ),
        (
            Header {
                slot: SlotName::new(index, generation.wrapping_add(1)),
                ..right
            },
            Refusal::SlotClosed,
        ),
        (
            Header {
                slot: SlotName::new(index | 0x4000, generation),
                ..right
            },
            Refusal::NoSuchSlot,
        ),
        (
            Header {
                offset: AREA_BYTES - u64::from(DATA_BYTES) + 1,
                ..right
            },
            Refusal::OutOfBounds,
        ),
        (
            Header {
                offset: u64::MAX - 8,
                ..named
            },
            Refusal::OutOfBounds,
        ),
        (
            Header {
                metadata_index: 2,
                ..named
            },
            Refusal::NoMetadataEntry,
        ),
        (placed, Refusal::NotGranted),
        (
            Header {
                length_bytes: u32::MAX,
                ..placed
            },
            Refusal::OutOfBounds,
        ),
    ];
    for (round, (lie, reason)) in lies.into_iter().enumerate() {
        scene.refused(&lie, reason);
        // Who was refused is judged anew.
        scene.delivered(&right, round as u8 + 1);
        scene.delivered(&named, round as u8 + 101);
    }
    // A delta that counts is no message alone.
    let part = Header {
        metadata_index: 1,
        word: 3,
        ..right
    };
    scene.write(&part, PLACE);
    assert_eq!(scene.victim.session().rcv(&mut scene.queue).unwrap(), None);
    let slot = scene.slot;
    scene.victim.session().close_slot(slot).unwrap();
}

#[test]
fn an_offset_outside_the_payload_arena_ends_the_link() {
    for case in 0..4 {
        let mut scene = Scene::new();
        let arena_bytes = scene.link.to_victim_geometry.arena_bytes();
        // Behind it; across its end; not on a line; as far away as can be said.
        let place = [arena_bytes, arena_bytes - 960, 32, !63][case];
        let right = scene.header();
        scene.delivered(&right, 9);
        let landed = scene.landed();
        let link = scene.victim.session().peers().next().unwrap().0;
        scene.write(&right, place);
        let taken = scene.victim.session().rcv(&mut scene.queue);
        assert!(!matches!(taken, Ok(Some(_))), "{place}");
        let end = scene.victim.session().link_end(link);
        assert_eq!(end, Some(LinkEnd::Fault(LinkFault::Placement)), "{place}");
        assert_eq!(scene.landed(), landed, "{place}");
    }
}

/// A request to read eight bytes whose answer goes to a slot that nobody has.
fn request(scene: &Scene, kind: Kind) -> Header {
    Header {
        kind,
        offset: 64,
        length_bytes: 16,
        ..scene.header()
    }
}

#[test]
fn a_peer_that_asks_and_takes_no_answer_keeps_nobody_waiting() {
    let mut scene = Scene::with_rights(Rights::ALL);
    let words = [5_u64, 8 << 32].map(u64::to_le_bytes).concat();
    scene.store_bytes(&words);
    let before = scene.landed();
    let (read, refused) = (request(&scene, Kind::READ), Refusal::TooManyRequests);
    // Answers fill the ring of the peer, which takes none, and then its line; what it asks beyond
    // that is refused.
    let mut asked = 0;
    while scene.victim.session().refusals().count(refused) == 0 {
        scene.write(&read, PLACE);
        assert_eq!(scene.victim.session().rcv(&mut scene.queue).unwrap(), None);
        asked += 1;
        assert!(asked < 2 * scene.cells_of_ring(), "it is never refused");
    }
    let refusals = scene.victim.session().refusals();
    assert_eq!(refusals.total(), 1, "{refusals:?}");
    assert_eq!(scene.landed(), before);
    // Others are served, and so is this peer's own message.
    let loopback = scene.slot.fast_ticket(0, 4096).unwrap();
    let mut interface = scene.victim.session();
    let to = interface.target(&loopback, Wait::millis(10_000)).unwrap();
    let mut initiator = interface
        .open_initiator(to, InitiatorOptions::default())
        .unwrap();
    for number in 0..1_000 {
        let added = interface.change(&mut initiator, 0, Change::Add, 1, Wait::millis(10_000));
        assert_eq!(added, Ok(number));
    }
    drop(interface);
    let message = scene.header();
    scene.delivered(&message, 9);
}

#[test]
fn requests_that_nobody_may_make_are_refused_by_name() {
    let mut scene = Scene::with_rights(Rights::WRITE);
    let words = [5_u64, 8 << 32, 0].map(u64::to_le_bytes).concat();
    scene.store_bytes(&words);
    let read = request(&scene, Kind::READ);
    scene.refused(&read, Refusal::NoRight);
    let bad_key = Header {
        key: Key::from_bits(!read.key.to_bits()),
        ..read
    };
    scene.refused(&bad_key, Refusal::BadKey);
    let beyond = Header {
        offset: u64::MAX,
        ..read
    };
    scene.refused(&beyond, Refusal::NoRight);
    for (kind, reason) in [
        (0x3f, Refusal::UnknownKind),
        (0x50, Refusal::NoRight),
        (0x55, Refusal::BadRequest),
        (0x5f, Refusal::NoSuchOperation),
        (0x60, Refusal::UnknownKind),
        (2, Refusal::BadMetadata),
        (4, Refusal::UnknownKind),
    ] {
        let header = request(&scene, Kind(kind));
        scene.refused(&header, reason);
    }
    let placed = Header {
        flags: Flags::PLACED,
        ..read
    };
    scene.refused(&placed, Refusal::UnknownFlag);
}
