use super::*;
use crate::offers::OFFER_BYTES_MAX;
use crate::question::Reply;
use proptest::prelude::*;

fn side() -> Side {
    Side {
        destination: Destination {
            node: 7,
            user: 1000,
            interface: 0x0123_4567_89ab_cdef,
        },
        group: 100,
        process: 4711,
        name: Some(Name::new("a/b").unwrap()),
        association: 0xfeed_beef,
        channels: 1024,
        frame_bytes: 1400,
        paths: 4,
        port: 40_000,
    }
}

fn requests() -> Vec<Request> {
    let namespace = Namespace::new("default").unwrap();
    let locate = |sought| Request::Locate {
        namespace: namespace.clone(),
        sought,
    };
    vec![
        locate(Sought::Name(Name::new("echo").unwrap())),
        locate(Sought::Interface(u64::MAX)),
        Request::Link(side()),
        Request::Link(Side {
            name: None,
            ..side()
        }),
        ask(&["ticket"]),
        ask(&["a", "b/c", "longer_than_these"]),
    ]
}

fn ask(items: &[&str]) -> Request {
    let items: Vec<Name> = items.iter().map(|item| Name::new(item).unwrap()).collect();
    Request::Ask {
        question: Question::for_first(&items, QUESTION_BYTES_MAX).unwrap(),
        user: 1000,
        group: 100,
        number: u64::MAX - 1,
    }
}

fn answered(replies: &[Reply]) -> Answer {
    let items: Vec<Name> = (0..replies.len())
        .map(|at| Name::new(&at.to_string()).unwrap())
        .collect();
    let question = Question::for_first(&items, usize::MAX).unwrap();
    let mut replies = replies.iter().cloned();
    let replies = Replies::to(&question, REPLIES_BYTES_MAX, |_| replies.next().unwrap());
    Answer::Answered(replies)
}

fn answers() -> Vec<Answer> {
    vec![
        Answer::Located {
            interface: 3,
            node: 7,
            user: 1000,
            port: 40_000,
        },
        Answer::Linked(side()),
        answered(&[Reply::Given(vec![1])]),
        answered(&[Reply::Given(vec![9; OFFER_BYTES_MAX])]),
        answered(&[
            Reply::Refused(Reply::NOT_OFFERED),
            Reply::Given(vec![9; 64]),
            Reply::Refused(10),
        ]),
        Answer::Refused {
            reason: Answer::NOBODY,
        },
    ]
}

#[test]
fn payloads_are_read_as_they_were_written() {
    for request in requests() {
        let bytes = request.to_bytes();
        assert!(bytes.len() <= PAYLOAD_BYTES_MAX);
        assert_eq!(Request::from_bytes(&bytes).unwrap(), request);
    }
    for answer in answers() {
        let bytes = answer.to_bytes();
        assert!(bytes.len() <= PAYLOAD_BYTES_MAX);
        assert_eq!(Answer::from_bytes(&bytes).unwrap(), answer);
    }
}

/// The least that fits one question between hosts, and it fits a datagram.
#[test]
fn fifteen_items_have_room_whatever_their_names() {
    let items: Vec<String> = (0..20).map(|at| format!("{at:064}")).collect();
    let items: Vec<&str> = items.iter().map(String::as_str).collect();
    let request = ask(&items);
    let Request::Ask { question, .. } = &request else {
        unreachable!("it is an ask");
    };
    assert_eq!(question.items().len(), 15);
    assert!(request.to_bytes().len() <= PAYLOAD_BYTES_MAX);
    assert_eq!(Request::from_bytes(&request.to_bytes()), Ok(request));
}

#[test]
fn lists_that_lie_are_invalid() {
    let bytes = ask(&["a", "b"]).to_bytes();
    let list_at = HEAD_BYTES + ASKER_BYTES;
    assert_eq!(bytes[list_at..], [2, 1, b'a', 1, b'b']);
    for (at, to) in [
        (0, 0),
        (0, 1),
        (0, 3),
        (0, 65),
        (0, 255),
        (1, 0),
        (1, 2),
        (1, 255),
        (4, b'a'),
    ] {
        let mut bytes = bytes.clone();
        bytes[list_at + at] = to;
        let refused = Request::from_bytes(&bytes);
        assert!(
            matches!(refused, Err(InvalidPayload::Invalid(_))),
            "{at} {to}"
        );
    }
    // An answer that would be too long for a datagram.
    let mut bytes = answered(&[Reply::Given(vec![9; OFFER_BYTES_MAX])]).to_bytes();
    bytes[HEAD_BYTES] = 2;
    bytes.extend_from_slice(&[0, 0, 101, 0]);
    assert!(Answer::from_bytes(&bytes).is_err());
}

#[test]
fn shortened_and_extended_payloads_are_invalid() {
    for request in requests() {
        let mut bytes = request.to_bytes();
        for length in 0..bytes.len() {
            assert!(Request::from_bytes(&bytes[..length]).is_err());
        }
        bytes.push(0);
        assert!(Request::from_bytes(&bytes).is_err());
    }
    assert_eq!(
        Request::from_bytes(&[VERSION + 1, ASK, 0, 0]),
        Err(InvalidPayload::Version(VERSION + 1))
    );
}

proptest! {
    /// Any bytes are refused, or are the one encoding of their meaning.
    #[test]
    fn any_bytes_are_a_payload_or_invalid(
        which in any::<prop::sample::Index>(),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        noise in prop::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut all: Vec<Vec<u8>> = requests().iter().map(Request::to_bytes).collect();
        all.extend(answers().iter().map(Answer::to_bytes));
        let mut bytes = which.get(&all).clone();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        for bytes in [bytes, noise] {
            if let Ok(request) = Request::from_bytes(&bytes) {
                prop_assert_eq!(request.to_bytes(), bytes.clone());
            }
            if let Ok(answer) = Answer::from_bytes(&bytes) {
                prop_assert_eq!(answer.to_bytes(), bytes);
            }
        }
    }
}
