use std::os::unix::fs::PermissionsExt;

use super::*;

const DIGITS: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

#[test]
fn secrets_have_two_text_forms() {
    let secret = ClusterSecret::generate().unwrap();
    let text = secret.to_text();
    assert_eq!(text.len(), 64);
    assert_eq!(ClusterSecret::parse(&text).unwrap().bytes(), secret.bytes());
    let base64 = STANDARD.encode(secret.bytes());
    let again = ClusterSecret::parse(&format!("  {base64}\n")).unwrap();
    assert_eq!(again.bytes(), secret.bytes());
    assert_eq!(ClusterSecret::parse(DIGITS).unwrap().bytes()[31], 0x1f);
    assert_ne!(ClusterSecret::generate().unwrap().bytes(), secret.bytes());
}

#[test]
fn what_cannot_be_a_secret_is_refused() {
    let refusal_of = |text: &str| ClusterSecret::parse(text).map(|_| ()).unwrap_err();
    assert_eq!(refusal_of(&DIGITS[..62]), NotAKey::Length { bytes: 31 });
    assert_eq!(refusal_of(""), NotAKey::Length { bytes: 0 });
    assert_eq!(refusal_of("correct horse battery staple"), NotAKey::Text);
    assert_eq!(refusal_of(&"0".repeat(64)), NotAKey::Simple);
    assert_eq!(
        refusal_of(&"ab".repeat(1025)),
        NotAKey::Length { bytes: 1025 }
    );
    assert_eq!(
        HostKey::parse(&"00".repeat(32)).map(|_| ()),
        Err(NotAKey::Simple)
    );
    let longer = format!("{DIGITS}00");
    assert_eq!(
        HostKey::parse(&longer).map(|_| ()),
        Err(NotAKey::Length { bytes: 33 })
    );
}

#[test]
fn the_public_key_follows_from_the_private_one() {
    // RFC 7748, section 6.1.
    let private = "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb";
    let public = "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f";
    let key = HostKey::parse(private).unwrap();
    assert_eq!(key.public().to_string(), public);
    let again = HostKey::parse(&key.to_text()).unwrap();
    assert_eq!(again.public(), key.public());
    assert_eq!(
        PublicKey::parse(&key.public().to_string()),
        Ok(key.public())
    );
    assert_ne!(HostKey::generate().unwrap().public(), key.public());
}

#[test]
fn nothing_secret_is_printed() {
    let secret = ClusterSecret::parse(DIGITS).unwrap();
    let key = HostKey::parse(DIGITS).unwrap();
    assert_eq!(format!("{secret:?}"), "ClusterSecret(..)");
    assert!(!format!("{key:?}").contains("0a0b0c"));
}

#[test]
fn files_that_everybody_reads_are_refused() {
    let path = std::env::temp_dir().join(format!("hamlyn-key-{}", std::process::id()));
    std::fs::write(&path, format!("{DIGITS}\n")).unwrap();
    let chmod = |mode| {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(0o600);
    assert!(ClusterSecret::read(&path).is_ok() && HostKey::read(&path).is_ok());
    chmod(0o640);
    assert!(ClusterSecret::read(&path).is_ok());
    for mode in [0o604, 0o602, 0o644, 0o666] {
        chmod(mode);
        let refused = ClusterSecret::read(&path).unwrap_err();
        assert!(matches!(refused, KeyFileError::Exposed { mode: m, .. } if m == mode));
    }
    chmod(0o600);
    std::fs::write(&path, "no key").unwrap();
    let refused = HostKey::read(&path).unwrap_err();
    assert!(matches!(
        refused,
        KeyFileError::Content {
            reason: NotAKey::Text,
            ..
        }
    ));
    std::fs::remove_file(&path).unwrap();
    assert!(matches!(
        ClusterSecret::read(&path),
        Err(KeyFileError::Read { .. })
    ));
}

#[test]
fn lists_of_hosts_are_names_and_keys() {
    let other = DIGITS.replace("00", "ff");
    let text = format!("# hosts\nzeus {DIGITS} # the first\n\n  hera\t{other}\n");
    let hosts = parse_hosts(&text).unwrap();
    assert_eq!(hosts.len(), 2);
    assert_eq!((hosts[0].0.as_str(), hosts[1].0.as_str()), ("zeus", "hera"));
    assert_eq!(parse_hosts("zeus"), Err(NotAKey::Line { line: 1 }));
    assert_eq!(parse_hosts("\nzeus abc"), Err(NotAKey::Line { line: 2 }));
    assert_eq!(
        parse_hosts(&format!("zeus {DIGITS} x")),
        Err(NotAKey::Line { line: 1 })
    );
    let twice = format!("zeus {DIGITS}\nzeus {other}");
    assert_eq!(parse_hosts(&twice), Err(NotAKey::Twice { line: 2 }));
    let twice = format!("zeus {DIGITS}\nhera {DIGITS}");
    assert_eq!(parse_hosts(&twice), Err(NotAKey::Twice { line: 2 }));
}
