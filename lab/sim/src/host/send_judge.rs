//! Every packet that an interface of the world sends, judged by the model of the transmitting half
//! ([`crate::reference::sending`], decision 0036).

use std::cell::RefCell;

use hamlyn_engine::counting::Counting;
use hamlyn_engine::memory::{LinkId, Part};
use hamlyn_engine::packet::{Header, Short};
use hamlyn_engine::send_observer::{PostedData, SendEvent, SendObserver};
use hamlyn_engine::terminus::{Completion, SendHandle, TerminusId};
use hamlyn_engine::transmit;
use hamlyn_ring::area::Area;

use crate::link::gathered;
use crate::reference::Violation;
use crate::reference::sending::{Message, Sending};
use crate::world::kernel;

/// See the module.
#[derive(Debug, Default)]
pub struct SendJudge {
    model: Sending,
    /// In the order of the model's.
    termini: Vec<TerminusId>,
    /// What is being posted, until it is known whether it was taken.
    posting: Option<Message>,
    is_posting: bool,
    /// What left meanwhile.
    left: Vec<Left>,
    /// A message that is sent from where it lies, whose data were not seen yet.
    begun: Option<(TerminusId, Message)>,
    /// Completions that the owner was told since the last event.
    told: RefCell<Vec<(SendHandle, Completion)>>,
}

#[derive(Debug)]
struct Left {
    terminus: TerminusId,
    link: LinkId,
    header: Header,
    metadata: Vec<u8>,
    data: Vec<u8>,
}

impl SendJudge {
    fn number(&self, terminus: TerminusId) -> Option<usize> {
        self.termini.iter().position(|known| *known == terminus)
    }

    /// What the owner was told since the last event, when things were as they are now.
    fn judge_told(&mut self) -> Result<(), Violation> {
        for (handle, completion) in self.told.take() {
            if let Some(number) = self.number(handle.terminus) {
                self.model.completed(number, handle.sequence, completion)?;
            }
        }
        Ok(())
    }

    fn posted(&mut self, terminus: TerminusId, sequence: Option<u64>) -> Result<(), Violation> {
        self.is_posting = false;
        let (posting, left) = (self.posting.take(), std::mem::take(&mut self.left));
        let Some(number) = self.number(terminus) else {
            return Ok(());
        };
        if let (Some(message), Some(sequence)) = (posting, sequence) {
            self.model.posted(number, sequence, message)?;
            for packet in left {
                self.departed(packet)?;
            }
            return self.model.fits(number);
        }
        // A message may be refused after packets of it left only if its link ended meanwhile.
        Ok(())
    }

    fn departed(&mut self, left: Left) -> Result<(), Violation> {
        let number = self.number(left.terminus);
        self.model
            .departed(number, left.link, &left.header, &left.metadata, &left.data)
    }

    fn short_left(
        &mut self,
        short: &Short,
        count: usize,
        link: LinkId,
        handle: SendHandle,
    ) -> Result<(), Violation> {
        let Some(number) = self.number(handle.terminus) else {
            return Ok(());
        };
        self.model
            .shorts_left(number, handle.sequence, count as u64, link, &short.header())
    }

    fn judge(&mut self, event: SendEvent<'_, Area>) -> Result<(), Violation> {
        self.judge_told()?;
        match event {
            SendEvent::TerminusOpened {
                terminus,
                queue_entries,
            } => {
                self.model.open(queue_entries);
                self.termini.push(terminus);
                Ok(())
            }
            SendEvent::TerminusClosed(terminus) => {
                if let Some(number) = self.number(terminus) {
                    self.model.closed(number);
                }
                Ok(())
            }
            SendEvent::Posting {
                message,
                metadata,
                data,
            } => {
                self.posting = Some(message_of(message, metadata, data));
                // A kill in the middle of a call leaves what is said last to others.
                self.left.clear();
                self.is_posting = true;
                Ok(())
            }
            SendEvent::Posted { terminus, sequence } => self.posted(terminus, sequence),
            SendEvent::StreamingBegun {
                terminus,
                message,
                metadata,
            } => {
                let message = message_of(message, metadata, PostedData::Parts(&[]));
                self.begun = Some((terminus, message));
                Ok(())
            }
            SendEvent::StreamingContinued {
                terminus,
                link,
                data,
            } => {
                let begun = self
                    .begun
                    .take_if(|(of, message)| *of == terminus && message.link == link);
                if let (Some((_, mut message)), Some(number)) = (begun, self.number(terminus)) {
                    message.data = data.to_vec();
                    self.model.streaming(number, message);
                }
                Ok(())
            }
            SendEvent::StreamingFinished(handle) => match self.number(handle.terminus) {
                Some(number) => self.model.streaming_ended(number, Some(handle.sequence)),
                None => Ok(()),
            },
            SendEvent::Left {
                terminus,
                link,
                header,
                metadata,
                parts,
            } => {
                let left = Left {
                    terminus,
                    link,
                    header: *header,
                    metadata: metadata.to_vec(),
                    data: data_of(parts),
                };
                if self.is_posting {
                    self.left.push(left);
                    return Ok(());
                }
                self.departed(left)
            }
            SendEvent::LeftShort {
                short,
                count,
                link,
                handle,
            } => self.short_left(&short, count, link, handle),
            SendEvent::FirstFailed { terminus, link } => {
                if let Some(number) = self.number(terminus) {
                    self.model.first_failed(number, link);
                }
                Ok(())
            }
            SendEvent::LinkEnded(link) => {
                self.model.link_ended(link);
                Ok(())
            }
        }
    }
}

impl SendObserver<Area> for SendJudge {
    const LISTENS: bool = true;

    fn observe(&mut self, event: SendEvent<'_, Area>) {
        let seen = match event {
            SendEvent::Left { .. } if self.is_posting => "a packet judged that left at once",
            SendEvent::Left { .. } => "a packet judged that left later",
            SendEvent::LeftShort { .. } => "a short packet judged as it left",
            SendEvent::StreamingFinished(_) => "a streaming send judged",
            _ => "a call of a terminus judged",
        };
        let judged = self.judge(event);
        kernel::with_if_any(|kernel| {
            kernel.saw_often(seen);
            kernel.judge(judged);
        });
    }

    fn told(&self, handle: SendHandle, completion: Completion) {
        self.told.borrow_mut().push((handle, completion));
    }
}

fn message_of(message: &transmit::Message, metadata: &[u8], data: PostedData<'_, Area>) -> Message {
    let share = message.share;
    Message {
        link: message.link,
        header: message.header,
        share: u128::from(share.minus_one()) + 1,
        modulus: match share.counting() {
            Counting::Bits32 => 1 << 32,
            Counting::Bits64 => 1 << 64,
        },
        metadata: metadata.to_vec(),
        data: match data {
            PostedData::Parts(parts) => data_of(parts),
            // Where they were stored, nobody looks here.
            PostedData::Placed(data_bytes) => vec![0; data_bytes as usize],
        },
    }
}

fn data_of(parts: &[Part<'_, Area>]) -> Vec<u8> {
    // The engine has checked that all lies inside.
    gathered(&[], parts).map_or_else(|_| Vec::new(), |bytes| bytes.into_vec())
}
