//! The judge of a soak: what both ends of each connection say, set side by side.
//!
//! Of a connection whose two processes lived, everything that was sent was received, each message once; and if its link was
//! lost, whatever was not received came back to its sender. What a process that was killed would have said nobody knows.

use std::collections::BTreeMap;

use super::orders::{Received, Sent};

/// See the module.
#[derive(Default)]
pub(super) struct Judge {
    sent: BTreeMap<u64, Sent>,
    received: BTreeMap<u64, Received>,
    /// Connections of which both ends were heard.
    pub(super) judged: u64,
    /// Those among them whose link was lost.
    pub(super) lost: u64,
    /// Tags that came back to their senders.
    pub(super) came_back: u64,
    /// Messages of judged connections.
    pub(super) messages: u64,
}

impl Judge {
    /// A sender's word. What is wrong, if the receiver's is known.
    pub(super) fn sent(&mut self, sent: Sent) -> Vec<String> {
        let connection = sent.connection;
        match self.received.remove(&connection) {
            Some(received) => self.compare(&sent, &received),
            None => self.keep_sent(connection, sent),
        }
    }

    /// A receiver's word.
    pub(super) fn received(&mut self, received: Received) -> Vec<String> {
        let connection = received.connection;
        match self.sent.remove(&connection) {
            Some(sent) => self.compare(&sent, &received),
            None => match self.received.insert(connection, received) {
                None => Vec::new(),
                Some(_) => vec![format!("connection {connection:x} was received twice")],
            },
        }
    }

    fn keep_sent(&mut self, connection: u64, sent: Sent) -> Vec<String> {
        match self.sent.insert(connection, sent) {
            None => Vec::new(),
            Some(_) => vec![format!("connection {connection:x} was sent twice")],
        }
    }

    /// Senders' words to which nobody answered, although `lives` says that both ends live.
    pub(super) fn unanswered(&self, lives: impl Fn(&Sent) -> bool) -> Vec<String> {
        let open = self.sent.values().filter(|sent| lives(sent));
        open.map(|sent| format!("only its sender speaks of {}", name(sent)))
            .collect()
    }

    fn compare(&mut self, sent: &Sent, received: &Received) -> Vec<String> {
        self.judged += 1;
        self.lost += u64::from(sent.ended.is_some());
        self.came_back += sent.tags_came_back.len() as u64;
        let tags = received.tags_below + received.tags_beyond.len() as u64;
        self.messages += received.datagrams + received.records + tags;
        let mut wrong = Vec::new();
        let mut say = |what: String| wrong.push(format!("{}: {what}", name(sent)));
        let counts = [
            ("datagrams", sent.datagrams, received.datagrams),
            ("records", sent.records, received.records),
            ("tags", sent.tags, tags),
        ];
        for (what, of, came) in counts {
            if came > of {
                say(format!("{came} {what} came of {of}"));
            } else if came < of && sent.ended.is_none() {
                say(format!("{} of {of} {what} were lost", of - came));
            }
        }
        if received.tags_beyond.iter().any(|tag| *tag >= sent.tags) {
            say("a tag came that was not sent".to_owned());
        }
        if sent.ended.is_some() {
            let missing = (received.tags_below..sent.tags)
                .filter(|tag| !received.tags_beyond.contains(tag))
                .filter(|tag| !sent.tags_came_back.contains(tag));
            let missing: Vec<_> = missing.collect();
            if !missing.is_empty() {
                say(format!("tags neither came nor came back: {missing:?}"));
            }
            let datagrams = sent.datagrams.saturating_sub(received.datagrams);
            if datagrams > u64::from(sent.datagram_came_back) {
                say(format!("{datagrams} datagrams neither came nor came back"));
            }
        }
        if !wrong.is_empty() {
            tracing::warn!(?sent, ?received, "the accounts differ");
        }
        wrong
    }
}

fn name(sent: &Sent) -> String {
    let ended = match &sent.ended {
        Some(why) => format!(", which ended ({why})"),
        None => String::new(),
    };
    format!(
        "connection {:x} from host {} (process {}) to host {} (process {}){ended}",
        sent.connection, sent.from.host, sent.from.number, sent.to.host, sent.to.number
    )
}

#[cfg(test)]
mod tests {
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

    fn judged(sent: &Sent, received: &Received) -> Vec<String> {
        let (mut one, mut other) = (Judge::default(), Judge::default());
        assert_eq!(one.sent(sent.clone()), Vec::<String>::new());
        assert_eq!(one.unanswered(|_| true).len(), 1);
        let wrong = one.received(received.clone());
        assert!(one.unanswered(|_| true).is_empty());
        // In whichever order they speak.
        assert_eq!(other.received(received.clone()), Vec::<String>::new());
        assert_eq!(other.sent(sent.clone()), wrong);
        assert_eq!((one.judged, other.judged), (1, 1));
        wrong
    }

    #[test]
    fn what_is_complete_is_right() {
        for ended in [false, true] {
            let (sent, received) = pair(ended);
            assert_eq!(judged(&sent, &received), Vec::<String>::new());
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
            assert_eq!(judged(&sent, &received).len(), 1);
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
            assert!(!judged(&sent, &received).is_empty());
        }
    }

    #[test]
    fn of_a_lost_link_what_did_not_come_must_come_back() {
        let (mut sent, mut received) = pair(true);
        received.tags_beyond = vec![19];
        received.datagrams -= 1;
        // Records may end anywhere.
        received.records -= 7;
        assert_eq!(judged(&sent, &received).len(), 2);
        sent.tags_came_back = vec![18, 19];
        sent.datagram_came_back = true;
        assert_eq!(judged(&sent, &received), Vec::<String>::new());
        // One datagram is under way at a time.
        received.datagrams -= 1;
        assert_eq!(judged(&sent, &received).len(), 1);
    }
}
