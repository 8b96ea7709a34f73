use super::*;

fn spares() -> Rc<Spares> {
    Rc::new(Spares::default())
}

#[test]
fn a_record_is_known_by_its_use() {
    let mut records = Records::new(126, spares());
    for _ in 0..300 {
        let (stamp, _) = records.next_free().unwrap();
        assert!(records.get(stamp).is_none(), "it is not taken yet");
        records.take(stamp);
        assert!(records.get(stamp).is_some());
        records.free(stamp);
        assert!(records.get(stamp).is_none(), "its use is over");
    }
    let stamps: Vec<Stamp> = (0..RECORDS)
        .map(|_| {
            let (stamp, _) = records.next_free().unwrap();
            records.take(stamp);
            stamp
        })
        .collect();
    assert!(records.next_free().is_none());
    assert_eq!(records.stamps().collect::<Vec<_>>(), stamps);
    records.free(stamps[7]);
    assert_eq!(records.next_free().unwrap().0.number(), 7);
}

#[test]
fn a_request_that_was_refused_uses_up_no_use() {
    let (mut records, mut served) = (Records::new(5, spares()), ServedTable::new(spares()));
    for round in 0..3 {
        let (answered, _) = records.next_free().unwrap();
        records.take(answered);
        assert!(served.admit(answered).is_some(), "round {round}");
        served.answer_empty(answered);
        records.free(answered);
        // As many as there are uses, but one: the next would have the stamp of that one again.
        for _ in 0..127 {
            let (refused, _) = records.next_free().unwrap();
            records.take(refused);
            records.get(refused).unwrap().state = RecordState::Refused;
            records.free(refused);
        }
    }
}

/// The credits that a message of them tells.
fn owed(served: &ServedTable) -> Vec<Stamp> {
    let (bytes, length) = served.credits_message();
    let stamps = crate::wire::listed(&bytes[..length]).iter();
    let stamps: Vec<Stamp> = stamps
        .map(|stamp| Stamp::from_bits(u16::from_le_bytes(*stamp)))
        .collect();
    stamps
}

#[test]
fn a_request_is_admitted_once() {
    let mut served = ServedTable::new(spares());
    let (first, second) = (Stamp::new(3, 9), Stamp::new(3, 10));
    assert!(served.admit(first).is_some());
    assert!(served.admit(first).is_none(), "its handler runs");
    assert!(served.admit(second).is_none(), "the first is not answered");
    assert!(served.answer_empty(first));
    assert!(!served.answer_empty(first), "told already");
    assert_eq!(owed(&served), [first]);
    assert!(served.admit(first).is_none(), "it was answered");
    assert!(served.admit(second).is_some());
    assert!(served.admit(Stamp::CREDITS).is_none());
    served.answer_empty(second);
    served.tell_credits_again();
    assert_eq!(owed(&served), [second]);
    served.credits_told();
    served.tell_credits_again();
    assert_eq!(owed(&served), [second], "it may have been refused");
    let third = Stamp::new(3, 11);
    assert!(served.admit(third).is_some());
    assert_eq!(
        owed(&served),
        [],
        "the peer knew that, as it uses its record again"
    );
    served.credits_told();
    served.answer_empty(third);
    assert_eq!(owed(&served), [third]);
}

#[test]
fn pauses_grow_and_end() {
    let mut pauses = Pauses::default();
    let mut last = 0;
    let mut now_ns = 5;
    while let Some(again_ns) = pauses.refused(now_ns, 10_000_000) {
        let pause_ns = again_ns - now_ns;
        assert!((PAUSE_MIN_NS..=PAUSE_MAX_NS).contains(&pause_ns) && pause_ns >= last);
        (last, now_ns) = (pause_ns, again_ns);
    }
    assert!(now_ns >= 10_000_000);
}

#[test]
fn a_link_in_the_place_of_another_is_another_peer() {
    let mut peers = Peers::new(0, spares());
    let link = |generation| LinkId {
        index: 2,
        generation,
    };
    peers.enter(link(0)).unwrap().records();
    assert!(peers.get(link(1)).is_none());
    assert!(peers.enter(link(1)).unwrap().records.is_none());
    // The answers of the former link may wait to be taken. It does not throw out the peer of the
    // one that lives.
    assert!(peers.may_be_lost && peers.gone.is_empty());
    assert!(peers.get(link(0)).unwrap().records.is_some());
    assert!(peers.enter(link(0)).unwrap().records.is_some());
    assert_eq!(peers.links().collect::<Vec<_>>(), [link(1), link(0)]);
    assert!(peers.enter(link(u32::MAX)).is_none());
    peers.lose(link(0));
    assert!(peers.get(link(0)).is_none() && peers.enter(link(0)).is_none());
    assert!(peers.get(link(1)).is_some());
    assert_eq!(peers.gone.len(), 1);
    peers.lose(link(1));
    assert_eq!(peers.gone.len(), 2);
}
