//! `docs/protocol.md` is true: its vectors of the wire are read from the file and compared with
//! what the library does, and what it says about keys and codes with a second way to compute them,
//! written here from its words alone.

mod vectors;

use std::net::SocketAddr;
use std::sync::Arc;

use hamlyn_engine::key::Key as PacketKey;
use hamlyn_engine::memory::Part;
use hamlyn_engine::packet::{
    Address, Flags, Header, Kind as PacketKind, PortAddress, Short, SlotName, short_words,
};
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{
    Association, CloseReason, Incoming, NackReason, Packet, Packets, Return, Settings,
    answer_not_resident,
};
use hamlyn_link::message_cell::{self, Abbreviations, MessageHead};
use hamlyn_link::trace::TapSettings;
use hamlyn_link::udp::handshake::{
    COOKIE_MESSAGE_BYTES, Credentials, Heard, Initiator, Responder, Taken,
};
use hamlyn_link::udp::key_file::{ClusterSecret, HostKey};
use hamlyn_link::udp::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use hamlyn_link::udp::protection::{Key, RxProtection, TxProtection};
use hamlyn_link::{cell, short_cell};
use hamlyn_ring::area::Area;
use hamlyn_ring::cells::SharedCells;
use hamlyn_ring::geometry::{Geometry, MESSAGE_CELLS_MAX};
use hamlyn_ring::producer::Producer;
use hamlyn_ring::shared::Mapping;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hmac;
use vectors::{Vector, Verdicts, bytes, number, read};

fn mac(key: &[u8], parts: &[&[u8]]) -> Vec<u8> {
    let mut context = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| context.update(part));
    context.sign().as_ref().to_vec()
}

/// HKDF-Expand (RFC 5869) with SHA-256, up to 32 bytes.
fn expand(secret: &[u8], label: &str, length_bytes: usize) -> Vec<u8> {
    let mut bytes = mac(secret, &[label.as_bytes(), &[1]]);
    bytes.truncate(length_bytes);
    bytes
}

fn kind_of(text: &str) -> Kind {
    match text {
        "data" => Kind::Data,
        "initiation" => Kind::Initiation,
        "response" => Kind::Response,
        "cookie" => Kind::Cookie,
        "probe" => Kind::Probe,
        "probe answer" => Kind::ProbeAnswer,
        _ => panic!("no kind {text}"),
    }
}

fn packet_header_of(vector: &Vector, length_bytes: usize) -> PacketHeader {
    PacketHeader {
        kind: kind_of(vector.text("kind")),
        length_bytes: length_bytes as u16,
        phase: vector.number("phase") != 0,
        path: vector.number("path") as u8,
        association: vector.number("association") as u32,
        packet_number: vector.number("packet"),
    }
}

#[test]
fn packet_headers_match_the_document() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["packet-header", "no-packet-header"]) {
        let mut datagram = vector.bytes("bytes");
        datagram.resize(PACKET_HEADER_BYTES, 0);
        let length_bytes = usize::from(u16::from_le_bytes([datagram[2], datagram[3]]));
        if vector.kind == "no-packet-header" {
            let of = vector.all("of").first().map(|of| number(of) as usize);
            datagram.resize(of.unwrap_or(length_bytes), 0);
            let packet_header = PacketHeader::parse(&datagram);
            verdicts.same(&vector, "bytes", &None, &packet_header);
            continue;
        }
        let packet_header = packet_header_of(&vector, vector.number("length") as usize);
        verdicts.bytes(&vector, "bytes", &packet_header.bytes());
        datagram.resize(length_bytes, 0);
        verdicts.same(
            &vector,
            "bytes",
            &Some(packet_header),
            &PacketHeader::parse(&datagram),
        );
    }
    verdicts.end(8);
}

/// Seals as the words of the file say, without the library's sealer.
fn sealed_by_hand(secret: &[u8], packet_header: &PacketHeader, frame: &[u8]) -> Vec<u8> {
    let key = UnboundKey::new(&AES_256_GCM, &expand(secret, "hamlyn 1 key", 32)).unwrap();
    let mut nonce: [u8; 12] = expand(secret, "hamlyn 1 salt", 12).try_into().unwrap();
    for (at, byte) in packet_header
        .packet_number
        .to_be_bytes()
        .into_iter()
        .enumerate()
    {
        nonce[4 + at] ^= byte;
    }
    let head = packet_header.bytes();
    let mut protected = frame.to_vec();
    LessSafeKey::new(key)
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(head),
            &mut protected,
        )
        .unwrap();
    [&head[..], &protected].concat()
}

