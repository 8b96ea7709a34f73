//! What bad programs get: an error that names the processor and says what to do.

use std::time::Duration;

use hamlyn_splitc::{Error, GlobalAddress, GlobalPtr, Reduction};

use crate::processor::{FAIL, LENGTH, MISBEHAVE, START};
use crate::{BARRIER_TIMEOUT, World};

fn bytes_at(proc: u32, place: u64) -> GlobalPtr<u64> {
    GlobalPtr::at(GlobalAddress::new(proc, place))
}

pub(crate) fn wild_pointers_are_named(world: World) {
    world.run(2, &|runtime| {
        let wild = [
            (GlobalPtr::NULL, "null"),
            (bytes_at(7, START), "processor"),
            (bytes_at(1, START - 8), "does not share"),
            (bytes_at(1, START + LENGTH - 7), "does not share"),
            (bytes_at(0, START + LENGTH), "does not share"),
            (bytes_at(1, 0xffff_ffff_fff8), "does not share"),
        ];
        for (pointer, word) in wild {
            let mut refused = vec![
                runtime.read(pointer).map(drop),
                runtime.write(pointer, 1),
                runtime.get(START, pointer),
                runtime.put(pointer, 1),
                runtime.store(pointer, 1),
            ];
            if word != "does not share" {
                refused.push(runtime.atomic(pointer.address(), 1, &[], &mut []));
            }
            for refused in refused {
                let message = refused.unwrap_err().to_string();
                assert!(message.contains(word), "{message}");
            }
        }
        // Nothing was harmed.
        runtime.write(bytes_at(1, START), 5)?;
        assert_eq!(runtime.read(bytes_at(1, START))?, 5);
        Ok(())
    });
}

pub(crate) fn different_collectives_are_named(world: World) {
    let outcomes = world.outcomes(2, &|_| (), &|runtime| {
        if runtime.proc() == 0 {
            runtime.reduce_to_all(Reduction::Add, 1_u64).map(drop)
        } else {
            runtime.broadcast(1, &mut [0])
        }
    });
    let message = outcomes[0].as_ref().unwrap_err();
    assert!(
        message.contains("processor 1 is in a broadcast"),
        "{message}"
    );
    assert!(message.contains("this one is in a reduction"), "{message}");
}

pub(crate) fn unequal_allocations_are_named(world: World) {
    let outcomes = world.outcomes(3, &|_| (), &|runtime| {
        let count = if runtime.proc() == 2 { 1000 } else { 10 };
        runtime.all_spread_allocate(count, 8).map(drop)
    });
    let mut messages = outcomes.into_iter().map(Result::unwrap_err);
    // The first that finds it ends the job; others may learn only that.
    let is_named = |message: String| message.contains("processors 0 and 2");
    assert!(messages.any(is_named));
}

pub(crate) fn too_much_memory_is_named(world: World) {
    world.run(2, &|runtime| {
        for count in [LENGTH, u64::MAX] {
            let refused = runtime.all_spread_allocate(count, 8);
            let message = refused.unwrap_err().to_string();
            assert!(message.contains("--memory"), "{message}");
            let refused = runtime.spread_allocate(count, 8);
            assert!(
                matches!(refused, Err(Error::OutOfMemory { .. })),
                "{refused:?}"
            );
        }
        let refused = runtime.all_spread_free(GlobalAddress::new(0, START));
        assert!(matches!(refused, Err(Error::NotAllocated { .. })));
        Ok(())
    });
}

pub(crate) fn procedures_that_fail_are_named(world: World) {
    world.run(2, &|runtime| {
        for to in 0..2 {
            let place = GlobalAddress::new(to, START);
            for (procedure, why) in [(FAIL, "always fails"), (MISBEHAVE, "may wait")] {
                let failed = runtime.atomic(place, procedure, &[], &mut [0; 8]);
                let message = failed.unwrap_err().to_string();
                assert!(message.contains(why), "{message}");
                assert!(message.contains(&format!("processor {to}")), "{message}");
            }
            // Without a result, the next sync tells of it, once.
            let failed = runtime.atomic(place, FAIL, &[], &mut []);
            let failed = failed.and_then(|()| runtime.sync());
            let message = failed.unwrap_err().to_string();
            assert!(message.contains("always fails"), "{message}");
            assert!(message.contains(&format!("processor {to}")), "{message}");
            runtime.sync()?;
            let long = vec![0; 5000];
            let refused = runtime.atomic(place, FAIL, &long, &mut []);
            assert!(matches!(refused, Err(Error::TooLong { .. })));
        }
        Ok(())
    });
}

pub(crate) fn a_barrier_that_one_does_not_reach_names_it(world: World) {
    let limit = |job: &mut hamlyn_splitc::Job| {
        let is_late = job.proc == 1;
        job.barrier_timeout = (!is_late).then_some(BARRIER_TIMEOUT);
    };
    let outcomes = world.outcomes(3, &limit, &|runtime| {
        if runtime.proc() != 1 {
            return runtime.barrier();
        }
        // It waits for something that nobody does.
        runtime.store_sync(8)
    });
    // The first of the two ends the job; the other may learn only that.
    let waiting = [&outcomes[0], &outcomes[2]].map(|outcome| outcome.as_ref().unwrap_err());
    let says = format!("was not reached within {BARRIER_TIMEOUT:?} by processor 1");
    let is_named = |message: &&String| message.contains(&says);
    assert!(waiting.iter().any(is_named), "{waiting:?}");
}

pub(crate) fn a_processor_that_ends_early_is_named(world: World) {
    let outcomes = world.outcomes(3, &|_| (), &|runtime| {
        if runtime.proc() == 1 {
            return Err(Error::BadOperation { what: "it gave up" });
        }
        runtime.barrier()
    });
    assert_eq!(outcomes[1].as_ref().unwrap_err(), "it gave up");
    for proc in [0, 2] {
        let message = outcomes[proc].as_ref().unwrap_err();
        assert!(message.contains("is gone"), "{message}");
    }
}

pub(crate) fn a_processor_that_never_starts_is_named(world: World) {
    let limit = |job: &mut hamlyn_splitc::Job| {
        job.start_timeout = Duration::from_millis(400);
        // Two of three were started.
        job.procs = 3;
    };
    for outcome in world.outcomes(2, &limit, &|_| Ok(())) {
        let message = outcome.unwrap_err();
        assert!(
            message.contains("processor 2 of 3") || message.contains("is gone"),
            "{message}"
        );
    }
}

pub(crate) fn a_processor_that_comes_to_its_end_early_is_named(world: World) {
    let outcomes = world.outcomes(3, &|_| (), &|runtime| {
        if runtime.proc() == 1 {
            return Ok(());
        }
        runtime.barrier()
    });
    let messages = [&outcomes[0], &outcomes[2]].map(|outcome| outcome.as_ref().unwrap_err());
    let is_named =
        |message: &&String| message.contains("processor 1 is gone (it has come to its end");
    assert!(messages.iter().any(is_named), "{messages:?}");
}
