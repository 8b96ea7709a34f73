//! Sharing the links (Hamlyn 2.3, 2.8): equal bandwidth, bounded waiting, priorities,
//! and no terminus that holds up, or is held up by, one that uses another link.

use crate::host::{PEER, Packet, VecArea, Wires, header, message, pattern};
use hamlyn_engine::counting::{Counting, Share};
use hamlyn_engine::key::Key;
use hamlyn_engine::memory::LinkId;
use hamlyn_engine::metadata::MetadataArea;
use hamlyn_engine::packet::{Header, SlotName};
use hamlyn_engine::receive::{Received, Receiver};
use hamlyn_engine::slot::{Mode, Rights, SlotOptions};
use hamlyn_engine::terminus::{GatherPiece, PostError, SendTag, TerminusId, TerminusOptions};
use hamlyn_engine::transmit::{Message, SendProgress, Transmitter};

const FLOOD_BYTES: usize = 64 * 400;

struct Flooder {
    terminus: TerminusId,
    tag: SendTag,
    link: LinkId,
}

/// A terminus with 400 packets to send; the metadata index of its packets says whose they are.
fn flooder(
    transmitter: &mut Transmitter<VecArea>,
    wires: &mut Wires,
    link: LinkId,
    number: u16,
    priority: u8,
) -> Flooder {
    let terminus = transmitter
        .open_terminus(TerminusOptions {
            priority,
            ..TerminusOptions::default()
        })
        .unwrap();
    let tag = transmitter
        .bind_area(terminus, VecArea::new(FLOOD_BYTES), 0, FLOOD_BYTES as u64)
        .unwrap();
    let flooder = Flooder {
        terminus,
        tag,
        link,
    };
    flood(transmitter, wires, &flooder, number);
    flooder
}

fn flood(
    transmitter: &mut Transmitter<VecArea>,
    wires: &mut Wires,
    flooder: &Flooder,
    number: u16,
) {
    let piece = GatherPiece {
        tag: flooder.tag,
        offset: 0,
        length_bytes: FLOOD_BYTES as u64,
    };
    transmitter
        .post_gather(
            flooder.terminus,
            &from(flooder.link, number),
            &[],
            &[piece],
            wires,
        )
        .unwrap();
}

fn from(link: LinkId, number: u16) -> Message {
    let plain = message(link);
    Message {
        header: Header {
            metadata_index: number,
            ..plain.header
        },
        ..plain
    }
}

/// Gives each link so much room, lets the transmitter send, and says whose packets went.
fn round(transmitter: &mut Transmitter<VecArea>, wires: &mut Wires, room: usize) -> Vec<u16> {
    let links: Vec<_> = (0..wires.wires.len() as u32)
        .map(|index| LinkId {
            index,
            generation: 0,
        })
        .collect();
    links.iter().for_each(|&link| wires.wire(link).room = room);
    transmitter.pump(wires, usize::MAX);
    links
        .iter()
        .flat_map(|&link| wires.drain(link))
        .map(|packet| packet.header.metadata_index)
        .collect()
}

fn counts(sent: &[u16], termini: usize) -> Vec<usize> {
    (0..termini)
        .map(|number| {
            sent.iter()
                .filter(|&&from| usize::from(from) == number)
                .count()
        })
        .collect()
}

#[test]
fn floods_on_one_link_get_equal_bandwidth_whatever_room_it_has_at_a_time() {
    for room in [1, 2, 3, 5, 7, 16] {
        let mut transmitter = Transmitter::new();
        let (mut wires, link) = Wires::with_room(64, 0);
        for number in 0..5 {
            flooder(&mut transmitter, &mut wires, link, number, 1);
        }
        let mut sent = Vec::new();
        for _ in 0..100 {
            sent.extend(round(&mut transmitter, &mut wires, room));
            let counts = counts(&sent, 5);
            assert!(
                counts.iter().max().unwrap() - counts.iter().min().unwrap() <= 1,
                "room {room}: {counts:?}"
            );
        }
        assert_eq!(sent.len(), 100 * room);
    }
}

