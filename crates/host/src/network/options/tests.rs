use super::*;

fn read(variables: &[(&'static str, &str)]) -> Result<Option<NetworkOptions>, NetworkError> {
    let known = |variable: &'static str| {
        let (_, value) = variables.iter().find(|(known, _)| *known == variable)?;
        Some(PathBuf::from(value))
    };
    NetworkOptions::from_variables(known)
}

#[test]
fn without_a_word_of_it_there_is_no_network() {
    assert_eq!(read(&[]), Ok(None));
    assert_eq!(read(&[(INSECURE, "0")]), Ok(None));
}

#[test]
fn a_host_without_security_is_refused() {
    assert_eq!(read(&[(HOST, "one")]), Err(NetworkError::NoSecret));
}

#[test]
fn the_environment_says_all_that_is_needed() {
    let options = read(&[
        (HOST, "one"),
        (SECRET, "/etc/secret"),
        (LISTEN, "192.0.2.1"),
    ]);
    let options = options.unwrap().unwrap();
    assert_eq!(options.host, Some(HostName::new("one").unwrap()));
    assert_eq!(options.security, Security::Secret("/etc/secret".into()));
    assert_eq!(options.listen, "192.0.2.1:0".parse().unwrap());
    let options = read(&[(INSECURE, "1"), (LISTEN, "[::1]:9")])
        .unwrap()
        .unwrap();
    assert_eq!(options.listen, "[::1]:9".parse().unwrap());
}

#[test]
fn contradictions_are_refused() {
    for variables in [
        &[(INSECURE, "1"), (SECRET, "a")][..],
        &[(INSECURE, "yes")],
        &[(KEY, "a")],
        &[(SECRET, "")],
        &[(INSECURE, "1"), (HOSTS, "")],
        &[(INSECURE, "1"), (LISTEN, "here")],
    ] {
        assert!(matches!(
            read(variables),
            Err(NetworkError::Variable { .. })
        ));
    }
}
