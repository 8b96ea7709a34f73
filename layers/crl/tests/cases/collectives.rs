//! Operations of all nodes together.

use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn_crl::{CrlError, Kind, Regions};

use crate::World;

pub(crate) fn barriers_separate_phases(world: World) {
    for nodes in [1, 2, 3, 8] {
        let entered = AtomicU32::new(0);
        world.run(nodes, &|crl| {
            for phase in 0..20 {
                entered.fetch_add(1, Ordering::SeqCst);
                crl.barrier().unwrap();
                let now = entered.load(Ordering::SeqCst);
                let all = nodes as u32;
                assert!(now >= (phase + 1) * all && now < (phase + 2) * all);
            }
            // lg n messages of each node.
            let rounds = nodes.next_power_of_two().trailing_zeros();
            assert_eq!(crl.statistics().sent(Kind::Barrier), u64::from(20 * rounds));
        });
    }
}

pub(crate) fn broadcasts_of_every_length_come_from_every_node(world: World) {
    for nodes in [2, 3, 5, 8] {
        let messages = AtomicU32::new(0);
        world.run(nodes, &|crl| {
            for round in 0..3 {
                for root in 0..crl.nodes() {
                    let bytes = [0, 1, 9_000][round] + root as usize;
                    let expected: Vec<u8> = (0..bytes)
                        .map(|at| (at * 7 + root as usize + round) as u8)
                        .collect();
                    if root == crl.me() {
                        crl.broadcast(&expected).unwrap();
                        continue;
                    }
                    let mut received = vec![0; bytes];
                    crl.receive_broadcast(&mut received).unwrap();
                    assert_eq!(received, expected);
                }
            }
            // One that is not expected so long is taken.
            if crl.me() == 0 {
                crl.broadcast(&[1; 3]).unwrap();
                crl.broadcast(&[2; 2]).unwrap();
            } else {
                let mut bytes = [0; 2];
                let expected = CrlError::BroadcastLength {
                    bytes: 3,
                    expected_bytes: 2,
                };
                assert_eq!(crl.receive_broadcast(&mut bytes), Err(expected));
                crl.receive_broadcast(&mut bytes).unwrap();
                assert_eq!(bytes, [2; 2]);
            }
            // A node that is ahead.
            for number in 0..40_u8 {
                let mut bytes = [number];
                match crl.me() {
                    0 => crl.broadcast(&bytes).unwrap(),
                    _ => crl.receive_broadcast(&mut bytes).unwrap(),
                }
                assert_eq!(bytes, [number]);
            }
            let sent = crl.statistics().sent(Kind::Broadcast) as u32;
            messages.fetch_add(sent, Ordering::SeqCst);
        });
        // Each other node gets each once; those of 9,000 bytes have pieces.
        let others = nodes as u32 - 1;
        let least = others * (4 * nodes as u32 + 42);
        let sent = messages.into_inner();
        assert!(
            sent >= least && sent.is_multiple_of(others),
            "{sent}, not {least}"
        );
        let pieces = world.pieces_max(9_000 + nodes) as u32;
        let most = least + others * (pieces - 2) * nodes as u32;
        assert!(sent <= most, "{sent}, not {most}");
    }
}

pub(crate) fn reductions_are_the_same_bits_everywhere(world: World) {
    // Sums that depend on the order of their terms.
    let value =
        |node: u32, round: u32| f64::from(node * 31 + round).sin() * 10_f64.powi(node as i32);
    for nodes in [1, 2, 3, 4, 6, 8] {
        world.run(nodes, &|crl| {
            for round in 0..10 {
                let own = value(crl.me(), round);
                let all = (0..crl.nodes()).map(|node| value(node, round));
                let sum = all.clone().fold(-0.0, |sum, value| sum + value);
                assert_eq!(crl.reduce_add(own).unwrap().to_bits(), sum.to_bits());
                let least = all.clone().fold(f64::INFINITY, f64::min);
                assert_eq!(crl.reduce_min(own), Ok(least));
                assert_eq!(
                    crl.reduce_max(own),
                    Ok(all.fold(f64::NEG_INFINITY, f64::max))
                );
            }
        });
    }
}
