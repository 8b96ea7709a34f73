//! The sorts of Table 2: radix and sample, each also with bulk transfers, bitonic and shell.
//!
//! Keys come from a hash of their places. The fine-grained versions move a key in a word; where
//! keys go in bulk, a word has two of them, or a key with its place. A result is the sorted block
//! of each processor, in order.

use super::Size;
use super::node::Node;

/// Passes of a radix sort are by digits of so many bits: the fewer keys, the fewer digits, so that
/// exchanging the counts is as small a part of a pass as with 2^19 keys and digits of 8 bits.
const DIGIT_BITS: u32 = 4;
const DIGITS: usize = 1 << DIGIT_BITS;
/// Keys that each processor adds to the sample.
const SAMPLED: usize = 16;
/// A sort by digits of a block takes as long as so many merges.
const MERGES_OF_SORT: u64 = 4;

/// The key at a place of the whole input.
fn key_at(place: usize) -> u32 {
    let mut bits = (place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) + 0x123_4567;
    bits ^= bits >> 31;
    bits = bits.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits ^= bits >> 27;
    (bits ^ (bits >> 32)) as u32
}

/// The keys of a processor.
fn keys_of(node: &Node<'_>, size: &Size) -> Vec<u32> {
    let first = node.rank() * size.elements;
    (first..first + size.elements)
        .map(|place| key_at(place) & mask(size))
        .collect()
}

/// A radix sort sorts by the digits of its passes; other sorts by all bits.
fn mask(size: &Size) -> u32 {
    match size.passes {
        0 => u32::MAX,
        passes => u32::MAX >> (u32::BITS - DIGIT_BITS * passes),
    }
}

/// Whether the blocks together are the serial sort of the input.
pub(super) fn is_sorted_input(size: &Size, blocks: &[Vec<u64>]) -> bool {
    let places = 0..size.elements * blocks.len();
    let mut serial: Vec<u64> = places
        .map(|place| u64::from(key_at(place) & mask(size)))
        .collect();
    serial.sort_unstable();
    blocks.concat() == serial
}

fn widened(keys: Vec<u32>) -> Vec<u64> {
    keys.into_iter().map(u64::from).collect()
}

/// Words with two keys each; an odd one is alone.
fn packed(keys: &[u32]) -> Vec<u64> {
    let pairs = keys.chunks(2);
    pairs
        .map(|pair| u64::from(pair[0]) | u64::from(*pair.get(1).unwrap_or(&0)) << 32)
        .collect()
}

/// So many keys out of words with two each.
fn unpacked(words: &[u64], count: usize) -> Vec<u32> {
    let keys = words
        .iter()
        .flat_map(|&word| [word as u32, (word >> 32) as u32]);
    keys.take(count).collect()
}

/// What a pass of a radix sort has to know: where in the whole each digit's first key of this
/// processor goes.
struct Pass {
    shift: u32,
    place: [usize; DIGITS],
}

impl Pass {
    /// Counts digits, and exchanges the counts; `counts` and `all` are places for them.
    fn prepare(node: &mut Node<'_>, keys: &[u32], pass: u32, counts: u32, all: u32) -> Self {
        let shift = pass * DIGIT_BITS;
        let mut count = [0_u64; DIGITS];
        for key in keys {
            count[digit(*key, shift)] += 1;
        }
        node.set_words(counts, &count);
        node.barrier();
        let procs = node.procs();
        for step in 0..procs {
            let from = (node.rank() + step) % procs;
            node.bulk_get(from, counts, all + (from * DIGITS) as u32, DIGITS);
        }
        node.sync();
        let counted = node.words(all, procs * DIGITS);
        let mut place = [0; DIGITS];
        let mut sum = 0;
        for digit in 0..DIGITS {
            for processor in 0..procs {
                if processor == node.rank() {
                    place[digit] = sum;
                }
                sum += counted[processor * DIGITS + digit] as usize;
            }
        }
        Self { shift, place }
    }

    /// Where a key goes.
    fn next(&mut self, key: u32) -> usize {
        let place = &mut self.place[digit(key, self.shift)];
        *place += 1;
        *place - 1
    }
}

fn digit(key: u32, shift: u32) -> usize {
    (key >> shift) as usize & (DIGITS - 1)
}

