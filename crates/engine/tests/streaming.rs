//! Messages sent from the bytes of their owner, without a place in the queue.

use crate::host::{Packet, Wires, message, one, pattern};
use crate::model;
use hamlyn_engine::limits::STREAMING_BURST;
use hamlyn_engine::packet::Header;
use hamlyn_engine::terminus::{Completion, PostError};
use hamlyn_engine::transmit::SendProgress;

#[test]
fn a_streaming_send_reads_the_callers_bytes_and_yields_after_a_burst() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 3);
    let data = pattern(5, 64 * (2 * STREAMING_BURST + 8));
    let metadata = pattern(6, 10);
    let mut segmenter = transmitter
        .begin_streaming(
            terminus,
            &message(link),
            &metadata,
            data.len() as u64,
            &wires,
        )
        .unwrap();
    let mut turn = |wires: &mut Wires| {
        transmitter
            .continue_streaming(terminus, link, &mut segmenter, &metadata, &data, wires)
            .unwrap()
    };
    assert_eq!(turn(&mut wires), SendProgress::Full);
    assert_eq!(wires.wire(link).packets.len(), 3);
    wires.wire(link).room = usize::MAX;
    assert_eq!(turn(&mut wires), SendProgress::More);
    assert_eq!(wires.wire(link).packets.len(), 3 + STREAMING_BURST);
    assert_eq!(turn(&mut wires), SendProgress::More);
    assert_eq!(turn(&mut wires), SendProgress::Sent);
    let handle = transmitter.finish_streaming(terminus).unwrap();
    assert_eq!(handle.sequence, 1);
    assert_eq!(transmitter.completion(handle), Ok(Completion::Sent));
    let packets = wires.drain(link);
    for (packet, (offset, metadata, data, word)) in
        packets
            .iter()
            .zip(model::cut(0, &metadata, &data, 64, 1 << 32, 1 << 32))
    {
        assert_eq!(
            *packet,
            Packet::new(
                Header {
                    offset,
                    word,
                    ..message(link).header
                },
                &metadata,
                &data
            )
        );
    }
    assert_eq!(packets.len(), 2 * STREAMING_BURST + 9);
}

#[test]
fn a_streaming_send_waits_for_its_queue_and_learns_of_a_lost_link() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 0);
    transmitter
        .post(terminus, &message(link), &[], &[1], &mut wires)
        .unwrap();
    let refused = transmitter.begin_streaming(terminus, &message(link), &[], 10, &wires);
    assert_eq!(refused.unwrap_err(), PostError::QueueFull);
    wires.wire(link).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    let mut segmenter = transmitter
        .begin_streaming(terminus, &message(link), &[], 10, &wires)
        .unwrap();
    wires.lose(link);
    let state =
        transmitter.continue_streaming(terminus, link, &mut segmenter, &[], &[0; 10], &mut wires);
    assert_eq!(state, Ok(SendProgress::Gone));
    assert!(!transmitter.is_waiting());
}

#[test]
fn a_streaming_send_does_not_complete_queued_messages() {
    let (mut transmitter, terminus) = one();
    let (mut wires, link) = Wires::with_room(64, 1);
    let other = wires.add(64, 0);
    let mut segmenter = transmitter
        .begin_streaming(terminus, &message(link), &[], 10, &wires)
        .unwrap();
    let queued = transmitter
        .post(terminus, &message(other), &[], &[1], &mut wires)
        .unwrap()
        .handle;
    let state =
        transmitter.continue_streaming(terminus, link, &mut segmenter, &[], &[0; 10], &mut wires);
    assert_eq!(state, Ok(SendProgress::Sent));
    // What waits for another link holds up nothing here, and is not done with it.
    let streaming = transmitter.finish_streaming(terminus).unwrap();
    assert_eq!((queued.sequence, streaming.sequence), (1, 2));
    let states = [queued, streaming].map(|handle| transmitter.completion(handle).unwrap());
    assert_eq!(states, [Completion::Pending, Completion::Sent]);
    wires.wire(other).room = 1;
    transmitter.pump(&mut wires, usize::MAX);
    assert_eq!(transmitter.completion(queued), Ok(Completion::Sent));
}