/// What the opener makes of a datagram.
fn opened(rx_protection: &mut RxProtection, datagram: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut datagram = datagram.to_vec();
    let opened = rx_protection.unprotect(&mut datagram).ok()?;
    Some((opened.packet_number, opened.frame.to_vec()))
}

#[test]
fn datagrams_are_protected_as_documented() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["keys"]) {
        let secret = vector.bytes("secret");
        verdicts.bytes(&vector, "key", &expand(&secret, "hamlyn 1 key", 32));
        verdicts.bytes(&vector, "salt", &expand(&secret, "hamlyn 1 salt", 12));
        verdicts.bytes(&vector, "next", &expand(&secret, "hamlyn 1 next", 32));
    }
    for vector in read(&["protected"]) {
        let mut secret = vector.bytes("secret");
        let first: [u8; 32] = secret.clone().try_into().unwrap();
        let key = Key::Encrypted(first.into());
        let frame = vector.bytes("frame");
        let packet_header = packet_header_of(&vector, frame.len() + 32);
        let key_number = packet_header.packet_number >> 22;
        assert_eq!(packet_header.phase, key_number % 2 == 1);
        for _ in 0..key_number {
            secret = expand(&secret, "hamlyn 1 next", 32);
        }
        let datagram = sealed_by_hand(&secret, &packet_header, &frame);
        verdicts.bytes(&vector, "datagram", &datagram);
        if key_number == 0 {
            let mut tx_protection = TxProtection::new(&key, packet_header.association);
            let mut room = vec![0; datagram.len()];
            for _ in 0..=packet_header.packet_number {
                tx_protection
                    .protect(packet_header.kind, packet_header.path, &frame, &mut room)
                    .unwrap();
            }
            verdicts.bytes(&vector, "datagram", &room);
        }
        let mut rx_protection = RxProtection::new(&key, packet_header.association);
        let said = vector.bytes("datagram");
        let expected = Some((packet_header.packet_number, frame));
        verdicts.same(
            &vector,
            "frame",
            &expected,
            &opened(&mut rx_protection, &said),
        );
        verdicts.same(&vector, "again", &None, &opened(&mut rx_protection, &said));
    }
    verdicts.end(13);
}

#[test]
fn clear_datagrams_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["clear"]) {
        let frame = vector.bytes("frame");
        let begin = vector.number("begin") as u32;
        let packet_header = packet_header_of(&vector, frame.len() + 20);
        let mut datagram = [&packet_header.bytes()[..], &frame].concat();
        let checked = datagram.len().min(256);
        let sum = crc32c::crc32c_append(begin ^ datagram.len() as u32, &datagram[..checked]);
        datagram.extend(sum.to_le_bytes());
        verdicts.bytes(&vector, "datagram", &datagram);
        let key = Key::Clear(begin);
        let mut tx_protection = TxProtection::new(&key, packet_header.association);
        let mut room = vec![0; datagram.len()];
        tx_protection
            .protect(packet_header.kind, packet_header.path, &frame, &mut room)
            .unwrap();
        verdicts.bytes(&vector, "datagram", &room);
        let mut rx_protection = RxProtection::new(&key, packet_header.association);
        let said = vector.bytes("datagram");
        verdicts.same(
            &vector,
            "frame",
            &Some((0, frame)),
            &opened(&mut rx_protection, &said),
        );
    }
    verdicts.end(3);
}

/// A packet as the file writes it: its header, its metadata, and its data.
type Written = (Header, Vec<u8>, Vec<u8>);

