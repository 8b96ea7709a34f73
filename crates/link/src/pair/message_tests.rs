//! Messages to ports beside other packets: with a peer that keeps the rules, and with one that does
//! not.

use std::collections::VecDeque;

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::Part;
use hamlyn_engine::memory::Payload as _;
use hamlyn_engine::packet::{Header, PortAddress};
use hamlyn_engine::packet::{Kind, PortName, Short, SlotName};
use hamlyn_ring::geometry::ARENA_MIN_BYTES;
use proptest::prelude::*;

use super::tests::{Side, logs_at_once, pair, pair_of, pair_with_logs};
use super::*;
use crate::carrier::tests::{bytes, header};
use crate::{LinkFault, ReceiveEnd, Shortcut, TransmitEnd};

type Message = (Header, Vec<u8>);

/// Ports of which some have one abbreviation.
fn port(number: u32) -> PortAddress {
    PortAddress {
        port: PortName::from_bits([3, 3 | 0x100, 3 | 0x1_0000, 4][number as usize % 4]),
        key: Key::from_bits(u64::from(number / 4)),
        group: u64::MAX - u64::from(number),
    }
}

/// By the general path: nothing if there is none.
fn receive(side: &mut Side) -> Result<Option<Message>, LinkFault> {
    side.link.receive.receive(|header, payload| {
        let mut data = vec![0; header.length_bytes as usize];
        payload.copy_to(&mut data).expect("its data");
        (*header, data)
    })
}

/// By the fast path, all words and all bytes at once.
fn receive_in_place(side: &mut Side) -> Option<Message> {
    let end = &mut side.link.receive;
    end.return_due_credit();
    let next = end.peek_message()?;
    let (length, header) = (
        next.length_bytes,
        next.message
            .to
            .header(next.message.handler.into(), next.length_bytes.into()),
    );
    let mut data = vec![0; length.into()];
    end.copy_message(&mut data);
    for (number, chunk) in data.chunks(8).enumerate() {
        let word = end.message_word(number).to_le_bytes();
        assert_eq!(&word[..chunk.len()], chunk);
    }
    end.message_done(length);
    Some((header, data))
}

