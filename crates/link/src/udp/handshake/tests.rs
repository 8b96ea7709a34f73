use std::net::SocketAddr;

use proptest::prelude::*;

use super::super::key_file::HostKey;
use super::super::seal::{Opener, Sealer};
use super::*;
use crate::udp::envelope::Kind;

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

/// Credentials of one who asks ("hera") and of one who is asked ("zeus").
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

fn initiator(credentials: &Credentials) -> Initiator {
    Initiator::new(credentials, Some("zeus"), 11, b"from hera", 0, WALL_MS).unwrap()
}

fn asks(initiator: &mut Initiator) -> Vec<u8> {
    let now = initiator.deadline_ns().unwrap();
    initiator.poll(now).unwrap().to_vec()
}

fn asked(responder: &mut Responder, datagram: &[u8]) -> Asked {
    match responder.take(0, WALL_MS, at(1), datagram, false).unwrap() {
        Heard::Asked(asked) => *asked,
        Heard::Reply(_) => panic!("a reply"),
    }
}

fn accepted(responder: &mut Responder, datagram: &[u8]) -> (Established, Vec<u8>) {
    let asked = asked(responder, datagram);
    let accepted = responder.accept(0, asked, 22, b"from zeus").unwrap();
    (accepted.established, accepted.response.to_vec())
}

fn established(initiator: &mut Initiator, datagram: &[u8]) -> Established {
    match initiator.take(0, datagram).unwrap() {
        Taken::Established(established) => *established,
        Taken::Again => panic!("a cookie"),
    }
}

fn carries(from: &Established, to: &Established, number: u32) -> bool {
    let mut sealer = Sealer::new(&from.keys.send, from.association);
    let mut opener = Opener::new(&to.keys.receive, number);
    let mut datagram = [0; 64];
    let length = sealer.seal(Kind::Data, 0, b"frame", &mut datagram).unwrap();
    opener
        .open(&mut datagram[..length])
        .is_ok_and(|opened| opened.frame == b"frame")
}

fn reply(heard: Heard<'_>) -> Vec<u8> {
    match heard {
        Heard::Reply(reply) => reply.to_vec(),
        Heard::Asked(asked) => panic!("{asked:?}"),
    }
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
        let mut initiator = initiator(&ours);
        let mut responder = Responder::new(&theirs).unwrap();
        let asks = asks(&mut initiator);
        let (there, response) = accepted(&mut responder, &asks);
        assert!(response.len() <= asks.len() && asks.len() <= INITIATION_BYTES_MAX);
        assert!(response.len() <= RESPONSE_BYTES_MAX);
        let here = established(&mut initiator, &response);
        assert_eq!(
            (here.identity.clone(), there.identity.clone()),
            (zeus, hera)
        );
        assert_eq!((here.association, there.association), (22, 11));
        assert_eq!(here.payload, b"from zeus");
        assert_eq!(there.payload, b"from hera");
        assert!(carries(&here, &there, 22) && carries(&there, &here, 11));
        // Directions differ: what is sent back is not taken.
        assert!(!carries(&here, &here, 22) && !carries(&there, &there, 11));
        assert_eq!(initiator.deadline_ns(), None);
        assert_eq!(initiator.take(0, &response).unwrap_err(), Unheard::Done);
        assert!(initiator.poll(u64::MAX).is_none());
    }
}

#[test]
fn payloads_are_not_to_be_read_if_there_are_keys() {
    for [ours, theirs] in all_credentials() {
        let mut initiator = initiator(&ours);
        let asks = asks(&mut initiator);
        let response = accepted(&mut Responder::new(&theirs).unwrap(), &asks).1;
        let is_clear = matches!(ours, Credentials::Insecure);
        let shows = |datagram: &[u8]| datagram.windows(5).any(|bytes| bytes == b"from ");
        assert_eq!((shows(&asks), shows(&response)), (is_clear, is_clear));
    }
}

