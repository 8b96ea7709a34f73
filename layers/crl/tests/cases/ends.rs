//! Nodes that end before others, and nodes that do not answer.

use std::time::Duration;

use hamlyn_crl::{CrlError, CrlOptions, RegionHandle, Regions};

use crate::World;
use crate::world::{LONG, region_of_each};

pub(crate) fn regions_of_a_node_that_ends_are_lost_by_name(world: World) {
    world.run_with(3, &CrlOptions::default, &|crl| {
        let regions = region_of_each(crl, 100);
        let handles: Vec<_> = regions.iter().map(|id| crl.map(*id).unwrap()).collect();
        crl.barrier().unwrap();
        if crl.me() == 2 {
            // Region 1 has its only copy here, and region 0 has not.
            handles[1].write().unwrap().fill(3);
            handles[0].write().unwrap().fill(7);
            handles[0].flush().unwrap();
            assert!(crl.finish_alone(LONG).unwrap());
            return;
        }
        let lost = |at: usize| CrlError::Lost {
            region: regions[at],
            node: 2,
        };
        let error = loop {
            // Before its end it is only a reader or writer like others.
            match handles[2].read() {
                Ok(guard) => drop(guard),
                Err(error) => break error,
            }
            // The loss may have come with the grant of this read.
            crl.serve(hamlyn::Wait::millis(1)).unwrap();
        };
        assert_eq!(error, lost(2));
        assert_eq!(crl.map(regions[2]).map(drop), Err(lost(2)));
        assert_eq!(handles[1].read().err(), Some(lost(1)));
        assert_eq!(handles[1].write().err(), Some(lost(1)));
        // Others go on.
        for _ in 0..20 {
            let mut guard = handles[0].write().unwrap();
            assert!(guard[0] >= 7 && guard.iter().all(|byte| *byte == guard[0]));
            let next = guard[0] + 1;
            guard.fill(next);
        }
        let own = crl.create(8).unwrap();
        drop(crl.map(own).unwrap().write().unwrap());
        while handles[0].read().unwrap()[0] < 47 {
            crl.serve(hamlyn::Wait::millis(1)).unwrap();
        }
        assert_eq!(crl.barrier(), Err(CrlError::NodeLost { node: 2 }));
        // Node 0 is needed until node 1 has come as far.
        if crl.me() == 1 {
            handles[0].write().unwrap().fill(255);
            assert!(crl.finish_alone(LONG).unwrap());
        } else {
            while handles[0].read().is_ok_and(|guard| guard[0] < 255) {
                crl.serve(hamlyn::Wait::millis(1)).unwrap();
            }
        }
    });
}

pub(crate) fn a_barrier_without_a_node_fails_everywhere(world: World) {
    world.run_with(5, &CrlOptions::default, &|crl| {
        crl.barrier().unwrap();
        if crl.me() == 3 {
            assert!(crl.finish_alone(LONG).unwrap());
            return;
        }
        let lost = CrlError::NodeLost { node: 3 };
        assert_eq!(crl.barrier(), Err(lost.clone()));
        assert_eq!(crl.reduce_add(1.0), Err(lost.clone()));
        assert_eq!(crl.receive_broadcast(&mut [0; 4]), Err(lost));
        let _ = crl.finish_alone(LONG);
    });
}

pub(crate) fn patience_ends_a_wait(world: World) {
    let options = || {
        let mut options = CrlOptions::default();
        options.patience = Some(Duration::from_millis(200));
        options
    };
    world.run_with(2, &options, &|crl| {
        let regions = region_of_each(crl, 8);
        let handles: Vec<_> = regions.iter().map(|id| crl.map(*id).unwrap()).collect();
        if crl.me() == 0 {
            let guard = handles[0].write().unwrap();
            crl.barrier().unwrap();
            // Until the other one says that it has waited in vain.
            while handles[1].read().unwrap()[0] == 0 {
                crl.serve(LONG).unwrap();
            }
            drop(guard);
            // The copy that the other one has got for nobody ends at once.
            drop(handles[0].write().unwrap());
            handles[1].write().unwrap()[0] = 2;
            // The other one does not come.
            let what = "a barrier";
            assert_eq!(crl.barrier(), Err(CrlError::TimedOut { what }));
            return;
        }
        crl.barrier().unwrap();
        let what = "reading";
        assert_eq!(handles[0].read().err(), Some(CrlError::TimedOut { what }));
        let region = regions[0];
        assert_eq!(handles[0].flush(), Err(CrlError::Open { region }));
        handles[1].write().unwrap()[0] = 1;
        while handles[1].read().unwrap()[0] == 1 {
            crl.serve(LONG).unwrap();
        }
        assert_eq!(*handles[0].read().unwrap(), [0; 8]);
        while handles[0].read().is_ok() {
            crl.serve(LONG).unwrap();
        }
    });
}
