//! The wire beside plain sockets, on one wire, in one run: one-way times and streams, clear and
//! sealed.
//!
//! `udp_wire` runs over the loopback; `udp_wire FROM TO` between these two addresses, each of which
//! may be `NAMESPACE/ADDRESS`: then its sockets are made in that network namespace. Medians of five
//! runs, with the least and the greatest.

use std::fs::File;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hamlyn_link::udp::batch::{Batch, Inbox};
use hamlyn_link::udp::packet_header::{Kind, PACKET_HEADER_BYTES, PacketHeader};
use hamlyn_link::udp::protection::{Key, RxProtection, TxProtection};
use hamlyn_link::udp::socket::{SendError, Socket, SocketSettings};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

const ROUNDS: usize = 20_000;
const WARM: usize = 2_000;
const STREAM: Duration = Duration::from_millis(700);
const RUNS: usize = 5;

fn main() {
    let end = |argument| {
        let argument = std::env::args().nth(argument);
        let argument = argument.unwrap_or_else(|| "127.0.0.1:0".to_owned());
        let (namespace, at) = match argument.split_once('/') {
            Some((namespace, at)) => (Some(namespace.to_owned()), at),
            None => (None, argument.as_str()),
        };
        let at = at.parse().expect("an address");
        Place { namespace, at }
    };
    let (one, other) = (&end(1), &end(2));
    report("raw one way ns (16 bytes)", || raw_ping(one, other));
    report("flow one way ns (16 bytes, clear, 36 on the wire)", || {
        flow_ping(one, other, &Key::Clear(7))
    });
    report("flow one way ns (16 bytes, sealed, 48 on the wire)", || {
        flow_ping(one, other, &Key::Encrypted([7; 32].into()))
    });
    for bytes in [1_400, 8_900] {
        report(&format!("raw stream GB/s, runs of {bytes}"), || {
            stream(one, other, bytes, None).0
        });
        report(&format!("clear stream GB/s of frames, {bytes}"), || {
            stream(one, other, bytes, Some(&Key::Clear(7))).0
        });
        report(&format!("sealed stream GB/s of frames, {bytes}"), || {
            stream(one, other, bytes, Some(&Key::Encrypted([7; 32].into()))).0
        });
    }
    for bytes in [16, 1_400, 8_900] {
        for (what, key) in [
            ("raw", None),
            ("clear", Some(Key::Clear(7))),
            ("encrypted", Some(Key::Encrypted([7; 32].into()))),
        ] {
            // A bare packet header has no room for a tag.
            if bytes > 16 || key.is_none() {
                alone(one, other, bytes, what, key.as_ref());
            }
        }
    }
    report("bare envelopes (16 bytes), millions a second", || {
        stream(one, other, 16, None).1
    });
}

/// Where a socket is made.
struct Place {
    namespace: Option<String>,
    at: SocketAddr,
}

impl Place {
    fn make<T: Send>(&self, make: impl FnOnce(SocketAddr) -> T + Send) -> T {
        let Some(namespace) = &self.namespace else {
            return make(self.at);
        };
        // A thread of its own, which stays there until it ends.
        std::thread::scope(|scope| {
            let inside = scope.spawn(|| {
                let file = File::open(format!("/run/netns/{namespace}")).expect("a namespace");
                let kind = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(file.as_fd(), kind).expect("entered");
                make(self.at)
            });
            inside.join().expect("a socket")
        })
    }
}

fn report(what: &str, mut run: impl FnMut() -> f64) {
    let mut results = (0..RUNS).map(|_| run()).collect::<Vec<_>>();
    results.sort_by(f64::total_cmp);
    println!(
        "{what:56} {:9.2}   ({:.2} to {:.2})",
        results[RUNS / 2],
        results[0],
        results[RUNS - 1]
    );
}