#[test]
fn priorities_weigh_bandwidth_and_starve_nobody() {
    let weights = [1_u8, 2, 5];
    for room in [1, 2, 3, 8, 20] {
        let mut transmitter = Transmitter::new();
        let (mut wires, link) = Wires::with_room(64, 0);
        for (number, &priority) in weights.iter().enumerate() {
            flooder(&mut transmitter, &mut wires, link, number as u16, priority);
        }
        let mut sent = Vec::new();
        while sent.len() < 480 {
            sent.extend(round(&mut transmitter, &mut wires, room));
        }
        for turn in sent[..480].chunks(8) {
            assert_eq!(counts(turn, 3), [1, 2, 5], "room {room}");
        }
    }
}

#[test]
fn termini_of_other_links_do_not_spoil_the_turns_of_one() {
    // Two termini share the first link; a third on a link of its own sends between them.
    let mut transmitter = Transmitter::new();
    let mut wires = Wires::default();
    let (shared, own) = (wires.add(64, 0), wires.add(64, 0));
    for (number, link) in [(0, shared), (1, shared), (2, own)] {
        flooder(&mut transmitter, &mut wires, link, number, 1);
    }
    let mut sent = Vec::new();
    for _ in 0..200 {
        sent.extend(round(&mut transmitter, &mut wires, 1));
    }
    assert_eq!(counts(&sent, 3), [100, 100, 200]);
}

#[test]
fn full_link_of_one_terminus_holds_up_nobody_on_another() {
    let mut transmitter = Transmitter::new();
    let mut wires = Wires::default();
    let (full, free) = (wires.add(64, 0), wires.add(1_024, usize::MAX));
    for number in 0..3 {
        flooder(&mut transmitter, &mut wires, full, number, 3);
    }
    let other = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    // Of whatever size and manner.
    for length in [1, 64, 128, 129, 1_024] {
        let posted = transmitter
            .post(other, &from(free, 9), &[], &pattern(1, length), &mut wires)
            .unwrap();
        assert!(posted.sent, "{length} bytes");
        assert_eq!(wires.drain(free)[0].data, pattern(1, length));
    }
    let tag = transmitter
        .bind_area(other, VecArea::new(5_000), 0, 5_000)
        .unwrap();
    let piece = GatherPiece {
        tag,
        offset: 0,
        length_bytes: 5_000,
    };
    assert!(
        transmitter
            .post_gather(other, &from(free, 9), &[], &[piece], &mut wires)
            .unwrap()
            .sent
    );
    let data = pattern(2, 5_000);
    let mut segmenter = transmitter
        .begin_streaming(other, &from(free, 9), &[], 5_000, &wires)
        .unwrap();
    assert_eq!(
        transmitter.continue_streaming(other, free, &mut segmenter, &[], &data, &mut wires),
        Ok(SendProgress::Sent)
    );
    assert!(wires.wire(full).packets.is_empty());
}

#[test]
fn short_message_waits_for_one_turn_of_every_other_terminus_at_most() {
    for (room, priority) in [(1, 1_u8), (1, 4), (3, 4), (10, 2)] {
        let mut transmitter = Transmitter::new();
        let (mut wires, link) = Wires::with_room(64, 0);
        let others = 6;
        for number in 0..others {
            flooder(&mut transmitter, &mut wires, link, number, priority);
        }
        let short = transmitter
            .open_terminus(TerminusOptions::default())
            .unwrap();
        for attempt in 0..20 {
            // At any moment in the turns of the others.
            for _ in 0..attempt {
                round(&mut transmitter, &mut wires, 1);
            }
            let posted = transmitter
                .post(short, &from(link, 99), &[], &[1], &mut wires)
                .unwrap();
            assert!(!posted.sent);
            let mut before = 0;
            loop {
                let sent = round(&mut transmitter, &mut wires, room);
                let own = sent.iter().position(|&from| from == 99);
                before += own.unwrap_or(sent.len());
                assert!(
                    before <= usize::from(others) * usize::from(priority),
                    "waited for {before} packets"
                );
                if own.is_some() {
                    break;
                }
            }
        }
    }
}

