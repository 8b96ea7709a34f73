use std::net::SocketAddr;
use std::sync::Arc;

use proptest::prelude::*;

use super::super::key_file::HostKey;
use super::super::protection::{RxProtection, TxProtection};
use super::super::randomness::Randomness;
use super::*;
use crate::udp::packet_header::Kind;

const WALL_MS: u64 = 1_790_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;

fn secret(byte: u8) -> ClusterSecret {
    let text = (0..32)
        .map(|at| format!("{:02x}", at ^ byte))
        .collect::<String>();
    ClusterSecret::parse(&text).unwrap()
}

fn host_key(byte: u8) -> HostKey {
    HostKey::parse(&secret(byte).to_text()).unwrap()
}

fn at(port: u16) -> SocketAddr {
    ([127, 0, 0, 1], port).into()
}

/// Credentials of an initiator ("hera") and of a responder ("zeus").
fn all_credentials() -> Vec<[Credentials; 2]> {
    let shared = Credentials::Secret(secret(1));
    let (hera, zeus) = (host_key(2), host_key(3));
    let list = vec![
        ("hera".to_owned(), hera.public()),
        ("zeus".to_owned(), zeus.public()),
    ];
    let keys = [hera, zeus].map(|own| Credentials::Keys {
        own,
        hosts: list.clone(),
    });
    vec![
        [shared.clone(), shared],
        keys,
        [Credentials::Insecure, Credentials::Insecure],
    ]
}

/// The interface that is asked.
const ASKED: u64 = 7;

fn initiator(credentials: &Credentials) -> Initiator {
    Initiator::new(credentials, Some("zeus"), ASKED, b"from hera", 0, WALL_MS).unwrap()
}

fn responder(credentials: &Credentials) -> Responder {
    Responder::new(credentials, ASKED).unwrap()
}

fn asks(initiator: &mut Initiator) -> Vec<u8> {
    let now = initiator.deadline_ns().unwrap();
    initiator.poll(now).unwrap().to_vec()
}

fn reply(heard: Result<Heard<'_>, Unheard>) -> Vec<u8> {
    match heard.unwrap() {
        Heard::Reply(reply) => reply.to_vec(),
        Heard::Said(said) => panic!("{said:?}"),
    }
}

fn said(heard: Result<Heard<'_>, Unheard>) -> Said {
    match heard.unwrap() {
        Heard::Said(said) => *said,
        Heard::Reply(_) => panic!("a reply"),
    }
}

/// The answer to an initiation from the usual address.
fn response(responder: &mut Responder, datagram: &[u8]) -> Vec<u8> {
    reply(responder.take(0, WALL_MS, at(1), datagram, false))
}

/// The payload that an initiator has for that response.
fn payload(initiator: &mut Initiator, response: &[u8]) -> Vec<u8> {
    assert!(matches!(initiator.take(0, response), Ok(Taken::Again)));
    initiator.poll(0).unwrap().to_vec()
}

fn answered(initiator: &mut Initiator, datagram: &[u8]) -> Answered {
    match initiator.take(0, datagram).unwrap() {
        Taken::Answered(answered) => *answered,
        Taken::Again => panic!("something else"),
    }
}

/// A whole exchange.
fn exchange(initiator: &mut Initiator, responder: &mut Responder) -> (Said, Answered) {
    let response = response(responder, &asks(initiator));
    let payload = payload(initiator, &response);
    let said = said(responder.take(0, WALL_MS, at(1), &payload, false));
    let (to, answer) = responder
        .answer(said.number, b"from zeus")
        .unwrap()
        .unwrap();
    assert_eq!(to, at(1));
    let answered = answered(initiator, answer);
    (said, answered)
}

fn carries(from: &Keys, to: &Keys) -> bool {
    let mut tx_protection = TxProtection::new(&from.send, 22);
    let mut rx_protection = RxProtection::new(&to.receive, 22);
    let mut datagram = [0; 64];
    let length = tx_protection
        .protect(Kind::Data, 0, b"frame", &mut datagram)
        .unwrap();
    rx_protection
        .unprotect(&mut datagram[..length])
        .is_ok_and(|opened| opened.frame == b"frame")
}

