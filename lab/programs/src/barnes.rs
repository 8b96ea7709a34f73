//! Barnes: bodies that attract each other, by the tree of Barnes and Hut. Each body and each cell of
//! the tree is a region. Bodies have owners; cells of the second level are divided among the nodes,
//! which build what is below them, and the root is made of those.
//!
//! The tree follows from the places of the bodies, and all sums are in the order of cells, so the
//! result does not depend on the number of nodes.
//!
//! An operation is a body or a cell whose attraction is computed, or that is opened; or a body that
//! is put into one of eight parts. They are computed before the next access to shared memory.

use std::cell::{Cell as Count, RefCell};
use std::collections::HashMap;

use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use hamlyn_crl::{CrlError, RegionHandle, RegionId, Regions};

use crate::processor::RegionProcessor;
use crate::shared::{Random, publish};

/// Bodies, and how they move. The constant of gravitation and the mass of all bodies are one.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BarnesProblem {
    /// Their number.
    pub bodies: usize,
    /// Iterations.
    pub steps: usize,
    /// A cell counts as one body if its side is less than this times its distance.
    pub theta: f64,
    /// The length by which attraction is softened.
    pub softening: f64,
    /// Duration of an iteration.
    pub step: f64,
}

impl Default for BarnesProblem {
    /// The paper's: 2,048 bodies, 3 iterations.
    fn default() -> Self {
        Self {
            bodies: 2048,
            steps: 3,
            theta: 1.0,
            softening: 0.05,
            step: 0.025,
        }
    }
}

type Vector = [f64; 3];

/// A body, as its region has it.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "hamlyn::zerocopy")]
#[repr(C)]
pub struct Body {
    /// Its mass.
    pub mass: f64,
    /// Its place.
    pub place: Vector,
    /// Its velocity.
    pub velocity: Vector,
}

/// A cell of the tree, as its region has it.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "hamlyn::zerocopy")]
#[repr(C)]
struct Cell {
    mass: f64,
    /// Of its mass.
    centre: Vector,
    side: f64,
    /// [`EMPTY`], a body with [`BODY`], or the region of a cell.
    children: [u64; 8],
}

const EMPTY: u64 = u64::MAX;
/// Of a child that is a body, beside its number.
const BODY: u64 = 1 << 63;
/// Cells of the second level.
const TOPS: usize = 64;
/// Halvings of the root's side. Bodies that are nearer to each other are one.
const LEVELS_MAX: u32 = 60;

/// A part of the tree: its mass, the centre of that, and the child that it is.
#[derive(Clone, Copy, Debug)]
struct Part {
    mass: f64,
    centre: Vector,
    child: u64,
}

const NOTHING: Part = Part {
    mass: 0.0,
    centre: [0.0; 3],
    child: EMPTY,
};

/// A cube.
#[derive(Clone, Copy, Debug)]
struct Cube {
    corner: Vector,
    side: f64,
}

impl Cube {
    /// The eighth of the cube in which a place is.
    fn eighth_of(&self, place: &Vector) -> usize {
        let is_upper = |axis: usize| place[axis] >= self.corner[axis] + self.side / 2.0;
        (0..3).fold(0, |eighth, axis| eighth * 2 + usize::from(is_upper(axis)))
    }

    fn eighth(&self, number: usize) -> Self {
        let side = self.side / 2.0;
        let bits = [number >> 2 & 1, number >> 1 & 1, number & 1];
        let corner = std::array::from_fn(|axis| self.corner[axis] + bits[axis] as f64 * side);
        Self { corner, side }
    }
}

/// All bodies.
pub struct Barnes<'a, R: Regions, P> {
    crl: &'a R,
    processor: &'a P,
    problem: BarnesProblem,
    bodies: Vec<RegionId>,
    /// Of each node: its parts of the second level, as mass, centre and child.
    tops: Vec<RegionId>,
    root: RegionId,
    /// Regions of this node for cells, which are used again in each iteration.
    cells: RefCell<Vec<RegionId>>,
    used: Count<usize>,
    seen: Seen,
    /// Operations that are to be computed.
    due: Count<u64>,
}