#[test]
fn a_long_streaming_send_takes_turns_with_the_queues() {
    let mut transmitter = Transmitter::new();
    let (mut wires, link) = Wires::with_room(64, 0);
    for number in 0..3 {
        flooder(&mut transmitter, &mut wires, link, number, 1);
    }
    let own = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    let data = pattern(1, 64 * 100);
    let mut segmenter = transmitter
        .begin_streaming(own, &from(link, 3), &[], data.len() as u64, &wires)
        .unwrap();
    let mut sent = Vec::new();
    for _ in 0..200 {
        wires.wire(link).room = 1;
        let state = transmitter
            .continue_streaming(own, link, &mut segmenter, &[], &data, &mut wires)
            .unwrap();
        assert_eq!(state, SendProgress::Full);
        sent.extend(
            wires
                .drain(link)
                .iter()
                .map(|packet| packet.header.metadata_index),
        );
    }
    assert_eq!(counts(&sent, 4), [50; 4]);
}

#[test]
fn post_at_hand_does_not_jump_the_queues() {
    let mut transmitter = Transmitter::new();
    let (mut wires, link) = Wires::with_room(64, 0);
    flooder(&mut transmitter, &mut wires, link, 0, 1);
    let hasty = transmitter
        .open_terminus(TerminusOptions::default())
        .unwrap();
    let mut sent = Vec::new();
    for _ in 0..100 {
        wires.wire(link).room = 1;
        let posted = transmitter.post(hasty, &from(link, 1), &[], &[1], &mut wires);
        assert!(posted.is_ok() || posted == Err(PostError::QueueFull));
        transmitter.pump(&mut wires, usize::MAX);
        sent.extend(
            wires
                .drain(link)
                .iter()
                .map(|packet| packet.header.metadata_index),
        );
    }
    assert_eq!(counts(&sent, 2), [50, 50]);
}

#[test]
fn pump_sends_no_more_than_it_was_asked_to() {
    let mut transmitter = Transmitter::new();
    let (mut wires, link) = Wires::with_room(64, 0);
    for number in 0..3 {
        flooder(&mut transmitter, &mut wires, link, number, 1);
    }
    wires.wire(link).room = usize::MAX;
    let mut sent = Vec::new();
    for asked in [0, 1, 1, 1, 5, 4] {
        let pumped = transmitter.pump(&mut wires, asked);
        assert_eq!((pumped.packets, pumped.waiting), (asked, true));
        sent.extend(
            wires
                .drain(link)
                .iter()
                .map(|packet| packet.header.metadata_index),
        );
    }
    assert_eq!(counts(&sent, 3), [4; 3]);
}

/// One end of a connection: both halves, one after the other, on one thread.
struct End {
    transmitter: Transmitter<VecArea>,
    receiver: Receiver<VecArea>,
    wires: Wires,
    flooders: Vec<Flooder>,
    area: VecArea,
    slot: SlotName,
    complete: usize,
}

const MESSAGES: u16 = 12;
const LENGTH: u64 = 1_000;

