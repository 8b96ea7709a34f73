//! A long path is as long, as narrow and as lossy as it was told to be.

use std::net::UdpSocket;
use std::time::{Duration, Instant};

use hamlyn_testbed::{LongPath, Testbed};

fn sockets(testbed: &Testbed) -> [UdpSocket; 2] {
    let open = |host: usize| {
        let host = &testbed.hosts()[host];
        let socket = host.within(|| UdpSocket::bind((host.far_address(), 0)).unwrap());
        let socket = socket.unwrap();
        let limit = Some(Duration::from_millis(500));
        socket.set_read_timeout(limit).unwrap();
        socket
    };
    let [one, other] = [open(0), open(1)];
    one.connect(other.local_addr().unwrap()).unwrap();
    other.connect(one.local_addr().unwrap()).unwrap();
    [one, other]
}

#[test]
fn a_packet_takes_half_of_the_base_each_way() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    for base in [Duration::from_millis(2), Duration::from_millis(40)] {
        let relay = testbed.long_path(LongPath {
            base,
            ..LongPath::default()
        });
        let relay = relay.unwrap();
        let [one, other] = sockets(&testbed);
        let mut least = Duration::MAX;
        let mut bytes = [0; 16];
        for _ in 0..20 {
            let began = Instant::now();
            one.send(&[7; 16]).unwrap();
            assert_eq!(other.recv(&mut bytes).unwrap(), 16);
            other.send(&bytes).unwrap();
            assert_eq!(one.recv(&mut bytes).unwrap(), 16);
            least = least.min(began.elapsed());
        }
        assert!(
            least >= base && least < base + Duration::from_millis(10),
            "{least:?}"
        );
        assert!(relay.packets()[0] >= 40);
    }
}

#[test]
fn packets_are_lost_as_often_as_was_said_and_at_a_full_queue() {
    let Some(testbed) = Testbed::or_skip(2) else {
        return;
    };
    let path = LongPath {
        lost_per_million: 100_000,
        ..LongPath::default()
    };
    let relay = testbed.long_path(path).unwrap();
    let [one, _other] = sockets(&testbed);
    let sent = 5_000;
    for turn in 0..sent {
        one.send(&[1; 100]).unwrap();
        if turn % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let [_, lost, _] = relay.packets();
    assert!((350..=650).contains(&lost), "{lost} of {sent}");
    drop(relay);
    // A burst of 100 packets of 1,000 bytes meets a queue for twenty.
    let path = LongPath {
        mbit: 1,
        queue_bytes: 20 * 1_028,
        ..LongPath::default()
    };
    let relay = testbed.long_path(path).unwrap();
    let [one, _other] = sockets(&testbed);
    for _ in 0..100 {
        one.send(&[1; 1_000]).unwrap();
    }
    std::thread::sleep(Duration::from_millis(400));
    let [carried, _, overflowed] = relay.packets();
    assert!((75..=90).contains(&overflowed), "{carried} {overflowed}");
}