/// Cells and bodies that this node has read in this iteration.
#[derive(Default)]
struct Seen {
    bodies: RefCell<HashMap<usize, Body>>,
    cells: RefCell<HashMap<u64, Cell>>,
}

impl BarnesProblem {
    fn owned(&self, nodes: u32, node: u32) -> std::ops::Range<usize> {
        let (nodes, node) = (nodes as usize, node as usize);
        self.bodies * node / nodes..self.bodies * (node + 1) / nodes
    }

    /// The bodies at first: a sphere by Plummer's model.
    pub fn initial(&self) -> Vec<Body> {
        let mut random = Random(123);
        (0..self.bodies).map(|_| self.body(&mut random)).collect()
    }

    fn body(&self, random: &mut Random) -> Body {
        // The outermost thousandth would be anywhere.
        let within = 0.999 * random.unit().max(1e-9);
        let radius = 1.0 / (within.powf(-2.0 / 3.0) - 1.0).sqrt();
        let speed_share = loop {
            let (share, height) = (random.unit(), 0.1 * random.unit());
            if height < share * share * (1.0 - share * share).powf(3.5) {
                break share;
            }
        };
        let escape = 2.0_f64.sqrt() * (1.0 + radius * radius).powf(-0.25);
        let mut direction = |length: f64| loop {
            let vector: Vector = std::array::from_fn(|_| 2.0 * random.unit() - 1.0);
            let square: f64 = vector.iter().map(|it| it * it).sum();
            if square > 1e-6 && square <= 1.0 {
                break vector.map(|it| it * length / square.sqrt());
            }
        };
        Body {
            mass: 1.0 / self.bodies as f64,
            place: direction(radius),
            velocity: direction(speed_share * escape),
        }
    }
}

impl<'a, R: Regions, P: RegionProcessor<R>> Barnes<'a, R, P> {
    /// Makes the bodies.
    pub fn create(crl: &'a R, processor: &'a P, problem: BarnesProblem) -> Result<Self, CrlError> {
        let initial = problem.initial();
        let mut own = Vec::new();
        for number in problem.owned(crl.nodes(), crl.me()) {
            let id = crl.create(size_of::<Body>())?;
            crl.map(id)?.write()?.values()?[0] = initial[number];
            own.push(id);
        }
        let owned = |node| problem.owned(crl.nodes(), node).len();
        let bodies = publish(crl, &own, owned)?.concat();
        let top = crl.create(TOPS * 5 * size_of::<f64>())?;
        let root = crl.create(size_of::<Cell>())?;
        let others = publish(crl, &[top, root], |_| 2)?;
        crl.barrier()?;
        Ok(Self {
            crl,
            processor,
            problem,
            bodies,
            tops: others.iter().map(|ids| ids[0]).collect(),
            root: others[0][1],
            cells: RefCell::default(),
            used: Count::new(0),
            seen: Seen::default(),
            due: Count::default(),
        })
    }

    /// Moves the bodies.
    pub fn run(&self) -> Result<(), CrlError> {
        (0..self.problem.steps).try_for_each(|_| self.step())
    }

    fn add_due(&self, operations: usize) {
        self.due.set(self.due.get() + operations as u64);
    }

    fn compute_due(&self) -> Result<(), CrlError> {
        match self.due.take() {
            0 => Ok(()),
            operations => self.processor.compute(self.crl, operations),
        }
    }

    fn own(&self) -> std::ops::Range<usize> {
        self.problem.owned(self.crl.nodes(), self.crl.me())
    }

    /// One iteration.
    pub fn step(&self) -> Result<(), CrlError> {
        let pulls = self.attractions()?;
        let step = self.problem.step;
        // Nobody reads a place of before any more.
        self.crl.barrier()?;
        for (number, pull) in self.own().zip(pulls) {
            let region = self.crl.map(self.bodies[number])?;
            let mut guard = region.write()?;
            let body = &mut guard.values::<Body>()?[0];
            for (axis, pull) in pull.iter().enumerate() {
                body.velocity[axis] += pull * step;
                body.place[axis] += body.velocity[axis] * step;
            }
            self.processor.compute(self.crl, 1)?;
        }
        self.crl.barrier()
    }