#[test]
fn any_damage_to_either_message_is_noticed_and_harmless() {
    for [ours, theirs] in all_credentials() {
        let mut initiator = initiator(&ours);
        let mut responder = Responder::new(&theirs).unwrap();
        let asks = asks(&mut initiator);
        for bit in 0..(asks.len() - 32) * 8 {
            let mut damaged = asks.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(
                responder.take(0, WALL_MS, at(1), &damaged, false).is_err(),
                "bit {bit}"
            );
        }
        for length in 0..asks.len() {
            assert!(
                responder
                    .take(0, WALL_MS, at(1), &asks[..length], false)
                    .is_err()
            );
        }
        assert_eq!(responder.remembered(), 0);
        let (there, response) = accepted(&mut responder, &asks);
        for bit in 0..response.len() * 8 {
            let mut damaged = response.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert!(initiator.take(0, &damaged).is_err(), "bit {bit}");
        }
        for length in 0..response.len() {
            assert!(initiator.take(0, &response[..length]).is_err());
        }
        // What was asked is no answer.
        assert!(initiator.take(0, &asks).is_err());
        assert!(responder.take(0, WALL_MS, at(1), &response, false).is_err());
        let here = established(&mut initiator, &response);
        assert!(carries(&here, &there, 22));
    }
}

#[test]
fn whoever_lacks_the_secret_is_told_nothing() {
    let ours = Credentials::Secret(secret(9));
    let theirs = Credentials::Secret(secret(8));
    let mut initiator = initiator(&ours);
    let mut responder = Responder::new(&theirs).unwrap();
    let asks = asks(&mut initiator);
    for loaded in [false, true] {
        let heard = responder.take(0, WALL_MS, at(1), &asks, loaded);
        assert_eq!(heard.unwrap_err(), Unheard::Unauthentic);
    }
    assert_eq!(responder.remembered(), 0);
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
    let mut responder = Responder::new(&keys(&zeus, &[("hera", &hera)])).unwrap();
    // Knows the key of zeus, but is in no list.
    let mut stranger = initiator(&keys(&eris, &[("zeus", &zeus)]));
    let heard = responder.take(0, WALL_MS, at(1), &asks(&mut stranger), false);
    assert_eq!(heard.unwrap_err(), Unheard::Stranger);
    // Expects another key.
    let mut mistaken = initiator(&keys(&hera, &[("zeus", &eris)]));
    let heard = responder.take(0, WALL_MS, at(1), &asks(&mut mistaken), false);
    assert_eq!(heard.unwrap_err(), Unheard::Unauthentic);
    let unknown = Initiator::new(&keys(&hera, &[]), Some("zeus"), 1, b"", 0, 0);
    assert_eq!(
        unknown.unwrap_err(),
        HandshakeError::UnknownHost("zeus".to_owned())
    );
    let nobody = Initiator::new(&keys(&hera, &[]), None, 1, b"", 0, 0);
    assert_eq!(nobody.unwrap_err(), HandshakeError::NoHost);
    // Whoever impersonates zeus cannot answer.
    let mut honest = initiator(&keys(&hera, &[("zeus", &zeus)]));
    let mut impostor = Responder::new(&keys(&eris, &[("hera", &hera)])).unwrap();
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
            let mut responder = Responder::new(theirs).unwrap();
            let asks = asks(&mut initiator(ours));
            let heard = responder.take(0, WALL_MS, at(1), &asks, false);
            assert_eq!(heard.is_ok(), at_ours == at_theirs);
        }
    }
}

#[test]
fn what_comes_again_is_answered_the_same_and_makes_nothing_new() {
    for [ours, theirs] in all_credentials() {
        let mut initiator = initiator(&ours);
        let mut responder = Responder::new(&theirs).unwrap();
        let asks = asks(&mut initiator);
        let (_, response) = accepted(&mut responder, &asks);
        for from in [1, 2] {
            for loaded in [false, true] {
                let heard = responder
                    .take(5, WALL_MS + 5, at(from), &asks, loaded)
                    .unwrap();
                assert_eq!(reply(heard), response);
            }
        }
        assert_eq!(responder.remembered(), 1);
        // Once it is forgotten it is not fresh any more either.
        let later_ns = 300 * SECOND_NS;
        let heard = responder
            .take(later_ns, WALL_MS + 300_000, at(1), &asks, false)
            .unwrap();
        assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
        assert_eq!(responder.remembered(), 0);
    }
}

