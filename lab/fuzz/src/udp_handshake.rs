//! A handshake whose messages are damaged, or replaced, by arbitrary bytes. For any bytes: no
//! panic, nothing is accepted but what was really sent, and after all of it the handshake still
//! succeeds.

use hamlyn_link::udp::handshake::{Credentials, Heard, Initiator, Responder, Taken};
use hamlyn_link::udp::key_file::{ClusterSecret, HostKey};

const WALL_MS: u64 = 1_790_000_000_000;
/// The interface that is asked.
const ASKED: u64 = 7;

fn text(byte: u8) -> String {
    (0..32).map(|at| format!("{:02x}", at ^ byte)).collect()
}

fn credentials(choice: u8) -> [Credentials; 2] {
    match choice % 3 {
        0 => {
            let secret = ClusterSecret::parse(&text(1)).expect("a secret");
            [(); 2].map(|()| Credentials::Secret(secret.clone()))
        }
        1 => {
            let [one, other] = [2, 3].map(|byte| HostKey::parse(&text(byte)).expect("a key"));
            let hosts = vec![
                ("one".to_owned(), one.public()),
                ("other".to_owned(), other.public()),
            ];
            [one, other].map(|own| Credentials::Keys {
                own,
                hosts: hosts.clone(),
            })
        }
        _ => [Credentials::Insecure, Credentials::Insecure],
    }
}

/// A message with damage: at each position of two bytes, the third is added. Or, if `replaces`, the
/// bytes as they are, as long as the message.
fn damaged(message: &[u8], damage: &[u8], replaces: bool) -> Vec<u8> {
    let mut damaged = message.to_vec();
    if replaces {
        for (byte, &other) in damaged.iter_mut().zip(damage) {
            *byte = other;
        }
        return damaged;
    }
    for change in damage.chunks_exact(3) {
        let at = usize::from(change[0]) << 8 | usize::from(change[1]);
        match damaged.get_mut(at) {
            Some(byte) => *byte = byte.wrapping_add(change[2]),
            None => damaged.truncate(at % 2048),
        }
    }
    damaged
}

/// What the first byte chooses (credentials, load, how to damage), and then the damage. Nothing if
/// there is no first byte. Otherwise whether it was damage.
pub fn run(bytes: &[u8]) -> Option<bool> {
    let (&choice, damage) = bytes.split_first()?;
    let [ours, theirs] = credentials(choice);
    let (loaded, replaces) = (choice & 0x40 != 0, choice & 0x80 != 0);
    let source = ([127, 0, 0, 1], 7).into();
    let mut responder = Responder::new(&theirs, ASKED).expect("randomness");
    let initiator = Initiator::new(&ours, Some("other"), ASKED, b"ask", 0, WALL_MS);
    let mut initiator = initiator.expect("good credentials");
    let mut asks = initiator.poll(0).expect("it begins").to_vec();

    let _ = responder.take(0, WALL_MS, source, damage, loaded);
    assert!(
        initiator.take(0, damage).is_err(),
        "an answer out of nothing"
    );
    let attempt = damaged(&asks, damage, replaces);
    let is_damage = attempt != asks;
    // Of the code of a cookie that nobody asked for nothing is looked at.
    let is_seen =
        attempt.len() != asks.len() || attempt[..asks.len() - 32] != asks[..asks.len() - 32];
    if is_seen {
        let heard = responder.take(0, WALL_MS, source, &attempt, loaded);
        // Without credentials any message with a valid code is accepted, but none with another's
        // code.
        assert!(heard.is_err(), "{heard:?}");
    }
    if loaded {
        let Ok(Heard::Reply(cookie)) = responder.take(0, WALL_MS, source, &asks, loaded) else {
            panic!("no cookie under load");
        };
        let attempt = damaged(cookie, damage, replaces);
        if attempt != cookie {
            assert!(initiator.take(0, &attempt).is_err());
        }
        assert!(matches!(initiator.take(0, cookie), Ok(Taken::Again)));
        asks = initiator.poll(0).expect("with the cookie").to_vec();
    }
    let Ok(Heard::Reply(response)) = responder.take(0, WALL_MS, source, &asks, loaded) else {
        panic!("what was really asked is not answered");
    };
    let attempt = damaged(response, damage, replaces);
    if attempt != response {
        assert!(initiator.take(0, &attempt).is_err());
    }
    assert!(matches!(initiator.take(0, response), Ok(Taken::Again)));
    let payload = initiator.poll(0).expect("its payload").to_vec();
    let attempt = damaged(&payload, damage, replaces);
    if attempt != payload {
        let heard = responder.take(0, WALL_MS, source, &attempt, loaded);
        assert!(heard.is_err(), "{heard:?}");
    }
    let Ok(Heard::Said(said)) = responder.take(0, WALL_MS, source, &payload, loaded) else {
        panic!("what was really said is not heard");
    };
    assert_eq!(said.payload, b"ask");
    let answer = responder.answer(said.number, b"answer").expect("short");
    let (_, answer) = answer.expect("it is kept");
    let attempt = damaged(answer, damage, replaces);
    if attempt != answer {
        assert!(initiator.take(0, &attempt).is_err());
    }
    match initiator.take(0, answer) {
        Ok(Taken::Answered(answered)) => assert_eq!(answered.payload, b"answer"),
        other => panic!("{other:?}"),
    }
    Some(is_damage)
}
