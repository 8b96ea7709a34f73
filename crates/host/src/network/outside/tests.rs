use super::*;

#[test]
fn hosts_with_one_number_are_refused() {
    assert_eq!(tell_apart(["zeus", "hera", "Zeus"].into_iter()), Ok(()));
    // Both are 0x93c6f02d.
    let same = ["host-36932", "host-123305"];
    let [one, other] = same.map(|name| HostName::new(name).unwrap());
    let refused = tell_apart(same.into_iter());
    assert_eq!(refused, Err(NetworkError::SameNumber { one, other }));
}

#[test]
fn with_keys_a_host_speaks_for_itself_only() {
    let node = |name: &str| HostName::new(name).unwrap().node();
    let zeus = Identity::Host("Zeus".to_owned());
    assert!(is_of_host(&zeus, node("zeus")));
    assert!(!is_of_host(&zeus, node("hera")));
    assert!(!is_of_host(
        &Identity::Host("no name".to_owned()),
        node("zeus")
    ));
    // Holders of the secret are believed.
    assert!(is_of_host(&Identity::SecretHolder, node("hera")));
}