#[test]
fn an_answer_that_is_not_kept_is_not_made_again() {
    let [ours, theirs] = &all_credentials()[0];
    let mut responder = Responder::new(theirs).unwrap();
    let first = asks(&mut initiator(ours));
    accepted(&mut responder, &first);
    for _ in 0..256 {
        accepted(&mut responder, &asks(&mut initiator(ours)));
    }
    let heard = responder.take(0, WALL_MS, at(1), &first, false);
    assert_eq!(heard.unwrap_err(), Unheard::Stale);
}

/// What a responder that demands cookies makes of an attempt.
fn through_a_cookie(ours: &Credentials, theirs: &Credentials, wall_ms: u64, loaded: bool) {
    let mut initiator = initiator(ours);
    let mut responder = Responder::new(theirs).unwrap();
    let first = asks(&mut initiator);
    let demand = reply(responder.take(0, wall_ms, at(1), &first, loaded).unwrap());
    assert_eq!(demand.len(), COOKIE_MESSAGE_BYTES);
    assert_eq!(responder.remembered(), 0);
    for bit in 0..demand.len() * 8 {
        let mut damaged = demand.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert!(initiator.take(0, &damaged).is_err(), "bit {bit}");
    }
    assert!(initiator.poll(0).is_none());
    assert!(matches!(initiator.take(0, &demand), Ok(Taken::Again)));
    let second = initiator.poll(0).unwrap().to_vec();
    assert_ne!(second, first);
    assert_eq!(initiator.take(0, &demand).unwrap_err(), Unheard::Repeated);
    assert!(initiator.poll(0).is_none(), "a cookie makes one datagram");
    // Nor does another cookie, however good, before it is asked again for want of an answer.
    let another = reply(
        responder
            .take(130 * SECOND_NS, wall_ms, at(1), &first, true)
            .unwrap(),
    );
    assert_ne!(another, demand);
    assert_eq!(initiator.take(0, &another).unwrap_err(), Unheard::Repeated);
    // From another address the cookie is none, and so it is when it is old.
    for (now_ns, from) in [
        (0, at(2)),
        (0, ([127, 0, 0, 2], 1).into()),
        (240 * SECOND_NS, at(1)),
    ] {
        let heard = responder
            .take(now_ns, wall_ms, from, &second, true)
            .unwrap();
        assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
    }
    match responder
        .take(119 * SECOND_NS, wall_ms, at(1), &second, loaded)
        .unwrap()
    {
        Heard::Asked(asked) => {
            let response = responder
                .accept(0, *asked, 22, b"")
                .unwrap()
                .response
                .to_vec();
            established(&mut initiator, &response);
            // With or without the cookie it is the same initiation.
            let heard = responder.take(0, wall_ms, at(1), &first, loaded).unwrap();
            assert_eq!(reply(heard), response);
        }
        Heard::Reply(_) => panic!("the cookie is good"),
    }
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
    for _ in 0..3 {
        let mut responder = Responder::new(theirs).unwrap();
        let demand = reply(
            responder
                .take(now_ns, WALL_MS, at(1), &first, true)
                .unwrap(),
        );
        assert!(matches!(initiator.take(now_ns, &demand), Ok(Taken::Again)));
        let shown = initiator.poll(now_ns).unwrap().to_vec();
        let heard = responder
            .take(now_ns, WALL_MS, at(1), &shown, true)
            .unwrap();
        assert!(matches!(heard, Heard::Asked(_)));
        now_ns = initiator.deadline_ns().unwrap();
        initiator.poll(now_ns).unwrap();
    }
}

#[test]
fn what_is_forgotten_early_is_not_accepted_again() {
    let [ours, theirs] = &all_credentials()[0];
    let mut responder = Responder::with_seen_max(theirs, 8).unwrap();
    let all = (0..9)
        .map(|_| asks(&mut initiator(ours)))
        .collect::<Vec<_>>();
    for datagram in &all[..8] {
        accepted(&mut responder, datagram);
    }
    assert_eq!(responder.remembered(), 8);
    accepted(&mut responder, &all[8]);
    assert_eq!(responder.remembered(), 5);
    for datagram in &all[..4] {
        let heard = responder.take(1, WALL_MS, at(1), datagram, false).unwrap();
        assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
    }
}