fn packet_of(text: &str) -> Written {
    let mut header = Header {
        slot: SlotName::from_bits(0),
        metadata_index: 0,
        key: PacketKey::from_bits(0),
        offset: 0,
        length_bytes: 0,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: PacketKind::WRITE,
    };
    let (mut metadata, mut data) = (Vec::new(), Vec::new());
    for field in text.split(',') {
        let (name, value) = field.trim().split_once(' ').expect("a name and a value");
        match name {
            "slot" => header.slot = SlotName::from_bits(number(value) as u32),
            "index" => header.metadata_index = number(value) as u16,
            "key" => header.key = PacketKey::from_bits(number(value)),
            "offset" => header.offset = number(value),
            "word" => header.word = number(value),
            "flags" => header.flags = Flags(number(value) as u8),
            "port" => {
                header.slot = SlotName::from_bits(number(value) as u32);
                header.metadata_index = u16::MAX;
                header.kind = PacketKind::MESSAGE;
            }
            "group" => header.offset = number(value),
            "handler" => header.word = number(value),
            "metadata" => metadata = bytes(value),
            "data" => data = bytes(value),
            _ => panic!("no field {name}"),
        }
    }
    header.length_bytes = data.len() as u32;
    header.metadata_length_bytes = metadata.len() as u8;
    (header, metadata, data)
}

fn read_packet(packet: &Packet<'_>) -> Written {
    match packet {
        Packet::Short(short) => {
            let header = packet.header();
            let metadata = if short.has_metadata {
                short.word.to_le_bytes().to_vec()
            } else {
                Vec::new()
            };
            let data = short.bytes().to_vec();
            (header, metadata, data)
        }
        Packet::General {
            header,
            metadata,
            data,
        } => (*header, metadata.to_vec(), data.to_vec()),
    }
}

fn association() -> Association {
    Association::new(Settings::default()).unwrap()
}

fn next(end: &mut Association, now_ns: u64) -> Vec<u8> {
    let mut room = vec![0; end.settings().frame_bytes];
    let length_bytes = end
        .next_frame(now_ns, &mut room)
        .map_or(0, |frame| frame.length_bytes);
    room.truncate(length_bytes);
    room
}

/// One end of an association, which has sent the frame of a vector.
fn sender_of(vector: &Vector) -> (Association, Vec<u8>) {
    let mut sender = association();
    for packet in vector.all("packet") {
        let (header, metadata, data) = packet_of(packet);
        let parts = [Part::<Area>::Bytes(&data)];
        sender.offer(&header, &metadata, &parts).unwrap();
    }
    let frame = next(&mut sender, vector.number("time"));
    (sender, frame)
}

#[test]
fn frames_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["frame"]) {
        let (_, frame) = sender_of(&vector);
        verdicts.bytes(&vector, "bytes", &frame);
        let said = vector.bytes("bytes");
        let mut receiver = association();
        let Incoming::Packets(token) = receiver.take_frame(0, 0, &said) else {
            verdicts.same(&vector, "bytes", &"a frame with packets", &"none");
            continue;
        };
        let packets = Packets::new(&said[token.range()]);
        let packets: Vec<Written> = packets.map(|packet| read_packet(&packet)).collect();
        let expected: Vec<Written> = vector.all("packet").into_iter().map(packet_of).collect();
        verdicts.same(&vector, "packet", &expected, &packets);
        verdicts.same(
            &vector,
            "packets",
            &expected.len(),
            &usize::from(token.count()),
        );
        receiver.taken(0, token);
        // Once more it is a duplicate.
        assert!(matches!(
            receiver.take_frame(0, 0, &said),
            Incoming::Nothing
        ));
    }
    verdicts.end(6);
}

/// A packet of a vector, as it lies in the cells of a fresh ring: sent by an end of a link, whose
/// memory is read.
fn cells_of(header: &Header, metadata: &[u8], data: &[u8], length_bytes: usize) -> Vec<u8> {
    let geometry = Geometry::DEFAULT;
    let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
    let memory = SharedCells::new(&mapping, geometry, None).unwrap();
    let mut producer = Producer::new(memory, geometry, 4096);
    let metadata_word = metadata.first_chunk().copied().map(u64::from_le_bytes);
    let has_metadata = metadata_word.is_some();
    let cells = short_cell::cells_of(has_metadata, header.word, data.len() as u64);
    let first_bytes = if cells == 1 { data.len() } else { 24 };
    let short = Short {
        to: Address::new(header.slot, header.metadata_index),
        key: header.key,
        offset: header.offset,
        word: metadata_word.unwrap_or(header.word),
        has_metadata,
        length_bytes: data.len() as u16,
        data: short_words(&data[..first_bytes]).unwrap(),
    };
    let head = match cells {
        1 => short_cell::encode_short(&short),
        _ => short_cell::encode_first(&short),
    };
    let room = producer.room_for(cells).unwrap();
    room.publish_all(head, &data[first_bytes..]);
    let mut bytes = vec![0; length_bytes];
    mapping
        .copy_out(geometry.cells_offset(), &mut bytes)
        .unwrap();
    bytes
}

