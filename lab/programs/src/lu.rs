//! LU: the factors of a dense matrix, without pivoting, by blocks. Blocks are scattered over a grid
//! of nodes; each is a region whose home is its owner, who alone writes it.
//!
//! An operation is a step of an inner loop: a division, or a product that is subtracted.

use hamlyn_crl::{CrlError, RegionHandle, RegionId, Regions};

use crate::processor::RegionProcessor;
use crate::shared::{Random, publish};

/// The matrix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LuProblem {
    /// Its rows and columns: a multiple of `block`.
    pub size: usize,
    /// Rows and columns of a block.
    pub block: usize,
}

impl Default for LuProblem {
    /// The paper's: 250 x 250 in blocks of 10 x 10.
    fn default() -> Self {
        Self {
            size: 250,
            block: 10,
        }
    }
}

/// A matrix as its blocks.
pub struct LuBlocks<'a, R: Regions, P> {
    crl: &'a R,
    processor: &'a P,
    problem: LuProblem,
    /// By row and column of blocks.
    blocks: Vec<RegionId>,
}

/// The nodes as rows and columns of a grid that is as square as it can be.
fn grid(nodes: u32) -> (usize, usize) {
    let nodes = nodes as usize;
    let rows = (1..=nodes.isqrt())
        .rev()
        .find(|rows| nodes.is_multiple_of(*rows));
    let rows = rows.unwrap_or(1);
    (rows, nodes / rows)
}

/// The matrix of the problem, row by row: random numbers, with a diagonal that dominates.
pub fn matrix(problem: LuProblem) -> Vec<f64> {
    let n = problem.size;
    let mut random = Random(250);
    let mut matrix: Vec<f64> = (0..n * n).map(|_| random.unit()).collect();
    (0..n).for_each(|at| matrix[at * n + at] += n as f64);
    matrix
}

impl<'a, R: Regions, P: RegionProcessor<R>> LuBlocks<'a, R, P> {
    /// Makes the blocks of the problem's matrix.
    pub fn create(crl: &'a R, processor: &'a P, problem: LuProblem) -> Result<Self, CrlError> {
        let (count, block) = (problem.size / problem.block, problem.block);
        let matrix = matrix(problem);
        let mut own = Vec::new();
        for (row, column) in places(count) {
            if owner(crl.nodes(), row, column) == crl.me() {
                let id = crl.create(block * block * size_of::<f64>())?;
                let region = crl.map(id)?;
                let mut guard = region.write()?;
                for (at, value) in guard.values::<f64>()?.iter_mut().enumerate() {
                    let (i, j) = (row * block + at / block, column * block + at % block);
                    *value = matrix[i * problem.size + j];
                }
                own.push(id);
            }
        }
        let owned = |node| {
            let places = places(count);
            places
                .filter(|(row, column)| owner(crl.nodes(), *row, *column) == node)
                .count()
        };
        let all = publish(crl, &own, owned)?;
        let mut next: Vec<_> = all.into_iter().map(Vec::into_iter).collect();
        let ids = places(count).filter_map(|(row, column)| {
            let node = owner(crl.nodes(), row, column);
            next[node as usize].next()
        });
        let blocks = ids.collect();
        crl.barrier()?;
        Ok(Self {
            crl,
            processor,
            problem,
            blocks,
        })
    }

    fn count(&self) -> usize {
        self.problem.size / self.problem.block
    }

    fn region(&self, row: usize, column: usize) -> Result<R::Region, CrlError> {
        self.crl.map(self.blocks[row * self.count() + column])
    }

    fn is_own(&self, row: usize, column: usize) -> bool {
        owner(self.crl.nodes(), row, column) == self.crl.me()
    }

