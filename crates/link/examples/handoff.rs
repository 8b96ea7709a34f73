//! How close a packet comes to the raw hand-off of a cache line.
//!
//! Two threads, each on a processor of its own, pass 16 bytes back and forth:
//! as bytes and a flag in one line (raw), and as packets of a pair link that are
//! deposited into an area. The raw figure is taken before and after; a round in
//! which the two differ by more than 15 % is not counted. Then a stream one way.
//!
//! `cargo run --release -p hamlyn-link --example handoff`

use std::hint::spin_loop;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use hamlyn_engine::key::Key;
use hamlyn_engine::memory::{Part, Payload};
use hamlyn_engine::packet::{Flags, Header, Kind, SlotName};
use hamlyn_link::pair::{PAYLOAD_MAX_DEFAULT_BYTES, PairLink, PairParts};
use hamlyn_link::{ReceiveEnd, TransmitEnd};
use hamlyn_ring::area::Area;
use hamlyn_ring::doorbell::Fence;
use hamlyn_ring::duplex::LineOrder;
use hamlyn_ring::geometry::Geometry;
use hamlyn_ring::memfd::Memfd;
use hamlyn_ring::ready_bitmap::READY_BITMAP_BYTES;
use hamlyn_ring::shared::Access;
use rustix::thread::{CpuSet, sched_setaffinity};

const KEY: u64 = 77;
const ROUND_TRIPS: u64 = 200_000;
const STREAM: u64 = 20_000_000;
const ROUNDS: usize = 15;

fn pin(processor: usize) {
    let mut set = CpuSet::new();
    set.set(processor);
    if sched_setaffinity(None, &set).is_err() {
        eprintln!("not pinned to processor {processor}");
    }
}

fn pair(geometry: Geometry) -> (PairLink, PairLink) {
    let memory =
        || Memfd::create_ring("handoff", geometry, PAYLOAD_MAX_DEFAULT_BYTES).expect("memory");
    let (one, other) = (memory(), memory());
    let (left, right) = UnixStream::pair().expect("sockets");
    let make = |receive: &Memfd, send: &Memfd, socket: UnixStream, order| {
        let ready_bitmap =
            Memfd::create("handoff-ready-bits", READY_BITMAP_BYTES, READY_BITMAP_BYTES)
                .expect("ready_bitmap");
        PairLink::new(PairParts {
            receive: receive.map(Access::Writable).expect("map"),
            receive_geometry: geometry,
            receive_log: None,
            send_log: None,
            send: send.map(Access::Writable).expect("map"),
            send_file: std::os::fd::AsFd::as_fd(send)
                .try_clone_to_owned()
                .expect("descriptor"),
            send_geometry: geometry,
            order,
            peer_bitmap: ready_bitmap.map(Access::Writable).expect("map"),
            bit_at_peer: 0,
            ready_bit: 0,
            lease: None,
            fence: Fence::Light,
            doorbell: std::os::fd::OwnedFd::from(socket).into(),
            payload_max_bytes: PAYLOAD_MAX_DEFAULT_BYTES,
        })
        .expect("link")
    };
    (
        make(&one, &other, left, LineOrder::First),
        make(&other, &one, right, LineOrder::Second),
    )
}

fn header(offset: u64, length: usize) -> Header {
    Header {
        slot: SlotName::new(3, 1),
        metadata_index: u16::MAX,
        key: Key::from_bits(KEY),
        offset,
        length_bytes: length as u32,
        word: 0,
        metadata_length_bytes: 0,
        flags: Flags::NONE,
        kind: Kind::WRITE,
    }
}

#[inline(always)]
fn send(link: &mut PairLink, offset: u64, bytes: &[u8]) {
    let header = header(offset, bytes.len());
    while link
        .transmit
        .try_send(&header, &[], &[Part::Bytes(bytes)])
        .is_err()
    {
        spin_loop();
    }
}

/// What an engine does at least: key, bounds, deposit.
#[inline(always)]
fn poll(link: &mut PairLink, area: &Area) -> Option<u64> {
    link.receive
        .receive(|header, payload| {
            assert!(header.slot.index() == 3 && header.key.to_bits() == KEY);
            payload.deposit(area, header.offset).expect("in the area");
            header.offset
        })
        .expect("no fault")
}

