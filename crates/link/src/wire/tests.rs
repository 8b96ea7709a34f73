//! Two wires of one process, with a link between them.

use std::net::Ipv4Addr;
use std::time::Instant;

use hamlyn_engine::memory::{Part, Payload as _, Unsent};
use hamlyn_engine::packet::Header;
use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Association, CloseReason, Return, Settings};
use hamlyn_ring::area::Area;

use super::*;
use crate::carrier::tests::header;
use crate::udp::envelope::ENVELOPE_BYTES;
use crate::udp::seal::{Key, Opener, Sealer};
use crate::{Link as _, ReceiveEnd as _, TransmitEnd as _};

const FRAME_BYTES: usize = 8_900;
/// What must happen happens far sooner.
const PATIENCE_NS: u64 = 20_000_000_000;

fn clock() -> u64 {
    static BEGUN: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    BEGUN.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

fn wires() -> [Arc<Wire>; 2] {
    [0; 2].map(|_| {
        let at = (Ipv4Addr::LOCALHOST, 0).into();
        let wire = Wire::open(at, &FlowSettings::default(), clock, Box::new(|| {}));
        Arc::new(wire.unwrap())
    })
}

/// In the clear.
fn link(wires: &[Arc<Wire>; 2]) -> [WireLink; 2] {
    let numbers = [0, 1].map(|at| wires[at].reserve(0x5000_0000).unwrap());
    let links = [0, 1].map(|at| {
        let flow = wires[at].flow_to(wires[1 - at].local(), &FlowSettings::default());
        let flow = flow.unwrap().expect("its own address");
        let settings = Settings {
            frame_bytes: FRAME_BYTES,
            ..Settings::default()
        };
        let parts = PostParts {
            association: Association::new(settings).unwrap(),
            sealer: Sealer::new(&Key::Clear(7), numbers[1 - at]),
            opener: Opener::new(&Key::Clear(7), numbers[at]),
            tap: None,
            flows: vec![flow],
        };
        wires[at].link(numbers[at], parts)
    });
    // As soon as a probe has come through.
    until(wires, || {
        let state = |link: &WireLink| link.post().state().unwrap();
        links
            .iter()
            .all(|link| state(link).frame_bytes == FRAME_BYTES)
    });
    links
}

/// Looks at both, until it is so.
fn until(wires: &[Arc<Wire>; 2], mut is_so: impl FnMut() -> bool) {
    let begun_ns = clock();
    while !is_so() {
        assert!(clock() - begun_ns < PATIENCE_NS, "it did not come");
        wires.iter().for_each(|wire| {
            wire.look();
        });
    }
}

/// In the clear, contents are the first thing that a run could be taken apart by.
#[test]
fn contents_that_look_like_envelopes_arrive() {
    let wires = wires();
    let [one, other] = link(&wires).map(WireLink::split);
    let ((mut transmit, _held), (_kept, mut receive)) = (one, other);
    let length = transmit.payload_max_bytes();
    let area = Area::new(length as u64).unwrap();
    // The first says of itself at every place that it is version 1 and has 0x1010 bytes.
    for byte in [0x10, 0, 0x11, 0x20] {
        let data = vec![byte; length];
        let sent = 40;
        let (mut offered, mut came) = (0, 0);
        until(&wires, || {
            while offered < sent {
                match transmit.try_send(&header(0, length), &[], &[Part::Bytes(&data)]) {
                    Ok(()) => offered += 1,
                    Err(Unsent::Full) => break,
                    Err(gone) => panic!("{gone:?} after {came}"),
                }
            }
            let taken = receive.receive(|_, payload| payload.deposit(&area, 0).unwrap());
            if taken.unwrap().is_some() {
                came += 1;
                let mut bytes = vec![0; length];
                area.read_at(0, &mut bytes).unwrap();
                assert!(bytes == data);
            }
            assert_eq!(receive.post().end(), None, "after {came}");
            came == sent
        });
    }
}

/// Whoever looks for another, as the attendant does, is told of room: the other sleeps and waits for it.
#[test]
fn room_that_somebody_finds_is_told() {
    let wires = wires();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&wires).map(WireLink::split);
    let length = transmit.payload_max_bytes();
    let data = vec![1; length];
    let send = |transmit: &mut WireTransmit| {
        transmit.try_send(&header(0, length), &[], &[Part::Bytes(&data)])
    };
    while send(&mut transmit).is_ok() {}
    let begun_ns = clock();
    while !transmit.credit_came() {
        assert!(clock() - begun_ns < PATIENCE_NS, "there is no room again");
        wires[1].look();
        while receive.receive(|_, _| ()).unwrap().is_some() {}
        let is_told = wires[0].look();
        assert_eq!(is_told, transmit.credit_came());
    }
    assert!(!wires[0].look(), "it is told once");
}