#[test]
fn both_sides_end_with_the_same_keys_and_know_each_other() {
    let identities = [
        [Identity::SecretHolder, Identity::SecretHolder],
        [
            Identity::Host("zeus".to_owned()),
            Identity::Host("hera".to_owned()),
        ],
        [Identity::Anyone, Identity::Anyone],
    ];
    for ([ours, theirs], [zeus, hera]) in all_credentials().into_iter().zip(identities) {
        let (mut initiator, mut responder) = (initiator(&ours), responder(&theirs));
        let (there, here) = exchange(&mut initiator, &mut responder);
        assert_eq!(
            (here.identity.clone(), there.identity.clone()),
            (zeus, hera)
        );
        assert_eq!(here.payload, b"from zeus");
        assert_eq!(there.payload, b"from hera");
        assert!(carries(&here.keys, &there.keys) && carries(&there.keys, &here.keys));
        // Directions differ: a reflected message is refused.
        assert!(!carries(&here.keys, &here.keys) && !carries(&there.keys, &there.keys));
        assert_eq!(initiator.deadline_ns(), None);
        assert_eq!(initiator.take(0, &[0; 80]).unwrap_err(), Unheard::Done);
        assert!(initiator.poll(u64::MAX).is_none());
    }
}

/// Until the source is proved it gets no more than it sent, and nothing was heard.
#[test]
fn a_request_is_heard_from_its_source_alone_and_answers_before_are_short() {
    for [ours, theirs] in all_credentials() {
        let (mut initiator, mut responder) = (initiator(&ours), responder(&theirs));
        let asks = asks(&mut initiator);
        let response = response(&mut responder, &asks);
        assert!(response.len() <= asks.len() && asks.len() <= MESSAGE_BYTES_MAX);
        let payload = payload(&mut initiator, &response);
        let heard = responder.take(0, WALL_MS, at(2), &payload, false);
        assert_eq!(heard.unwrap_err(), Unheard::Stale);
        said(responder.take(0, WALL_MS, at(1), &payload, false));
    }
}

#[test]
fn what_was_recorded_is_good_for_nothing_elsewhere() {
    for [ours, theirs] in all_credentials() {
        let (mut initiator, mut asked) = (initiator(&ours), responder(&theirs));
        let asks = asks(&mut initiator);
        let response = response(&mut asked, &asks);
        let payload = payload(&mut initiator, &response);
        // Another interface of the same host, and its name service.
        for interface in [ASKED + 1, 0] {
            let mut other = Responder::new(&theirs, interface).unwrap();
            let heard = other.take(0, WALL_MS, at(1), &asks, false);
            assert_eq!(heard.unwrap_err(), Unheard::Unauthentic);
        }
        // The same one, after it forgot.
        let mut later = responder(&theirs);
        assert!(later.take(0, WALL_MS, at(1), &payload, false).is_err());
        reply(later.take(0, WALL_MS, at(1), &asks, false));
        assert!(later.take(0, WALL_MS, at(1), &payload, false).is_err());
    }
}

#[test]
fn payloads_are_encrypted_if_there_are_keys() {
    for [ours, theirs] in all_credentials() {
        let (mut initiator, mut responder) = (initiator(&ours), responder(&theirs));
        let response = response(&mut responder, &asks(&mut initiator));
        let payload = payload(&mut initiator, &response);
        let said = said(responder.take(0, WALL_MS, at(1), &payload, false));
        let answer = responder
            .answer(said.number, b"from zeus")
            .unwrap()
            .unwrap();
        let is_clear = matches!(ours, Credentials::Insecure);
        let shows = |datagram: &[u8]| datagram.windows(5).any(|bytes| bytes == b"from ");
        assert_eq!((shows(&payload), shows(answer.1)), (is_clear, is_clear));
    }
}

