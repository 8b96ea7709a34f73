use super::*;
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
        Request::Ask {
            item: Name::new("ticket").unwrap(),
            user: 1000,
            group: 100,
            number: u64::MAX - 1,
        },
    ]
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
        Answer::Given(vec![1]),
        Answer::Given(vec![9; OFFER_BYTES_MAX]),
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
