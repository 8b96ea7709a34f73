//! The programs on 2, 4 and 8 nodes give the same bits as their serial runs, and these are right.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn::Wait;
use hamlyn_am::NodeOptions;
use hamlyn_crl::{AmCourier, Courier, CrlError, CrlNull, CrlOptions, Kind, Regions, UdmCourier};
use hamlyn_programs::barnes::{Barnes, BarnesProblem, Body};
use hamlyn_programs::lu::{self, LuBlocks, LuProblem};
use hamlyn_programs::water::{Molecule, Water, WaterProblem};
use hamlyn_programs::{Live, RegionProcessor};
use hamlyn_udm::{Group, GroupOptions};

const LONG: Wait = Wait::millis(60_000);

type Crl = hamlyn_crl::Crl<Box<dyn Courier>>;

/// The messages of a run.
#[derive(Clone, Copy, Debug)]
enum Messages {
    Udm,
    Am,
}

/// Runs of each program.
const RUNS: [(Messages, usize); 5] = [
    (Messages::Udm, 2),
    (Messages::Udm, 4),
    (Messages::Udm, 8),
    (Messages::Am, 2),
    (Messages::Am, 4),
];

impl Messages {
    fn courier(self, address: &str, options: GroupOptions) -> Box<dyn Courier> {
        let manager = hamlyn::open(address).unwrap();
        match self {
            Self::Udm => {
                let group = Group::new(manager, options).unwrap();
                Box::new(UdmCourier::open(&group, "main", LONG).unwrap())
            }
            Self::Am => {
                let node = hamlyn_am::Node::new(manager, NodeOptions::default()).unwrap();
                Box::new(AmCourier::open(&node, &options, "main", LONG).unwrap())
            }
        }
    }
}

/// Runs nodes in threads with interfaces of their own: what node 0 returns, and all messages until
/// the results are gathered.
fn run<T: Send>(
    (messages, nodes): (Messages, usize),
    program: impl Fn(&Crl, &dyn Fn()) -> Result<T, CrlError> + Sync,
) -> (T, u64) {
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let name = |node| format!("programs-{}-{run}-{node}", std::process::id());
    let addresses: Vec<String> = (0..nodes).map(name).collect();
    let (result, sent) = (Mutex::new(None), Mutex::new(0));
    std::thread::scope(|scope| {
        for (me, address) in addresses.iter().enumerate() {
            let (addresses, program, result, sent) = (&addresses, &program, &result, &sent);
            scope.spawn(move || {
                let options = GroupOptions {
                    name: "programs".into(),
                    me: me as u32,
                    addresses: addresses.clone(),
                };
                let courier = messages.courier(address, options);
                let crl = Crl::open(courier, CrlOptions::default()).unwrap();
                let own = program(&crl, &|| {
                    let statistics = crl.statistics();
                    *sent.lock().unwrap() += statistics.total();
                    if me == 0 && std::env::var_os("PROGRAMS_COUNTS").is_some() {
                        let of_kind = |kind: &Kind| statistics.sent(*kind);
                        let counts = Kind::ALL.iter().map(|kind| (kind, of_kind(kind)));
                        println!("{:?}", counts.collect::<Vec<_>>());
                    }
                });
                let own = own.unwrap();
                if me == 0 {
                    *result.lock().unwrap() = Some(own);
                }
                assert!(crl.finish(LONG).unwrap());
            });
        }
    });
    (
        result.into_inner().unwrap().unwrap(),
        sent.into_inner().unwrap(),
    )
}

fn lu<R: Regions>(crl: &R, count: &dyn Fn()) -> Result<Vec<f64>, CrlError>
where
    Live: RegionProcessor<R>,
{
    let blocks = LuBlocks::create(crl, &Live, LuProblem::default())?;
    blocks.factor()?;
    count();
    at_first(crl, || blocks.gather())
}

/// A result that the first node gathers.
fn at_first<R: Regions, T>(
    crl: &R,
    gather: impl FnOnce() -> Result<Vec<T>, CrlError>,
) -> Result<Vec<T>, CrlError> {
    match crl.me() {
        0 => gather(),
        _ => Ok(Vec::new()),
    }
}

