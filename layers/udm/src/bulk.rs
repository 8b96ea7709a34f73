//! Data for the area of a node (`T 3`, bulk transfer): messages of the layer bring them in pieces,
//! each with its place, and the last one runs the handler. They have the order of all messages of
//! their node, so the handler runs when all is there.

use std::ops::Range;

use crate::error::InjectError;
use crate::limits::{BULK_PIECE_BYTES_MAX, HANDLERS_MAX, SHORT_BYTES_MAX, WORDS_MAX};
use crate::message::to_bytes;

/// Bytes before the words and the data of a piece.
pub(crate) const HEAD_BYTES: usize = 24;
/// Bytes of the longest piece.
const PIECE_BYTES_MAX: usize = HEAD_BYTES + 4 * WORDS_MAX + BULK_PIECE_BYTES_MAX;

/// A piece, taken apart.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece<'a> {
    /// The number of its data, another one for each that a node sends.
    pub(crate) number: u32,
    /// The place of all data, as far as they have been sent with this piece.
    pub(crate) place: Range<usize>,
    /// The last piece has the handler and its words.
    pub(crate) end: Option<End<'a>>,
    pub(crate) data: &'a [u8],
}

/// See [`Piece::end`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct End<'a> {
    pub(crate) handler: u16,
    pub(crate) words: &'a [u8],
}

impl<'a> Piece<'a> {
    /// Writes it where messages are made.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        let (handler, words): (_, &[u8]) = match &self.end {
            Some(end) => (end.handler, end.words),
            None => (NOT_LAST, &[]),
        };
        into.clear();
        into.reserve(PIECE_BYTES_MAX);
        into.extend_from_slice(&handler.to_le_bytes());
        into.extend_from_slice(&(words.len() as u16).to_le_bytes());
        into.extend_from_slice(&self.number.to_le_bytes());
        into.extend_from_slice(&(self.place.start as u64).to_le_bytes());
        into.extend_from_slice(&(self.at() as u64).to_le_bytes());
        into.extend_from_slice(words);
        into.extend_from_slice(self.data);
    }

    /// The place of its own data.
    pub(crate) fn at(&self) -> usize {
        self.place.end - self.data.len()
    }

    /// Takes one apart for an area of so many bytes. Nothing if it is none, or lies outside of it.
    pub(crate) fn parse(bytes: &'a [u8], area_bytes: usize) -> Option<Self> {
        let (handler, rest) = bytes.split_first_chunk()?;
        let (length, rest) = rest.split_first_chunk()?;
        let (number, rest) = rest.split_first_chunk()?;
        let (begin, rest) = rest.split_first_chunk()?;
        let (at, rest) = rest.split_first_chunk()?;
        let handler = u16::from_le_bytes(*handler);
        let (words, data) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let begin = usize::try_from(u64::from_le_bytes(*begin)).ok()?;
        let at = usize::try_from(u64::from_le_bytes(*at)).ok()?;
        let end = at.checked_add(data.len())?;
        let is_handler = handler < HANDLERS_MAX && words.len() <= size_of::<u32>() * WORDS_MAX;
        let is_good = begin <= at && end <= area_bytes && (is_handler || handler == NOT_LAST);
        is_good.then_some(Self {
            number: u32::from_le_bytes(*number),
            place: begin..end,
            end: is_handler.then_some(End { handler, words }),
            data,
        })
    }
}

/// Data of a node that are on their way, with the place of the next piece: those of a program, and
/// those of a handler that runs while the program waits for room. An even number is the program's.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnderWay {
    data: [Option<(u32, Range<usize>)>; 2],
}

impl UnderWay {
    /// A piece came: true if all before it of the same data have come.
    pub(crate) fn came(&mut self, piece: &Piece<'_>) -> bool {
        let under_way = &mut self.data[piece.number as usize % 2];
        let before = piece.place.start..piece.at();
        // Those that came last from there go on, or are over: each waits for its own end.
        let is_next = before.is_empty() || *under_way == Some((piece.number, before));
        let goes_on = is_next && piece.end.is_none();
        *under_way = goes_on.then(|| (piece.number, piece.place.clone()));
        is_next
    }
}

/// In the place of the handler of a piece that is not the last.
const NOT_LAST: u16 = u16::MAX;

/// Data for the area of a node, and the message after them.
pub(crate) struct Bulk<'a> {
    number: u32,
    handler: u16,
    words: [u8; SHORT_BYTES_MAX],
    words_bytes: usize,
    data: &'a [u8],
    at: usize,
    piece_bytes: usize,
}

