use proptest::prelude::*;

use super::*;

const POINT: TypeName = TypeName {
    name: "Point",
    length_bytes: 24,
};

#[test]
fn what_is_bound_is_found_by_those_who_ask_for_it() {
    let header = ItemHeader::new(Protocol::Stream, POINT);
    assert_eq!(
        header.body_of(&header.with(b"seed"), "a/b"),
        Ok(b"seed".to_vec())
    );
    let taken = header.body_of(&header.with(b""), "a/b").unwrap_err();
    assert_eq!(taken, ConnectError::Taken { to: "a/b".into() });
}

#[test]
fn another_protocol_type_or_version_is_named() {
    let header = ItemHeader::new(Protocol::Stream, POINT);
    let offered = header.with(b"seed");
    let datagram = ItemHeader::new(Protocol::Datagram, POINT);
    let error = datagram.body_of(&offered, "a/b").unwrap_err().to_string();
    assert!(error.contains("a/b is a stream, not a datagram"), "{error}");
    let bytes = ItemHeader::new(Protocol::Stream, TypeName::BYTES);
    let error = bytes.body_of(&offered, "a/b").unwrap_err().to_string();
    assert!(
        error.contains("a/b carries Point of 24 bytes, not bytes"),
        "{error}"
    );
    let mut newer = offered;
    newer[2] += 1;
    let error = header.body_of(&newer, "a/b").unwrap_err();
    assert!(matches!(error, ConnectError::Version { .. }), "{error}");
}

proptest! {
    /// Whatever somebody offers gets an answer, and only a header of ours has a body.
    #[test]
    fn any_bytes_get_an_answer(offered in prop::collection::vec(any::<u8>(), 0..100)) {
        let header = ItemHeader::new(Protocol::Datagram, POINT);
        if let Ok(body) = header.body_of(&offered, "a/b") {
            let whole = header.with(&body);
            prop_assert_eq!(offered, whole);
        }
    }

    #[test]
    fn any_body_comes_through(body in prop::collection::vec(any::<u8>(), 1..100)) {
        let header = ItemHeader::new(Protocol::Service, POINT);
        prop_assert_eq!(header.body_of(&header.with(&body), "a/b"), Ok(body));
    }
}

/// Its owner takes it back from a peer that does not come, so one that is old leads to what is
/// gone.
#[test]
fn an_offer_is_kept_for_a_while() {
    let header = ItemHeader::new(Protocol::Stream, TypeName::BYTES);
    let kept = |after_ns| {
        let mut offers = KeptOffers::default();
        offers.keep(Found {
            to: "alice/log".to_owned(),
            offered: header.with(&[1]),
            asked_ns: 7,
        });
        assert!(offers.take("bob/log", header, 7).is_none());
        offers.take("alice/log", header, 7 + after_ns).is_some()
    };
    assert!(kept(0) && kept(FOUND_NS_MAX));
    assert!(!kept(FOUND_NS_MAX + 1) && !kept(1 << 62));
}
