//! What a short packet costs in the transport, both ends together: offered, put into a frame, taken
//! out of it, acknowledged. No wire, no cipher.
//! `cargo run --release -p hamlyn-engine --example transport`

use std::hint::black_box;
use std::time::Instant;

use hamlyn_engine::key::Key;
use hamlyn_engine::limits::FAST_INDEX;
use hamlyn_engine::packet::{Address, Short, SlotName};
use hamlyn_engine::transport::{Association, Incoming, Packet, Packets, Settings};

const PACKETS: u64 = 5_000_000;
const ROUNDS: usize = 7;

fn main() {
    let mut all: Vec<f64> = (0..ROUNDS).map(|_| round()).collect();
    all.sort_by(f64::total_cmp);
    println!(
        "ns per short packet, median of {ROUNDS}: {:.1}",
        all[ROUNDS / 2]
    );
    println!("from {:.1} to {:.1}", all[0], all[ROUNDS - 1]);
}

fn round() -> f64 {
    let settings = Settings::default();
    let end = || Association::new(settings).expect("good settings");
    let (mut sender, mut receiver) = (end(), end());
    let mut frame = vec![0; settings.frame_bytes];
    let (mut number, mut taken, mut sum) = (0_u64, 0_u64, 0_u64);
    let begin = Instant::now();
    let mut now_ns = 0;
    while taken < PACKETS {
        now_ns += 1_000;
        while number < PACKETS {
            let short = Short {
                to: Address::new(SlotName::new(3, 1), FAST_INDEX),
                key: Key::from_bits(77),
                offset: number % 4_096 * 16,
                word: number.wrapping_mul(0x9E37_79B9),
                has_metadata: false,
                length_bytes: 16,
                data: [number, 1, 0, 0],
            };
            if sender.offer_short(black_box(&short)).is_err() {
                break;
            }
            number += 1;
        }
        if number == PACKETS {
            sender.flush();
        }
        while let Some(outgoing) = sender.next_frame(now_ns, &mut frame) {
            let frame = &frame[..outgoing.length_bytes];
            if let Incoming::Packets(token) = receiver.take_frame(now_ns, 0, frame) {
                for packet in Packets::new(&frame[token.range()]) {
                    if let Packet::Short(short) = black_box(packet) {
                        sum = sum.wrapping_add(short.data[0]);
                        taken += 1;
                    }
                }
                receiver.taken(now_ns, token);
            }
        }
        now_ns += 100_000;
        while let Some(outgoing) = receiver.next_frame(now_ns, &mut frame) {
            let _ = sender.take_frame(now_ns, 0, &frame[..outgoing.length_bytes]);
        }
    }
    let took = begin.elapsed();
    assert_eq!(sum, PACKETS * (PACKETS - 1) / 2);
    took.as_nanos() as f64 / PACKETS as f64
}
