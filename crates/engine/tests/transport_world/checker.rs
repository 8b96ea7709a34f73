//! What was promised: each packet that was offered is delivered once or comes back once. Both only
//! if the association ended meanwhile and the packet had been sent: then nobody can know.

use std::collections::BTreeMap;

use hamlyn_engine::refusal::Refusal;
use hamlyn_engine::transport::{Packet, Return, Returned};

use super::message::Message;
use super::{Checked, number};

/// What became of a packet.
#[derive(Debug)]
struct Fate {
    from: usize,
    message: Message,
    delivered: bool,
    refused: Option<Refusal>,
    returned: Option<(Return, bool)>,
    /// Its sender was restarted: it knows nothing of it.
    forgotten: bool,
}

/// Of all packets.
#[derive(Default)]
pub struct Checker {
    fates: BTreeMap<u64, Fate>,
    pub delivered: u64,
    pub returned: u64,
}

/// What a packet that came out looks like.
pub fn seen(packet: &Packet<'_>) -> Message {
    let header = packet.header();
    match packet {
        Packet::Short(short) => Message {
            header,
            metadata: short.word.to_le_bytes()[..usize::from(header.metadata_length_bytes)]
                .to_vec(),
            data: short.bytes().to_vec(),
        },
        Packet::General { metadata, data, .. } => Message {
            header,
            metadata: metadata.to_vec(),
            data: data.to_vec(),
        },
    }
}

impl Checker {
    pub fn offered(&mut self, number: u64, from: usize, message: Message) {
        let fate = Fate {
            from,
            message,
            delivered: false,
            refused: None,
            returned: None,
            forgotten: false,
        };
        self.fates.insert(number, fate);
    }

    /// An end was restarted, and does not know what it had sent.
    pub fn forgotten(&mut self, from: usize) {
        let of_it = self.fates.values_mut().filter(|fate| fate.from == from);
        of_it.for_each(|fate| fate.forgotten = true);
    }

    fn fate(&mut self, from: usize, message: &Message) -> Checked<(u64, &mut Fate)> {
        let number = number(message)?;
        match self.fates.get_mut(&number) {
            Some(fate) if fate.from == from && fate.message == *message => Ok((number, fate)),
            Some(fate) => Err(format!("{message:?} came, offered was {:?}", fate.message)),
            None => Err(format!("packet {number} came, and nobody offered it")),
        }
    }

    pub fn delivered(&mut self, from: usize, message: &Message) -> Checked {
        self.delivered += 1;
        let (number, fate) = self.fate(from, message)?;
        if fate.delivered || fate.refused.is_some() {
            return Err(format!("packet {number} came twice"));
        }
        if let Some((Return::Refused(_) | Return::RefusedOtherwise(_), _) | (_, true)) =
            fate.returned
        {
            return Err(format!("packet {number} came though it had come back"));
        }
        fate.delivered = true;
        Ok(())
    }

    /// The interface would not have it.
    pub fn refused(&mut self, from: usize, message: &Message, why: Refusal) -> Checked {
        let (number, fate) = self.fate(from, message)?;
        if fate.delivered || fate.refused.is_some() {
            return Err(format!("packet {number} came twice"));
        }
        fate.refused = Some(why);
        Ok(())
    }

    pub fn returned(&mut self, from: usize, returned: &Returned<'_>) -> Checked {
        self.returned += 1;
        let message = Message {
            header: returned.header,
            metadata: returned.metadata().to_vec(),
            data: returned.data.to_vec(),
        };
        let (number, fate) = self.fate(from, &message)?;
        if fate.returned.is_some() {
            return Err(format!("packet {number} came back twice"));
        }
        match returned.reason {
            Return::Refused(why) if fate.refused == Some(why) => {}
            Return::Ended(_)
                if !(returned.was_never_sent && (fate.delivered || fate.refused.is_some())) => {}
            reason => {
                return Err(format!(
                    "packet {number} came back, {reason}, never sent {}, but {fate:?}",
                    returned.was_never_sent
                ));
            }
        }
        fate.returned = Some((returned.reason, returned.was_never_sent));
        Ok(())
    }

    /// Everything is over.
    pub fn end(&self) -> Checked {
        for (number, fate) in &self.fates {
            if fate.returned.is_none() && !fate.delivered && !fate.forgotten {
                return Err(format!("packet {number} is lost: {fate:?}"));
            }
        }
        Ok(())
    }
}
