//! Operations on regions, and what they refuse.

use hamlyn_crl::{CrlError, CrlNull, Kind, REGION_BYTES_MAX, RegionHandle, RegionId, Regions};

use crate::World;
use crate::world::{Node, region_of_each};

pub(crate) fn a_region_of_every_length_travels_whole(world: World) {
    world.run(2, &|crl| {
        for bytes in [0, 1, 7, 8, 4_000, 4_096, 9_001, REGION_BYTES_MAX] {
            let regions = region_of_each(crl, bytes);
            let pattern = |by: u32| move |at: usize| (at as u32 * 13 + (at as u32 >> 9) + by) as u8;
            // From home to the other one, and back.
            for by in 0..4 {
                if by % 2 == crl.me() {
                    let region = crl.map(regions[0]).unwrap();
                    assert_eq!(region.bytes(), bytes);
                    let mut guard = region.write().unwrap();
                    let is_as_before = match by {
                        0 => guard.iter().all(|byte| *byte == 0),
                        _ => guard.iter().copied().eq((0..bytes).map(pattern(by - 1))),
                    };
                    assert!(is_as_before, "{bytes} bytes, {by}");
                    for (at, byte) in guard.iter_mut().enumerate() {
                        *byte = pattern(by)(at);
                    }
                }
                crl.barrier().unwrap();
            }
        }
    });
}

/// With one node, or the first of several.
fn refuse(crl: &impl Regions, other: Option<RegionId>) {
    let bytes = REGION_BYTES_MAX + 1;
    assert!(matches!(crl.create(bytes), Err(CrlError::TooLarge { bytes: b, .. }) if b == bytes));
    let id = crl.create(12).unwrap();
    let none = RegionId::from_u64(u64::from(u32::MAX));
    let of_no_node = RegionId::from_u64(u64::MAX);
    for region in [Some(none), Some(of_no_node), other].into_iter().flatten() {
        assert_eq!(
            crl.map(region).map(drop),
            Err(CrlError::NoRegion { region })
        );
        assert_eq!(crl.destroy(region), Err(CrlError::NoRegion { region }));
    }
    let open = || Some(CrlError::Open { region: id });
    let (region, again) = (crl.map(id).unwrap(), crl.map(id).unwrap());
    let mapped = Err(CrlError::Mapped {
        region: id,
        node: crl.me(),
    });
    assert_eq!(crl.destroy(id), mapped);
    {
        let reading = region.read().unwrap();
        let more = again.read().unwrap();
        assert_eq!(region.write().err(), open());
        drop(reading);
        assert_eq!(again.write().err(), open());
        assert_eq!((more.len(), region.id(), region.bytes()), (12, id, 12));
        let values = CrlError::Values {
            bytes: 12,
            value_bytes: 8,
        };
        assert_eq!(more.values::<u64>(), Err(values));
    }
    {
        let mut writing = region.write().unwrap();
        writing[3] = 7;
        assert_eq!(crl.map(id).unwrap().bytes(), 12);
        assert_eq!(again.read().err(), open());
        assert_eq!(again.write().err(), open());
    }
    // The same region twice is the same memory.
    assert_eq!(again.read().unwrap()[3], 7);
    region.flush().unwrap();
    drop(region);
    assert_eq!(crl.destroy(id), mapped);
    drop(again);
    assert_eq!(crl.destroy(id), Ok(()));
    assert_eq!(
        crl.map(id).map(drop),
        Err(CrlError::NoRegion { region: id })
    );
}

pub(crate) fn errors_name_their_object(world: World) {
    world.run(3, &|crl| {
        refuse(crl, Some(RegionId::from_u64(2 << 32 | 999)));
        // Over messages.
        let regions = region_of_each(crl, 8);
        let region = regions[0];
        if crl.me() == 1 {
            let handle = crl.map(region).unwrap();
            drop(handle.read().unwrap());
            crl.barrier().unwrap();
            crl.barrier().unwrap();
            assert_eq!(*handle.read().unwrap(), [0; 8]);
            drop(handle);
            crl.barrier().unwrap();
        } else {
            crl.barrier().unwrap();
            let mapped = CrlError::Mapped { region, node: 1 };
            assert_eq!(crl.destroy(region), Err(mapped.clone()));
            assert!(
                mapped.to_string().contains("region 1 of node 0"),
                "{mapped}"
            );
            crl.barrier().unwrap();
            crl.barrier().unwrap();
        }
        if crl.me() == 2 {
            assert_eq!(crl.destroy(region), Ok(()));
        }
        crl.barrier().unwrap();
        assert_eq!(
            crl.map(region).map(drop),
            Err(CrlError::NoRegion { region })
        );
    });
}

