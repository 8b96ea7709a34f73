//! A long path between the first two hosts of a testbed, by a relay in user space: base delay, a
//! rate with a queue, loss.
//!
//! Each host gets a TUN interface with an address of its own, whose packets a thread here carries
//! to the other one. So UDP and TCP go through the same thing, with the kernel's checksums and
//! without its offloads. One thread carries several hundred Mbit/s; without a delay it adds some
//! tens of microseconds.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::OFlags;
use rustix::ioctl::{Setter, opcode};

use crate::{TestHost, Testbed, TestbedError, ip, within};

/// The name of the interface in each host.
const INTERFACE: &str = "wan0";
/// Packets that the interface of a host keeps for the relay, so that a busy machine loses none of
/// them.
const INTERFACE_PACKETS: &str = "10000";
/// Packets are no longer.
const MTU_BYTES: usize = 1_500;
/// Packets that are read from one host before the other has its turn.
const TURN_PACKETS: usize = 64;
/// Packets that are under way in one direction at most.
const UNDER_WAY_MAX: usize = 1 << 17;
/// How long the relay sleeps at most, and so how long it takes to end.
const SLEEP_MAX: Duration = Duration::from_millis(50);

/// The longest base that a path may have.
pub const BASE_MAX: Duration = Duration::from_secs(2);

/// What a long path is like; the same in both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct LongPath {
    /// There and back, without queues.
    pub base: Duration,
    /// The rate of each direction; zero is as much as the relay carries.
    pub mbit: u64,
    /// Bytes that wait for it at most.
    pub queue_bytes: u64,
    /// Packets that are lost, in a million.
    pub lost_per_million: u32,
}

/// What became of the packets of both directions.
#[derive(Debug, Default)]
struct Counts {
    carried: AtomicU64,
    lost: AtomicU64,
    overflowed: AtomicU64,
}

/// The relay; the path goes when this goes.
#[derive(Debug)]
pub struct Relay {
    stops: Arc<AtomicBool>,
    counts: Arc<Counts>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Packets that were carried, lost by chance, and lost at a full queue.
    pub fn packets(&self) -> [u64; 3] {
        let Counts {
            carried,
            lost,
            overflowed,
        } = &*self.counts;
        [carried, lost, overflowed].map(|count| count.load(Ordering::Relaxed))
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stops.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // It has no panic of its own to tell of.
            let _ = thread.join();
        }
    }
}

impl Testbed {
    /// A long path between the first two hosts, beside their cable: they have
    /// [`TestHost::far_address`] on it.
    ///
    /// # Errors
    ///
    /// [`TestbedError`], also if there is no `/dev/net/tun`.
    pub fn long_path(&self, path: LongPath) -> Result<Relay, TestbedError> {
        let base_ms = path.base.as_millis() as usize;
        within(
            "the base in milliseconds",
            base_ms,
            0,
            BASE_MAX.as_millis() as usize,
        )?;
        let [first, second] = [open(&self.hosts()[0])?, open(&self.hosts()[1])?];
        let (stops, counts) = (Arc::<AtomicBool>::default(), Arc::<Counts>::default());
        let carrier = Carrier {
            path,
            ways: [Way::new(first), Way::new(second)],
            counts: Arc::clone(&counts),
            random: 0x9E37_79B9_7F4A_7C15,
        };
        let told = Arc::clone(&stops);
        let thread = std::thread::spawn(move || carrier.run(&told));
        Ok(Relay {
            stops,
            counts,
            thread: Some(thread),
        })
    }
}

impl TestHost {
    /// Its address on a long path, if there is one.
    pub fn far_address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 78, 0, self.number)
    }
}

/// The relay's end of the interface of a host.
fn open(host: &TestHost) -> Result<File, TestbedError> {
    let opened = host.within(|| {
        let nonblocking = OFlags::NONBLOCK.bits() as i32;
        let mut options = OpenOptions::new();
        let device = options.read(true).write(true).custom_flags(nonblocking);
        let device = device.open("/dev/net/tun")?;
        attach(&device)?;
        Ok(device)
    });
    let opened: std::io::Result<File> = opened.and_then(|inner| inner);
    let device = opened.map_err(|error| TestbedError::NotPermitted {
        arguments: "tuntap add".to_owned(),
        said: error.to_string(),
    })?;
    let (namespace, address) = (&host.namespace, format!("{}/24", host.far_address()));
    let mtu = MTU_BYTES.to_string();
    ip(&[
        "-n", namespace, "address", "add", &address, "dev", INTERFACE,
    ])?;
    ip(&[
        "-n",
        namespace,
        "link",
        "set",
        INTERFACE,
        "mtu",
        &mtu,
        "txqueuelen",
        INTERFACE_PACKETS,
        "up",
    ])?;
    Ok(device)
}

/// What the kernel wants to know of a new interface: `struct ifreq`.
#[repr(C)]
struct Request {
    name: [u8; 16],
    flags: u16,
    rest: [u8; 22],
}

