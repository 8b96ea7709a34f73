//! What is held, and by whom: the chunks of the pool, and the messages that are with a reader.

use std::collections::VecDeque;

use hamlyn_ring::area::Area;
use hamlyn_ring::pool::{Chunk, Pool};

use super::wire::{board_offset, given_back};

/// The pool, and how many hold each chunk that was published.
pub(super) struct Held {
    pub(super) pool: Pool,
    /// By the number of the chunk.
    chunks: Box<[Holding]>,
    /// Chunks that are with readers, and how many may be.
    lent: u32,
    lent_max: u32,
    /// If the pool has a head.
    latest: Option<Latest>,
}

/// A chunk that was published, and how many hold it: readers, and all in all.
#[derive(Default)]
struct Holding {
    chunk: Option<Chunk>,
    readers: u32,
    holders: u32,
}

/// Of a pool whose readers look at the head.
struct Latest {
    /// The chunk of the newest message, which is held for it, and the message's number.
    newest: Option<(u32, u64)>,
    /// Chunks that are free, oldest first: what a reader copies just now is written again last.
    free: VecDeque<Chunk>,
}

impl Held {
    pub(super) fn new(pool: Pool) -> Self {
        let count = pool.state().count();
        Self {
            pool,
            chunks: (0..count).map(|_| Holding::default()).collect(),
            lent: 0,
            lent_max: count,
            latest: None,
        }
    }

    /// Of readers that may lose messages: one chunk is left to the publisher, unless it has no
    /// other.
    pub(super) fn with_spare(pool: Pool) -> Self {
        let lent_max = pool.state().count().saturating_sub(1).max(1);
        Self {
            lent_max,
            ..Self::new(pool)
        }
    }

    /// Of a pool with a head: one chunk is left to the newest message, and one to the publisher.
    pub(super) fn with_newest(pool: Pool) -> Self {
        let count = pool.state().count();
        let latest = Some(Latest {
            newest: None,
            free: VecDeque::with_capacity(count as usize),
        });
        Self {
            latest,
            lent_max: count.saturating_sub(2),
            ..Self::new(pool)
        }
    }

    #[inline]
    pub(super) fn take(&mut self, len: usize) -> Option<Chunk> {
        match &mut self.latest {
            None => self.pool.chunks().take(len),
            Some(_) => self.take_oldest(len),
        }
    }

    #[inline(never)]
    fn take_oldest(&mut self, len: usize) -> Option<Chunk> {
        if self.pool.state().free() == 0 {
            let oldest = self.latest.as_mut()?.free.pop_front()?;
            self.pool.chunks().give_back(oldest);
        }
        let mut chunk = self.pool.chunks().take(len)?;
        self.pool.begin_version(&mut chunk);
        Some(chunk)
    }

    #[inline]
    pub(super) fn give_back(&mut self, chunk: Chunk) {
        match &mut self.latest {
            None => self.pool.chunks().give_back(chunk),
            Some(latest) => latest.free.push_back(chunk),
        }
    }

    pub(super) fn free(&self) -> usize {
        let free = self.latest.as_ref().map_or(0, |latest| latest.free.len());
        self.pool.state().free() + free
    }

    /// A chunk that was written becomes the message of that number.
    #[inline]
    pub(super) fn number(&self, chunk: &mut Chunk, number: u64) {
        chunk.set_mark(number);
        if self.latest.is_some() {
            self.pool.finish_version(chunk, number);
        }
    }

    /// From now on readers that look at the head find that message. It is held until there is a
    /// newer one.
    pub(super) fn show_newest(&mut self, index: u32, number: u64) {
        self.pool.show_newest(self.chunk(index));
        self.hold_again(index);
        let newest = self.latest.as_mut().map(|latest| &mut latest.newest);
        let older = newest.and_then(|newest| newest.replace((index, number)));
        if let Some((older, _)) = older {
            self.release(older);
        }
    }

    /// The chunk of the newest message, and its number.
    pub(super) fn newest(&self) -> Option<(u32, u64)> {
        self.latest.as_ref()?.newest
    }