#[test]
fn any_damage_to_a_message_is_noticed_and_harmless() {
    for [ours, theirs] in all_credentials() {
        let (mut initiator, mut responder) = (initiator(&ours), responder(&theirs));
        let asks = asks(&mut initiator);
        let damage = |message: &[u8], bits: usize, hurts: &mut dyn FnMut(&[u8]) -> bool| {
            for bit in 0..bits * 8 {
                let mut damaged = message.to_vec();
                damaged[bit / 8] ^= 1 << (bit % 8);
                assert!(!hurts(&damaged), "bit {bit}");
            }
            for length in 0..message.len() {
                assert!(!hurts(&message[..length]));
            }
        };
        damage(&asks, asks.len() - 32, &mut |bytes| {
            responder.take(0, WALL_MS, at(1), bytes, false).is_ok()
        });
        assert_eq!(responder.sessions(), 0);
        let response = response(&mut responder, &asks);
        damage(&response, response.len(), &mut |bytes| {
            initiator.take(0, bytes).is_ok()
        });
        // A request is an invalid answer.
        assert!(initiator.take(0, &asks).is_err());
        assert!(responder.take(0, WALL_MS, at(1), &response, false).is_err());
        let payload = payload(&mut initiator, &response);
        damage(&payload, payload.len(), &mut |bytes| {
            responder.take(0, WALL_MS, at(1), bytes, false).is_ok()
        });
        let said = said(responder.take(0, WALL_MS, at(1), &payload, false));
        let answer = responder
            .answer(said.number, b"from zeus")
            .unwrap()
            .unwrap();
        let answer = answer.1.to_vec();
        damage(&answer, answer.len(), &mut |bytes| {
            initiator.take(0, bytes).is_ok()
        });
        let here = answered(&mut initiator, &answer);
        assert!(carries(&here.keys, &said.keys));
    }
}

#[test]
fn a_peer_without_the_secret_is_told_nothing() {
    let ours = Credentials::Secret(secret(9));
    let theirs = Credentials::Secret(secret(8));
    let mut initiator = initiator(&ours);
    let mut responder = responder(&theirs);
    let asks = asks(&mut initiator);
    for loaded in [false, true] {
        let heard = responder.take(0, WALL_MS, at(1), &asks, loaded);
        assert_eq!(heard.unwrap_err(), Unheard::Unauthentic);
    }
    assert_eq!(responder.sessions(), 0);
}

#[test]
fn other_keys_are_strangers_or_have_another_address() {
    let (hera, zeus, eris) = (host_key(2), host_key(3), host_key(4));
    let keys = |own: &HostKey, list: &[(&str, &HostKey)]| Credentials::Keys {
        own: own.clone(),
        hosts: list
            .iter()
            .map(|(name, key)| ((*name).to_owned(), key.public()))
            .collect(),
    };
    let mut responder = responder(&keys(&zeus, &[("hera", &hera)]));
    // Knows the key of zeus, but is in no list.
    let mut stranger = initiator(&keys(&eris, &[("zeus", &zeus)]));
    let heard = responder.take(0, WALL_MS, at(1), &asks(&mut stranger), false);
    assert_eq!(heard.unwrap_err(), Unheard::Stranger);
    // Expects another key.
    let mut mistaken = initiator(&keys(&hera, &[("zeus", &eris)]));
    let heard = responder.take(0, WALL_MS, at(1), &asks(&mut mistaken), false);
    assert_eq!(heard.unwrap_err(), Unheard::Unauthentic);
    let unknown = Initiator::new(&keys(&hera, &[]), Some("zeus"), ASKED, b"", 0, 0);
    assert_eq!(
        unknown.unwrap_err(),
        HandshakeError::UnknownHost("zeus".to_owned())
    );
    let nobody = Initiator::new(&keys(&hera, &[]), None, ASKED, b"", 0, 0);
    assert_eq!(nobody.unwrap_err(), HandshakeError::NoHost);
    // A host that impersonates zeus cannot answer.
    let mut honest = initiator(&keys(&hera, &[("zeus", &zeus)]));
    let mut impostor = self::responder(&keys(&eris, &[("hera", &hera)]));
    assert!(
        impostor
            .take(0, WALL_MS, at(1), &asks(&mut honest), false)
            .is_err()
    );
}

#[test]
fn credentials_do_not_mix() {
    let all = all_credentials();
    for (at_ours, [ours, _]) in all.iter().enumerate() {
        for (at_theirs, [_, theirs]) in all.iter().enumerate() {
            let mut responder = responder(theirs);
            let asks = asks(&mut initiator(ours));
            let heard = responder.take(0, WALL_MS, at(1), &asks, false);
            assert_eq!(heard.is_ok(), at_ours == at_theirs);
        }
    }
}

