//! A processor of a program: the operations of the language that the twelve programs use, over an
//! [`End`].
//!
//! Places are words of what each processor shares. A processor reads and writes its own words
//! without communication. It polls when it communicates and at no other time (`Split-C 5.4`); under
//! NP the network processor serves others meanwhile.

use super::super::end::{End, Place, Primitive, WORD_BYTES};
use crate::time::{Span, Time};
use crate::world;

/// See the module.
pub(in super::super) struct Node<'a> {
    end: &'a mut End,
    rank: usize,
    procs: usize,
    /// What one element of the program takes to compute.
    element: Span,
    /// Bytes that this processor has stored to others and pushed.
    sent_bytes: u64,
    began: Time,
    took: Span,
}

impl<'a> Node<'a> {
    pub(in super::super) fn new(
        end: &'a mut End,
        rank: usize,
        procs: usize,
        element: Span,
    ) -> Self {
        Self {
            end,
            rank,
            procs,
            element,
            sent_bytes: 0,
            began: Time::ZERO,
            took: Span::ZERO,
        }
    }

    pub(in super::super) fn rank(&self) -> usize {
        self.rank
    }

    pub(in super::super) fn procs(&self) -> usize {
        self.procs
    }

    /// Everything is ready: the time counts from here.
    pub(in super::super) fn begin_timing(&mut self) {
        self.barrier();
        self.began = world::now();
    }

    /// Every processor has finished.
    pub(in super::super) fn end_timing(&mut self) {
        self.barrier();
        self.took = world::now().since(self.began);
    }

    pub(in super::super) fn took(&self) -> Span {
        self.took
    }

    /// Computes with so many elements.
    pub(in super::super) fn compute(&mut self, elements: u64) {
        self.compute_for(self.element * elements);
    }

    /// Computes for so long.
    pub(in super::super) fn compute_for(&mut self, span: Span) {
        if span != Span::ZERO {
            world::compute(span);
        }
    }

    // Its own memory.

    pub(in super::super) fn word(&self, at: u32) -> u32 {
        self.end.memory.word(at)
    }

    pub(in super::super) fn set(&mut self, at: u32, value: u32) {
        self.end.memory.set(at, value);
    }

    /// So many words as they are.
    pub(in super::super) fn words(&self, at: u32, count: usize) -> Vec<u64> {
        let mut bytes = vec![0; count * WORD_BYTES as usize];
        self.end.memory.read(at, &mut bytes);
        let words = bytes.as_chunks::<{ WORD_BYTES as usize }>().0;
        words.iter().copied().map(u64::from_le_bytes).collect()
    }

    pub(in super::super) fn set_words(&mut self, at: u32, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        self.end.memory.write(at, &bytes);
    }

    // That of others.

    /// Takes what has come, if something may.
    pub(in super::super) fn poll(&mut self) {
        while self.end.is_awaiting() && self.end.look() {}
    }

    fn begin(&mut self, primitive: Primitive, to: usize, place: Place) {
        self.end.begin_at(primitive, to, place);
        self.poll();
    }

    /// A signaling store.
    pub(in super::super) fn store(&mut self, to: usize, at: u32, value: u32) {
        if to == self.rank {
            return self.set(at, value);
        }
        self.sent_bytes += u64::from(WORD_BYTES);
        let place = Place {
            at,
            local: 0,
            value,
        };
        self.begin(Primitive::Store, to, place);
    }

    /// An atomic procedure that appends the value to what was pushed to a processor.
    pub(in super::super) fn push(&mut self, to: usize, value: u32) {
        if to == self.rank {
            return self.end.pushed.push(value);
        }
        self.sent_bytes += u64::from(WORD_BYTES);
        let place = Place {
            at: 0,
            local: 0,
            value,
        };
        self.begin(Primitive::Push, to, place);
    }

    /// What was pushed to this processor.
    pub(in super::super) fn pushed(&mut self) -> Vec<u32> {
        std::mem::take(&mut self.end.pushed)
    }

    /// A put, complete after [`Self::sync`].
    pub(in super::super) fn put(&mut self, to: usize, at: u32, value: u32) {
        if to == self.rank {
            return self.set(at, value);
        }
        let place = Place {
            at,
            local: 0,
            value,
        };
        self.begin(Primitive::Put, to, place);
    }

    /// A read: waits for the word.
    pub(in super::super) fn read(&mut self, from: usize, at: u32, local: u32) -> u32 {
        if from != self.rank {
            let place = Place {
                at,
                local,
                value: 0,
            };
            self.begin(Primitive::Get, from, place);
            self.sync();
            return self.word(local);
        }
        self.word(at)
    }

    /// Gets so many words, complete after [`Self::sync`].
    pub(in super::super) fn bulk_get(&mut self, from: usize, at: u32, local: u32, words: usize) {
        if from == self.rank {
            let own = self.words(at, words);
            return self.set_words(local, &own);
        }
        let place = Place {
            at,
            local,
            value: 0,
        };
        let bytes = words as u32 * WORD_BYTES;
        let end = &mut *self.end;
        end.begin_bulk_at(Primitive::BulkGet, bytes, from, place);
        self.poll();
    }

    /// A signaling store of so many words from `local` on.
    pub(in super::super) fn bulk_store(&mut self, to: usize, at: u32, local: u32, words: usize) {
        if to == self.rank {
            let own = self.words(local, words);
            return self.set_words(at, &own);
        }
        let bytes = words as u32 * WORD_BYTES;
        self.sent_bytes += u64::from(bytes);
        let place = Place {
            at,
            local,
            value: 0,
        };
        let end = &mut *self.end;
        end.begin_bulk_at(Primitive::BulkStore, bytes, to, place);
        self.poll();
    }

    /// Waits until gets and puts are complete.
    pub(in super::super) fn sync(&mut self) {
        while self.end.outstanding() > 0 {
            self.end.look_or_wait();
        }
    }

    // All of them together.

    /// The sum over all processors, modulo 2^32. Each waits for all.
    pub(in super::super) fn sum(&mut self, value: u32) -> u32 {
        let mut sum = value;
        for round in 0..self.procs.ilog2() {
            let partner = self.rank ^ (1 << round);
            self.end.add(partner, round, sum);
            sum = loop {
                match self.end.take_part(round) {
                    Some(part) => break sum.wrapping_add(part),
                    None => self.end.look_or_wait(),
                }
            };
        }
        sum
    }

    /// Waits for all, whose gets and puts are complete then.
    pub(in super::super) fn barrier(&mut self) {
        self.sync();
        self.sum(0);
    }

    /// Waits until all that any processor has stored or pushed is there.
    pub(in super::super) fn all_store_sync(&mut self) {
        loop {
            let missing = self.sent_bytes.wrapping_sub(self.end.stored_bytes());
            if self.sum(missing as u32) == 0 {
                break;
            }
        }
        self.sync();
    }
}
