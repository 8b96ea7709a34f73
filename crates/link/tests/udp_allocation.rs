//! Nothing is allocated for a datagram, on its whole way: sealed, batched, sent, received, opened; nor for garbage.

use hamlyn_link::udp::batch::{Batch, Inbox};
use hamlyn_link::udp::envelope::Kind;
use hamlyn_link::udp::seal::{Key, Opener, Sealer};
use hamlyn_link::udp::socket::{Flow, FlowSettings};

#[test]
fn datagrams_allocate_nothing() {
    for key in [Key::Sealed([7; 32].into()), Key::Clear(7)] {
        for is_offloaded in [true, false] {
            let settings = FlowSettings {
                is_offloaded,
                ..FlowSettings::default()
            };
            let at = ([127, 0, 0, 1], 0).into();
            let mut one = Flow::bind(at, &settings).expect("a flow");
            let mut other = Flow::bind(at, &settings).expect("a flow");
            one.connect(other.local()).expect("connected");
            other.connect(one.local()).expect("connected");
            let stranger = Flow::bind(at, &settings).expect("a flow");
            let (mut batch, mut inbox) = (Batch::new(), Inbox::new());
            let (mut sealer, mut opener) = (Sealer::new(&key, 1), Opener::new(&key, 1));
            let mut opened = 0;
            let counted = allocation_counter::measure(|| {
                for _ in 0..100 {
                    for frame_bytes in [16, 1_000, 1_000, 1_000, 40] {
                        let room = batch
                            .room(frame_bytes + sealer.overhead_bytes())
                            .expect("room");
                        let sealed = sealer.seal_in_place(Kind::Data, 0, room, frame_bytes);
                        let length = sealed.expect("sealed");
                        batch.push(length);
                    }
                    one.send(&mut batch).expect("sent");
                    one.send_one(&[0x10; 100]).expect("sent");
                    let mut came = 0;
                    while came < 6 {
                        other.receive(&mut inbox).expect("received");
                        while let Some(datagram) = inbox.next() {
                            came += 1;
                            opened += usize::from(opener.open(datagram.bytes).is_ok());
                        }
                    }
                    stranger.receive(&mut inbox).expect("nothing");
                }
            });
            assert_eq!((opened, counted.count_total), (500, 0));
        }
    }
    // It does count.
    assert_eq!(
        allocation_counter::measure(|| drop(Batch::new())).count_total,
        1
    );
}
