//! Random programs: the graph of program order and versions has no circle.

use std::sync::Mutex;

use hamlyn_crl::{RegionHandle, Regions};

use crate::World;
use crate::graph::{Record, has_circle};
use crate::world::region_of_each;

const OPERATIONS: u64 = 400;

/// A generator of numbers, the same everywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
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

pub(crate) fn random_programs_are_sequentially_consistent(world: World) {
    for nodes in [2, 4, 8] {
        let records: Mutex<Vec<Vec<Record>>> = Mutex::new(vec![Vec::new(); nodes]);
        world.run(nodes, &|crl| {
            let node = crl.me() as usize;
            let mut random = Random(nodes as u64 * 100 + node as u64);
            let mut own = Vec::new();
            let mut ids = region_of_each(crl, 64);
            ids.extend(region_of_each(crl, 9_000 / 8 * 8));
            let mut handles: Vec<_> = ids.iter().map(|id| Some(crl.map(*id).unwrap())).collect();
            for _ in 0..OPERATIONS {
                let region = random.below(ids.len() as u64) as usize;
                let is_write = random.below(3) == 0;
                if random.below(12) == 0 {
                    handles[region] = None;
                    handles[region] = Some(crl.map(ids[region]).unwrap());
                }
                let handle = handles[region].as_ref().unwrap();
                let version = if is_write {
                    let mut guard = handle.write().unwrap();
                    let next = version(&guard) + 1;
                    // Now and then the others' messages come while it is open.
                    if random.below(4) == 0 {
                        crl.serve(hamlyn::Wait::Poll).unwrap();
                    }
                    guard.values().unwrap().fill(next);
                    next
                } else {
                    version(&handle.read().unwrap())
                };
                own.push(Record {
                    node,
                    region,
                    is_write,
                    version,
                });
                if random.below(20) == 0 {
                    handle.flush().unwrap();
                }
            }
            records.lock().unwrap()[node] = own;
        });
        let records = records.into_inner().unwrap().concat();
        assert_eq!(records.len() as u64, OPERATIONS * nodes as u64);
        let writes = records.iter().filter(|record| record.is_write).count();
        assert!(writes > records.len() / 5);
        assert!(!has_circle(&records), "no order explains what was read");
    }
}