#[test]
fn what_comes_again_is_answered_the_same_and_makes_nothing_new() {
    for [ours, theirs] in all_credentials() {
        let (mut initiator, mut responder) = (initiator(&ours), responder(&theirs));
        let asks = asks(&mut initiator);
        let response = response(&mut responder, &asks);
        for loaded in [false, true] {
            let heard = responder.take(5, WALL_MS + 5, at(1), &asks, loaded);
            assert_eq!(reply(heard), response);
            // Somebody else is told nothing.
            let heard = responder.take(5, WALL_MS + 5, at(2), &asks, loaded);
            assert_eq!(heard.unwrap_err(), Unheard::Stale);
        }
        assert_eq!(responder.sessions(), 1);
        let payload = payload(&mut initiator, &response);
        let said = said(responder.take(6, WALL_MS, at(1), &payload, false));
        // It is heard once; before there is an answer there is none, and then it is the same.
        let heard = responder.take(6, WALL_MS, at(1), &payload, false);
        assert_eq!(heard.unwrap_err(), Unheard::Stale);
        let answer = responder
            .answer(said.number, b"from zeus")
            .unwrap()
            .unwrap();
        let answer = answer.1.to_vec();
        assert_eq!(responder.answer(said.number, b"another"), Ok(None));
        for _ in 0..2 {
            let heard = responder.take(7, WALL_MS, at(1), &payload, true);
            assert_eq!(reply(heard), answer);
        }
        let heard = responder.take(7, WALL_MS, at(2), &payload, true);
        assert_eq!(heard.unwrap_err(), Unheard::Stale);
        let heard = responder.take(7, WALL_MS, at(1), &asks, false);
        assert_eq!(heard.unwrap_err(), Unheard::Stale);
        // After a while nobody knows of it; it is not fresh any more then either.
        let later_ns = 20 * SECOND_NS;
        let heard = responder.take(later_ns, WALL_MS, at(1), &payload, true);
        assert_eq!(heard.unwrap_err(), Unheard::Stale);
        assert_eq!(responder.sessions(), 0);
        let heard = responder.take(later_ns, WALL_MS + 300_000, at(1), &asks, false);
        assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
    }
}

/// However many ask and fall silent, the latest are answered.
#[test]
fn handshakes_are_bounded() {
    let [ours, theirs] = &all_credentials()[2];
    let mut responder = responder(theirs);
    for _ in 0..1_100 {
        let mut silent = initiator(ours);
        let first = asks(&mut silent);
        let mut heard = reply(responder.take(0, WALL_MS, at(1), &first, false));
        if heard.len() == COOKIE_MESSAGE_BYTES {
            // Half of the places are for those whose source is proved.
            assert!(responder.sessions() > 500);
            let shown = payload(&mut silent, &heard);
            heard = reply(responder.take(0, WALL_MS, at(1), &shown, false));
        }
        assert!(matches!(silent.take(0, &heard), Ok(Taken::Again)));
    }
    assert_eq!(responder.sessions(), 1_024);
}

/// An answer that is lost, or a responder that has forgotten the handshake, is made up for by
/// another handshake.
#[test]
fn who_gets_no_answer_begins_anew() {
    for [ours, theirs] in all_credentials() {
        let mut initiator = initiator(&ours);
        let mut forgetful = responder(&theirs);
        let response = response(&mut forgetful, &asks(&mut initiator));
        payload(&mut initiator, &response);
        let mut other = responder(&theirs);
        let mut now_ns = 0;
        let heard = loop {
            assert!(initiator.begun_anew() < 2, "it asks in vain for ever");
            now_ns = initiator.deadline_ns().unwrap().max(now_ns);
            let datagram = initiator.poll(now_ns).unwrap();
            if let Ok(heard) = other.take(now_ns, WALL_MS, at(1), datagram, false) {
                break reply(Ok(heard));
            }
        };
        assert_eq!(initiator.begun_anew(), 1);
        payload_at(&mut initiator, now_ns, &heard);
    }
}

fn payload_at(initiator: &mut Initiator, now_ns: u64, response: &[u8]) {
    assert!(matches!(initiator.take(now_ns, response), Ok(Taken::Again)));
    assert!(initiator.poll(now_ns).is_some());
}