fn nanoseconds(count: u64, run: impl FnOnce()) -> f64 {
    let start = Instant::now();
    run();
    start.elapsed().as_nanos() as f64 / count as f64
}

#[repr(align(128))]
#[derive(Default)]
struct Line([AtomicU64; 8]);

impl Line {
    fn put(&self, number: u64) {
        self.0[1].store(number, Ordering::Relaxed);
        self.0[2].store(number, Ordering::Relaxed);
        self.0[0].store(number, Ordering::Release);
    }

    fn wait(&self, number: u64) {
        while self.0[0].load(Ordering::Acquire) != number {
            spin_loop();
        }
        std::hint::black_box((
            self.0[1].load(Ordering::Relaxed),
            self.0[2].load(Ordering::Relaxed),
        ));
    }
}

/// Runs `there` on one processor and `here` on the other; the time of `here` per round trip,
/// halved.
fn half_round_trip(there: impl FnOnce() + Send, here: impl FnOnce()) -> f64 {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            pin(1);
            there();
        });
        nanoseconds(ROUND_TRIPS, here) / 2.0
    })
}

fn raw() -> f64 {
    let (to, from) = (Arc::new(Line::default()), Arc::new(Line::default()));
    half_round_trip(
        || (1..=ROUND_TRIPS).for_each(|number| (to.wait(number), from.put(number)).1),
        || (1..=ROUND_TRIPS).for_each(|number| (to.put(number), from.wait(number)).1),
    )
}

fn linked() -> f64 {
    let (mut left, mut right) = pair(Geometry::DEFAULT);
    let (here, there) = (
        Area::new(4096).expect("area"),
        Area::new(4096).expect("area"),
    );
    half_round_trip(
        move || {
            let mut bytes = [0; 16];
            for _ in 0..ROUND_TRIPS {
                let offset = loop {
                    match poll(&mut right, &there) {
                        Some(offset) => break offset,
                        None => spin_loop(),
                    }
                };
                there.read_at(offset, &mut bytes).expect("in the area");
                send(&mut right, offset, &bytes);
            }
        },
        move || {
            for number in 0..ROUND_TRIPS {
                send(&mut left, number % 64 * 16, &[number as u8; 16]);
                while poll(&mut left, &here).is_none() {
                    spin_loop();
                }
            }
        },
    )
}

/// Millions of messages of `length` bytes a second.
fn stream(cells: u32, count: u64, length: usize) -> f64 {
    let (mut left, mut right) = pair(Geometry::new(cells, 1 << 20).expect("geometry"));
    let area = Area::new(64 << 10).expect("area");
    let bytes = vec![7; length];
    std::thread::scope(|scope| {
        let receiver = scope.spawn(move || {
            pin(1);
            let mut taken = 0;
            while taken < count {
                match poll(&mut right, &area) {
                    Some(_) => taken += 1,
                    None => {
                        right.receive.return_credit();
                        spin_loop();
                    }
                }
            }
        });
        let time = nanoseconds(count, || {
            for number in 0..count {
                send(&mut left, number % 64 * 16, &bytes);
            }
            receiver.join().expect("receiver");
        });
        1000.0 / time
    })
}

fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures.get(figures.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    pin(0);
    let (mut raws, mut links, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let (before, link, after) = (raw(), linked(), raw());
        if (before / after - 1.0).abs() > 0.15 {
            continue;
        }
        raws.push((before + after) / 2.0);
        links.push(link);
        ratios.push(link / ((before + after) / 2.0));
    }
    println!(
        "one way, 16 bytes: raw {:.1} ns, link {:.1} ns, ratio {:.3} (median of {})",
        median(raws),
        median(links),
        median(ratios.clone()),
        ratios.len()
    );
    for cells in [256, 1024, 8192] {
        let rates = (0..5).map(|_| stream(cells, STREAM, 16)).collect();
        println!(
            "stream, 16 bytes, {cells} cells: {:.1} million a second",
            median(rates)
        );
    }
    for length in [64, 256, 1024, 4096, 16384] {
        let count = (1 << 32) / length as u64 / 4;
        let rate = median(
            (0..3)
                .map(|_| stream(256, count.min(STREAM), length))
                .collect(),
        );
        println!(
            "stream, {length} bytes: {:.1} GB/s",
            rate * length as f64 / 1000.0
        );
    }
}