    /// Holds a chunk once. Its number.
    #[inline]
    pub(super) fn hold(&mut self, chunk: Chunk) -> u32 {
        let index = chunk.index();
        self.chunks[index as usize] = Holding {
            chunk: Some(chunk),
            readers: 0,
            holders: 1,
        };
        index
    }

    /// Holds it once more.
    #[inline]
    pub(super) fn hold_again(&mut self, index: u32) {
        self.chunks[index as usize].holders += 1;
    }

    /// True if a reader may have it: its chunk is with one already, or there may be more of those.
    #[inline]
    pub(super) fn may_lend(&self, index: u32) -> bool {
        self.lent < self.lent_max || self.chunks[index as usize].readers > 0
    }

    /// A reader holds it once more.
    #[inline]
    pub(super) fn lend(&mut self, index: u32) {
        let holding = &mut self.chunks[index as usize];
        self.lent += u32::from(holding.readers == 0);
        holding.readers += 1;
        holding.holders += 1;
    }

    /// A reader holds it once less.
    #[inline]
    pub(super) fn take_back(&mut self, index: u32) {
        let holding = &mut self.chunks[index as usize];
        holding.readers -= 1;
        self.lent -= u32::from(holding.readers == 0);
        self.release(index);
    }

    /// Holds it once less; the last time it is free.
    #[inline]
    pub(super) fn release(&mut self, index: u32) {
        let holding = &mut self.chunks[index as usize];
        holding.holders -= 1;
        if holding.holders == 0
            && let Some(chunk) = holding.chunk.take()
        {
            self.give_back(chunk);
        }
    }

    #[inline]
    pub(super) fn chunk(&self, index: u32) -> &Chunk {
        let chunk = self.chunks[index as usize].chunk.as_ref();
        chunk.unwrap_or_else(|| unreachable!("what is held is there"))
    }
}

/// What became of the message at a position.
#[derive(Clone, Copy)]
pub(super) enum Sent {
    GivenBack,
    /// It is with the reader, in this chunk.
    InPlace(u32),
}

/// Messages that a reader reads in place, by position modulo the depth: which are with it.
pub(super) struct Window {
    pub(super) sent: Box<[Sent]>,
    /// The next position, and the oldest that was not given back.
    pub(super) head: u64,
    tail: u64,
}

