//! The link with oneself.

use hamlyn_engine::memory::{Part, Unsent};
use hamlyn_ring::doorbell::Fence;
use rustix::event::{EventfdFlags, eventfd};

use super::*;
use crate::carrier::tests::{bytes, carries_everything, header, receive};
use crate::{ReceiveEnd, TransmitEnd};

fn to_itself(geometry: Geometry, payload_max: usize) -> Result<PairLink, LinkError> {
    let event_fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    PairLink::to_itself(geometry, payload_max, Fence::Heavy, event_fd)
}

#[test]
fn rings_the_alarm_only_when_its_driver_sleeps() {
    let event_fd = eventfd(0, EventfdFlags::NONBLOCK).unwrap();
    let heard = event_fd.try_clone().unwrap();
    let is_rung = || rustix::io::read(&heard, &mut [0_u8; 8]).is_ok();
    let mut link = PairLink::to_itself(Geometry::DEFAULT, 64, Fence::Heavy, event_fd).unwrap();
    let send = |link: &mut PairLink| {
        let data = bytes(0, 16);
        let sent = link
            .transmit
            .try_send(&header(0, 16), &[], &[Part::Bytes(&data)]);
        assert_eq!(sent, Ok(()));
    };
    send(&mut link);
    assert!(!is_rung());
    link.receive.announce_sleep();
    send(&mut link);
    assert!(is_rung());
    link.receive.suppress_events();
    send(&mut link);
    assert!(!is_rung());
}

#[test]
fn carries_packets_of_every_shape() {
    for payload_max in [64, 4096, 16 << 10, 64 << 10] {
        let mut link = to_itself(Geometry::DEFAULT, payload_max).unwrap();
        carries_everything(
            |link: &mut PairLink, header, metadata, parts| {
                link.transmit.try_send(header, metadata, parts).unwrap();
                assert!(link.receive.is_pending());
            },
            &mut link,
            |link| {
                let packet = receive(link).unwrap();
                link.receive.return_credit();
                packet
            },
        );
        assert!(!link.receive.is_pending());
    }
}

#[test]
fn refuses_payload_limits_that_are_not_allowed() {
    for payload_max in [0, 63, (64 << 10) + 1, usize::MAX] {
        let refused = to_itself(Geometry::DEFAULT, payload_max).err();
        assert_eq!(refused, Some(LinkError::PayloadMax(payload_max)));
    }
}

#[test]
fn full_until_something_is_taken() {
    let mut link = to_itself(Geometry::new(8, 128 << 10).unwrap(), 64).unwrap();
    let data = bytes(0, 16);
    let mut sent = 0;
    while link
        .transmit
        .try_send(&header(0, 16), &[], &[Part::Bytes(&data)])
        .is_ok()
    {
        sent += 1;
    }
    assert_eq!(sent, 8);
    assert!(receive(&mut link).unwrap().is_some());
    link.receive.return_credit();
    assert_eq!(
        link.transmit
            .try_send(&header(0, 16), &[], &[Part::Bytes(&data)]),
        Ok(())
    );
    assert_eq!(
        link.transmit
            .try_send(&header(0, 16), &[], &[Part::Bytes(&data)]),
        Err(Unsent::Full)
    );
}
