//! Water: molecules of three atoms, each pair of which acts on each other, moved by the velocity
//! Verlet method. Each molecule is a region whose home is its owner; positions are read by the
//! nodes that need them, and forces added by all that have computed some.
//!
//! Forces and energies are added as integers of a small unit, so that no sum depends on the order
//! of its terms, and thus not on the number of nodes.
//!
//! An operation is a pair of atoms whose force is computed, or an atom that is moved or to which a
//! force is added.

use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use hamlyn_crl::{CrlError, RegionHandle, RegionId, Regions};

use crate::processor::RegionProcessor;
use crate::shared::{Random, publish};

/// Molecules and how they move. Lengths are in angstrom, times in picoseconds, masses in daltons:
/// energies are in daltons x angstrom^2 / picosecond^2.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WaterProblem {
    /// Along each side of a cube: 8 for 512.
    pub side: usize,
    /// Iterations.
    pub steps: usize,
    /// Duration of one.
    pub step_ps: f64,
}

impl Default for WaterProblem {
    /// The paper's: 512 molecules, 3 iterations.
    fn default() -> Self {
        Self {
            side: 8,
            steps: 3,
            step_ps: 0.0002,
        }
    }
}

const ATOMS: usize = 3;
type Vector = [f64; 3];
/// An oxygen and two hydrogens.
const MASSES: [f64; ATOMS] = [15.999, 1.008, 1.008];
const CHARGES: [f64; ATOMS] = [-0.82, 0.41, 0.41];
/// Coulomb's constant times the square of the electron's charge.
const COULOMB: f64 = 138_935.458;
/// Of oxygens.
const LENNARD_JONES_ENERGY: f64 = 65.0;
const LENNARD_JONES_LENGTH: f64 = 3.166;
/// Springs between the atoms of a molecule: stiffness, and the three lengths.
const STIFFNESS: f64 = 45_000.0;
const BOND: f64 = 1.0;
const HYDROGENS: f64 = 1.633;
const SPACING: f64 = 3.1;
/// Units of force and energy in one.
const UNITS: f64 = 1_048_576.0;

/// A molecule, as its region has it.
#[derive(Clone, Copy, PartialEq, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "hamlyn::zerocopy")]
#[repr(C)]
pub struct Molecule {
    /// Of its atoms.
    pub places: [Vector; ATOMS],
    /// Of its atoms.
    pub velocities: [Vector; ATOMS],
    /// Of its atoms, in units.
    pub forces: [[i64; 3]; ATOMS],
}

/// All molecules.
pub struct Water<'a, R: Regions, P> {
    crl: &'a R,
    processor: &'a P,
    problem: WaterProblem,
    molecules: Vec<RegionId>,
}

impl WaterProblem {
    fn count(&self) -> usize {
        self.side.pow(3)
    }

    /// Along a side of the cube, which is repeated in all directions.
    fn box_side(&self) -> f64 {
        self.side as f64 * SPACING
    }

    /// A molecule at first: at a place of a lattice, turned and moving at random.
    pub fn initial(&self, number: usize) -> Molecule {
        let mut random = Random(number as u64 * 977 + 3);
        for _ in 0..4 {
            random.unit();
        }
        let at = [
            number / (self.side * self.side),
            number / self.side % self.side,
            number % self.side,
        ];
        let centre = at.map(|at| at as f64 * SPACING);
        let turn = random.unit() * std::f64::consts::TAU;
        // The angle between the bonds follows from the three lengths.
        let half = (HYDROGENS / 2.0 / BOND).asin();
        let arm = |angle: f64| {
            let (sin, cos) = angle.sin_cos();
            [centre[0] + BOND * cos, centre[1] + BOND * sin, centre[2]]
        };
        let mut velocity = || std::array::from_fn(|_| (random.unit() - 0.5) * 8.0);
        Molecule {
            places: [centre, arm(turn - half), arm(turn + half)],
            velocities: [velocity(), velocity(), velocity()],
            forces: [[0; 3]; ATOMS],
        }
    }

    fn owned(&self, nodes: u32, node: u32) -> std::ops::Range<usize> {
        let (count, nodes, node) = (self.count(), nodes as usize, node as usize);
        count * node / nodes..count * (node + 1) / nodes
    }

    /// The molecules after one with which it forms pairs: each pair is formed once.
    fn partners(&self, first: usize) -> impl Iterator<Item = usize> {
        let count = self.count();
        let is_even = count.is_multiple_of(2);
        let half = count / 2;
        let most = if is_even && first >= half {
            half - 1
        } else {
            half
        };
        (1..=most).map(move |distance| (first + distance) % count)
    }
}