/// What a responder that demands cookies makes of an attempt.
fn through_a_cookie(ours: &Credentials, theirs: &Credentials, wall_ms: u64, loaded: bool) {
    let (mut initiator, mut responder) = (initiator(ours), responder(theirs));
    let first = asks(&mut initiator);
    let demand = reply(responder.take(0, wall_ms, at(1), &first, loaded));
    assert_eq!(demand.len(), COOKIE_MESSAGE_BYTES);
    assert_eq!(responder.sessions(), 0);
    for bit in 0..demand.len() * 8 {
        let mut damaged = demand.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(initiator.take(0, &damaged).is_err(), "bit {bit}");
    }
    assert!(initiator.poll(0).is_none());
    let second = payload(&mut initiator, &demand);
    assert_ne!(second, first);
    assert_eq!(initiator.take(0, &demand).unwrap_err(), Unheard::Repeated);
    assert!(initiator.poll(0).is_none(), "a cookie makes one datagram");
    // Nor does another cookie, however good, before it is asked again for want of an answer.
    let another = reply(responder.take(130 * SECOND_NS, wall_ms, at(1), &first, true));
    assert_ne!(another, demand);
    assert_eq!(initiator.take(0, &another).unwrap_err(), Unheard::Repeated);
    // From another address the cookie is none, and so it is when it is old.
    for (now_ns, from) in [
        (0, at(2)),
        (0, ([127, 0, 0, 2], 1).into()),
        (240 * SECOND_NS, at(1)),
    ] {
        let heard = responder.take(now_ns, wall_ms, from, &second, true);
        assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
    }
    let response = reply(responder.take(119 * SECOND_NS, wall_ms, at(1), &second, loaded));
    // With or without the cookie it is the same initiation.
    let heard = responder.take(119 * SECOND_NS, wall_ms, at(1), &first, loaded);
    assert_eq!(reply(heard), response);
    payload(&mut initiator, &response);
}

#[test]
fn under_load_and_with_strange_clocks_the_source_is_proved_first() {
    for [ours, theirs] in all_credentials() {
        through_a_cookie(&ours, &theirs, WALL_MS, true);
        for wall_ms in [WALL_MS + FRESH_MS + 1, WALL_MS - FRESH_MS - 1, 0, u64::MAX] {
            through_a_cookie(&ours, &theirs, wall_ms, false);
        }
    }
}

#[test]
fn a_responder_that_began_anew_can_give_another_cookie() {
    let [ours, theirs] = &all_credentials()[0];
    let mut initiator = initiator(ours);
    let first = asks(&mut initiator);
    let mut now_ns = 0;
    for _ in 0..2 {
        let mut responder = responder(theirs);
        let demand = reply(responder.take(now_ns, WALL_MS, at(1), &first, true));
        assert!(matches!(initiator.take(now_ns, &demand), Ok(Taken::Again)));
        let shown = initiator.poll(now_ns).unwrap().to_vec();
        let heard = responder.take(now_ns, WALL_MS, at(1), &shown, true);
        assert_ne!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
        now_ns = initiator.deadline_ns().unwrap();
        initiator.poll(now_ns).unwrap();
    }
}

#[test]
fn it_is_asked_again_ever_more_slowly_and_anew_after_three_times() {
    let mut initiator = initiator(&Credentials::Insecure);
    let mut before = initiator.poll(0).unwrap().to_vec();
    let mut gaps = Vec::new();
    let mut now_ns = 0;
    for attempt in 1..9 {
        let deadline_ns = initiator.deadline_ns().unwrap();
        assert!(initiator.poll(deadline_ns - 1).is_none());
        let again = initiator.poll(deadline_ns).unwrap().to_vec();
        assert_eq!(again == before, attempt % 3 != 0);
        assert_eq!(initiator.begun_anew(), attempt / 3);
        before = again;
        gaps.push((deadline_ns - now_ns) / 1_000_000);
        now_ns = deadline_ns;
    }
    assert_eq!(gaps, [50, 100, 200, 400, 500, 500, 500, 500]);
}

#[test]
fn payloads_have_their_limit() {
    const TOO_LONG: HandshakeError = HandshakeError::Payload {
        bytes: PAYLOAD_BYTES_MAX + 1,
    };
    for [ours, theirs] in &all_credentials() {
        let longest = [7; PAYLOAD_BYTES_MAX];
        let new = |payload: &[u8]| Initiator::new(ours, Some("zeus"), ASKED, payload, 0, WALL_MS);
        let refused = new(&[0; PAYLOAD_BYTES_MAX + 1]);
        assert_eq!(refused.unwrap_err(), TOO_LONG);
        let (mut initiator, mut responder) = (new(&longest).unwrap(), responder(theirs));
        let response = response(&mut responder, &asks(&mut initiator));
        let payload = payload(&mut initiator, &response);
        assert!(payload.len() <= MESSAGE_BYTES_MAX);
        let said = said(responder.take(0, WALL_MS, at(1), &payload, false));
        assert_eq!(said.payload, longest);
        let refused = responder.answer(said.number, &[0; PAYLOAD_BYTES_MAX + 1]);
        assert_eq!(refused.unwrap_err(), TOO_LONG);
        let answer = responder.answer(said.number, &longest).unwrap().unwrap();
        assert_eq!(answered(&mut initiator, answer.1).payload, longest);
    }
}