impl<'a> Bulk<'a> {
    /// All of it, of which each piece may have so many bytes of data.
    pub(crate) fn new(
        piece_bytes: usize,
        number: u32,
        handler: u16,
        words: &[u32],
        (data, at): (&'a [u8], usize),
    ) -> Self {
        Self {
            number,
            piece_bytes,
            handler,
            words: to_bytes(words),
            words_bytes: size_of_val(words),
            data,
            at,
        }
    }

    /// Sends each of its pieces in turn.
    pub(crate) fn each(
        &self,
        mut send: impl FnMut(&Piece<'_>) -> Result<(), InjectError>,
    ) -> Result<(), InjectError> {
        let all = self.data.len();
        for range in pieces(all, self.piece_bytes) {
            let words = &self.words[..self.words_bytes];
            let handler = self.handler;
            send(&Piece {
                number: self.number,
                place: self.at..self.at + range.end,
                end: (range.end == all).then_some(End { handler, words }),
                data: &self.data[range],
            })?;
        }
        Ok(())
    }
}

/// The pieces of some data: so many bytes each, and one of none.
fn pieces(data_bytes: usize, piece_bytes: usize) -> impl Iterator<Item = Range<usize>> {
    let count = data_bytes.div_ceil(piece_bytes).max(1);
    (0..count).map(move |number| {
        let begin = number * piece_bytes;
        begin..(begin + piece_bytes).min(data_bytes)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn any_bytes_are_a_piece_of_the_area_or_none(
            bytes: Vec<u8>,
            area_bytes in 0..100_usize,
        ) {
            if let Some(piece) = Piece::parse(&bytes, area_bytes) {
                prop_assert!(piece.place.start <= piece.at() && piece.place.end <= area_bytes);
                if let Some(end) = piece.end {
                    prop_assert!(end.handler < HANDLERS_MAX && end.words.len() <= 4 * WORDS_MAX);
                }
            }
        }

        /// Whatever is lost on the way, data of which nothing was lost are whole, and no others.
        #[test]
        fn data_are_whole_if_nothing_was_lost(
            lengths in prop::collection::vec(1..6_usize, 1..8),
            inner in prop::collection::vec(prop::option::of(1..4_usize), 8),
            lost in prop::collection::vec(0..12_u8, 80),
        ) {
            let mut lost = lost.into_iter().cycle();
            let mut under_way = UnderWay::default();
            let mut send = |under_way: &mut UnderWay, number: u32, at: usize, all: usize| {
                let end = (at + 1 == all).then_some(End { handler: 0, words: &[] });
                let (is_last, place) = (end.is_some(), 0..at + 1);
                let piece = Piece { number, place, end, data: &[7] };
                let is_lost = lost.next() == Some(0);
                let is_whole = !is_lost && under_way.came(&piece) && is_last;
                (is_lost, is_whole)
            };
            let mut number = 0;
            for (length, inner) in lengths.iter().zip(&inner) {
                number += 2;
                let own = number;
                // It may give up in the middle.
                let all = length + number as usize / 2 % 2;
                let (mut is_any_lost, mut is_whole) = (false, false);
                for at in 0..*length {
                    // A handler sends while this waits, and may give up, too.
                    if let Some(inner) = inner {
                        number += 2;
                        let (mut is_inner_lost, mut is_inner_whole) = (false, false);
                        let all = inner + number as usize / 2 % 2;
                        for at in 0..*inner {
                            let (lost, whole) = send(&mut under_way, number + 1, at, all);
                            is_inner_lost |= lost;
                            is_inner_whole |= whole;
                        }
                        prop_assert_eq!(is_inner_whole, !is_inner_lost && all == *inner);
                    }
                    let (lost, whole) = send(&mut under_way, own, at, all);
                    is_any_lost |= lost;
                    is_whole |= whole;
                }
                prop_assert_eq!(is_whole, !is_any_lost && all == *length);
            }
        }

        #[test]
        fn pieces_cover_all_data_in_order(data_bytes in 0..5_000_usize, piece_bytes in 1..1_000_usize) {
            let all: Vec<_> = pieces(data_bytes, piece_bytes).collect();
            prop_assert_eq!(all[0].start, 0);
            prop_assert_eq!(all[all.len() - 1].end, data_bytes);
            prop_assert!(all.windows(2).all(|pair| pair[0].end == pair[1].start));
            prop_assert!(all.iter().all(|piece| piece.len() <= piece_bytes));
            prop_assert!(data_bytes == 0 || all.iter().all(|piece| !piece.is_empty()));
        }

        #[test]
        fn a_piece_comes_apart_as_it_was_put_together(
            number: u32,
            handler in prop::option::of(0..HANDLERS_MAX),
            words in prop::collection::vec(any::<u8>(), 0..=4 * WORDS_MAX),
            before in 0..1_000_usize,
            begin in 0..1_000_usize,
            data: Vec<u8>,
            less in 0..2_usize,
        ) {
            let at = begin + before;
            let place = begin..at + data.len();
            let end = handler.map(|handler| End { handler, words: &words });
            let piece = Piece { number, place: place.clone(), end, data: &data };
            let mut bytes = Vec::new();
            piece.write(&mut bytes);
            prop_assert_eq!(Piece::parse(&bytes, place.end), Some(piece.clone()));
            let beyond = place.end.checked_sub(1 + less);
            prop_assert_eq!(beyond.and_then(|area| Piece::parse(&bytes, area)), None);
        }
    }
}