impl Window {
    pub(super) fn new(depth: u16) -> Self {
        Self {
            sent: vec![Sent::GivenBack; usize::from(depth)].into(),
            head: 0,
            tail: 0,
        }
    }

    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.head - self.tail == self.sent.len() as u64
    }

    #[inline]
    fn at(&mut self, position: u64) -> &mut Sent {
        let depth = self.sent.len() as u64;
        &mut self.sent[(position % depth) as usize]
    }

    #[inline]
    pub(super) fn push(&mut self, sent: Sent) {
        *self.at(self.head) = sent;
        self.head += 1;
    }

    /// Takes in what was given back, according to the reader's board.
    pub(super) fn collect(&mut self, board: &Area, held: &mut Held) {
        let depth = self.sent.len() as u16;
        for position in self.tail..self.head {
            let said = board.load_u64(board_offset(position, depth));
            let sent = self.at(position);
            if said == Ok(given_back(position))
                && let Sent::InPlace(chunk) = std::mem::replace(sent, Sent::GivenBack)
            {
                held.take_back(chunk);
            }
            if matches!(sent, Sent::GivenBack) && position == self.tail {
                self.tail += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    use crate::loans::SlowReaders;

    const DEPTH: u16 = 3;
    const CHUNKS: u32 = 5;
    const READERS: usize = 2;

    /// Against a list of what is free: the oldest is taken, the newest message stays, and all else
    /// comes back.
    #[test]
    fn the_newest_stays_and_the_oldest_is_taken() {
        let mut held = Held::with_newest(Pool::with_head(64, CHUNKS).unwrap());
        let mut free: VecDeque<u32> = (0..CHUNKS).collect();
        assert!(held.take(65).is_none());
        for number in 0..50 {
            assert_eq!(held.free(), free.len());
            let mut chunk = held.take(1).unwrap();
            assert_eq!(Some(chunk.index()), free.pop_front());
            if number % 3 == 0 {
                // Given up.
                free.push_back(chunk.index());
                held.give_back(chunk);
                continue;
            }
            held.number(&mut chunk, number);
            let index = held.hold(chunk);
            free.extend(held.newest().map(|(older, _)| older));
            held.show_newest(index, number);
            held.release(index);
            assert_eq!(held.newest(), Some((index, number)));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        /// Against a map of who holds what: whatever readers write on their boards, a chunk is free
        /// when nobody holds it, and not before; a reader frees only what is with it. Where they
        /// may lose messages, there is always one to be written.
        #[test]
        fn chunks_are_free_when_nobody_holds_them(
            slow_readers in prop::sample::select(vec![
                SlowReaders::Block,
                SlowReaders::Lose,
                SlowReaders::Latest,
            ]),
            steps in prop::collection::vec((0u8..4, 0..READERS, 0u64..30, 0u64..40), 1..200)
        ) {
            let is_latest = slow_readers == SlowReaders::Latest;
            let mut held = match slow_readers {
                SlowReaders::Block => Held::new(Pool::new(64, CHUNKS).unwrap()),
                SlowReaders::Lose => Held::with_spare(Pool::new(64, CHUNKS).unwrap()),
                SlowReaders::Latest => Held::with_newest(Pool::with_head(64, CHUNKS).unwrap()),
            };
            let mut number = 0;
            let boards: Vec<Area> = (0..READERS)
                .map(|_| Area::new(super::super::wire::board_bytes(DEPTH)).unwrap())
                .collect();
            let mut windows: Vec<Window> = (0..READERS).map(|_| Window::new(DEPTH)).collect();
            // Positions that are with each reader, and their chunks.
            let mut with: Vec<HashMap<u64, u32>> = vec![HashMap::new(); READERS];
            let mut next = [0; READERS];
            for (step, reader, position, word) in steps {
                if step == 0 {
                    let chunk = held.take(1);
                    prop_assert!(chunk.is_some() || slow_readers == SlowReaders::Block);
                    if let Some(mut chunk) = chunk {
                        held.number(&mut chunk, number);
                        let index = held.hold(chunk);
                        for at in 0..READERS {
                            let oldest = with[at].keys().min().copied().unwrap_or(next[at]);
                            prop_assert_eq!(windows[at].is_full(), next[at] - oldest == u64::from(DEPTH));
                            if !windows[at].is_full() && held.may_lend(index) {
                                held.lend(index);
                                windows[at].push(Sent::InPlace(index));
                                with[at].insert(next[at], index);
                                next[at] += 1;
                            }
                        }
                        if is_latest {
                            held.show_newest(index, number);
                        }
                        held.release(index);
                        number += 1;
                    }
                } else {
                    // Honest if it names a position that it has; anything else is a lie.
                    let said = if step == 1 { given_back(position) } else { word };
                    boards[reader].store_u64(board_offset(position, DEPTH), said).unwrap();
                    windows[reader].collect(&boards[reader], &mut held);
                    with[reader].retain(|&position, _| {
                        let said = boards[reader].load_u64(board_offset(position, DEPTH));
                        said != Ok(given_back(position))
                    });
                }
                // Boards keep what was written: what is sent later may be given back already.
                for at in 0..READERS {
                    windows[at].collect(&boards[at], &mut held);
                    with[at].retain(|&position, _| {
                        let said = boards[at].load_u64(board_offset(position, DEPTH));
                        said != Ok(given_back(position))
                    });
                }
                let mut out: Vec<u32> = with.iter().flat_map(HashMap::values).copied().collect();
                out.extend(held.newest().map(|(newest, _)| newest));
                out.sort_unstable();
                out.dedup();
                prop_assert_eq!(held.free() + out.len(), CHUNKS as usize);
            }
        }
    }
}
