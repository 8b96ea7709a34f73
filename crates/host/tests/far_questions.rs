//! Many items in one question between hosts: handshakes, lost answers, and askers that lie.

mod support;

use std::net::Ipv4Addr;

use hamlyn_host::network::handshake_payload::{Answer, Request};
use hamlyn_host::network::hosts::{HostName, NAME_SERVICE_PORT};
use hamlyn_host::process::NetworkUse;
use hamlyn_host::process::name::Name;
use hamlyn_host::question::{Question, Reply};
use hamlyn_host::{Address, Connector, Destination, Host, RefusedBecause, Supply, Wanted};
use support::place::Place;
use support::{Owner, TIMEOUT_NS, after_ns};

/// Bytes of an offer about as long as that of a mailbox.
const TICKET: [u8; 64] = [7; 64];
/// So many such offers fit one answer.
const TICKETS_PER_ANSWER: usize = (1_027 - 1) / (2 + TICKET.len());

/// An interface of another host, which knows that place as `here`.
fn asker(place: &Place) -> Owner {
    let mut options = place.options("asker");
    let NetworkUse::On(network) = &mut options.network else {
        unreachable!("it is on the network");
    };
    network.host = Some(HostName::new("there").unwrap());
    network.listen = (Ipv4Addr::LOCALHOST, 0).into();
    network.name_service_port = 7_409;
    let door = (place.address, NAME_SERVICE_PORT).into();
    let here = HostName::new("here").unwrap();
    network.hosts.insert(here, door).unwrap();
    Owner::open(options).unwrap()
}

#[test]
fn many_items_take_as_few_handshakes_as_their_offers_fit() {
    let place = Place::new(21);
    let mut shop = place.open("shop");
    let asker = asker(&place);
    let items: Vec<String> = (0..100).map(|at| format!("item{at}")).collect();
    for item in &items {
        shop.offer(item, Supply::Once, &TICKET).unwrap();
    }
    let mut questions = 0;
    let mut rest = items.as_slice();
    for count in [1, TICKETS_PER_ANSWER, 60] {
        let (first, others) = rest.split_at(count);
        rest = others;
        let wanted: Vec<_> = first
            .iter()
            .map(|item| Wanted {
                to: Address::Name("here/shop"),
                item,
            })
            .collect();
        let deadline_ns = after_ns(&asker, TIMEOUT_NS);
        for given in asker.connector().ask(&wanted, deadline_ns) {
            assert_eq!(given.unwrap().bytes, TICKET);
        }
        questions += count.div_ceil(TICKETS_PER_ANSWER) as u64;
        // It counts before it answers.
        assert_eq!(shop.rendezvous_counters().answered, questions);
    }
}

fn ask(place: &Place, to: (u16, Destination), items: &[&str], number: u64) -> Vec<Reply> {
    let items: Vec<Name> = items.iter().map(|item| Name::new(item).unwrap()).collect();
    let (port, located) = to;
    let question = Question::for_first(&items, usize::MAX).unwrap();
    let request = Request::Ask {
        question: question.clone(),
        user: located.user,
        group: 0,
        number,
    };
    match place.ask(port, located.interface, &request).0 {
        Answer::Answered(replies) => replies.of(&question).unwrap(),
        answer => panic!("{answer:?}"),
    }
}

/// An asker that lost the answer may ask for the items one by one.
#[test]
fn offers_of_a_lost_answer_are_given_again_in_any_question() {
    let place = Place::new(22);
    let mut shop = place.open("shop");
    let to = place.located("shop");
    for item in ["a", "b"] {
        for byte in 0..2 {
            shop.offer(item, Supply::Once, &[byte]).unwrap();
        }
    }
    let given = |bytes: &[u8]| Reply::Given(bytes.to_vec());
    let nothing = Reply::Refused(Reply::NOT_OFFERED);
    let first = [given(&[0]), nothing.clone(), given(&[0])];
    assert_eq!(ask(&place, to, &["a", "none", "b"], 1), first);
    assert_eq!(ask(&place, to, &["a", "none", "b"], 1), first);
    assert_eq!(ask(&place, to, &["b"], 1), [given(&[0])]);
    assert_eq!(ask(&place, to, &["b", "a"], 2), [given(&[1]), given(&[1])]);
    assert_eq!(ask(&place, to, &["a", "b"], 1), [given(&[0]), given(&[0])]);
    assert_eq!(ask(&place, to, &["a", "b"], 3), [nothing.clone(), nothing]);
    assert_eq!(shop.offered("a") + shop.offered("b"), 0);
}

#[test]
fn questions_that_lie_are_refused_by_name() {
    let place = Place::new(23);
    let mut shop = place.open("shop");
    let (port, located) = place.located("shop");
    shop.offer("a", Supply::Once, b"kept").unwrap();
    let question = |list: &[u8]| {
        let mut bytes = vec![2, 4, 0, 0];
        bytes.extend_from_slice(&located.user.to_le_bytes());
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(list);
        bytes
    };
    // It fits a datagram, and its answer need not.
    let mut too_long = vec![16];
    for (at, length) in (b'a'..).zip([64; 15].into_iter().chain([35])) {
        too_long.push(length);
        too_long.extend(std::iter::repeat_n(at, length.into()));
    }
    assert_eq!(too_long.len(), 1_012);
    let too_many: Vec<u8> = [65]
        .into_iter()
        .chain((0..65).flat_map(|at| [1, at + 46]))
        .collect();
    let lies: [&[u8]; 9] = [
        &[],
        &[0],
        &[2, 1, b'a'],
        &[1, 2, b'a'],
        &[1, 1, b'a', 1],
        &[2, 1, b'a', 1, b'a'],
        &[1, 1, b' '],
        &too_many,
        &too_long,
    ];
    let ask = |bytes: &[u8]| place.ask_in_bytes(port, located.interface, bytes).0;
    for lie in lies {
        let reason = RefusedBecause::INVALID.0;
        assert_eq!(ask(&question(lie)), Answer::Refused { reason }, "{lie:?}");
    }
    let mut older = question(&[1, 1, b'a']);
    older[0] = 1;
    let reason = RefusedBecause::VERSION.0;
    assert_eq!(ask(&older), Answer::Refused { reason });
    let counters = shop.rendezvous_counters();
    assert_eq!((counters.invalid, counters.answered), (9, 0));
    assert_eq!(shop.offered("a"), 1);
}