#[test]
fn lu_is_the_same_on_any_number_of_nodes() {
    let factors = lu(&CrlNull::default(), &|| {}).unwrap();
    // The product of the factors is the matrix.
    let problem = LuProblem::default();
    let (matrix, n) = (lu::matrix(problem), problem.size);
    let mut worst: f64 = 0.0;
    for i in 0..n {
        for j in 0..n {
            let below = |k: usize| if k == i { 1.0 } else { factors[i * n + k] };
            let sum: f64 = (0..=i.min(j)).map(|k| below(k) * factors[k * n + j]).sum();
            worst = worst.max((sum - matrix[i * n + j]).abs());
        }
    }
    assert!(worst < 1e-11 * n as f64, "{worst}");
    for nodes in RUNS {
        let (parallel, sent) = run(nodes, lu);
        println!("lu: {nodes:?}, {sent} messages");
        let bits = |matrix: &[f64]| matrix.iter().map(|it| it.to_bits()).collect::<Vec<_>>();
        assert!(bits(&parallel) == bits(&factors), "{nodes:?}");
    }
}

fn water<R: Regions>(crl: &R, count: &dyn Fn()) -> Result<(Vec<f64>, Vec<Molecule>), CrlError>
where
    Live: RegionProcessor<R>,
{
    let water = Water::create(crl, &Live, WaterProblem::default())?;
    let energies = water.run()?;
    count();
    Ok((energies, at_first(crl, || water.gather())?))
}

#[test]
fn water_is_the_same_on_any_number_of_nodes() {
    let serial = water(&CrlNull::default(), &|| {}).unwrap();
    let (energies, molecules) = &serial;
    assert_eq!((energies.len(), molecules.len()), (4, 512));
    for energy in energies {
        let drift = (energy - energies[0]).abs() / energies[0].abs();
        assert!(drift < 1e-4, "{energies:?}");
    }
    // Something has happened, and the sum of all forces is zero.
    assert!(
        molecules
            .iter()
            .all(|it| it.velocities != WaterProblem::default().initial(0).velocities)
    );
    let mut sum = [0; 3];
    for force in molecules.iter().flat_map(|molecule| molecule.forces) {
        (0..3).for_each(|axis| sum[axis] += force[axis]);
    }
    assert_eq!(sum, [0; 3]);
    for nodes in RUNS {
        let (parallel, sent) = run(nodes, water);
        println!("water: {nodes:?}, {sent} messages");
        assert!(parallel == serial, "{nodes:?}");
    }
}

fn barnes<R: Regions>(crl: &R, count: &dyn Fn()) -> Result<Vec<Body>, CrlError>
where
    Live: RegionProcessor<R>,
{
    let barnes = Barnes::create(crl, &Live, BarnesProblem::default())?;
    barnes.run()?;
    count();
    at_first(crl, || barnes.gather())
}

/// The forces of the tree beside those of all pairs.
#[test]
fn the_tree_attracts_like_its_bodies() {
    for (theta, least, most) in [(1.0, 1e-3, 0.05), (0.3, 1e-5, 0.005), (0.0, 0.0, 1e-12)] {
        let problem = BarnesProblem {
            theta,
            ..BarnesProblem::default()
        };
        let error = error_of_tree(problem);
        assert!(error >= least && error < most, "theta {theta}: {error}");
    }
}

fn error_of_tree(problem: BarnesProblem) -> f64 {
    let crl = CrlNull::default();
    let barnes = Barnes::create(&crl, &Live, problem).unwrap();
    let pulls = barnes.attractions().unwrap();
    let bodies = problem.initial();
    let (mut error, mut size) = (0.0, 0.0);
    for (at, body) in bodies.iter().enumerate() {
        let mut pull = [0.0; 3];
        for (_, other) in bodies.iter().enumerate().filter(|(other, _)| *other != at) {
            let apart: [f64; 3] = std::array::from_fn(|axis| other.place[axis] - body.place[axis]);
            let square: f64 = apart.iter().map(|it| it * it).sum();
            let softened = square + problem.softening * problem.softening;
            let strength = other.mass / (softened * softened.sqrt());
            (0..3).for_each(|axis| pull[axis] += apart[axis] * strength);
        }
        for axis in 0..3 {
            error += (pull[axis] - pulls[at][axis]).powi(2);
            size += pull[axis].powi(2);
        }
    }
    f64::sqrt(error / size)
}

#[test]
fn barnes_is_the_same_on_any_number_of_nodes() {
    let serial = barnes(&CrlNull::default(), &|| {}).unwrap();
    assert_eq!(serial.len(), 2048);
    assert!(serial != BarnesProblem::default().initial());
    for nodes in RUNS {
        let (parallel, sent) = run(nodes, barnes);
        println!("barnes: {nodes:?}, {sent} messages");
        assert!(parallel == serial, "{nodes:?}");
    }
}
