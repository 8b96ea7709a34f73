use super::*;

fn name(item: &str) -> Name {
    Name::new(item).unwrap()
}

fn take(offers: &Offers, item: &str) -> Option<Vec<u8>> {
    let given = offers.hand_over(&name(item), |bytes| Ok::<_, ()>(bytes.to_vec()));
    given.map(Result::unwrap)
}

#[test]
fn what_cannot_be_given_stays_in_its_place() {
    let offers = Offers::default();
    for byte in 0..3 {
        offers.offer(name("a"), Supply::Once, &[byte]).unwrap();
    }
    let failed = offers.hand_over(&name("a"), |bytes| Err::<(), _>(bytes.to_vec()));
    assert_eq!(failed, Some(Err(vec![0])));
    for byte in 0..3 {
        assert_eq!(take(&offers, "a"), Some(vec![byte]));
    }
    assert_eq!(take(&offers, "a"), None);
    assert!(offers.lock().by_item.is_empty());
}

#[test]
fn the_count_follows() {
    let offers = Offers::default();
    for _ in 0..3 {
        offers.offer(name("a"), Supply::Once, b"x").unwrap();
    }
    offers.offer(name("b"), Supply::Always, b"x").unwrap();
    assert_eq!(offers.lock().offers, 4);
    offers.offer(name("a"), Supply::Always, b"y").unwrap();
    offers.offer(name("a"), Supply::Once, b"z").unwrap();
    assert_eq!(offers.lock().offers, 3);
    assert_eq!(take(&offers, "a").as_deref(), Some(b"z".as_slice()));
    assert_eq!(take(&offers, "a").as_deref(), Some(b"y".as_slice()));
    assert_eq!(take(&offers, "a").as_deref(), Some(b"y".as_slice()));
    assert_eq!(offers.lock().offers, 2);
    offers.withdraw(&name("a"));
    offers.withdraw(&name("a"));
    offers.withdraw(&name("b"));
    assert_eq!(offers.lock().offers, 0);
    assert!(offers.lock().by_item.is_empty());
}