fn raw_ping(one: &Place, other: &Place) -> f64 {
    let (a, b) = (one.make(UdpSocket::bind), other.make(UdpSocket::bind));
    let (a, b) = (a.expect("a socket"), b.expect("a socket"));
    a.connect(b.local_addr().expect("bound")).expect("connect");
    b.connect(a.local_addr().expect("bound")).expect("connect");
    for socket in [&a, &b] {
        socket.set_nonblocking(true).expect("nonblocking");
    }
    let echo = std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        for _ in 0..ROUNDS + WARM {
            let length = spin(|| b.recv(&mut bytes).ok());
            b.send(&bytes[..length]).expect("send");
        }
    });
    let mut bytes = [0; 2048];
    let one_way = median_half(|| {
        a.send(&[1; 16]).expect("send");
        spin(|| a.recv(&mut bytes).ok());
    });
    echo.join().expect("echo");
    one_way
}

/// Half the median of round trips, in nanoseconds: a processor that is taken away now and then does
/// not show.
fn median_half(mut round: impl FnMut()) -> f64 {
    let mut times = Vec::with_capacity(ROUNDS + WARM);
    for _ in 0..ROUNDS + WARM {
        let began = Instant::now();
        round();
        times.push(began.elapsed());
    }
    let times = &mut times[WARM..];
    times.sort_unstable();
    times[ROUNDS / 2].as_nanos() as f64 / 2.0
}

fn spin<T>(mut attempt: impl FnMut() -> Option<T>) -> T {
    loop {
        if let Some(done) = attempt() {
            return done;
        }
        std::hint::spin_loop();
    }
}

fn sockets(one: &Place, other: &Place) -> (Socket, Socket) {
    let settings = SocketSettings::default();
    let mut a = one.make(|at| Socket::bind(at, &settings).expect("a flow"));
    let mut b = other.make(|at| Socket::bind(at, &settings).expect("a flow"));
    a.connect(b.local()).expect("connect");
    b.connect(a.local()).expect("connect");
    (a, b)
}

/// One end of a ping-pong.
struct End {
    socket: Socket,
    inbox: Inbox,
    tx_protection: TxProtection,
    rx_protection: RxProtection,
    datagram: [u8; 128],
}

impl End {
    fn new(socket: Socket, key: &Key) -> Self {
        Self {
            socket,
            inbox: Inbox::new(),
            tx_protection: TxProtection::new(key, 1),
            rx_protection: RxProtection::new(key, 1),
            datagram: [0; 128],
        }
    }

    fn send(&mut self, frame: &[u8]) {
        let length = self
            .tx_protection
            .protect(Kind::Data, 0, frame, &mut self.datagram);
        let length = length.expect("protected");
        self.socket
            .send_one(&self.datagram[..length])
            .expect("sent");
    }

    fn take(&mut self) -> [u8; 16] {
        loop {
            if self.socket.receive(&mut self.inbox).expect("received")
                && let Some(datagram) = self.inbox.next()
            {
                let opened = self
                    .rx_protection
                    .unprotect(datagram.bytes)
                    .expect("opened");
                return *opened.frame.first_chunk().expect("16 bytes");
            }
            std::hint::spin_loop();
        }
    }
}

fn flow_ping(one: &Place, other: &Place, key: &Key) -> f64 {
    let (a, b) = sockets(one, other);
    let mut b = End::new(b, key);
    let echo = std::thread::spawn(move || {
        for _ in 0..ROUNDS + WARM {
            let frame = b.take();
            b.send(&frame);
        }
    });
    let mut a = End::new(a, key);
    let one_way = median_half(|| {
        a.send(&[1; 16]);
        a.take();
    });
    echo.join().expect("echo");
    one_way
}

/// What each end costs, one after the other on one processor: medians of many batches.
fn alone(one: &Place, other: &Place, bytes: usize, what: &str, key: Option<&Key>) {
    let (mut a, b) = sockets(one, other);
    let mut source = Source::new(bytes, key);
    let mut rx_protection = key.map(|key| RxProtection::new(key, 1));
    let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
    let (mut sending, mut receiving) = (Vec::new(), Vec::new());
    for _ in 0..1_000 {
        let began = Instant::now();
        source.fill(&mut batch);
        let sent = a.send(&mut batch).expect("sent");
        sending.push(began.elapsed().as_nanos() as f64 / sent as f64);
        let began = Instant::now();
        let mut came = 0;
        while came < sent {
            b.receive(&mut inbox).expect("received");
            while let Some(datagram) = inbox.next() {
                came += 1;
                if let Some(rx_protection) = &mut rx_protection {
                    rx_protection.unprotect(datagram.bytes).expect("opened");
                }
            }
        }
        receiving.push(began.elapsed().as_nanos() as f64 / sent as f64);
    }
    let [send, receive] = [sending, receiving].map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    });
    println!(
        "{what:>6} {bytes:5} bytes: ns a datagram, sending {send:6.0}, receiving {receive:6.0}"
    );
}