#[test]
fn cells_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["cells"]) {
        let (header, metadata, data) = packet_of(vector.text("packet"));
        let said = vector.bytes("bytes");
        verdicts.bytes(
            &vector,
            "bytes",
            &cells_of(&header, &metadata, &data, said.len()),
        );
        // The words of the file, read by the parser of foreign cells.
        let mut cell = [0; 8];
        for (word, bytes) in cell.iter_mut().zip(said.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let decoded = cell::decode(&cell, MESSAGE_CELLS_MAX, 1 << 20, 64 << 10);
        let (decoded, placement) = decoded.expect("a packet");
        verdicts.same(&vector, "packet", &header, &decoded);
        let cells = placement.cells(decoded.length_bytes) as usize;
        verdicts.same(&vector, "cells", &said.len(), &(cells * 64));
    }
    verdicts.end(9);
}

/// Messages to ports, as they lie in the cells of a fresh ring: the first in full, the others
/// abbreviated; and read by the parser of foreign cells.
#[test]
fn messages_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["messages"]) {
        let said = vector.bytes("bytes");
        let geometry = Geometry::DEFAULT;
        let mapping = Arc::new(Mapping::anonymous(geometry.total_bytes()).unwrap());
        let memory = SharedCells::new(&mapping, geometry, None).unwrap();
        let mut producer = Producer::new(memory, geometry, 4096);
        let mut abbreviations = Abbreviations::default();
        let packets: Vec<Written> = vector.all("packet").into_iter().map(packet_of).collect();
        for (header, _, data) in &packets {
            let to = PortAddress::of(header);
            if !abbreviations.has(&to) {
                let placement = cell::Placement {
                    data: cell::Data::Cell(short_words(data).unwrap()),
                    metadata: cell::Metadata::Word(0),
                };
                let room = producer.room().unwrap();
                room.publish(cell::encode(header, &placement));
                abbreviations.note(header);
                continue;
            }
            let head = MessageHead {
                abbreviation: Abbreviations::number(&to),
                handler: header.word as u16,
                length_bytes: data.len() as u16,
            };
            let room = producer.room_for(message_cell::cells_of(data.len() as u64));
            room.unwrap().publish_bytes(head.first_word(), data);
        }
        let mut bytes = vec![0; said.len()];
        let at = geometry.cells_offset();
        mapping.copy_out(at, &mut bytes).unwrap();
        verdicts.bytes(&vector, "bytes", &bytes);
        // The words of the file, from the first cell on.
        let mut cells = said.as_chunks::<64>().0.iter().map(|bytes| {
            let words = bytes.as_chunks().0.iter().copied().map(u64::from_le_bytes);
            <[u64; 8]>::try_from(words.collect::<Vec<_>>()).unwrap()
        });
        let mut known = Abbreviations::default();
        for (header, ..) in &packets {
            let cell = cells.next().expect("a cell");
            let decoded = match MessageHead::of_cell(&cell) {
                Some(head) => head.decode(&known, MESSAGE_CELLS_MAX, 64 << 10),
                None => cell::decode(&cell, MESSAGE_CELLS_MAX, 1 << 20, 64 << 10),
            };
            let (decoded, placement) = decoded.expect("a packet");
            known.note(&decoded);
            verdicts.same(&vector, "packet", header, &decoded);
            for _ in 1..placement.cells(decoded.length_bytes) {
                cells.next().expect("a cell that continues");
            }
        }
        verdicts.same(&vector, "cells", &None, &cells.next());
    }
    verdicts.end(4);
}