/// Each pass stores each key to its place.
pub(super) fn radix(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let keys = size.elements;
    let (counts, all) = (2 * keys as u32, (2 * keys + DIGITS) as u32);
    let mut mine = keys_of(node, size);
    node.begin_timing();
    for pass in 0..size.passes {
        // Two places by turns: others may store into the next one already.
        let to = (pass % 2) * keys as u32;
        let mut where_to = Pass::prepare(node, &mine, pass, counts, all);
        for &key in &mine {
            node.compute(1);
            let place = where_to.next(key);
            node.store(place / keys, to + (place % keys) as u32, key);
        }
        node.all_store_sync();
        mine = (0..keys).map(|at| node.word(to + at as u32)).collect();
    }
    node.end_timing();
    widened(mine)
}

/// Each pass groups keys by where they go, and stores them there in bulk with their places; the
/// receiver distributes them.
pub(super) fn radixb(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (keys, procs) = (size.elements, node.procs());
    let outbox = 0_u32;
    let inbox = outbox + keys as u32;
    let counts = inbox + keys as u32;
    let all = counts + DIGITS as u32;
    let coming = all + (procs * DIGITS) as u32;
    let begins = coming + procs as u32;
    let mut mine = keys_of(node, size);
    node.begin_timing();
    for pass in 0..size.passes {
        let mut where_to = Pass::prepare(node, &mine, pass, counts, all);
        let mut groups = vec![Vec::new(); procs];
        for &key in &mine {
            let place = where_to.next(key);
            groups[place / keys].push(((place % keys) as u64) << 32 | u64::from(key));
        }
        node.compute(keys as u64);
        exchange(node, &groups, coming, begins, outbox, inbox);
        for item in node.words(inbox, keys) {
            mine[(item >> 32) as usize] = item as u32;
        }
    }
    node.end_timing();
    widened(mine)
}

/// Tells each processor how many words come to it, and learns where in its inbox this one's begin.
fn exchange_counts(node: &mut Node<'_>, groups: &[Vec<u64>], coming: u32, begins: u32) {
    let own = node.rank() as u32;
    for (to, group) in groups.iter().enumerate() {
        node.store(to, coming + own, group.len() as u32);
    }
    node.all_store_sync();
    let mut begin = 0;
    for from in 0..node.procs() {
        node.store(from, begins + own, begin);
        begin += node.word(coming + from as u32);
    }
    node.all_store_sync();
}

/// Stores each group in bulk where its processor has room for it, by way of the outbox.
fn exchange(
    node: &mut Node<'_>,
    groups: &[Vec<u64>],
    coming: u32,
    begins: u32,
    outbox: u32,
    inbox: u32,
) {
    exchange_counts(node, groups, coming, begins);
    let procs = node.procs();
    let mut from = outbox;
    for step in 0..procs {
        let to = (node.rank() + step) % procs;
        node.set_words(from, &groups[to]);
        let at = inbox + node.word(begins + to as u32);
        node.bulk_store(to, at, from, groups[to].len());
        from += groups[to].len() as u32;
    }
    node.all_store_sync();
}

/// The keys that divide the input among the processors, from a sample of it.
fn splitters(node: &mut Node<'_>, mine: &[u32], sample: u32) -> Vec<u32> {
    let procs = node.procs();
    let chosen = sample + (procs * SAMPLED) as u32;
    for nth in 0..SAMPLED {
        let at = sample + (node.rank() * SAMPLED + nth) as u32;
        node.store(0, at, mine[nth * mine.len() / SAMPLED]);
    }
    node.all_store_sync();
    if node.rank() == 0 {
        let mut all = node.words(sample, procs * SAMPLED);
        all.sort_unstable();
        let every: Vec<u64> = all.into_iter().step_by(SAMPLED).collect();
        node.set_words(chosen, &every);
        for to in 1..procs {
            node.bulk_store(to, chosen, chosen, procs);
        }
    }
    node.all_store_sync();
    let every = node.words(chosen, procs);
    every[1..].iter().map(|&key| key as u32).collect()
}

/// The processor of a key: as many splitters are not above it.
fn owner(key: u32, splitters: &[u32]) -> usize {
    splitters.partition_point(|&splitter| splitter <= key)
}

/// Each key is pushed to its processor by an atomic procedure.
pub(super) fn sample(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let mine = keys_of(node, size);
    node.begin_timing();
    let splitters = splitters(node, &mine, 0);
    for &key in &mine {
        node.compute(1);
        node.push(owner(key, &splitters), key);
    }
    node.all_store_sync();
    let mut block = node.pushed();
    block.sort_unstable();
    node.end_timing();
    widened(block)
}

