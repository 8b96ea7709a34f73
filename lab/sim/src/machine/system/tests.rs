//! The machine keeps the engine's promises, and its clock adds up.

use super::*;
use crate::machine::host::METADATA_BYTE;

fn pattern(system: &System, host: usize, bytes: usize) -> Vec<u8> {
    use hamlyn_engine::memory::Area;
    let bytes: Vec<u8> = (0..bytes).map(|at| (at * 7 + 3) as u8).collect();
    system.sending_area(host).write(0, &bytes).unwrap();
    bytes
}

/// Everything that was charged on a message's way is its latency, neither more nor less, whichever
/// part waited for another.
#[test]
fn the_component_times_of_a_message_sum_to_its_latency() {
    for (protocol, data_bytes, metadata_bytes, packet_bytes) in [
        (Protocol::Raw, 16, 0, 256),
        (Protocol::Tagged, 100, 0, 256),
        (Protocol::Tagged, 200, 0, 256),
        (Protocol::Datagram, 0, 0, 256),
        (Protocol::Datagram, 1_000, 60, 256),
        (Protocol::Datagram, 40_960, 4, 4_096),
    ] {
        for (machine, hosts, to) in [
            (Machine::hamlyn(), 2, 1),
            (Machine::hamlyn(), 1, 0),
            (Machine::pair_of_today(), 2, 1),
            (Machine::pair_of_today(), 1, 0),
        ] {
            let mut system = System::new(&machine, hosts, packet_bytes, 1);
            let sent = pattern(&system, 0, data_bytes);
            system.listen(to, protocol);
            let message = OutgoingMessage {
                metadata_bytes,
                ..OutgoingMessage::new(to, protocol, data_bytes)
            };
            let began = system.now();
            system.send(0, &message).unwrap();
            let arrival = system.await_message(to).unwrap();
            assert_eq!(
                arrival.times.total(),
                arrival.at.since(began),
                "{message:?}"
            );
            let came = system.receiving_area(to).copy(0..data_bytes).unwrap();
            assert_eq!(came, sent);
            if protocol == Protocol::Datagram && metadata_bytes != 0 {
                let metadata = system.metadata(to, &arrival.notification);
                assert_eq!(metadata, vec![METADATA_BYTE; metadata_bytes]);
            }
            assert_eq!(system.await_message(to), None);
        }
    }
}

#[test]
fn a_wrong_key_is_refused_and_nothing_is_announced() {
    let mut system = System::new(&Machine::hamlyn(), 2, 256, 1);
    pattern(&system, 0, 64);
    let message = OutgoingMessage {
        has_key: false,
        ..OutgoingMessage::new(1, Protocol::Datagram, 64)
    };
    system.send(0, &message).unwrap();
    assert_eq!(system.await_message(1), None);
    assert_eq!(system.refused(1), 1);
    assert_eq!(system.receiving_area(1).copy(0..64).unwrap(), vec![0; 64]);
}

/// Many senders, one receiver that cannot keep up: the card's memory fills, the wire stands still,
/// the work queues fill, the senders wait, and all of it arrives (Hamlyn 2.8).
#[test]
fn back_pressure_reaches_the_senders_and_nothing_is_lost() {
    let machine = Machine::hamlyn();
    let machine = machine.with("board.arrivals_max", |_| 2_048.0).unwrap();
    let mut system = System::new(&machine, 4, 256, 1);
    let began = system.now();
    for _ in 0..100 {
        for from in 1..4 {
            system
                .send(from, &OutgoingMessage::new(0, Protocol::Datagram, 1_024))
                .unwrap();
        }
    }
    let unhindered = machine.software("datagram").send() + machine.stores(1, 0);
    assert!(system.now().since(began) > unhindered * 300 * 2);
    let mut came = 0;
    while system.await_message(0).is_some() {
        came += 1;
    }
    assert_eq!(came, 300);
}

#[test]
fn the_same_twice() {
    let run = || {
        let mut system = System::new(&Machine::hamlyn(), 3, 512, 9);
        let mut seen = Vec::new();
        for round in 0..20 {
            system
                .send(
                    round % 3,
                    &OutgoingMessage::new((round + 1) % 3, Protocol::Datagram, 900 * round),
                )
                .unwrap();
        }
        for host in 0..3 {
            while let Some(arrival) = system.await_message(host) {
                seen.push((host, arrival));
            }
        }
        (seen, system.now(), system.happened())
    };
    assert_eq!(run(), run());
}