/// What comes back for a frame: its bytes, and what its sender makes of them.
fn answer_of(how: &str, frame: &[u8], came_ns: u64, now_ns: u64) -> Vec<u8> {
    if how == "not resident" {
        let mut answer = [0; 31];
        let length = answer_not_resident(now_ns, frame, &mut answer).unwrap();
        return answer[..length].to_vec();
    }
    let mut receiver = association();
    if how == "closed" {
        receiver.close();
        return next(&mut receiver, now_ns);
    }
    let Incoming::Packets(token) = receiver.take_frame(came_ns, 0, frame) else {
        panic!("no packets");
    };
    match how {
        "taken" => receiver.taken(came_ns, token),
        "no room" => receiver.nack(came_ns, token, NackReason::NoRoom),
        "leaving" => receiver.nack(came_ns, token, NackReason::Leaving),
        "refused" => {
            receiver.refused(&token, 1, Refusal::BadKey);
            receiver.taken(came_ns, token);
        }
        _ => panic!("no answer {how}"),
    }
    next(&mut receiver, now_ns)
}

#[test]
fn answers_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    let frames = read(&["frame"]);
    for vector in read(&["answer"]) {
        let to = &frames[vector.number("to") as usize - 1];
        let (mut sender, frame) = sender_of(to);
        let how = vector.text("because");
        let (came_ns, now_ns) = (vector.number("came"), vector.number("time"));
        verdicts.bytes(&vector, "bytes", &answer_of(how, &frame, came_ns, now_ns));
        // What it means to the sender of the frame.
        let said = vector.bytes("bytes");
        let back_ns = to.number("time") + 1_000_000;
        assert!(matches!(
            sender.take_frame(back_ns, 0, &said),
            Incoming::Nothing
        ));
        let came_back = sender.next_return().map(|back| back.reason);
        let is = (
            sender.outstanding(),
            sender.statistics().acknowledged,
            came_back,
            sender.close_reason(),
        );
        let expected = match how {
            "taken" => (0, 1, None, None),
            "no room" | "leaving" | "not resident" => (1, 0, None, None),
            "refused" => (0, 1, Some(Return::Refused(Refusal::BadKey)), None),
            _ => {
                let why = CloseReason::ClosedByPeer;
                (0, 0, Some(Return::Ended(why)), Some(why))
            }
        };
        verdicts.same(&vector, "because", &expected, &is);
    }
    verdicts.end(12);
}

#[test]
fn what_is_no_frame_is_none() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["no-frame"]) {
        let mut end = association();
        let nothing = matches!(
            end.take_frame(0, 0, &vector.bytes("bytes")),
            Incoming::Nothing
        );
        verdicts.same(
            &vector,
            "bytes",
            &(true, 1),
            &(nothing, end.statistics().malformed),
        );
    }
    verdicts.end(4);
}

const WALL_MS: u64 = 1_790_000_000_000;

fn at(port: u16) -> SocketAddr {
    ([192, 0, 2, 1], port).into()
}

