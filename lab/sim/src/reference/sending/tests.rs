//! The model of the sending half can fail: each promise is broken once.

use super::super::tests::{LINK, MODULUS, header};
use super::*;
use hamlyn_engine::key::Key;

fn message(data: &[u8]) -> Message {
    Message {
        link: LINK,
        header: header(0, 100, 0),
        share: MODULUS,
        modulus: MODULUS,
        metadata: vec![8; 3],
        data: data.to_vec(),
    }
}

/// The packets of [`message`] with data 1 to 6, four at a time.
fn packets() -> [(Header, Vec<u8>, Vec<u8>); 2] {
    let first = Header {
        metadata_length_bytes: 3,
        ..header(0, 100, 1)
    };
    let last = Header {
        length_bytes: 2,
        ..header(0, 104, (MODULUS - 1) as u64)
    };
    [
        (first, vec![8; 3], vec![1, 2, 3, 4]),
        (last, Vec::new(), vec![5, 6]),
    ]
}

#[test]
fn packets_leave_as_their_message_says() {
    let model = || {
        let mut model = Sending::new();
        let terminus = model.open(2);
        model
            .posted(terminus, 1, message(&[1, 2, 3, 4, 5, 6]))
            .unwrap();
        model
    };
    let depart = |model: &mut Sending, (header, metadata, data): &(Header, Vec<u8>, Vec<u8>)| {
        model.departed(None, LINK, header, metadata, data)
    };
    let [first, last] = packets();
    let mut good = model();
    assert!(depart(&mut good.clone(), &last).is_err(), "out of turn");
    depart(&mut good, &first).unwrap();
    assert!(depart(&mut good.clone(), &first).is_err(), "twice");
    assert!(good.quiet().is_err(), "half of it");
    let pending = good.completed(0, 1, Completion::Sent);
    assert!(matches!(pending, Err(Violation::Completion { .. })));
    depart(&mut good, &last).unwrap();
    assert_eq!(good.completed(0, 1, Completion::Sent), Ok(()));
    assert!(good.completed(0, 1, Completion::Pending).is_err());
    assert_eq!(good.quiet(), Ok(()));
    assert!(depart(&mut good, &last).is_err(), "nothing is left");
    type Spoil = fn(&mut (Header, Vec<u8>, Vec<u8>));
    let spoilt: [Spoil; 7] = [
        |packet| packet.0.offset += 1,
        |packet| packet.0.key = Key::from_bits(8),
        |packet| packet.0.word = 0,
        |packet| packet.0.word = MODULUS as u64,
        |packet| packet.0.length_bytes += 1,
        |packet| packet.1[0] = 9,
        |packet| packet.2[3] = 9,
    ];
    for spoil in spoilt {
        let mut packet = first.clone();
        spoil(&mut packet);
        assert!(depart(&mut model(), &packet).is_err());
    }
    let mut model = model();
    depart(&mut model, &first).unwrap();
    let mut packet = last.clone();
    packet.0.word -= 1;
    assert!(depart(&mut model, &packet).is_err(), "a wrong delta");
}

#[test]
fn termini_take_what_they_have_room_for_and_say_what_failed() {
    let mut model = Sending::new();
    let terminus = model.open(2);
    model.posted(terminus, 1, message(&[1])).unwrap();
    assert!(model.clone().posted(terminus, 3, message(&[])).is_err());
    model.posted(terminus, 2, message(&[2])).unwrap();
    assert_eq!(model.fits(terminus), Ok(()));
    let mut full = model.clone();
    full.posted(terminus, 3, message(&[3])).unwrap();
    assert!(full.fits(terminus).is_err());
    assert!(model.completed(terminus, 1, Completion::Failed).is_err());
    model.link_lost(LINK);
    assert_eq!(model.completed(terminus, 1, Completion::Failed), Ok(()));
    assert!(model.completed(terminus, 1, Completion::Sent).is_err());
    assert_eq!(model.quiet(), Ok(()));
    assert!(model.completed(terminus, 2, Completion::Sent).is_err());
    assert_eq!(divided(10, &[3, 7]), Ok(()));
    assert!(divided(10, &[3, 8]).is_err());
    assert!(divided(10, &[10, 0]).is_err());
}

#[test]
fn a_short_packet_passes_by_nothing_that_waits() {
    let mut model = Sending::new();
    let (terminus, other) = (model.open(2), model.open(2));
    let short = header(0, 100, 0);
    let left = |model: &mut Sending, terminus, sequence, count| {
        model.shorts_left(terminus, sequence, count, LINK, &short)
    };
    assert_eq!(left(&mut model, terminus, 3, 3), Ok(()));
    assert!(
        left(&mut model.clone(), terminus, 5, 1).is_err(),
        "one is missing"
    );
    model.posted(terminus, 4, message(&[1])).unwrap();
    assert_eq!(left(&mut model.clone(), other, 5, 1), Ok(()));
    assert!(left(&mut model.clone(), terminus, 5, 1).is_err());
    model.first_failed(terminus, LINK);
    assert_eq!(left(&mut model, terminus, 5, 1), Ok(()));
    assert_eq!(model.completed(terminus, 4, Completion::Failed), Ok(()));
    assert!(model.completed(terminus, 4, Completion::Sent).is_err());
}

#[test]
fn packets_are_of_the_terminus_that_sends_them() {
    let mut model = Sending::new();
    let (terminus, other) = (model.open(2), model.open(2));
    model
        .posted(terminus, 1, message(&[1, 2, 3, 4, 5, 6]))
        .unwrap();
    let [(header, metadata, data), _] = packets();
    let depart =
        |model: &mut Sending, of| model.departed(Some(of), LINK, &header, &metadata, &data);
    assert!(depart(&mut model, other).is_err());
    assert_eq!(depart(&mut model, terminus), Ok(()));
}

#[test]
fn a_streaming_send_is_done_when_all_of_it_left() {
    let mut model = Sending::new();
    let terminus = model.open(2);
    model.streaming(terminus, message(&[1, 2, 3, 4, 5, 6]));
    // Nothing of it was sent, so it is begun again.
    model.streaming(terminus, message(&[1, 2, 3, 4, 5, 6]));
    for (header, metadata, data) in packets() {
        assert!(model.clone().streaming_ended(terminus, Some(1)).is_err());
        model
            .departed(Some(terminus), LINK, &header, &metadata, &data)
            .unwrap();
    }
    assert!(
        model.clone().streaming_ended(terminus, Some(2)).is_err(),
        "a wrong number"
    );
    assert_eq!(model.streaming_ended(terminus, Some(1)), Ok(()));
    assert!(
        model.streaming_ended(terminus, Some(2)).is_err(),
        "there was one"
    );
}