    /// Replaces the matrix by its factors. Three barriers for each step along the diagonal.
    pub fn factor(&self) -> Result<(), CrlError> {
        let (count, n) = (self.count(), self.problem.block);
        for step in 0..count {
            if self.is_own(step, step) {
                let diagonal = self.region(step, step)?;
                let mut diagonal = diagonal.write()?;
                let steps = factor_block(diagonal.values()?, n);
                self.compute(steps)?;
            }
            self.crl.barrier()?;
            for at in step + 1..count {
                let (is_below, is_right) = (self.is_own(at, step), self.is_own(step, at));
                if !is_below && !is_right {
                    continue;
                }
                let diagonal = self.region(step, step)?;
                let diagonal = diagonal.read()?;
                let diagonal = diagonal.values()?;
                if is_below {
                    let block = self.region(at, step)?;
                    let mut block = block.write()?;
                    self.compute(divide_by_upper(block.values()?, diagonal, n))?;
                }
                if is_right {
                    let block = self.region(step, at)?;
                    let mut block = block.write()?;
                    self.compute(divide_by_lower(block.values()?, diagonal, n))?;
                }
            }
            self.crl.barrier()?;
            for row in step + 1..count {
                for column in step + 1..count {
                    if self.is_own(row, column) {
                        let (left, above) = (self.region(row, step)?, self.region(step, column)?);
                        let (left, above) = (left.read()?, above.read()?);
                        let block = self.region(row, column)?;
                        let mut block = block.write()?;
                        let (left, above) = (left.values()?, above.values()?);
                        self.compute(subtract_product(block.values()?, left, above, n))?;
                    }
                }
            }
            self.crl.barrier()?;
        }
        Ok(())
    }

    fn compute(&self, steps: u64) -> Result<(), CrlError> {
        self.processor.compute(self.crl, steps)
    }

    /// The whole matrix, row by row.
    pub fn gather(&self) -> Result<Vec<f64>, CrlError> {
        let LuProblem { size, block } = self.problem;
        let mut matrix = vec![0.0; size * size];
        for (row, column) in places(self.count()) {
            let region = self.region(row, column)?;
            let guard = region.read()?;
            for (at, value) in guard.values::<f64>()?.iter().enumerate() {
                matrix[(row * block + at / block) * size + column * block + at % block] = *value;
            }
        }
        Ok(matrix)
    }
}

fn places(count: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..count * count).map(move |at| (at / count, at % count))
}

fn owner(nodes: u32, row: usize, column: usize) -> u32 {
    let (rows, columns) = grid(nodes);
    ((row % rows) * columns + column % columns) as u32
}

// Each says how many steps its inner loops had.

fn factor_block(a: &mut [f64], n: usize) -> u64 {
    let mut steps = 0;
    for k in 0..n {
        for i in k + 1..n {
            a[i * n + k] /= a[k * n + k];
            for j in k + 1..n {
                a[i * n + j] -= a[i * n + k] * a[k * n + j];
            }
            steps += n - k;
        }
    }
    steps as u64
}

/// a := a / U of the diagonal block.
fn divide_by_upper(a: &mut [f64], diagonal: &[f64], n: usize) -> u64 {
    let mut steps = 0;
    for i in 0..n {
        for k in 0..n {
            a[i * n + k] /= diagonal[k * n + k];
            for j in k + 1..n {
                a[i * n + j] -= a[i * n + k] * diagonal[k * n + j];
            }
            steps += n - k;
        }
    }
    steps as u64
}

/// a := L of the diagonal block \ a.
fn divide_by_lower(a: &mut [f64], diagonal: &[f64], n: usize) -> u64 {
    let mut steps = 0;
    for k in 0..n {
        for i in k + 1..n {
            for j in 0..n {
                a[i * n + j] -= diagonal[i * n + k] * a[k * n + j];
            }
            steps += n;
        }
    }
    steps as u64
}

fn subtract_product(a: &mut [f64], left: &[f64], above: &[f64], n: usize) -> u64 {
    let mut steps = 0;
    for i in 0..n {
        for k in 0..n {
            for j in 0..n {
                a[i * n + j] -= left[i * n + k] * above[k * n + j];
            }
            steps += n;
        }
    }
    steps as u64
}