    /// The acceleration of each body of this node.
    pub fn attractions(&self) -> Result<Vec<Vector>, CrlError> {
        self.seen.bodies.borrow_mut().clear();
        self.seen.cells.borrow_mut().clear();
        self.used.set(0);
        let cube = self.bounds()?;
        self.build_tops(cube)?;
        self.crl.barrier()?;
        if self.crl.me() == 0 {
            self.build_root(cube)?;
        }
        self.crl.barrier()?;
        self.own()
            .map(|number| {
                let pull = self.attraction(number)?;
                self.compute_due()?;
                Ok(pull)
            })
            .collect()
    }

    /// A cube in which all bodies are.
    fn bounds(&self) -> Result<Cube, CrlError> {
        let (mut least, mut most) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for number in self.own() {
            let place = self.body(number)?.place;
            self.add_due(1);
            for axis in 0..3 {
                least[axis] = least[axis].min(place[axis]);
                most[axis] = most[axis].max(place[axis]);
            }
        }
        let mut side: f64 = 0.0;
        self.compute_due()?;
        for axis in 0..3 {
            least[axis] = self.crl.reduce_min(least[axis])?;
            side = side.max(self.crl.reduce_max(most[axis])? - least[axis]);
        }
        // The uppermost is inside, too.
        let side = side * 1.0001;
        Ok(Cube {
            corner: least,
            side,
        })
    }

    fn body(&self, number: usize) -> Result<Body, CrlError> {
        if let Some(body) = self.seen.bodies.borrow().get(&number) {
            return Ok(*body);
        }
        self.compute_due()?;
        let region = self.crl.map(self.bodies[number])?;
        let body = region.read()?.values::<Body>()?[0];
        self.seen.bodies.borrow_mut().insert(number, body);
        Ok(body)
    }

    fn cell(&self, child: u64) -> Result<Cell, CrlError> {
        if let Some(cell) = self.seen.cells.borrow().get(&child) {
            return Ok(*cell);
        }
        self.compute_due()?;
        let region = self.crl.map(RegionId::from_u64(child))?;
        let cell = region.read()?.values::<Cell>()?[0];
        self.seen.cells.borrow_mut().insert(child, cell);
        Ok(cell)
    }

    /// Builds what is below this node's cells of the second level.
    fn build_tops(&self, cube: Cube) -> Result<(), CrlError> {
        let nodes = self.crl.nodes() as usize;
        // If all nodes read all bodies in one order, each home would have all of them at once.
        let start = self.own().start;
        for number in (start..self.problem.bodies).chain(0..start) {
            self.body(number)?;
        }
        let mut within: Vec<Vec<usize>> = vec![Vec::new(); TOPS];
        for number in 0..self.problem.bodies {
            let place = self.body(number)?.place;
            let eighth = cube.eighth_of(&place);
            self.add_due(2);
            within[eighth * 8 + cube.eighth(eighth).eighth_of(&place)].push(number);
        }
        let mut parts = vec![0.0; TOPS * 5];
        for (top, bodies) in within.iter().enumerate() {
            if top % nodes == self.crl.me() as usize {
                let cube = cube.eighth(top / 8).eighth(top % 8);
                let part = self.build(bodies, cube, LEVELS_MAX)?;
                let [x, y, z] = part.centre;
                let child = f64::from_bits(part.child);
                parts[top * 5..][..5].copy_from_slice(&[part.mass, x, y, z, child]);
            }
        }
        let region = self.crl.map(self.tops[self.crl.me() as usize])?;
        region.write()?.values()?.copy_from_slice(&parts);
        Ok(())
    }

    fn build(&self, bodies: &[usize], cube: Cube, levels: u32) -> Result<Part, CrlError> {
        match bodies {
            [] => Ok(NOTHING),
            [one] => {
                let body = self.body(*one)?;
                Ok(Part {
                    mass: body.mass,
                    centre: body.place,
                    child: BODY | *one as u64,
                })
            }
            [first, ..] if levels == 0 => self.build(&[*first], cube, 0),
            bodies => {
                let mut within: [Vec<usize>; 8] = Default::default();
                for number in bodies {
                    within[cube.eighth_of(&self.body(*number)?.place)].push(*number);
                }
                self.add_due(bodies.len());
                let mut parts = [NOTHING; 8];
                for (eighth, bodies) in within.iter().enumerate() {
                    parts[eighth] = self.build(bodies, cube.eighth(eighth), levels - 1)?;
                }
                self.join(parts, cube.side, None)
            }
        }
    }

