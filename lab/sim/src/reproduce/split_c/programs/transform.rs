//! The Fourier transforms of Table 2: cyclic butterflies, one remap by puts of each point or in
//! bulk, blocked butterflies.
//!
//! Points are integers modulo a prime with roots of unity of every order that is needed: a point is
//! one word, and the result is compared exactly. The transform has the butterflies and the remap of
//! one of complex numbers.

use super::Size;
use super::node::Node;

/// 119 * 2^23 + 1, of whose units 3 is a generator.
const PRIME: u64 = 998_244_353;
const GENERATOR: u64 = 3;

fn product(one: u32, other: u32) -> u32 {
    (u64::from(one) * u64::from(other) % PRIME) as u32
}

fn sum(one: u32, other: u32) -> u32 {
    ((u64::from(one) + u64::from(other)) % PRIME) as u32
}

fn difference(one: u32, other: u32) -> u32 {
    ((u64::from(one) + PRIME - u64::from(other)) % PRIME) as u32
}

fn power(base: u64, mut exponent: u64) -> u32 {
    let (mut result, mut square) = (1, base);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = result * square % PRIME;
        }
        square = square * square % PRIME;
        exponent >>= 1;
    }
    result as u32
}

/// The powers of a root of unity of that order, the first half of them.
fn roots(order: usize) -> Vec<u32> {
    let root = power(GENERATOR, (PRIME - 1) / order as u64);
    let next = |last: &u32| Some(product(*last, root));
    std::iter::successors(Some(1), next)
        .take((order / 2).max(1))
        .collect()
}

fn input_at(point: usize) -> u32 {
    let bits = (point as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((bits ^ (bits >> 29)) % PRIME) as u32
}

/// The lower point of a butterfly is turned.
fn butterfly(points: &mut [u32], upper: usize, lower: usize, turn: u32) {
    let (one, other) = (points[upper], points[lower]);
    points[upper] = sum(one, other);
    points[lower] = product(difference(one, other), turn);
}

/// The serial transform by another way: recursion over the even and the odd points. `step` is the
/// distance of its points.
fn serial(input: &[u32], first: usize, step: usize, roots: &[u32]) -> Vec<u32> {
    let count = input.len() / step;
    if count == 1 {
        return vec![input[first]];
    }
    let even = serial(input, first, 2 * step, roots);
    let odd = serial(input, first + step, 2 * step, roots);
    let turned: Vec<u32> = odd
        .iter()
        .enumerate()
        .map(|(at, &point)| product(point, roots[at * step]))
        .collect();
    let both = || even.iter().zip(&turned);
    let lower = both().map(|(&one, &other)| sum(one, other));
    let upper = both().map(|(&one, &other)| difference(one, other));
    lower.chain(upper).collect()
}

/// Whether the blocks together are the serial transform of the input, in the order of reversed
/// bits.
pub(super) fn is_transform(size: &Size, blocks: &[Vec<u64>]) -> bool {
    let order = size.elements * blocks.len();
    let input: Vec<u32> = (0..order).map(input_at).collect();
    let transform = serial(&input, 0, 1, &roots(order));
    let bits = order.ilog2();
    let reversed = |at: usize| at.reverse_bits() >> (usize::BITS - bits);
    let blocks = blocks.concat();
    let expected = (0..order).map(|at| u64::from(transform[reversed(at)]));
    blocks.len() == order && expected.eq(blocks)
}

/// Takes the points of cyclic butterflies to where blocked ones find them: point i of processor q
/// is point i P + q of all.
type Remap = fn(&mut Node<'_>, points: &[u32]) -> Vec<u32>;

fn transform(node: &mut Node<'_>, size: &Size, remap: Remap) -> Vec<u64> {
    let (own, procs) = (size.elements, node.procs());
    let order = own * procs;
    let roots = roots(order);
    let mut points: Vec<u32> = (0..own)
        .map(|at| input_at(at * procs + node.rank()))
        .collect();
    node.begin_timing();
    let mut half = order / 2;
    while half >= procs {
        for at in 0..own {
            let point = at * procs + node.rank();
            if point & half == 0 {
                let turn = roots[point % half * (order / (2 * half))];
                butterfly(&mut points, at, at + half / procs, turn);
            }
        }
        half /= 2;
    }
    // Half of an element's time is for either part: how many stages each has depends on the number
    // of points.
    node.compute(own as u64 / 2);
    node.barrier();
    let mut block = remap(node, &points);
    node.barrier();
    while half >= 1 {
        for first in (0..own).step_by(2 * half) {
            for at in 0..half {
                let turn = roots[at * (order / (2 * half))];
                butterfly(&mut block, first + at, first + at + half, turn);
            }
        }
        half /= 2;
    }
    node.compute(own as u64 / 2);
    node.end_timing();
    block.into_iter().map(u64::from).collect()
}

/// Each point is put by itself.
pub(super) fn fft(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    transform(node, size, |node, points| {
        let (own, procs) = (points.len(), node.procs());
        // Processors begin with different targets, so that no target gets all points at once.
        for step in 0..own {
            let at = (step + node.rank() * own / procs) % own;
            let place = at * procs + node.rank();
            node.put(place / own, (place % own) as u32, points[at]);
        }
        node.barrier();
        (0..own).map(|at| node.word(at as u32)).collect()
    })
}

/// The points for one processor are stored there together, and it distributes them.
pub(super) fn fftb(node: &mut Node<'_>, size: &Size) -> Vec<u64> {
    transform(node, size, |node, points| {
        let (own, procs, rank) = (points.len(), node.procs(), node.rank());
        let part = own / procs;
        let (inbox, outbox) = (0, own as u32);
        let words: Vec<u64> = points.iter().copied().map(u64::from).collect();
        node.set_words(outbox, &words);
        for step in 0..procs {
            let to = (rank + step) % procs;
            let at = inbox + (rank * part) as u32;
            node.bulk_store(to, at, outbox + (to * part) as u32, part);
        }
        node.all_store_sync();
        let came = node.words(inbox, own);
        let mut block = vec![0; own];
        for (at, &point) in came.iter().enumerate() {
            block[at % part * procs + at / part] = point as u32;
        }
        block
    })
}
