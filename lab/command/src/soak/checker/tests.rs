use super::super::orders::Life;
use super::*;

fn pair(ended: bool) -> (Sent, Received) {
    let life = |host| Life { host, number: 1 };
    let sent = Sent {
        connection: 7,
        from: life(0),
        to: life(1),
        ended: ended.then(|| "cut".to_owned()),
        datagrams: 10,
        tags: 20,
        records: 30,
        datagram_came_back: false,
        tags_came_back: Vec::new(),
    };
    let received = Received {
        connection: 7,
        datagrams: 10,
        records: 30,
        tags_below: 18,
        tags_beyond: vec![18, 19],
    };
    (sent, received)
}

fn checked(sent: &Sent, received: &Received) -> Vec<String> {
    let (mut one, mut other) = (Checker::default(), Checker::default());
    assert_eq!(one.sent(sent.clone()), Vec::<String>::new());
    assert_eq!(one.unanswered(|_| true).len(), 1);
    let wrong = one.received(received.clone());
    assert!(one.unanswered(|_| true).is_empty());
    // In whichever order they speak.
    assert_eq!(other.received(received.clone()), Vec::<String>::new());
    assert_eq!(other.sent(sent.clone()), wrong);
    assert_eq!((one.checked, other.checked), (1, 1));
    wrong
}

#[test]
fn what_is_complete_is_right() {
    for ended in [false, true] {
        let (sent, received) = pair(ended);
        assert_eq!(checked(&sent, &received), Vec::<String>::new());
    }
}

#[test]
fn what_is_lost_is_found() {
    for shorten in [
        (|received| received.datagrams -= 1) as fn(&mut Received),
        |received| received.records -= 1,
        |received| received.tags_beyond = vec![19],
    ] {
        let (sent, mut received) = pair(false);
        shorten(&mut received);
        assert_eq!(checked(&sent, &received).len(), 1);
    }
}

#[test]
fn what_was_not_sent_is_found() {
    for lengthen in [
        (|received| received.datagrams += 1) as fn(&mut Received),
        |received| received.records += 1,
        |received| received.tags_beyond = vec![18, 20],
    ] {
        let (sent, mut received) = pair(true);
        lengthen(&mut received);
        assert!(!checked(&sent, &received).is_empty());
    }
}

#[test]
fn of_a_lost_link_what_did_not_come_must_come_back() {
    let (mut sent, mut received) = pair(true);
    received.tags_beyond = vec![19];
    received.datagrams -= 1;
    // Records may end anywhere.
    received.records -= 7;
    assert_eq!(checked(&sent, &received).len(), 2);
    sent.tags_came_back = vec![18, 19];
    sent.datagram_came_back = true;
    assert_eq!(checked(&sent, &received), Vec::<String>::new());
    // One datagram is under way at a time.
    received.datagrams -= 1;
    assert_eq!(checked(&sent, &received).len(), 1);
}
