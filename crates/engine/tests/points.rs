//! Each access that the engine makes for a packet is one point, and nothing else is: what a machine
//! charges follows from the code.

use std::cell::RefCell;
use std::rc::Rc;

use crate::host::{PEER, Packet, VecArea, Wires, header, message, one, options, ready};
use hamlyn_engine::key::Key;
use hamlyn_engine::limits::{FAST_INDEX, USER_METADATA_BYTES};
use hamlyn_engine::memory::{Denied, LinkId, Part, Payload, TxLinks, Unsent};
use hamlyn_engine::metadata::{MetadataArea, Permission};
use hamlyn_engine::operation::REQUEST_WORDS;
use hamlyn_engine::packet::{Flags, Header, PortAddress};
use hamlyn_engine::point::Point::{self, *};
use hamlyn_engine::point::PortPoint;
use hamlyn_engine::port::PortOptions;
use hamlyn_engine::receive::Receiver;
use hamlyn_engine::slot::Mode;
use hamlyn_engine::terminus::GatherPiece;

/// A packet that writes down the points it is told of.
#[derive(Clone)]
struct Heard<'a>(&'a Packet, Rc<RefCell<Vec<Point>>>);

impl Payload<VecArea> for Heard<'_> {
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

    fn passes(&self, point: Point) {
        self.1.borrow_mut().push(point);
    }
}

/// What is passed for a packet made of these.
fn points(
    receiver: &mut Receiver<VecArea>,
    header: Header,
    metadata: &[u8],
    data: &[u8],
) -> Vec<Point> {
    let packet = Packet::new(header, metadata, data);
    let heard = Heard(&packet, Rc::default());
    let _ = receiver.receive(PEER, &packet.header, &heard, None);
    heard.1.take()
}

#[test]
fn reception_passes_one_point_for_each_access() {
    let mut receiver = ready();
    let (queue, _reader) = receiver.open_queue(8).unwrap();
    let (area, entries) = (VecArea::new(256), MetadataArea::new(2).unwrap());
    let options = options(&area, Mode::Normal, Some(&entries), Some(queue));
    let slot = receiver.open_slot(options).unwrap();
    let to = header(slot, 1, 0);
    let fast = Header {
        metadata_index: FAST_INDEX,
        ..to
    };
    assert_eq!(
        points(&mut receiver, fast, &[], &[1; 16]),
        [HeaderRead, SlotRead, KeyChecked, Deposited(16), Notified]
    );
    // A message alone: nobody looks at the accumulator.
    assert_eq!(
        points(&mut receiver, to, &[1; 4], &[1; 16]),
        [
            HeaderRead,
            SlotRead,
            KeyChecked,
            EntryRead,
            Deposited(16),
            MetadataStored(4),
            Notified
        ]
    );
    let first = Header { word: 1, ..to };
    assert_eq!(
        points(&mut receiver, first, &[], &[1; 16]),
        [
            HeaderRead,
            SlotRead,
            KeyChecked,
            EntryRead,
            Deposited(16),
            AccumulatorRead,
            AccumulatorWritten
        ]
    );
    let silent = Header {
        flags: Flags::SILENT,
        ..to
    };
    let told = points(&mut receiver, silent, &[], &[]);
    assert!(!told.contains(&Notified), "{told:?}");
    let wrong = Header {
        key: Key::from_bits(2),
        ..to
    };
    assert_eq!(
        points(&mut receiver, wrong, &[], &[1; 16]),
        [HeaderRead, SlotRead, KeyChecked, Refused]
    );
}

#[test]
fn a_message_to_a_port_passes_points_of_its_own() {
    let mut receiver = ready();
    let key = Key::from_bits(0x00A1_1CE0);
    let options = PortOptions {
        key,
        group: 7,
        handlers: 3,
        queue_bytes: 512,
        peer_bytes: 256,
    };
    let port = receiver.open_port(options).unwrap();
    let address = PortAddress {
        port,
        key,
        group: 7,
    };
    let good = address.header(1, 24);
    assert_eq!(
        points(&mut receiver, good, &[], &[1; 24]),
        [
            HeaderRead,
            Port(PortPoint::PortRead),
            Port(PortPoint::KeyChecked),
            Deposited(24),
            Port(PortPoint::Notified)
        ]
    );
    let wrong = Header {
        key: Key::from_bits(2),
        ..good
    };
    let refused = [
        HeaderRead,
        Port(PortPoint::PortRead),
        Port(PortPoint::KeyChecked),
        Refused,
    ];
    assert_eq!(points(&mut receiver, wrong, &[], &[1; 24]), refused);
    receiver.park_port(port, true).unwrap();
    assert_eq!(points(&mut receiver, good, &[], &[1; 24]), refused);
}

#[test]
fn a_paranoid_entry_is_read_and_its_key_compared() {
    let mut receiver = ready();
    let (area, entries) = (VecArea::new(256), MetadataArea::new(1).unwrap());
    let options = options(&area, Mode::ParanoidOneShot, Some(&entries), None);
    let slot = receiver.open_slot(options).unwrap();
    entries.entry(0).unwrap().permit(Permission {
        key: Key::from_bits(9),
        low: 0,
        high: 256,
    });
    entries.entry(0).unwrap().arm();
    assert_eq!(
        points(&mut receiver, header(slot, 9, 0), &[], &[1; 8]),
        [
            HeaderRead,
            SlotRead,
            EntryRead,
            PermissionRead,
            KeyChecked,
            Deposited(8)
        ]
    );
}

/// Wires that write down the points they are told of.
struct Listening(Wires, RefCell<Vec<Point>>);

impl TxLinks<VecArea> for Listening {
    fn payload_max_bytes(&self, link: LinkId) -> Option<usize> {
        self.0.payload_max_bytes(link)
    }

    fn offer(
        &mut self,
        link: LinkId,
        header: &Header,
        metadata: &[u8],
        parts: &[Part<'_, VecArea>],
    ) -> Result<(), Unsent> {
        self.0.offer(link, header, metadata, parts)
    }

    fn passes(&self, point: Point) {
        self.1.borrow_mut().push(point);
    }
}

#[test]
fn transmission_passes_points_before_a_link_is_offered_a_packet() {
    let (mut transmitter, terminus) = one();
    let (wires, link) = Wires::with_room(128, 2);
    let mut links = Listening(wires, RefCell::default());
    let area = VecArea::new(512);
    let tag = transmitter.bind_area(terminus, area, 0, 512).unwrap();
    let piece = GatherPiece {
        tag,
        offset: 0,
        length_bytes: 300,
    };
    let request = |pieces, data_bytes| RequestWritten { pieces, data_bytes };
    let posted = transmitter.post_gather(terminus, &message(link), &[1; 4], &[piece], &mut links);
    assert!(!posted.unwrap().sent);
    let first = [RequestRead, PacketCut, MetadataFetched(4), DataFetched(124)];
    let second = [PacketCut, DataFetched(128)];
    let third = [PacketCut, DataFetched(48)];
    // The third is offered, and not taken.
    let all = [&[request(2, 0)], &first[..], &second, &third].concat();
    assert_eq!(links.1.take(), all);
    links.0.wire(link).room = usize::MAX;
    transmitter.pump(&mut links, usize::MAX);
    assert_eq!(links.1.take(), [&third[..], &[MessageOut]].concat());
    transmitter
        .post(terminus, &message(link), &[], &[7; 16], &mut links)
        .unwrap();
    let at_once = [request(0, 16), RequestRead, PacketCut, MessageOut];
    assert_eq!(links.1.take(), at_once);
}
