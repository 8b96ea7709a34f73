//! Fish in a current (Table 2: wator). Each processor reads a fish, computes with it, and reads the
//! next: how long that takes depends on how fast others answer while they compute (`Split-C 5.4`).
//!
//! Coordinates are whole numbers on a torus, both in one word, and forces are sums of whole
//! numbers: a serial run comes to the same. An element is what one fish does to another.

use super::Size;
use super::node::Node;

/// Steps of time of a run.
const STEPS: usize = 2;

/// Where a fish is, and how fast it swims.
#[derive(Clone, Copy)]
struct Fish {
    x: u16,
    y: u16,
    velocity: (i16, i16),
}

impl Fish {
    fn at_first(number: usize) -> Self {
        let bits = (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        Self {
            x: bits as u16,
            y: (bits >> 16) as u16,
            velocity: (0, 0),
        }
    }

    fn word(self) -> u32 {
        u32::from(self.x) << 16 | u32::from(self.y)
    }

    /// What another, of which the word is known, does to it.
    fn force(self, other: u32) -> (i32, i32) {
        let distance = |from: u16, to: u16| i32::from(to.wrapping_sub(from).cast_signed());
        let across = distance(self.x, (other >> 16) as u16);
        let along = distance(self.y, other as u16);
        let square = across * across / 65_536 + along * along / 65_536 + 64;
        (across * 16 / square, along * 16 / square)
    }

    fn moved(mut self, force: (i32, i32)) -> Self {
        let swims = |velocity: i16, force: i32| {
            let pushed = i32::from(velocity) * 15 / 16 + force;
            pushed.clamp(-512, 512) as i16
        };
        self.velocity = (
            swims(self.velocity.0, force.0),
            swims(self.velocity.1, force.1),
        );
        self.x = self.x.wrapping_add_signed(self.velocity.0);
        self.y = self.y.wrapping_add_signed(self.velocity.1);
        self
    }
}

fn serial(count: usize) -> Vec<u64> {
    let mut fish: Vec<Fish> = (0..count).map(Fish::at_first).collect();
    for _ in 0..STEPS {
        let words: Vec<u32> = fish.iter().map(|one| one.word()).collect();
        for (number, one) in fish.iter_mut().enumerate() {
            let mut sum = (0, 0);
            for (_, &word) in words
                .iter()
                .enumerate()
                .filter(|&(other, _)| other != number)
            {
                let force = one.force(word);
                sum = (sum.0 + force.0, sum.1 + force.1);
            }
            *one = one.moved(sum);
        }
    }
    fish.into_iter().map(|one| one.word().into()).collect()
}

/// Whether the fish are where a serial run takes them. Those of a processor are `procs` apart.
pub(super) fn is_serial(size: &Size, results: &[Vec<u64>]) -> bool {
    let procs = results.len();
    let expected = serial(size.elements * procs);
    let got = (0..expected.len()).map(|number| results[number % procs][number / procs]);
    results.iter().all(|result| result.len() == size.elements) && got.eq(expected)
}

pub(super) fn wator(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    let (own, procs, rank) = (size.elements, node.procs(), node.rank());
    let count = own * procs;
    let scratch = own as u32;
    let mut mine: Vec<Fish> = (0..own)
        .map(|nth| Fish::at_first(nth * procs + rank))
        .collect();
    for (nth, one) in mine.iter().enumerate() {
        node.set(nth as u32, one.word());
    }
    node.begin_timing();
    for _ in 0..STEPS {
        for (nth, one) in mine.iter_mut().enumerate() {
            let mut sum = (0, 0);
            for other in 0..count {
                let word = node.read(other % procs, (other / procs) as u32, scratch);
                node.compute(1);
                if other != nth * procs + rank {
                    let force = one.force(word);
                    sum = (sum.0 + force.0, sum.1 + force.1);
                }
            }
            *one = one.moved(sum);
        }
        node.barrier();
        for (nth, one) in mine.iter().enumerate() {
            node.set(nth as u32, one.word());
        }
        node.barrier();
    }
    node.end_timing();
    mine.iter().map(|one| one.word().into()).collect()
}