/// Makes the device the interface of this namespace.
#[allow(unsafe_code, reason = "there is no safe call for it")]
fn attach(device: &File) -> std::io::Result<()> {
    /// An interface of packets of IP, without a header of its own before them.
    const TUN_WITHOUT_HEADER: u16 = 0x1001;
    const TUNSETIFF: rustix::ioctl::Opcode = opcode::write::<i32>(b'T', 202);
    let mut name = [0; 16];
    name[..INTERFACE.len()].copy_from_slice(INTERFACE.as_bytes());
    let request = Request {
        name,
        flags: TUN_WITHOUT_HEADER,
        rest: [0; 22],
    };
    // SAFETY: TUNSETIFF reads a `struct ifreq` of 40 bytes, which `Request` is, and keeps no
    // pointer to it.
    unsafe {
        let set = Setter::<TUNSETIFF, Request>::new(request);
        rustix::ioctl::ioctl(device.as_fd(), set)?;
    }
    Ok(())
}

/// The bytes of a packet, which stay where they are while it is under way.
type Bytes = Box<[u8; MTU_BYTES]>;

/// A packet under way.
struct Packet {
    due: Instant,
    length: usize,
    bytes: Bytes,
}

/// One host's end, and what is under way from it.
struct Way {
    device: File,
    under_way: VecDeque<Packet>,
    /// When all that waits for the rate has gone.
    free: Instant,
}

impl Way {
    fn new(device: File) -> Self {
        Self {
            device,
            under_way: VecDeque::new(),
            free: Instant::now(),
        }
    }
}

struct Carrier {
    path: LongPath,
    ways: [Way; 2],
    counts: Arc<Counts>,
    random: u64,
}

impl Carrier {
    fn run(mut self, stops: &AtomicBool) {
        // Or each sleep is fifty microseconds too long.
        let _ = rustix::thread::set_current_timer_slack(core::num::NonZeroU64::new(1));
        let mut spare = Vec::new();
        while !stops.load(Ordering::Relaxed) {
            let now = Instant::now();
            let next = self.deliver(now, &mut spare);
            if !self.take_in(&mut spare) {
                self.sleep(next);
            }
        }
    }

    /// Delivers what is due; when the next packet is.
    fn deliver(&mut self, now: Instant, spare: &mut Vec<Bytes>) -> Option<Instant> {
        let [first, second] = &mut self.ways;
        let pairs = [
            (&mut first.under_way, &second.device),
            (&mut second.under_way, &first.device),
        ];
        for (under_way, mut device) in pairs {
            while under_way.front().is_some_and(|packet| packet.due <= now) {
                let Some(packet) = under_way.pop_front() else {
                    break;
                };
                if device.write(&packet.bytes[..packet.length]).is_ok() {
                    self.counts.carried.fetch_add(1, Ordering::Relaxed);
                } else {
                    self.counts.overflowed.fetch_add(1, Ordering::Relaxed);
                }
                spare.push(packet.bytes);
            }
        }
        let due = |way: &Way| way.under_way.front().map(|packet| packet.due);
        self.ways.iter().filter_map(due).min()
    }

    /// Takes in what the hosts send; whether there was anything.
    fn take_in(&mut self, spare: &mut Vec<Bytes>) -> bool {
        let mut is_any = false;
        for way in 0..2 {
            for _ in 0..TURN_PACKETS {
                let mut bytes = spare.pop().unwrap_or_else(|| Box::new([0; MTU_BYTES]));
                let Ok(length @ 1..) = self.ways[way].device.read(&mut bytes[..]) else {
                    spare.push(bytes);
                    break;
                };
                is_any = true;
                match self.due(way, length as u64) {
                    Some(due) => self.ways[way]
                        .under_way
                        .push_back(Packet { due, length, bytes }),
                    None => spare.push(bytes),
                }
            }
        }
        is_any
    }

    /// When a packet that has come now is to be delivered, if it is.
    fn due(&mut self, way: usize, bytes: u64) -> Option<Instant> {
        let now = Instant::now();
        if self.random() % 1_000_000 < u64::from(self.path.lost_per_million) {
            self.counts.lost.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let way = &mut self.ways[way];
        let mut goes = now;
        if let Some(ns_per_kilobyte) = 8_000_000_u64.checked_div(self.path.mbit) {
            let begins = way.free.max(now);
            let waiting_ns = (begins - now).as_nanos() as u64;
            let waiting_bytes = waiting_ns * 1_000 / ns_per_kilobyte.max(1);
            if waiting_bytes + bytes > self.path.queue_bytes {
                self.counts.overflowed.fetch_add(1, Ordering::Relaxed);
                return None;
            }
            goes = begins + Duration::from_nanos(bytes * ns_per_kilobyte / 1_000);
            way.free = goes;
        }
        if way.under_way.len() >= UNDER_WAY_MAX {
            self.counts.overflowed.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        Some(goes + self.path.base / 2)
    }

    /// `SplitMix64`: the same packets of a run are lost each time.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.random;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    fn sleep(&self, next: Option<Instant>) {
        let left = next.map_or(SLEEP_MAX, |next| {
            next.saturating_duration_since(Instant::now())
                .min(SLEEP_MAX)
        });
        let span = Timespec {
            tv_sec: 0,
            tv_nsec: left.as_nanos() as i64,
        };
        let [first, second] = &self.ways;
        let mut devices = [&first.device, &second.device]
            .map(|device| PollFd::from_borrowed_fd(device.as_fd(), PollFlags::IN));
        // If it cannot wait, it looks again at once.
        let _ = rustix::event::poll(&mut devices, Some(&span));
    }
}