/// Whoever leaves says so, though all that was left to do was to acknowledge.
#[test]
fn whoever_leaves_says_so() {
    for is_refused in [false, true] {
        let wires = wires();
        let [(mut transmit, held), (_, mut receive)] = link(&wires).map(WireLink::split);
        let data = [1; 100];
        transmit
            .try_send(&header(0, 100), &[], &[Part::Bytes(&data)])
            .unwrap();
        until(&wires, || {
            let judged = receive.receive_judged(|_, _| match is_refused {
                true => Err(Refusal::BadKey),
                false => Ok(()),
            });
            judged.unwrap().is_some()
        });
        drop(receive);
        let post = Arc::clone(held.post());
        until(&wires, || post.end() == Some(CloseReason::ClosedByPeer));
        drop(held);
        let until_ns = clock() + PATIENCE_NS;
        for wire in &wires {
            wire.settle(until_ns);
            assert!(!wire.has_links());
        }
    }
}

/// Both leave at once.
#[test]
fn whoever_is_left_ends() {
    let wires = wires();
    let [(mut transmit, held), (_, mut receive)] = link(&wires).map(WireLink::split);
    let data = [1; 100];
    transmit
        .try_send(&header(0, 100), &[], &[Part::Bytes(&data)])
        .unwrap();
    until(&wires, || receive.receive(|_, _| ()).unwrap().is_some());
    drop((held, receive));
    until(&wires, || wires.iter().all(|wire| !wire.has_links()));
}

/// Packets that fill frames wait for each other; none waits when nothing follows, and not for long if nobody says so.
#[test]
fn full_frames_go_together() {
    for is_said in [true, false] {
        let wires = wires();
        let [(mut transmit, _held), (_kept, mut receive)] = link(&wires).map(WireLink::split);
        let length = transmit.payload_max_bytes();
        let data = vec![1; length];
        for _ in 0..3 {
            transmit
                .try_send(&header(0, length), &[], &[Part::Bytes(&data)])
                .unwrap();
            assert!(transmit.holds());
        }
        if is_said {
            transmit.hand_over();
            assert!(!transmit.holds());
            // Without a look on this side.
            let begun_ns = clock();
            while !wires[1].look() {
                assert!(clock() - begun_ns < PATIENCE_NS, "it did not come");
            }
        }
        let mut came = 0;
        until(&wires, || {
            came += usize::from(receive.receive(|_, _| ()).unwrap().is_some());
            came == 3
        });
    }
}

/// What does not fill a frame goes at once.
#[test]
fn short_messages_do_not_wait() {
    let wires = wires();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&wires).map(WireLink::split);
    transmit
        .try_send(&header(0, 100), &[], &[Part::Bytes(&[1; 100])])
        .unwrap();
    assert!(!transmit.holds());
    let begun_ns = clock();
    while !wires[1].look() {
        assert!(clock() - begun_ns < PATIENCE_NS, "it did not come");
    }
    assert!(receive.receive(|_, _| ()).unwrap().is_some());
}

/// Many frames that came by one call, which are read where they came, and few, which are copied; frames of one packet and of many: of
/// all of them just those packets come back that were not welcome, and the others were seen once and whole.
#[test]
fn of_what_came_together_only_what_is_refused_comes_back() {
    for is_long in [true, false] {
        let wires = wires();
        let [(mut transmit, _held), (_kept, mut receive)] = link(&wires).map(WireLink::split);
        let length = if is_long {
            transmit.payload_max_bytes()
        } else {
            100
        };
        let area = Area::new(length as u64).unwrap();
        let (sent, is_refused) = (200_u64, |number: u64| number % 7 == 3);
        let (mut offered, mut seen, mut back) = (0, vec![0; sent as usize], Vec::new());
        until(&wires, || {
            while offered < sent {
                let data = vec![offered as u8; length];
                let numbered = Header {
                    offset: offered,
                    ..header(0, length)
                };
                match transmit.try_send(&numbered, &[], &[Part::Bytes(&data)]) {
                    Ok(()) => offered += 1,
                    Err(Unsent::Full) => break,
                    Err(gone) => panic!("{gone:?}"),
                }
            }
            let judged = receive.receive_judged(|header, payload| {
                payload.deposit(&area, 0).unwrap();
                let mut bytes = vec![0; length];
                area.read_at(0, &mut bytes).unwrap();
                assert!(bytes.iter().all(|byte| *byte == header.offset as u8));
                seen[header.offset as usize] += 1;
                match is_refused(header.offset) {
                    true => Err(Refusal::BadKey),
                    false => Ok(()),
                }
            });
            judged.unwrap();
            while let Some((header, reason)) = transmit.next_returned() {
                assert_eq!(reason, Return::Refused(Refusal::BadKey));
                back.push(header.offset);
            }
            seen.iter().all(|times| *times > 0)
                && back.len() == (0..sent).filter(|number| is_refused(*number)).count()
        });
        assert!(seen.iter().all(|times| *times == 1));
        back.sort_unstable();
        assert!(
            back.iter()
                .copied()
                .eq((0..sent).filter(|number| is_refused(*number)))
        );
    }
}