impl End {
    fn new(room: usize) -> Self {
        let mut receiver = Receiver::new(None);
        receiver.set_up(0);
        let area = VecArea::new(usize::from(MESSAGES) * LENGTH as usize);
        let slot = receiver
            .open_slot(SlotOptions {
                area: area.clone(),
                base: 0,
                length_bytes: u64::from(MESSAGES) * LENGTH,
                key: Key::from_bits(3),
                rights: Rights::WRITE,
                mode: Mode::Normal,
                metadata: Some(MetadataArea::new(MESSAGES.into()).unwrap()),
                queue: None,
                counting: Counting::Bits32,
            })
            .unwrap();
        let mut transmitter = Transmitter::new();
        let (wires, link) = Wires::with_room(64, room);
        let flooders = (0..3)
            .map(|number| {
                let terminus = transmitter
                    .open_terminus(TerminusOptions::default())
                    .unwrap();
                let source =
                    VecArea::from_bytes(pattern(number, usize::from(MESSAGES) * LENGTH as usize));
                let tag = transmitter
                    .bind_area(terminus, source, 0, u64::from(MESSAGES) * LENGTH)
                    .unwrap();
                Flooder {
                    terminus,
                    tag,
                    link,
                }
            })
            .collect();
        Self {
            transmitter,
            receiver,
            wires,
            flooders,
            area,
            slot,
            complete: 0,
        }
    }

    fn post_everything(&mut self, slot: SlotName) {
        for number in 0..MESSAGES {
            let flooder = &self.flooders[usize::from(number) % 3];
            let offset = u64::from(number) * LENGTH;
            let message = Message {
                link: flooder.link,
                header: Header {
                    metadata_index: number,
                    ..header(slot, 3, offset)
                },
                share: Share::whole(Counting::Bits32),
            };
            let piece = GatherPiece {
                tag: flooder.tag,
                offset,
                length_bytes: LENGTH,
            };
            self.transmitter
                .post_gather(flooder.terminus, &message, &[], &[piece], &mut self.wires)
                .unwrap();
        }
    }

    /// Takes one packet, if there is one, whatever its own links are doing.
    fn take(&mut self, from: &mut Wires) -> bool {
        let wire = from.wire(LinkId {
            index: 0,
            generation: 0,
        });
        let Some(packet): Option<Packet> = wire.packets.pop_front() else {
            return false;
        };
        wire.room += 1;
        self.complete += usize::from(
            self.receiver.receive(PEER, &packet.header, &packet, None) == Ok(Received::Complete),
        );
        true
    }

    fn has_everything(&self) -> bool {
        let expected: Vec<u8> = (0..usize::from(MESSAGES))
            .flat_map(|number| {
                pattern(number as u64 % 3, usize::from(MESSAGES) * LENGTH as usize)
                    [number * LENGTH as usize..][..LENGTH as usize]
                    .to_vec()
            })
            .collect();
        self.complete == usize::from(MESSAGES) && self.area.contents() == expected
    }
}

#[test]
fn two_ends_that_flood_each_other_over_tiny_links_never_deadlock() {
    for room in [1, 2, 5] {
        let (mut left, mut right) = (End::new(room), End::new(room));
        left.post_everything(right.slot);
        right.post_everything(left.slot);
        let mut rounds = 0;
        while !(left.has_everything() && right.has_everything()) {
            rounds += 1;
            assert!(rounds < 10_000, "deadlock");
            // Both links are full now; each end takes what came before it sends again.
            let progress = [left.take(&mut right.wires), right.take(&mut left.wires)];
            assert!(progress.contains(&true), "nothing moves");
            left.transmitter.pump(&mut left.wires, usize::MAX);
            right.transmitter.pump(&mut right.wires, usize::MAX);
        }
        assert!(!left.transmitter.is_waiting() && !right.transmitter.is_waiting());
    }
}

#[test]
fn reception_goes_on_while_every_outgoing_link_is_full() {
    let (mut stuck, mut sender) = (End::new(0), End::new(1));
    stuck.post_everything(sender.slot);
    sender.post_everything(stuck.slot);
    while stuck.complete < usize::from(MESSAGES) {
        assert!(stuck.take(&mut sender.wires), "reception stopped");
        sender.transmitter.pump(&mut sender.wires, usize::MAX);
        stuck.transmitter.pump(&mut stuck.wires, usize::MAX);
    }
    assert!(stuck.has_everything() && stuck.transmitter.is_waiting());
    assert!(stuck.wires.wires[0].as_ref().unwrap().packets.is_empty());
}