proptest! {
    /// Each direction is a queue, whichever ways its messages go there and back: abbreviated or in
    /// full, in cells, over the line or through the arena, with others in between.
    #[test]
    fn messages_arrive_in_order_by_every_path(
        steps in prop::collection::vec(
            (0_usize..2, 0_u8..8, 0_u32..12, prop_oneof![0_usize..80, 0_usize..1300]),
            1..200,
        ),
        kind in 0..3,
    ) {
        let small = Geometry::new(16, ARENA_MIN_BYTES).unwrap();
        let (left, right) = match kind {
            0 => pair(),
            1 => pair_of(small, 2048, Fence::Light),
            _ => pair_with_logs(small, 2048, Fence::Light, Some(logs_at_once())),
        };
        let mut sides = [left, right];
        let mut on_their_way: [VecDeque<Message>; 2] = Default::default();
        for (number, (from, step, which, length)) in steps.into_iter().enumerate() {
            let (to, data) = (port(which), bytes(number, length));
            let handler = (number % 4096) as u16;
            let message = (to.header(handler.into(), length as u32), data);
            let transmit = &mut sides[from].link.transmit;
            match step {
                0..3 => {
                    if transmit.try_send_message(&to, handler, &message.1) {
                        on_their_way[from].push_back(message);
                    }
                }
                3 => {
                    if transmit.try_send(&message.0, &[], &[Part::Bytes(&message.1)]).is_ok() {
                        on_their_way[from].push_back(message);
                    }
                }
                4 => {
                    // A packet of another kind, with the name of the port.
                    let other = Header {
                        slot: SlotName::from_bits(to.port.to_bits()),
                        kind: Kind::WRITE,
                        ..header(0, 8)
                    };
                    let data = bytes(number, 8);
                    if transmit.try_send(&other, &[], &[Part::Bytes(&data)]).is_ok() {
                        on_their_way[from].push_back((other, data));
                    }
                }
                _ => {
                    let side = &mut sides[1 - from];
                    let expected = on_their_way[from].front().cloned();
                    let in_place = if step == 5 { None } else { receive_in_place(side) };
                    let taken = match in_place {
                        Some(taken) => Some(taken),
                        None => receive(side).unwrap(),
                    };
                    prop_assert_eq!(&taken, &expected);
                    on_their_way[from].pop_front();
                    if taken.is_none() {
                        side.link.receive.return_credit();
                    }
                }
            }
        }
        for from in 0..2 {
            while let Some(expected) = on_their_way[from].pop_front() {
                prop_assert_eq!(receive(&mut sides[1 - from]).unwrap(), Some(expected));
            }
            prop_assert_eq!(receive(&mut sides[1 - from]).unwrap(), None);
        }
    }

    /// Whatever a peer writes into the next cells or the line, by the fast path comes what comes by
    /// the general one, or nothing; and nothing that is rewritten meanwhile does harm.
    #[test]
    fn whatever_a_peer_writes_is_one_message_or_none(
        words in prop::array::uniform16(any::<u64>()),
        length in 0_u64..130,
        abbreviation in 2_u64..6,
        is_plausible in any::<bool>(),
        continues in any::<bool>(),
        in_line in any::<bool>(),
        later in any::<u64>(),
    ) {
        let sides = || {
            let (mut peer, mut side) = pair();
            let first = port(0).header(1, 0);
            // One of the ring says the port; the fast path looks where the last one was.
            let sent = peer.link.transmit.try_send(&first, &[], &[Part::Bytes(&[])]);
            sent.unwrap();
            assert!(receive(&mut side).unwrap().is_some());
            if in_line {
                let short = Short {
                    to: hamlyn_engine::packet::Address::new(SlotName::new(1, 1), 2),
                    key: Key::from_bits(1),
                    offset: 0,
                    word: 5,
                    has_metadata: true,
                    length_bytes: 0,
                    data: [0; 4],
                };
                assert!(peer.link.transmit.try_send_short(short));
                assert!(receive(&mut side).unwrap().is_some());
            }
            (peer, side)
        };
        let ((_peer, mut fast), (_other, mut general)) = (sides(), sides());
        let mut cells = words;
        // The third message of the line, after one cell; or the second cell of the ring.
        let flag = if in_line { 1 << 8 | 3 } else { 1 };
        if is_plausible {
            cells[0] = flag | length << 32 | 7 << 43 | abbreviation << 55 | 1 << 63;
            if continues {
                cells[8] = flag | 16 << 56;
            }
        }
        for side in [&fast, &general] {
            let (memory, at) = match in_line {
                true => (&side.sends_to, Geometry::DEFAULT.duplex_offset()),
                false => (&side.receives_in, Geometry::DEFAULT.cells_offset() + 64),
            };
            let most = if in_line { 8 } else { 16 };
            for (number, word) in cells.iter().take(most).enumerate().rev() {
                memory.store_u64(at + number * 8, *word).unwrap();
            }
        }
        let found = fast.link.receive.peek_message().map(|next| {
            let handler = next.message.handler.into();
            (next.message.to.header(handler, next.length_bytes.into()), next.length_bytes)
        });
        let Some((header, length)) = found else {
            return Ok(());
        };
        let (by_general, data) = receive(&mut general).unwrap().expect("the same message");
        prop_assert_eq!(by_general, header);
        let mut copy = vec![0; length.into()];
        fast.link.receive.copy_message(&mut copy);
        prop_assert_eq!(&copy, &data);
        // Rewritten before it is disposed of.
        let at = Geometry::DEFAULT.cells_offset() + 64;
        fast.receives_in.store_u64(at, later).unwrap();
        for number in 0..usize::from(length).div_ceil(8) + 2 {
            let _ = fast.link.receive.message_word(number);
        }
        fast.link.receive.message_done(length);
        let _ = receive(&mut fast);
    }
}