impl<'a, R: Regions, P: RegionProcessor<R>> Water<'a, R, P> {
    /// Makes the molecules.
    pub fn create(crl: &'a R, processor: &'a P, problem: WaterProblem) -> Result<Self, CrlError> {
        let own = problem.owned(crl.nodes(), crl.me());
        let mut ids = Vec::new();
        for number in own {
            let id = crl.create(size_of::<Molecule>())?;
            let region = crl.map(id)?;
            region.write()?.values()?[0] = problem.initial(number);
            ids.push(id);
        }
        let owned = |node| problem.owned(crl.nodes(), node).len();
        let molecules = publish(crl, &ids, owned)?.concat();
        let water = Self {
            crl,
            processor,
            problem,
            molecules,
        };
        crl.barrier()?;
        Ok(water)
    }

    /// Moves the molecules: the energy of all of them at first and after each iteration.
    pub fn run(&self) -> Result<Vec<f64>, CrlError> {
        let mut energies = vec![self.start()?];
        for _ in 0..self.problem.steps {
            energies.push(self.step()?);
        }
        Ok(energies)
    }

    /// Computes the forces of the start: the energy.
    pub fn start(&self) -> Result<f64, CrlError> {
        self.energy(self.forces()?)
    }

    fn compute(&self, operations: usize) -> Result<(), CrlError> {
        self.processor.compute(self.crl, operations as u64)
    }

    /// One iteration: the energy after it.
    pub fn step(&self) -> Result<f64, CrlError> {
        let step = self.problem.step_ps;
        self.change_own(|molecule| {
            push(molecule, step / 2.0);
            for (place, velocity) in molecule.places.iter_mut().zip(&molecule.velocities) {
                (0..3).for_each(|axis| place[axis] += velocity[axis] * step);
            }
            molecule.forces = [[0; 3]; ATOMS];
        })?;
        self.crl.barrier()?;
        let potential = self.forces()?;
        self.change_own(|molecule| push(molecule, step / 2.0))?;
        self.energy(potential)
    }

    fn change_own(&self, change: impl Fn(&mut Molecule)) -> Result<(), CrlError> {
        for number in self.problem.owned(self.crl.nodes(), self.crl.me()) {
            let region = self.crl.map(self.molecules[number])?;
            change(&mut region.write()?.values()?[0]);
            self.compute(ATOMS)?;
        }
        Ok(())
    }

    /// The energy of all nodes: each has the sum of whole units, which is exact.
    fn energy(&self, potential: i64) -> Result<f64, CrlError> {
        let mut own = potential;
        for number in self.problem.owned(self.crl.nodes(), self.crl.me()) {
            let region = self.crl.map(self.molecules[number])?;
            let guard = region.read()?;
            for (mass, velocity) in MASSES
                .iter()
                .zip(&guard.values::<Molecule>()?[0].velocities)
            {
                let square: f64 = velocity.iter().map(|speed| speed * speed).sum();
                own += units(mass * square / 2.0);
            }
            self.compute(ATOMS)?;
        }
        Ok(self.crl.reduce_add(own as f64)? / UNITS)
    }

    /// Adds the forces of the pairs of this node's molecules to all molecules; their potential.
    fn forces(&self) -> Result<i64, CrlError> {
        let own = self.problem.owned(self.crl.nodes(), self.crl.me());
        let mut places: Vec<Option<[Vector; ATOMS]>> = vec![None; self.molecules.len()];
        let mut forces = vec![[[0_i64; 3]; ATOMS]; self.molecules.len()];
        let mut potential = 0;
        let side = self.problem.box_side();
        for first in own {
            let one = self.places_of(first, &mut places)?;
            potential += within(&one, &mut forces[first]);
            self.compute(ATOMS)?;
            for second in self.problem.partners(first) {
                let other = self.places_of(second, &mut places)?;
                potential += between(&one, &other, side, |atom, other_atom, force| {
                    for axis in 0..3 {
                        let force = units(force[axis]);
                        forces[first][atom][axis] += force;
                        forces[second][other_atom][axis] -= force;
                    }
                });
                self.compute(ATOMS * ATOMS)?;
            }
        }
        self.crl.barrier()?;
        // Not all nodes begin with the same molecule.
        let start = self.problem.owned(self.crl.nodes(), self.crl.me()).start;
        let count = self.molecules.len();
        for number in (start..count).chain(0..start) {
            if places[number].is_none() {
                continue;
            }
            let region = self.crl.map(self.molecules[number])?;
            let mut guard = region.write()?;
            let into = guard.values::<Molecule>()?[0].forces.as_flattened_mut();
            let added = forces[number].as_flattened();
            into.iter_mut()
                .zip(added)
                .for_each(|(sum, force)| *sum += force);
            self.compute(ATOMS)?;
        }
        self.crl.barrier()?;
        Ok(potential)
    }