fn text_of(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn cluster(secret: &[u8]) -> Credentials {
    Credentials::Secret(ClusterSecret::parse(&text_of(secret)).unwrap())
}

/// The interface that is asked.
const ASKED: u64 = 0x0123_4567_89ab_cdef;

fn ask(credentials: &Credentials) -> (Initiator, Vec<u8>) {
    let asking = Initiator::new(credentials, Some("zeus"), ASKED, b"letter", 0, WALL_MS);
    let mut asking = asking.unwrap();
    let datagram = asking.poll(0).unwrap().to_vec();
    (asking, datagram)
}

fn reply(responder: &mut Responder, datagram: &[u8], loaded: bool) -> Vec<u8> {
    match responder.take(0, WALL_MS, at(1), datagram, loaded) {
        Ok(Heard::Reply(reply)) => reply.to_vec(),
        other => panic!("{other:?}"),
    }
}

/// What an initiator says to that.
fn further(asking: &mut Initiator, datagram: &[u8]) -> Vec<u8> {
    assert!(matches!(asking.take(0, datagram).unwrap(), Taken::Again));
    asking.poll(0).unwrap().to_vec()
}

/// Checks what the file says about the messages of a mode: lengths, heads and codes. Gives the
/// numbers with which checksums begin, there and back, if there are any.
fn messages(
    vector: &Vector,
    verdicts: &mut Verdicts,
    asks: &Credentials,
    answers: &Credentials,
    mac1_key: &[u8],
    answer_key: &[u8],
) {
    let mut responder = Responder::new(answers, ASKED).unwrap();
    let (mut asking, first) = ask(asks);
    let own = asking.association().to_le_bytes();
    let mode = vector.number("mode") as u8;
    let said = vector.number("initiation") as usize;
    verdicts.same(vector, "initiation", &said, &first.len());
    let mut head = vec![0x11, 0];
    head.extend((first.len() as u16).to_le_bytes());
    head.extend([0; 4]);
    head.extend(WALL_MS.to_le_bytes());
    head.extend([mode, 0, 0, 0]);
    head.extend(own);
    verdicts.same(vector, "head", &head, &first[..24].to_vec());
    let (coded, mac2) = first.split_at(first.len() - 32);
    let (ask_bytes, mac1) = coded.split_at(coded.len() - 32);
    let asked = ASKED.to_le_bytes();
    let expected = mac(mac1_key, &[ask_bytes, &asked]);
    verdicts.same(vector, "mac1", &expected, &mac1.to_vec());
    verdicts.same(vector, "mac2", &vec![0; 32], &mac2.to_vec());

    let cookie = reply(&mut responder, &first, true);
    verdicts.same(vector, "cookie", &COOKIE_MESSAGE_BYTES, &cookie.len());
    let mut head = vec![0x13, 0, 80, 0];
    head.extend(own);
    head.extend([0; 8]);
    verdicts.same(vector, "cookie head", &head, &cookie[..16].to_vec());
    let (body, code) = cookie.split_at(48);
    let expected = mac(answer_key, &[body, mac1]);
    verdicts.same(vector, "cookie code", &expected, &code.to_vec());
    let second = further(&mut asking, &cookie);
    verdicts.same(
        vector,
        "unchanged",
        &coded.to_vec(),
        &second[..coded.len()].to_vec(),
    );
    let expected = mac(&body[16..], &[coded]);
    verdicts.same(vector, "shown", &expected, &second[coded.len()..].to_vec());

    let response = reply(&mut responder, &second, true);
    let said = vector.number("response") as usize;
    verdicts.same(vector, "response", &said, &response.len());
    let theirs = &response[20..24];
    let mut head = vec![0x12, 0];
    head.extend((response.len() as u16).to_le_bytes());
    head.extend(own);
    head.extend([0; 8]);
    head.extend([mode, 0, 0, 0]);
    head.extend(theirs);
    verdicts.same(vector, "response head", &head, &response[..24].to_vec());
    let (body, code) = response.split_at(response.len() - 32);
    let expected = mac(answer_key, &[body, mac1]);
    verdicts.same(vector, "response code", &expected, &code.to_vec());

    let payload = further(&mut asking, &response);
    let protected = vector.number("protected payload") as usize;
    verdicts.same(vector, "protected payload", &protected, &payload.len());
    let mut head = vec![0x16, 0];
    head.extend((payload.len() as u16).to_le_bytes());
    head.extend(theirs);
    head.extend([0; 8]);
    verdicts.same(vector, "payload head", &head, &payload[..16].to_vec());
    let said = match responder.take(0, WALL_MS, at(1), &payload, true) {
        Ok(Heard::Said(said)) => said,
        other => panic!("{other:?}"),
    };
    verdicts.same(vector, "payload", &b"letter".to_vec(), &said.payload);
    let (_, answer) = responder.answer(said.number, b"answer").unwrap().unwrap();
    let mut head = vec![0x16, 0];
    head.extend((answer.len() as u16).to_le_bytes());
    head.extend(own);
    head.extend([0; 8]);
    verdicts.same(vector, "answer head", &head, &answer[..16].to_vec());
    let ours = match asking.take(0, answer) {
        Ok(Taken::Answered(answered)) => answered,
        other => panic!("{other:?}"),
    };
    verdicts.same(vector, "answer", &b"answer".to_vec(), &ours.payload);
    if let (Key::Clear(there), Key::Clear(back)) = (&ours.keys.send, &ours.keys.receive) {
        verdicts.same(
            vector,
            "number",
            &theirs.to_vec(),
            &response[56..body.len()].to_vec(),
        );
        let nonces = [&first[24..56], &response[24..56]].concat();
        for (label, begin) in [("hamlyn 1 there", there), ("hamlyn 1 back", back)] {
            let tag = mac(&nonces, &[label.as_bytes()]);
            let of_handshake = u32::from_le_bytes(*tag.first_chunk().unwrap());
            let of_link = crc32c::crc32c_append(of_handshake, b"hamlyn 1 link");
            verdicts.same(vector, label, &of_link, begin);
        }
    }
    // Both sides have the same keys.
    let mut tx_protection = TxProtection::new(&ours.keys.send, 0x8456_0002);
    let mut datagram = vec![0; 64];
    let length = tx_protection
        .protect(Kind::Data, 0, b"frame", &mut datagram)
        .unwrap();
    let mut rx_protection = RxProtection::new(&said.keys.receive, 0x8456_0002);
    let is = opened(&mut rx_protection, &datagram[..length]);
    verdicts.same(vector, "frame", &Some((0, b"frame".to_vec())), &is);
}

#[test]
fn handshakes_are_as_they_are_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["codes"]) {
        let from = vector.bytes("from");
        let mac1_key = mac(&from, &[b"hamlyn 1 mac1"]);
        let answer_key = mac(&from, &[b"hamlyn 1 answer"]);
        verdicts.bytes(&vector, "mac1 key", &mac1_key);
        verdicts.bytes(&vector, "answer key", &answer_key);
        let (asks, answers) = match vector.number("mode") {
            1 => (cluster(&from), cluster(&from)),
            2 => {
                let own = HostKey::parse(vector.text("private")).unwrap();
                verdicts.bytes(&vector, "from", &own.public().0);
                let other = HostKey::generate().unwrap();
                let hosts = vec![
                    ("zeus".to_owned(), own.public()),
                    ("hera".to_owned(), other.public()),
                ];
                let keys = |own, hosts| Credentials::Keys { own, hosts };
                (keys(other, hosts.clone()), keys(own, hosts))
            }
            _ => (Credentials::Insecure, Credentials::Insecure),
        };
        messages(
            &vector,
            &mut verdicts,
            &asks,
            &answers,
            &mac1_key,
            &answer_key,
        );
    }
    verdicts.end(40);
}

