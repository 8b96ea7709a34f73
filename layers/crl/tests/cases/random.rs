//! Random programs: the graph of program order and versions has no circle.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hamlyn::Wait;
use hamlyn_crl::{Courier, CrlError, CrlOptions, Region, RegionHandle, RegionId, Regions};

use crate::World;
use crate::graph::{Record, has_circle};
use crate::world::{Node, region_of_each};

const OPERATIONS: u64 = 400;

/// A generator of numbers, the same everywhere.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = (self.0)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// All bytes say the same version, or it was not a whole operation.
fn version(bytes: &[u8]) -> u64 {
    let (versions, _) = bytes.as_chunks();
    let versions = versions.iter().map(|bytes| u64::from_le_bytes(*bytes));
    let mut versions = versions.collect::<Vec<u64>>();
    versions.dedup();
    assert_eq!(versions.len(), 1, "parts of two operations");
    versions[0]
}

/// A node's program.
struct Program<'a> {
    crl: &'a Node,
    random: Random,
    ids: Vec<RegionId>,
    /// Nothing for a region that is lost.
    handles: Vec<Option<Region<Box<dyn Courier>>>>,
    records: Vec<Record>,
}

impl<'a> Program<'a> {
    fn new(crl: &'a Node) -> Self {
        let mut ids = region_of_each(crl, 64);
        ids.extend(region_of_each(crl, 9_000));
        Self {
            crl,
            random: Random(u64::from(crl.nodes() * 100 + crl.me())),
            handles: ids.iter().map(|id| Some(crl.map(*id).unwrap())).collect(),
            ids,
            records: Vec::new(),
        }
    }

    /// One operation, on a region that may be lost.
    fn operate(&mut self) -> Result<(), CrlError> {
        let region = self.random.below(self.ids.len() as u64) as usize;
        let is_write = self.random.below(3) == 0;
        if self.handles[region].is_some() && self.random.below(12) == 0 {
            self.handles[region] = None;
            self.handles[region] = Some(self.crl.map(self.ids[region])?);
        }
        let Some(handle) = &self.handles[region] else {
            return Ok(());
        };
        let version = if is_write {
            let mut guard = handle.write()?;
            let next = version(&guard) + 1;
            // Now and then the others' messages come while it is open.
            if self.random.below(4) == 0 {
                self.crl.serve(Wait::Poll)?;
            }
            guard.values()?.fill(next);
            next
        } else {
            version(&handle.read()?)
        };
        self.records.push(Record {
            node: self.crl.me() as usize,
            region,
            is_write,
            version,
        });
        if self.random.below(20) == 0 {
            handle.flush()?;
        }
        Ok(())
    }

    /// A region is lost with a node; another error is none that may be.
    fn lose(&mut self, error: CrlError, lost: u32) {
        let CrlError::Lost { region, node } = error else {
            panic!("{error}");
        };
        assert_eq!(node, lost);
        let at = self.ids.iter().position(|id| *id == region);
        self.handles[at.unwrap()] = None;
    }
}

pub(crate) fn random_programs_are_sequentially_consistent(world: World) {
    for nodes in [2, 4, 8] {
        let records = Mutex::new(Vec::new());
        world.run(nodes, &|crl| {
            let mut program = Program::new(crl);
            (0..OPERATIONS).for_each(|_| program.operate().unwrap());
            records.lock().unwrap().extend(program.records);
        });
        let records = records.into_inner().unwrap();
        assert_eq!(records.len() as u64, OPERATIONS * nodes as u64);
        let writes = records.iter().filter(|record| record.is_write).count();
        assert!(writes > records.len() / 5);
        assert!(!has_circle(&records), "no order explains what was read");
    }
}

/// The last node ends in the middle, without a word.
pub(crate) fn random_programs_go_on_without_a_node(world: World) {
    for nodes in [3, 8] {
        let (records, done) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        let last = nodes as u32 - 1;
        world.run_with(nodes, &CrlOptions::default, &|crl| {
            let mut program = Program::new(crl);
            crl.barrier().unwrap();
            let operations = if crl.me() == last {
                OPERATIONS / 3
            } else {
                OPERATIONS
            };
            for _ in 0..operations {
                if let Err(error) = program.operate() {
                    program.lose(error, last);
                }
            }
            if crl.me() == last {
                // Nobody had been lost before.
                assert_eq!(program.records.len() as u64, operations);
            } else {
                let own = crl.map(crl.create(64).unwrap()).unwrap();
                own.write().unwrap().fill(1);
            }
            records.lock().unwrap().append(&mut program.records);
            done.fetch_add(1, Ordering::SeqCst);
            // The others need what is here.
            while crl.me() != last && done.load(Ordering::SeqCst) < nodes {
                crl.serve(Wait::millis(1)).unwrap();
            }
        });
        let records = records.into_inner().unwrap();
        assert!(records.len() as u64 >= OPERATIONS / 3);
        assert!(!has_circle(&records), "no order explains what was read");
    }
}
