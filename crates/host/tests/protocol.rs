//! `docs/protocol.md` is true of handshake payloads and of the numbers of hosts: its vectors are
//! read from the file itself.

#[path = "../../link/tests/vectors/mod.rs"]
mod vectors;

use hamlyn_host::Destination;
use hamlyn_host::network::handshake_payload::{Answer, PAYLOAD_BYTES_MAX, Request, Side, Sought};
use hamlyn_host::network::hosts::HostName;
use hamlyn_host::process::name::{Name, Namespace};
use hamlyn_host::question::{Question, Replies, Reply};
use hamlyn_link::udp::handshake::PAYLOAD_BYTES_MAX as SEALED_BYTES_MAX;
use vectors::{Vector, Verdicts, hexadecimal, read};

// A handshake payload is the payload of a handshake.
const _: () = assert!(PAYLOAD_BYTES_MAX <= SEALED_BYTES_MAX);

#[derive(PartialEq, Debug)]
enum Payload {
    Request(Request),
    Answer(Answer),
}

impl Payload {
    fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Request(request) => request.to_bytes(),
            Self::Answer(answer) => answer.to_bytes(),
        }
    }
}

/// What the bytes say; a handshake payload is never both.
fn payload_in(bytes: &[u8]) -> Option<Payload> {
    match (Request::from_bytes(bytes), Answer::from_bytes(bytes)) {
        (Ok(request), Err(_)) => Some(Payload::Request(request)),
        (Err(_), Ok(answer)) => Some(Payload::Answer(answer)),
        (Err(_), Err(_)) => None,
        (Ok(_), Ok(_)) => panic!("a request and an answer: {}", hexadecimal(bytes)),
    }
}

fn word(vector: &Vector, field: &str) -> u32 {
    u32::try_from(vector.number(field)).expect("a number of 32 bits")
}

fn short(vector: &Vector, field: &str) -> u16 {
    u16::try_from(vector.number(field)).expect("a number of 16 bits")
}

fn name(vector: &Vector, field: &str) -> Option<Name> {
    let name = vector.all(field).first().copied()?;
    Some(Name::new(name).expect("a name"))
}

fn side(vector: &Vector) -> Side {
    Side {
        destination: Destination {
            node: word(vector, "host"),
            user: word(vector, "user"),
            interface: vector.number("interface"),
        },
        group: word(vector, "group"),
        process: word(vector, "process"),
        name: name(vector, "name"),
        association: word(vector, "association"),
        channels: short(vector, "channels"),
        frame_bytes: word(vector, "frame"),
        paths: short(vector, "paths") as u8,
        port: short(vector, "port"),
    }
}

fn question(items: &[&str]) -> Question {
    let items: Vec<Name> = items
        .iter()
        .map(|item| Name::new(item).expect("an item"))
        .collect();
    Question::for_first(&items, usize::MAX).expect("items")
}

/// `given` and its bytes, or `refused` and the reason.
fn reply(text: &str) -> Reply {
    match text.split_once(' ').expect("a reply") {
        ("refused", reason) => Reply::Refused(reason.parse().expect("a reason")),
        ("given", bytes) => Reply::Given(
            bytes
                .split(' ')
                .map(|byte| u8::from_str_radix(byte, 16).expect("a byte"))
                .collect(),
        ),
        _ => panic!("no reply {text}"),
    }
}

fn payload_of(vector: &Vector) -> Payload {
    match vector.text("payload") {
        "locate" => {
            let sought = match name(vector, "name") {
                Some(name) => Sought::Name(name),
                None => Sought::Interface(vector.number("interface")),
            };
            let namespace = Namespace::new(vector.text("namespace")).expect("a namespace");
            Payload::Request(Request::Locate { namespace, sought })
        }
        "link" => Payload::Request(Request::Link(side(vector))),
        "ask" => Payload::Request(Request::Ask {
            question: question(&vector.all("item")),
            user: word(vector, "user"),
            group: word(vector, "group"),
            number: vector.number("number"),
        }),
        "located" => Payload::Answer(Answer::Located {
            interface: vector.number("interface"),
            node: word(vector, "host"),
            user: word(vector, "user"),
            port: short(vector, "port"),
        }),
        "linked" => Payload::Answer(Answer::Linked(side(vector))),
        "answered" => {
            let replies: Vec<Reply> = vector.all("reply").into_iter().map(reply).collect();
            let items: Vec<String> = (0..replies.len()).map(|at| at.to_string()).collect();
            let items: Vec<&str> = items.iter().map(String::as_str).collect();
            let mut replies = replies.into_iter();
            let next = |_: &Name| replies.next().expect("one for each item");
            Payload::Answer(Answer::Answered(Replies::to(
                &question(&items),
                1_028,
                next,
            )))
        }
        "refused" => Payload::Answer(Answer::Refused {
            reason: short(vector, "reason"),
        }),
        other => panic!("no payload {other}"),
    }
}

#[test]
fn handshake_payloads_match_the_document() {
    let mut pending_losses = Verdicts::default();
    let vectors = read(&["payload"]);
    for vector in &vectors {
        let payload = payload_of(vector);
        pending_losses.bytes(vector, "bytes", &payload.to_bytes());
        let is = payload_in(&vector.bytes("bytes"));
        pending_losses.same(vector, "payload", &Some(payload), &is);
    }
    pending_losses.end(20);
    let mut kinds: Vec<u8> = vectors.iter().map(|v| v.bytes("bytes")[1]).collect();
    kinds.sort_unstable();
    kinds.dedup();
    assert_eq!(kinds, [1, 2, 3, 4, 65, 66, 67, 68], "all kinds");
}

#[test]
fn invalid_handshake_payloads_are_refused() {
    let mut pending_losses = Verdicts::default();
    for vector in read(&["no-payload"]) {
        let is = payload_in(&vector.bytes("bytes"));
        pending_losses.same(&vector, "bytes", &None, &is);
    }
    pending_losses.end(12);
}

#[test]
fn hosts_have_the_numbers_that_they_are_said_to_have() {
    let mut pending_losses = Verdicts::default();
    for vector in read(&["host"]) {
        let name = vector.text("name");
        let is = HostName::new(name).expect("a host").node();
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for byte in name.to_lowercase().bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
        let by_hand = ((hash >> 32) as u32 ^ hash as u32).max(1);
        pending_losses.same(&vector, "by hand", &by_hand, &is);
        pending_losses.same(&vector, "number", &word(&vector, "number"), &is);
    }
    pending_losses.end(4);
}