    fn places_of(
        &self,
        number: usize,
        known: &mut [Option<[Vector; ATOMS]>],
    ) -> Result<[Vector; ATOMS], CrlError> {
        if let Some(places) = known[number] {
            return Ok(places);
        }
        let region = self.crl.map(self.molecules[number])?;
        let places = region.read()?.values::<Molecule>()?[0].places;
        known[number] = Some(places);
        Ok(places)
    }

    /// All molecules.
    pub fn gather(&self) -> Result<Vec<Molecule>, CrlError> {
        let molecules = self.molecules.iter();
        let read = molecules.map(|id| Ok(self.crl.map(*id)?.read()?.values::<Molecule>()?[0]));
        read.collect()
    }
}

fn units(value: f64) -> i64 {
    (value * UNITS).round() as i64
}

/// Changes velocities by the forces.
fn push(molecule: &mut Molecule, step: f64) {
    let atoms = molecule.velocities.iter_mut().zip(&molecule.forces);
    for ((velocity, force), mass) in atoms.zip(MASSES) {
        for (speed, force) in velocity.iter_mut().zip(force) {
            *speed += *force as f64 / UNITS / mass * step;
        }
    }
}

/// The springs of a molecule: adds their forces; their potential.
fn within(places: &[Vector; ATOMS], forces: &mut [[i64; 3]; ATOMS]) -> i64 {
    let mut potential = 0.0;
    for (one, other, length) in [(0, 1, BOND), (0, 2, BOND), (1, 2, HYDROGENS)] {
        let apart: Vector = std::array::from_fn(|axis| places[one][axis] - places[other][axis]);
        let distance = apart.iter().map(|it| it * it).sum::<f64>().sqrt();
        let stretch = distance - length;
        potential += STIFFNESS / 2.0 * stretch * stretch;
        for axis in 0..3 {
            let force = units(-STIFFNESS * stretch * apart[axis] / distance);
            forces[one][axis] += force;
            forces[other][axis] -= force;
        }
    }
    units(potential)
}

/// The forces between the atoms of two molecules; their potential. Both end smoothly at half of
/// the side of the box.
fn between(
    one: &[Vector; ATOMS],
    other: &[Vector; ATOMS],
    side: f64,
    mut act: impl FnMut(usize, usize, Vector),
) -> i64 {
    let end = side / 2.0;
    let mut potential = 0.0;
    for (atom, place) in one.iter().enumerate() {
        for (other_atom, other_place) in other.iter().enumerate() {
            // From the nearest copy of the other atom.
            let apart: Vector = std::array::from_fn(|axis| {
                let apart = place[axis] - other_place[axis];
                apart - (apart / side).round() * side
            });
            let square = apart.iter().map(|it| it * it).sum::<f64>();
            let distance = square.sqrt();
            if distance >= end {
                continue;
            }
            let charges = COULOMB * CHARGES[atom] * CHARGES[other_atom];
            let mut strength = charges * (1.0 / square - 1.0 / (end * end));
            potential += charges * (1.0 / distance - 1.0 / end + (distance - end) / (end * end));
            if atom == 0 && other_atom == 0 {
                let (energy, slope) = lennard_jones(distance);
                let (energy_end, slope_end) = lennard_jones(end);
                strength -= slope - slope_end;
                potential += energy - energy_end - (distance - end) * slope_end;
            }
            act(atom, other_atom, apart.map(|it| it / distance * strength));
        }
    }
    units(potential)
}

/// The energy at a distance, and its derivative.
fn lennard_jones(distance: f64) -> (f64, f64) {
    let sixth = (LENNARD_JONES_LENGTH / distance).powi(6);
    let energy = 4.0 * LENNARD_JONES_ENERGY * (sixth * sixth - sixth);
    let slope = 4.0 * LENNARD_JONES_ENERGY * (6.0 * sixth - 12.0 * sixth * sixth) / distance;
    (energy, slope)
}