/// Nobody fetches what comes back: the newest are kept, the others counted, and none is missing.
#[test]
fn what_comes_back_and_is_not_fetched_is_counted() {
    let wires = wires();
    let [(mut transmit, _held), (_kept, mut receive)] = link(&wires).map(WireLink::split);
    let (sent, mut offered, mut judged) = (3_000, 0, 0);
    until(&wires, || {
        while offered < sent {
            match transmit.try_send(&header(0, 16), &[], &[Part::Bytes(&[1; 16])]) {
                Ok(()) => offered += 1,
                Err(Unsent::Full) => break,
                Err(gone) => panic!("{gone:?}"),
            }
        }
        let refuse = |_: &Header, _: &Arrived<'_>| Err::<(), _>(Refusal::BadKey);
        judged += usize::from(receive.receive_judged(refuse).unwrap().is_some());
        let state = transmit.wire_state().unwrap();
        judged == sent && state.transport.refused == sent as u64
    });
    let forgotten = transmit.wire_state().unwrap().forgotten;
    let mut fetched = 0;
    while transmit.next_returned().is_some() {
        fetched += 1;
    }
    assert_eq!((fetched, forgotten), (1_024, 3_000 - 1_024));
    assert_eq!(wires[1].kept_bytes.load(Ordering::Relaxed), 0);
}

/// Frames leave from the wire's port, so what the system reports of them comes to the wire.
#[test]
fn a_peer_at_whose_port_nobody_listens_is_taken_for_dead() {
    let [here, there] = wires();
    let both = [here, there];
    let [ours, theirs] = link(&both);
    let [here, there] = both;
    // Without a word: nobody looks after it any more.
    drop((theirs, there));
    let (mut transmit, receive) = ours.split();
    let sent = transmit.try_send(&header(0, 5), &[], &[Part::Bytes(b"hello")]);
    assert_eq!(sent, Ok(()));
    let begun_ns = clock();
    while receive.post().end().is_none() {
        assert!(clock() - begun_ns < PATIENCE_NS, "it is not noticed");
        here.look();
    }
    assert_eq!(receive.post().end(), Some(CloseReason::PeerDead));
}

#[test]
fn what_is_said_to_who_asks_is_passed_on_and_nothing_else() {
    let [one, other] = wires();
    let number = 0x1235;
    let envelope = |kind, association| {
        let length_bytes = ENVELOPE_BYTES as u16;
        let (phase, path, packet_number) = (false, 0, 0);
        let envelope = Envelope {
            kind,
            length_bytes,
            phase,
            path,
            association,
            packet_number,
        };
        envelope.bytes()
    };
    let said = [
        (Kind::Response, number),
        (Kind::Cookie, number),
        (Kind::Letter, number),
    ];
    assert!(!one.is_asking());
    let asking = one.ask(other.local(), number);
    assert!(one.is_asking());
    for (kind, of) in said.into_iter().chain([(Kind::Response, number ^ 2)]) {
        other.answer(one.local(), &envelope(kind, of)).unwrap();
    }
    for (kind, of) in said {
        let mut heard = None;
        while heard.is_none() {
            one.look();
            heard = asking.try_recv().ok();
        }
        assert_eq!(heard.unwrap().unwrap(), envelope(kind, of));
    }
    assert!(asking.try_recv().is_err());
    // More than is ever said costs nothing.
    for _ in 0..100 {
        other
            .answer(one.local(), &envelope(Kind::Cookie, number))
            .unwrap();
    }
    for _ in 0..100 {
        one.look();
    }
    assert_eq!(asking.try_iter().count(), ANSWERS_MAX);
    // Nobody listens there any more.
    let gone = other.local();
    drop(other);
    let begun_ns = clock();
    while asking.try_recv() != Ok(None) {
        assert!(clock() - begun_ns < PATIENCE_NS, "it is not reported");
        one.answer(gone, b"?").unwrap();
        one.look();
    }
    one.end_asking();
    assert!(!one.is_asking());
}

/// Whoever is not on the way can forge reports, as many as it likes, but nothing that we send.
#[test]
fn reports_count_no_more_than_what_was_sent() {
    let wires = wires();
    let [(mut transmit, ours), (_kept, mut theirs)] = link(&wires).map(WireLink::split);
    for _ in 0..1_000 {
        ours.post().note_unheard();
    }
    // Nothing is heard for longer than a peer may be silent of whom there are reports.
    let begun_ns = clock();
    while clock() - begun_ns < 600_000_000 {
        std::hint::spin_loop();
    }
    let sent = transmit.try_send(&header(0, 5), &[], &[Part::Bytes(b"hello")]);
    assert_eq!(sent, Ok(()));
    until(&wires, || {
        assert_eq!(ours.post().end(), None);
        theirs.receive(|_, _| ()).unwrap().is_some()
    });
}
