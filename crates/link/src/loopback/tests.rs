//! The link with oneself.

use hamlyn_engine::memory::{Part, Unsent};

use super::*;
use crate::Link;
use crate::carrier::tests::{bytes, carries_everything, header, receive};

#[test]
fn carries_packets_of_every_shape() {
    for payload_max in [64, 4096, 16 << 10, 64 << 10] {
        let mut link = PairLink::to_itself(Geometry::DEFAULT, payload_max).unwrap();
        carries_everything(
            |link: &mut PairLink, header, metadata, parts| {
                link.try_send(header, metadata, parts).unwrap();
                assert!(link.is_pending());
            },
            &mut link,
            |link| {
                let packet = receive(link).unwrap();
                link.settle();
                packet
            },
        );
        assert!(!link.is_pending());
    }
}

#[test]
fn refuses_payload_limits_that_are_not_allowed() {
    for payload_max in [0, 63, (64 << 10) + 1, usize::MAX] {
        let refused = PairLink::to_itself(Geometry::DEFAULT, payload_max).err();
        assert_eq!(refused, Some(LinkError::PayloadMax(payload_max)));
    }
}

#[test]
fn full_until_something_is_taken() {
    let mut link = PairLink::to_itself(Geometry::new(8, 128 << 10).unwrap(), 64).unwrap();
    let data = bytes(0, 16);
    let mut sent = 0;
    while link
        .try_send(&header(0, 16), &[], &[Part::Bytes(&data)])
        .is_ok()
    {
        sent += 1;
    }
    assert_eq!(sent, 8);
    assert!(receive(&mut link).unwrap().is_some());
    link.settle();
    assert_eq!(
        link.try_send(&header(0, 16), &[], &[Part::Bytes(&data)]),
        Ok(())
    );
    assert_eq!(
        link.try_send(&header(0, 16), &[], &[Part::Bytes(&data)]),
        Err(Unsent::Full)
    );
}