/// Keys go into a group for each processor, and each group goes in bulk.
pub(super) fn sampleb(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (procs, words) = (node.procs(), size.elements as u32);
    let mine = keys_of(node, size);
    let (sample, coming) = (0, (2 * procs * SAMPLED) as u32);
    let begins = coming + procs as u32;
    let sizes = begins + procs as u32;
    let outbox = sizes + procs as u32;
    let inbox = outbox + words;
    node.begin_timing();
    let splitters = splitters(node, &mine, sample);
    let mut groups = vec![Vec::new(); procs];
    for &key in &mine {
        groups[owner(key, &splitters)].push(key);
    }
    node.compute(size.elements as u64);
    let own = node.rank() as u32;
    for (to, group) in groups.iter().enumerate() {
        node.store(to, sizes + own, group.len() as u32);
    }
    let packed: Vec<Vec<u64>> = groups.iter().map(|group| packed(group)).collect();
    exchange(node, &packed, coming, begins, outbox, inbox);
    let mut block = Vec::new();
    let mut at = inbox;
    for from in 0..procs as u32 {
        let words = node.words(at, node.word(coming + from) as usize);
        block.extend(unpacked(&words, node.word(sizes + from) as usize));
        at += words.len() as u32;
    }
    block.sort_unstable();
    node.end_timing();
    widened(block)
}

/// A sorted block that is compared with those of partners.
struct Blocks {
    mine: Vec<u32>,
    /// Places for it and for a partner's, each in two copies by turns: a partner may be a step
    /// ahead.
    here: u32,
    theirs: u32,
    turn: u32,
}

impl Blocks {
    fn sorted(node: &mut Node<'_>, size: &Size) -> Self {
        let mut mine = keys_of(node, size);
        node.begin_timing();
        mine.sort_unstable();
        node.compute(MERGES_OF_SORT * size.elements as u64);
        let words = size.elements.div_ceil(2) as u32;
        Self {
            mine,
            here: 0,
            theirs: words,
            turn: 0,
        }
    }

    /// Exchanges blocks with a partner, if there is one, and keeps the lower or the upper half of
    /// both. Every processor calls it. Whether anything moved.
    fn compare_split(
        &mut self,
        node: &mut Node<'_>,
        partner: Option<usize>,
        keeps_lower: bool,
    ) -> bool {
        let keys = self.mine.len();
        let words = packed(&self.mine);
        let theirs = self.theirs + (self.turn % 2) * words.len() as u32;
        self.turn += 1;
        if let Some(partner) = partner {
            node.set_words(self.here, &words);
            node.bulk_store(partner, theirs, self.here, words.len());
        }
        node.all_store_sync();
        if partner.is_none() {
            return false;
        }
        let other = unpacked(&node.words(theirs, words.len()), keys);
        node.compute(keys as u64);
        let mut both = [self.mine.as_slice(), &other].concat();
        both.sort_unstable();
        let kept = match keeps_lower {
            true => both[..keys].to_vec(),
            false => both[keys..].to_vec(),
        };
        let has_moved = kept != self.mine;
        self.mine = kept;
        has_moved
    }
}

/// Blocks are merged in lg P stages with partners at the distances of a hypercube.
pub(super) fn bitonic(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let mut blocks = Blocks::sorted(node, size);
    let rank = node.rank();
    for stage in 1..=node.procs().ilog2() {
        let is_ascending = (rank >> stage) & 1 == 0;
        for step in (0..stage).rev() {
            let partner = rank ^ (1 << step);
            blocks.compare_split(node, Some(partner), (rank < partner) == is_ascending);
        }
    }
    node.end_timing();
    widened(blocks.mine)
}

/// Blocks are compared across the dimensions of a hypercube, then with neighbours until nothing
/// moves.
pub(super) fn shell(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let mut blocks = Blocks::sorted(node, size);
    let (rank, procs) = (node.rank(), node.procs());
    for dimension in (0..procs.ilog2()).rev() {
        let partner = rank ^ (1 << dimension);
        blocks.compare_split(node, Some(partner), rank < partner);
    }
    loop {
        let mut has_moved = false;
        for round in 0..2 {
            let partner = match (rank + round) % 2 {
                0 => Some(rank + 1),
                _ => rank.checked_sub(1),
            };
            let partner = partner.filter(|&partner| partner < procs);
            let keeps_lower = partner.is_some_and(|partner| rank < partner);
            has_moved |= blocks.compare_split(node, partner, keeps_lower);
        }
        if node.sum(u32::from(has_moved)) == 0 {
            break;
        }
    }
    node.end_timing();
    widened(blocks.mine)
}