pub(crate) fn guards_view_values(world: World) {
    world.run(2, &|crl| {
        let regions = region_of_each(crl, 80);
        let region = crl.map(regions[1]).unwrap();
        if crl.me() == 0 {
            let mut guard = region.write().unwrap();
            for (at, value) in guard.values::<f64>().unwrap().iter_mut().enumerate() {
                *value = at as f64 / 3.0;
            }
        }
        crl.barrier().unwrap();
        let guard = region.read().unwrap();
        let values = guard.values::<f64>().unwrap().iter().enumerate();
        assert!(values.clone().count() == 10);
        values.for_each(|(at, value)| assert_eq!(*value, at as f64 / 3.0));
    });
}

pub(crate) fn the_null_version_has_the_same_face(world: World) {
    let crl = CrlNull::default();
    refuse(&crl, None);
    assert_eq!((crl.me(), crl.nodes()), (0, 1));
    assert_eq!(crl.reduce_add(0.5), Ok(0.5));
    crl.barrier().unwrap();
    world.run(1, &|crl| {
        refuse(crl, None);
        assert_eq!((crl.me(), crl.nodes()), (0, 1));
        assert_eq!(crl.reduce_add(0.5), Ok(0.5));
    });
}

pub(crate) fn messages_are_counted_by_kind(world: World) {
    let sent = |crl: &Node, kinds: &[Kind]| -> Vec<u64> {
        let statistics = crl.statistics();
        kinds.iter().map(|kind| statistics.sent(*kind)).collect()
    };
    world.run(2, &|crl| {
        let regions = region_of_each(crl, 100);
        let region = crl.map(regions[0]).unwrap();
        for _ in 0..5 {
            if crl.me() == 1 {
                drop(region.write().unwrap());
                drop(region.read().unwrap());
            }
            crl.barrier().unwrap();
            drop(region.read().unwrap());
            crl.barrier().unwrap();
        }
        let kinds = [Kind::Map, Kind::Read, Kind::Write, Kind::Back];
        let of_home = [Kind::Mapped, Kind::Exclusive, Kind::Grant, Kind::Fetch];
        match crl.me() {
            0 => {
                assert_eq!(sent(crl, &of_home), [1, 1, 4, 5]);
                assert_eq!(sent(crl, &kinds), [0; 4]);
            }
            _ => {
                assert_eq!(sent(crl, &of_home), [0; 4]);
                assert_eq!(sent(crl, &kinds), [1, 0, 5, 5]);
            }
        }
    });
}

/// As faces in languages without guards use them, beside guards.
pub(crate) fn operations_without_guards_are_the_same(world: World) {
    world.run(2, &|crl| {
        let regions = region_of_each(crl, 16);
        let empty = region_of_each(crl, 0);
        let region = crl.map(regions[0]).unwrap();
        let open = || CrlError::Open { region: regions[0] };
        let not_open = || Err(CrlError::NotOpen { region: regions[0] });
        // Each region has a place of its own, which stays.
        let places = [regions[0], regions[1], empty[0], empty[1]];
        let places = places.map(|id| crl.map(id).unwrap().as_ptr() as usize);
        assert_eq!(places[0], region.as_ptr() as usize);
        for (at, place) in places.iter().enumerate() {
            assert!(place % 8 == 0 && !places[..at].contains(place));
        }
        for _ in 0..100 {
            assert_eq!(
                (region.end_read(), region.end_write()),
                (not_open(), not_open())
            );
            region.start_write().unwrap();
            assert_eq!(region.start_read(), Err(open()));
            assert_eq!(region.start_write(), Err(open()));
            assert_eq!(region.read().err(), Some(open()));
            assert_eq!(region.flush(), Err(open()));
            region.end_write().unwrap();
            region.write().unwrap().values::<u64>().unwrap()[1] += 1;
            region.start_read().unwrap();
            region.start_read().unwrap();
            let count = region.read().unwrap().values::<u64>().unwrap()[1];
            assert!((1..=200).contains(&count));
            assert_eq!(region.write().err(), Some(open()));
            region.end_read().unwrap();
            region.end_read().unwrap();
        }
        crl.barrier().unwrap();
        assert_eq!(region.read().unwrap().values::<u64>().unwrap()[1], 200);
    });
}
