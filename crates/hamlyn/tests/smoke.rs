//! smoke
use hamlyn::{Wait, datagram, group, stream, tagged_write};
use hamlyn::host::process::Options;
use std::time::Instant;

fn opt() -> Options { Options::default().in_namespace(&format!("t{}", std::process::id())) }

#[test]
fn all_protocols() {
    let mut a = hamlyn::open_with(opt(), Default::default()).unwrap();
    let mut rx = tagged_write::Receiver::new(&mut a, 4096, 1024).unwrap();
    let mut dg = datagram::Receiver::new(&mut a, 4096).unwrap();
    dg.ready();
    let mut st = stream::Receiver::new(&mut a, stream::StreamOptions { pieces: 4, piece_bytes: 1024, limit_bytes: 1 << 20 }).unwrap();
    let mut gr = group::Receiver::new(&mut a, 1 << 20, Default::default()).unwrap();
    let whole = gr.begin(&mut a).unwrap();
    let parts = whole.divide(&[1 << 18; 4]).unwrap();
    let seed = st.make_seed(&a).to_bytes();
    let (t1, t2) = (rx.ticket(), dg.ticket());
    let b = std::thread::spawn(move || {
        let mut b = hamlyn::open_with(opt(), Default::default()).unwrap();
        let tx = tagged_write::Sender::grow(&mut b, &t1, Wait::millis(1000)).unwrap();
        tx.send(&mut b, 16, b"hello", 77, Wait::Forever).unwrap();
        let tx = datagram::Sender::grow(&mut b, &t2, Wait::millis(1000)).unwrap();
        tx.send(&mut b, 8, b"dgram", None, Wait::Forever).unwrap();
        let mut tx = stream::Sender::grow(&mut b, &stream::StreamSeed::from_bytes(&seed).unwrap(), Wait::millis(1000)).unwrap();
        for i in 0..10000u32 {
            let len = (i as usize * 37) % 9000;
            let data: Vec<u8> = (0..len).map(|j| (i as usize + j) as u8).collect();
            tx.send(&mut b, &data, Wait::millis(5000)).unwrap();
        }
        tx.close(&mut b, Wait::millis(1000)).unwrap();
        for (i, m) in parts.iter().enumerate() {
            let mut s = group::Sender::grow(&mut b, m, Wait::millis(1000)).unwrap();
            s.send(&mut b, 0, &vec![i as u8; 1 << 17], Wait::Forever).unwrap();
            s.send_last(&mut b, 1 << 17, &vec![i as u8 + 10; 1 << 17], Wait::Forever).unwrap();
        }
        b
    });
    assert_eq!(rx.get_tag(&mut a, Wait::millis(5000)).unwrap(), Some(77));
    let mut buf = [0; 5];
    rx.area().read_at(16, &mut buf).unwrap();
    assert_eq!(&buf, b"hello");

    let d = dg.receive(&mut a, Wait::millis(1000)).unwrap().unwrap();
    assert_eq!((d.data, d.offset), (&b"dgram"[..], 8));
    let t = Instant::now();
    for i in 0..10000u32 {
        let len = (i as usize * 37) % 9000;
        let r = st.receive(&mut a, Wait::millis(5000)).unwrap().unwrap_or_else(|| panic!("record {i}"));
        let data = st.bytes(&r).unwrap();
        assert_eq!(data.len(), len, "record {i}");
        assert!(data.iter().enumerate().all(|(j, &x)| x == (i as usize + j) as u8));
        st.release(&mut a, &r);
    }
    println!("{:?}", t.elapsed());
    assert!(matches!(st.receive(&mut a, Wait::millis(5000)), Err(hamlyn::ReceiveError::Closed)));
    let g = gr.receive(&mut a, Wait::millis(5000)).unwrap().unwrap();
    for i in 0..4 { assert_eq!(g[i << 18], i as u8); assert_eq!(g[(i << 18) + (1 << 17)], i as u8 + 10); }
    drop(b.join().unwrap());
}