#[test]
fn an_answer_to_someone_else_is_not_taken() {
    for [ours, theirs] in all_credentials() {
        let (mut one, mut other) = (initiator(&ours), initiator(&ours));
        let mut responder = responder(&theirs);
        let first = response(&mut responder, &asks(&mut one));
        let second = response(&mut responder, &asks(&mut other));
        assert!(one.take(0, &second).is_err());
        let payloads = [payload(&mut one, &first), payload(&mut other, &second)];
        let [_, of_other] = payloads.map(|payload| {
            let said = said(responder.take(0, WALL_MS, at(1), &payload, false));
            let answer = responder.answer(said.number, b"").unwrap().unwrap();
            answer.1.to_vec()
        });
        assert_eq!(one.take(0, &of_other).unwrap_err(), Unheard::Broken);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..800), which in 0..3_usize, length in 0..3_usize) {
        let [ours, theirs] = &all_credentials()[which];
        let (mut initiator, mut responder) = (initiator(ours), responder(theirs));
        let asks = asks(&mut initiator);
        let response = response(&mut responder, &asks);
        let mode = [asks.len(), COOKIE_MESSAGE_BYTES, bytes.len()][length];
        let mut bytes = bytes;
        bytes.resize(mode, 0);
        prop_assert!(responder.take(0, WALL_MS, at(1), &bytes, false).is_err());
        prop_assert!(initiator.take(0, &bytes).is_err());
        payload(&mut initiator, &response);
        prop_assert!(initiator.take(0, &bytes).is_err());
    }
}

/// Bytes that count on from a beginning.
struct Counting(std::sync::atomic::AtomicU64);

impl Randomness for Counting {
    fn fill(&self, into: &mut [u8]) -> Result<(), NoRandom> {
        for byte in into {
            let at = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            *byte = (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        }
        Ok(())
    }
}

/// All messages of a handshake whose sides are given random bytes that begin there.
fn messages(credentials: &[Credentials; 2], begin: u64) -> Vec<Vec<u8>> {
    let [one, other] = [begin, begin + 1_000].map(|begin| Arc::new(Counting(begin.into())));
    let mut initiator = Initiator::with_randomness(
        one,
        &credentials[0],
        Some("zeus"),
        ASKED,
        b"hello",
        0,
        WALL_MS,
    )
    .unwrap();
    let mut responder = Responder::with_randomness(other, &credentials[1], ASKED).unwrap();
    let mut messages = vec![asks(&mut initiator)];
    let reply = responder.take(0, WALL_MS, at(1), &messages[0], false);
    let Ok(Heard::Reply(reply)) = reply else {
        panic!("no reply");
    };
    messages.push(reply.to_vec());
    assert!(matches!(initiator.take(0, &messages[1]), Ok(Taken::Again)));
    messages.push(asks(&mut initiator));
    let said = responder.take(0, WALL_MS, at(1), &messages[2], false);
    let Ok(Heard::Said(said)) = said else {
        panic!("nothing said");
    };
    let (_, answer) = responder.answer(said.number, b"welcome").unwrap().unwrap();
    messages.push(answer.to_vec());
    messages
}

/// A simulation repeats a handshake: who is given the same random bytes says the same, and with
/// others it says something else. The library of the handshake takes its random bytes from there,
/// too.
#[test]
fn given_random_bytes_decide_all_of_a_handshake() {
    for credentials in all_credentials() {
        let first = messages(&credentials, 1);
        assert_eq!(first, messages(&credentials, 1), "{credentials:?}");
        let other = messages(&credentials, 5);
        for (at, (one, other)) in first.iter().zip(&other).enumerate() {
            assert_ne!(one, other, "message {at} of {credentials:?}");
        }
    }
}