#[test]
fn a_cookie_that_was_accepted_is_not_good_once_that_is_forgotten() {
    let [ours, theirs] = &all_credentials()[0];
    let mut responder = Responder::with_seen_max(theirs, 8).unwrap();
    let mut first = initiator(ours);
    let demand = responder.take(0, WALL_MS, at(1), &asks(&mut first), true);
    first.take(0, &reply(demand.unwrap())).unwrap();
    let shown = first.poll(0).unwrap().to_vec();
    accepted(&mut responder, &shown);
    for _ in 0..8 {
        let asks = asks(&mut initiator(ours));
        accepted(&mut responder, &asks);
    }
    let heard = responder.take(1, WALL_MS, at(1), &shown, true).unwrap();
    assert_eq!(reply(heard).len(), COOKIE_MESSAGE_BYTES);
}

#[test]
fn it_is_asked_again_ever_more_slowly() {
    let mut initiator = initiator(&Credentials::Insecure);
    let first = initiator.poll(0).unwrap().to_vec();
    let mut gaps = Vec::new();
    let mut now_ns = 0;
    for attempt in 1..9 {
        let deadline_ns = initiator.deadline_ns().unwrap();
        assert!(initiator.poll(deadline_ns - 1).is_none());
        assert_eq!(initiator.poll(deadline_ns).unwrap(), first);
        assert_eq!(initiator.attempts(), attempt + 1);
        gaps.push((deadline_ns - now_ns) / 1_000_000);
        now_ns = deadline_ns;
    }
    assert_eq!(gaps, [50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
}

#[test]
fn payloads_have_their_limit() {
    const TOO_LONG: HandshakeError = HandshakeError::Payload {
        bytes: PAYLOAD_BYTES_MAX + 1,
    };
    let [ours, theirs] = &all_credentials()[0];
    let longest = [7; PAYLOAD_BYTES_MAX];
    let refused = Initiator::new(ours, None, 1, &[0; PAYLOAD_BYTES_MAX + 1], 0, 0);
    assert_eq!(refused.unwrap_err(), TOO_LONG);
    let mut initiator = Initiator::new(ours, None, 1, &longest, 0, WALL_MS).unwrap();
    let mut responder = Responder::new(theirs).unwrap();
    let asks = asks(&mut initiator);
    let first = asked(&mut responder, &asks);
    assert_eq!(
        (first.payload(), first.association()),
        (longest.as_slice(), 1)
    );
    assert_eq!(first.identity(), &Identity::SecretHolder);
    let refused = responder.accept(0, first, 2, &[0; PAYLOAD_BYTES_MAX + 1]);
    assert_eq!(refused.unwrap_err(), TOO_LONG);
    let again = asked(&mut responder, &asks);
    let response = responder
        .accept(0, again, 2, &longest)
        .unwrap()
        .response
        .to_vec();
    assert_eq!(established(&mut initiator, &response).payload, longest);
}

#[test]
fn an_answer_to_someone_else_is_not_taken() {
    for [ours, theirs] in all_credentials() {
        let (mut one, mut other) = (initiator(&ours), initiator(&ours));
        let mut responder = Responder::new(&theirs).unwrap();
        asks(&mut one);
        let (_, response) = accepted(&mut responder, &asks(&mut other));
        assert_eq!(one.take(0, &response).unwrap_err(), Unheard::Unauthentic);
    }
}

proptest! {
    #[test]
    fn any_bytes_are_judged(bytes in prop::collection::vec(any::<u8>(), 0..800), which in 0..3_usize, length in 0..4_usize) {
        let [ours, theirs] = &all_credentials()[which];
        let mut initiator = initiator(ours);
        let mut responder = Responder::new(theirs).unwrap();
        let mode = [asks(&mut initiator).len(), RESPONSE_BYTES_MAX, COOKIE_MESSAGE_BYTES, bytes.len()][length];
        let mut bytes = bytes;
        bytes.resize(mode, 0);
        prop_assert!(responder.take(0, WALL_MS, at(1), &bytes, false).is_err());
        prop_assert!(initiator.take(0, &bytes).is_err());
    }
}