/// Makes datagrams of one length.
struct Source {
    frame: Vec<u8>,
    tx_protection: Option<TxProtection>,
}

impl Source {
    fn new(bytes: usize, key: Option<&Key>) -> Self {
        // Datagrams say how long they are, so that what was joined can be told apart.
        let mut frame = vec![0x5a; bytes];
        let packet_header = PacketHeader {
            kind: Kind::Data,
            length_bytes: bytes as u16,
            phase: false,
            path: 0,
            association: 1,
            packet_number: 0,
        };
        frame[..PACKET_HEADER_BYTES].copy_from_slice(&packet_header.bytes());
        let tx_protection = key.map(|key| TxProtection::new(key, 1));
        Self {
            frame,
            tx_protection,
        }
    }

    fn fill(&mut self, batch: &mut Batch) {
        let bytes = self.frame.len();
        while let Some(room) = batch.room(bytes) {
            match &mut self.tx_protection {
                // As many bytes on the wire, whatever protects them.
                Some(tx_protection) => {
                    let frame_bytes = bytes - tx_protection.overhead_bytes();
                    room[PACKET_HEADER_BYTES..][..frame_bytes]
                        .copy_from_slice(&self.frame[..frame_bytes]);
                    let protected =
                        tx_protection.protect_in_place(Kind::Data, 0, room, frame_bytes);
                    assert_eq!(protected, Ok(bytes));
                }
                None => room.copy_from_slice(&self.frame),
            }
            batch.push(bytes);
        }
    }
}

/// Gigabytes of frames, and millions of datagrams, that arrive in a second. Without a key: of plain
/// bytes.
fn stream(one: &Place, other: &Place, bytes: usize, key: Option<&Key>) -> (f64, f64) {
    let (mut a, b) = sockets(one, other);
    let stop = Arc::new(AtomicBool::new(false));
    let [arrived, arrived_bytes] = [(); 2].map(|()| Arc::new(AtomicU64::new(0)));
    let counts = (Arc::clone(&arrived), Arc::clone(&arrived_bytes));
    let mut source = Source::new(bytes, key);
    let mut rx_protection = key.map(|key| RxProtection::new(key, 1));
    let stopped = Arc::clone(&stop);
    let receiver = std::thread::spawn(move || {
        let mut inbox = Inbox::new();
        while !stopped.load(Ordering::Relaxed) {
            if !b.receive(&mut inbox).expect("received") {
                std::hint::spin_loop();
                continue;
            }
            let (mut datagrams, mut sum) = (0, 0);
            while let Some(datagram) = inbox.next() {
                datagrams += 1;
                sum += match &mut rx_protection {
                    Some(rx_protection) => rx_protection
                        .unprotect(datagram.bytes)
                        .expect("opened")
                        .frame
                        .len(),
                    None => datagram.bytes.len(),
                } as u64;
            }
            counts.0.fetch_add(datagrams, Ordering::Relaxed);
            counts.1.fetch_add(sum, Ordering::Relaxed);
        }
    });
    let mut batch = Batch::new();
    let began = Instant::now();
    while began.elapsed() < STREAM {
        source.fill(&mut batch);
        match a.send(&mut batch) {
            Ok(_) | Err(SendError::Full) => {}
            Err(error) => panic!("{error}"),
        }
    }
    let seconds = began.elapsed().as_secs_f64();
    let counted = arrived.load(Ordering::Relaxed) as f64 / seconds / 1e6;
    let rate = arrived_bytes.load(Ordering::Relaxed) as f64 / seconds / 1e9;
    stop.store(true, Ordering::Relaxed);
    receiver.join().expect("receiver");
    (rate, counted)
}