#[test]
fn the_pre_shared_key_is_derived_as_it_is_said_to_be() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["psk"]) {
        let secret = vector.bytes("secret");
        let psk = mac(&secret, &[b"hamlyn 1 psk"]);
        verdicts.bytes(&vector, "psk", &psk);
        // A responder that is made with it by the words of the file alone reads what the library
        // asks.
        let (_, first) = ask(&cluster(&secret));
        let psk: [u8; 32] = psk.try_into().unwrap();
        let prologue = [&first[..24], &ASKED.to_le_bytes()].concat();
        let mut noise = snow::Builder::new("Noise_NNpsk0_25519_AESGCM_SHA256".parse().unwrap())
            .psk(0, &psk)
            .and_then(|builder| builder.prologue(&prologue))
            .and_then(snow::Builder::build_responder)
            .unwrap();
        let mut plain = vec![0; 2_000];
        let length = noise
            .read_message(&first[24..first.len() - 64], &mut plain)
            .unwrap();
        verdicts.same(&vector, "payload", &0, &length);
    }
    verdicts.end(2);
}

#[test]
fn records_of_traces() {
    let mut verdicts = Verdicts::default();
    for vector in read(&["record"]) {
        let number = |field| vector.number(field) as u32;
        let of = TapSettings {
            own_association: number("association"),
            peer_association: number("peer association"),
            peer_interface: vector.number("interface"),
            peer_host: number("host"),
            peer_user: number("user"),
            is_encrypted: number("encrypted") == 1,
        };
        let (is_sent, path) = (number("sent") == 1, number("path") as u8);
        let record = of.record(is_sent, path, number("process"));
        verdicts.bytes(&vector, "bytes", &record);
    }
    verdicts.end(1);
}
