//! What a stream's receiver delivers next: a record that lies in pieces of its own, or one of
//! several that share a piece.

use super::{Packed, Receiver, malformed};
use crate::error::ReceiveError;
use crate::stream::extent::Head;
use crate::stream::keeping::Delivered;
use crate::stream::wire::{Kind, packed_record};

impl Receiver {
    pub(super) fn next_record(&mut self) -> Result<Option<Delivered>, ReceiveError> {
        if let Some(what) = self.broken {
            return Err(malformed(what));
        }
        loop {
            if let Some(packed) = self.packed {
                return self.next_packed(packed).map(Some);
            }
            let serial = self.delivering;
            let Some(extent) = self.delivering_extent() else {
                return Ok(None);
            };
            let (kind, length_bytes, pieces) = match extent.head() {
                Head::Filled {
                    kind,
                    length_bytes,
                    pieces,
                } => (kind, length_bytes, pieces),
                Head::Malformed(what) => {
                    self.broken = Some(what);
                    return Err(malformed(what));
                }
                Head::Missing => {
                    let Some(end) = extent.end else {
                        return Ok(None);
                    };
                    let next = extent.next;
                    if next < end {
                        return Ok(None);
                    }
                    if next > end {
                        self.fail("pieces beyond the end")?;
                    }
                    if serial < self.newest() {
                        self.move_on();
                        continue;
                    }
                    return Err(match self.is_given_up {
                        true => ReceiveError::Incomplete,
                        false => ReceiveError::Closed,
                    });
                }
            };
            let position = extent.next;
            let offset = extent.next_offset();
            if kind == Kind::Skip {
                extent.skip();
            } else {
                extent.deliver(pieces);
            }
            match kind {
                Kind::Skip => {}
                Kind::Packed => {
                    self.packed = Some(Packed {
                        position,
                        offset,
                        length_bytes: length_bytes as usize,
                        at: 0,
                    });
                }
                Kind::Whole | Kind::First | Kind::Next => {
                    return Ok(Some(Delivered {
                        extent: serial,
                        offset,
                        length_bytes: length_bytes as usize,
                        position,
                        release: position + u64::from(pieces),
                    }));
                }
            }
        }
    }

    fn next_packed(&mut self, packed: Packed) -> Result<Delivered, ReceiveError> {
        let serial = self.delivering;
        let found = self.delivering_extent().and_then(|extent| {
            let bytes = extent.view(packed.offset, packed.length_bytes)?;
            let (start, end, next) = packed_record(bytes, packed.at)?;
            Some((packed.offset + start as u64, end - start, next))
        });
        let Some((offset, length_bytes, next)) = found else {
            self.broken = Some("a packed piece whose records do not fit it");
            return Err(malformed("a packed piece whose records do not fit it"));
        };
        let last = next == packed.length_bytes;
        self.packed = if last {
            None
        } else {
            Some(Packed { at: next, ..packed })
        };
        // The piece goes back with its last record, not before.
        let release = if last {
            packed.position + 1
        } else {
            packed.position
        };
        Ok(Delivered {
            extent: serial,
            offset,
            length_bytes,
            position: packed.position,
            release,
        })
    }
}