    /// Makes a cell of its eight parts.
    fn join(&self, parts: [Part; 8], side: f64, at: Option<RegionId>) -> Result<Part, CrlError> {
        let mass = parts.iter().map(|part| part.mass).sum::<f64>();
        let mut centre = [0.0; 3];
        for part in &parts {
            (0..3).for_each(|axis| centre[axis] += part.mass * part.centre[axis]);
        }
        centre = centre.map(|it| it / mass);
        let id = match at {
            Some(id) => id,
            None => self.next_cell()?,
        };
        self.add_due(parts.len());
        self.compute_due()?;
        self.crl.map(id)?.write()?.values()?[0] = Cell {
            mass,
            centre,
            side,
            children: parts.map(|part| part.child),
        };
        let child = id.to_u64();
        Ok(Part {
            mass,
            centre,
            child,
        })
    }

    fn next_cell(&self) -> Result<RegionId, CrlError> {
        let used = self.used.replace(self.used.get() + 1);
        let mut cells = self.cells.borrow_mut();
        if used == cells.len() {
            cells.push(self.crl.create(size_of::<Cell>())?);
        }
        Ok(cells[used])
    }

    fn build_root(&self, cube: Cube) -> Result<(), CrlError> {
        let mut parts = [NOTHING; TOPS];
        for (node, id) in self.tops.iter().enumerate() {
            let region = self.crl.map(*id)?;
            let guard = region.read()?;
            let (values, _) = guard.values::<f64>()?.as_chunks::<5>();
            for (top, [mass, x, y, z, child]) in values.iter().enumerate() {
                if top % self.tops.len() == node {
                    parts[top] = Part {
                        mass: *mass,
                        centre: [*x, *y, *z],
                        child: child.to_bits(),
                    };
                }
            }
        }
        let mut eighths = [NOTHING; 8];
        for (eighth, parts) in parts.as_chunks().0.iter().enumerate() {
            if parts.iter().any(|part: &Part| part.child != EMPTY) {
                eighths[eighth] = self.join(*parts, cube.side / 2.0, None)?;
            }
        }
        self.join(eighths, cube.side, Some(self.root))?;
        Ok(())
    }

    fn attraction(&self, number: usize) -> Result<Vector, CrlError> {
        let own = self.body(number)?;
        let mut pull = [0.0; 3];
        let mut add = |mass: f64, apart: Vector, square: f64| {
            let softened = square + self.problem.softening * self.problem.softening;
            let strength = mass / (softened * softened.sqrt());
            (0..3).for_each(|axis| pull[axis] += apart[axis] * strength);
        };
        let apart = |place: &Vector| -> (Vector, f64) {
            let apart: Vector = std::array::from_fn(|axis| place[axis] - own.place[axis]);
            (apart, apart.iter().map(|it| it * it).sum())
        };
        let mut waiting = vec![self.root.to_u64()];
        while let Some(child) = waiting.pop() {
            if child == EMPTY || child == BODY | number as u64 {
                continue;
            }
            self.add_due(1);
            if child & BODY != 0 {
                let body = self.body((child & !BODY) as usize)?;
                let (apart, square) = apart(&body.place);
                add(body.mass, apart, square);
                continue;
            }
            let cell = self.cell(child)?;
            let (apart, square) = apart(&cell.centre);
            if cell.side * cell.side < self.problem.theta * self.problem.theta * square {
                add(cell.mass, apart, square);
            } else {
                waiting.extend(cell.children.iter().rev());
            }
        }
        Ok(pull)
    }

    /// All bodies.
    pub fn gather(&self) -> Result<Vec<Body>, CrlError> {
        let bodies = self.bodies.iter();
        let read = bodies.map(|id| Ok(self.crl.map(*id)?.read()?.values::<Body>()?[0]));
        read.collect()
    }
}
