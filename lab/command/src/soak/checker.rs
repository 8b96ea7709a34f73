//! The checker of a soak compares the reports of both ends of each connection.
//!
//! Of a connection whose two processes lived, everything that was sent was received, each message
//! once; and if its link was lost, each message that was not received came back to its sender. Of a
//! killed process there is no report.

use std::collections::BTreeMap;

use super::orders::{Received, Sent};

/// See the module.
#[derive(Default)]
pub(super) struct Checker {
    sent: BTreeMap<u64, Sent>,
    received: BTreeMap<u64, Received>,
    /// Connections of which both ends were heard.
    pub(super) checked: u64,
    /// Those among them whose link was lost.
    pub(super) lost: u64,
    /// Tags that came back to their senders.
    pub(super) came_back: u64,
    /// Messages of checked connections.
    pub(super) messages: u64,
}

impl Checker {
    /// A sender's report. Returns what is wrong, if the receiver's is known.
    pub(super) fn sent(&mut self, sent: Sent) -> Vec<String> {
        let connection = sent.connection;
        match self.received.remove(&connection) {
            Some(received) => self.compare(&sent, &received),
            None => self.keep_sent(connection, sent),
        }
    }

    /// A receiver's report.
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
        self.checked += 1;
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
mod tests;
