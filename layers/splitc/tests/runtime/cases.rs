//! What the runtime promises.

use std::sync::atomic::{AtomicU64, Ordering};

use hamlyn::one_sided::{Atomic, Change, Width};
use hamlyn_splitc::{Error, GlobalAddress, GlobalPtr, Reduction};

use crate::World;
use crate::processor::{ADD, ADD_SLOWLY, COUNT, LENGTH, Runtime, SPREAD, START};

/// The word of that number in a processor's segment.
fn word(proc: u32, number: u64) -> GlobalPtr<u64> {
    GlobalPtr::at(GlobalAddress::new(proc, START + 8 * number))
}

fn next(runtime: &Runtime) -> u32 {
    (runtime.proc() + 1) % runtime.procs()
}

fn pattern(seed: u64, length: usize) -> Vec<u8> {
    let byte = |at: usize| (seed.wrapping_mul(31).wrapping_add(at as u64 * 7) >> (at % 3)) as u8;
    (0..length).map(byte).collect()
}

pub(crate) fn values_are_read_and_written(world: World) {
    for procs in [1, 2, 3] {
        world.run(procs, &|runtime| {
            let (own, next) = (runtime.proc(), next(runtime));
            runtime.program().set_word(START, u64::from(own) + 100);
            runtime.barrier()?;
            assert_eq!(runtime.read(word(next, 0))?, u64::from(next) + 100);
            runtime.write(word(next, 1), u64::from(own) + 7)?;
            runtime.write(word(next, 2).cast::<u8>(), 5_u8)?;
            runtime.write(word(next, 3).cast::<[u16; 9]>(), [own as u16; 9])?;
            runtime.barrier()?;
            let before = (own + procs - 1) % procs;
            assert_eq!(runtime.program().word(START + 8), u64::from(before) + 7);
            assert_eq!(runtime.program().word(START + 16), 5);
            assert_eq!(
                runtime.read(word(own, 3).cast::<[u16; 9]>())?,
                [before as u16; 9]
            );
            Ok(())
        });
    }
}

pub(crate) fn gets_and_puts_are_complete_after_sync(world: World) {
    world.run(3, &|runtime| {
        let (own, next) = (u64::from(runtime.proc()), next(runtime));
        for number in 0..200 {
            runtime
                .program()
                .set_word(START + 8 * number, own << 32 | number);
        }
        runtime.barrier()?;
        // More than may be outstanding at a time.
        for number in 0..200 {
            runtime.get(START + 8 * (1000 + number), word(next, number))?;
            runtime.put(word(next, 2000 + number), own << 16 | number)?;
        }
        runtime.sync()?;
        assert!(runtime.is_sync()?);
        runtime.barrier()?;
        let before = (own + 2) % 3;
        for number in 0..200 {
            let program = runtime.program();
            let got = program.word(START + 8 * (1000 + number));
            assert_eq!(got, u64::from(next) << 32 | number);
            let put = program.word(START + 8 * (2000 + number));
            assert_eq!(put, before << 16 | number);
        }
        Ok(())
    });
}

pub(crate) fn long_accesses_are_whole(world: World) {
    world.run(2, &|runtime| {
        let (own, next) = (runtime.proc(), next(runtime));
        let from = |length: usize| 3 + 8 * (length as u64 % 11);
        for length in [0, 1, 33, 4095, 8192, 65_537, 200_000] {
            let own_bytes = pattern(u64::from(own), length);
            let area = runtime.program().area.clone();
            area.write_at(from(length), &own_bytes).unwrap();
            runtime.barrier()?;
            let address = GlobalAddress::new(next, START + from(length));
            let mut bytes = vec![0; length];
            runtime.read_bytes(address, &mut bytes)?;
            assert!(
                bytes == pattern(u64::from(next), length),
                "read of {length}"
            );
            runtime.get_bytes(START + LENGTH / 4 + 1, address, length as u64)?;
            runtime.sync()?;
            area.read_at(LENGTH / 4 + 1, &mut bytes).unwrap();
            assert!(bytes == pattern(u64::from(next), length), "get of {length}");
            runtime.barrier()?;
            let written = pattern(u64::from(own) + 9, length);
            runtime.write_bytes(GlobalAddress::new(next, START + LENGTH / 4), &written)?;
            runtime.put_bytes(GlobalAddress::new(next, START + LENGTH / 2), &written)?;
            runtime.sync()?;
            runtime.barrier()?;
            for place in [LENGTH / 4, LENGTH / 2] {
                area.read_at(place, &mut bytes).unwrap();
                assert!(
                    bytes == pattern(u64::from(next) + 9, length),
                    "put of {length}"
                );
            }
            runtime.barrier()?;
        }
        Ok(())
    });
}

pub(crate) fn stores_are_counted_at_their_target(world: World) {
    world.run(3, &|runtime| {
        let own = u64::from(runtime.proc());
        for round in 0..20 {
            if own > 0 {
                for number in 0..round {
                    let place = 100 * own + number;
                    runtime.store(word(0, place), own << 32 | round << 16 | number)?;
                }
                let bytes = pattern(own, 5000);
                let to = GlobalAddress::new(0, START + 0x20000 * own);
                runtime.store_bytes(to, &bytes)?;
            } else {
                runtime.store_sync(2 * (8 * round + 5000))?;
                for from in 1..3 {
                    for number in 0..round {
                        let stored = runtime.program().word(START + 8 * (100 * from + number));
                        assert_eq!(stored, from << 32 | round << 16 | number);
                    }
                    let mut bytes = vec![0; 5000];
                    let area = runtime.program().area.clone();
                    area.read_at(0x20000 * from, &mut bytes).unwrap();
                    assert!(bytes == pattern(from, 5000));
                    area.fill(0x20000 * from, 5000, 0).unwrap();
                }
            }
            runtime.barrier()?;
        }
        Ok(())
    });
}

pub(crate) fn all_store_sync_waits_for_all(world: World) {
    world.run(4, &|runtime| {
        let (own, procs) = (u64::from(runtime.proc()), u64::from(runtime.procs()));
        for round in 1..20 {
            for to in 0..procs {
                // Different amounts, and some to itself.
                for number in 0..own + 2 {
                    let at = word(to as u32, own * 16 + number);
                    runtime.store(at, round << 32 | own << 8 | number)?;
                }
            }
            runtime.all_store_sync()?;
            for from in 0..procs {
                for number in 0..from + 2 {
                    let stored = runtime.program().word(START + 8 * (from * 16 + number));
                    assert_eq!(stored, round << 32 | from << 8 | number);
                }
            }
            runtime.barrier()?;
        }
        // All were accounted for: what is stored next is counted from zero.
        runtime.store(word(((own + 1) % procs) as u32, 900), round_trip(own))?;
        runtime.store_sync(8)?;
        let before = (own + procs - 1) % procs;
        assert_eq!(runtime.program().word(START + 8 * 900), round_trip(before));
        Ok(())
    });
}

/// Nobody waits between the two: the first to leave `all_store_sync` stores while others are still
/// in it.
pub(crate) fn stores_right_after_all_store_sync_are_counted(world: World) {
    world.run(3, &|runtime| {
        let (own, procs) = (u64::from(runtime.proc()), u64::from(runtime.procs()));
        for round in 0..200 {
            runtime.all_store_sync()?;
            runtime.store(word(((own + 1) % procs) as u32, own), round)?;
            runtime.store_sync(8)?;
            let before = (own + procs - 1) % procs;
            assert_eq!(runtime.program().word(START + 8 * before), round);
        }
        Ok(())
    });
}

pub(crate) fn stores_before_a_reset_are_forgotten(world: World) {
    world.run(2, &|runtime| {
        let own = runtime.proc();
        runtime.store(word(1 - own, 1), 1)?;
        runtime.store_sync(8)?;
        runtime.store(word(1 - own, 2), 2)?;
        runtime.all_store_sync()?;
        runtime.store(word(1 - own, 3), 3)?;
        runtime.barrier()?;
        runtime.all_store_sync()?;
        runtime.reset_store_sync()?;
        runtime.barrier()?;
        runtime.store(word(1 - own, 4), 4)?;
        runtime.store_sync(8)?;
        assert_eq!(runtime.program().word(START + 8 * 4), 4);
        Ok(())
    });
}

fn round_trip(own: u64) -> u64 {
    own * 3 + 1
}

pub(crate) fn procedures_run_one_at_a_time(world: World) {
    world.run(3, &|runtime| {
        let place = GlobalAddress::new(0, START);
        let mut sum = 0;
        for number in 0..50_u64 {
            let procedure = if number % 5 == 0 { ADD_SLOWLY } else { ADD };
            let mut before = [0; 8];
            runtime.atomic(place, procedure, &number.to_le_bytes(), &mut before)?;
            sum += number;
            // The word only grows.
            assert!(u64::from_le_bytes(before) >= sum - number);
            // Without a result.
            runtime.atomic(place, ADD, &1_u64.to_le_bytes(), &mut [])?;
        }
        runtime.sync()?;
        runtime.barrier()?;
        let expected = u64::from(runtime.procs()) * (sum + 50);
        assert_eq!(runtime.read(word(0, 0))?, expected);
        Ok(())
    });
}

/// Short and long ones, with a result and without, and more of them than may be under way.
pub(crate) fn procedures_of_one_run_in_order(world: World) {
    world.run(3, &|runtime| {
        let to = (runtime.proc() + 1) % runtime.procs();
        let place = GlobalAddress::new(to, START + 8 * (16 + u64::from(runtime.proc())));
        for number in 0..300_u64 {
            let mut arguments = number.to_le_bytes().to_vec();
            if number % 50 == 3 {
                arguments.resize(100, 0);
            }
            let mut before = [0; 8];
            let result = match number % 29 {
                0 => &mut before[..],
                _ => &mut [],
            };
            let has_result = !result.is_empty();
            runtime.atomic(place, COUNT, &arguments, result)?;
            assert!(!has_result || u64::from_le_bytes(before) == number);
        }
        runtime.sync()?;
        runtime.barrier()?;
        let from = (runtime.proc() + runtime.procs() - 1) % runtime.procs();
        let counted = runtime.program().word(START + 8 * (16 + u64::from(from)));
        assert_eq!(counted, 300);
        Ok(())
    });
}

pub(crate) fn procedures_of_all_at_all_do_not_block_each_other(world: World) {
    world.run(4, &|runtime| {
        for round in 0..20 {
            for proc in 0..runtime.procs() {
                let to = (runtime.proc() + proc) % runtime.procs();
                let place = GlobalAddress::new(to, START + 8);
                let mut before = [0; 8];
                let result = if round % 2 == 0 {
                    &mut before[..]
                } else {
                    &mut []
                };
                runtime.atomic(place, ADD, &1_u64.to_le_bytes(), result)?;
            }
        }
        runtime.sync()?;
        runtime.barrier()?;
        let procs = u64::from(runtime.procs());
        assert_eq!(runtime.program().word(START + 8), 20 * procs);
        assert_eq!(runtime.program().procedures_run.get(), 20 * procs);
        Ok(())
    });
}

pub(crate) fn words_are_changed_atomically(world: World) {
    world.run(3, &|runtime| {
        let atomic = |change, width, operand| Atomic::new(change, width, operand);
        let mut greatest = None;
        for _ in 0..100 {
            let add = atomic(Change::Add, Width::Bits64, 1);
            let before = runtime.change(word(1, 0).address(), add)?;
            assert!(greatest < Some(before), "the word only grows");
            greatest = Some(before);
            let add = atomic(Change::FloatAdd, Width::Bits64, 0.5_f64.to_bits());
            runtime.change(word(1, 1).address(), add)?;
            let add = atomic(Change::Add, Width::Bits32, 3);
            runtime.change(word(1, 2).address().add_bytes(4), add)?;
        }
        runtime.barrier()?;
        assert_eq!(runtime.read(word(1, 0))?, 300);
        assert_eq!(runtime.read(word(1, 1).cast::<f64>())?, 150.0);
        assert_eq!(runtime.read(word(1, 2).cast::<[u32; 2]>())?, [0, 900]);
        let unaligned = word(1, 0).address().add_bytes(4);
        let refused = runtime.change(unaligned, atomic(Change::Add, Width::Bits64, 1));
        assert!(
            matches!(refused, Err(Error::Unaligned { .. })),
            "{refused:?}"
        );
        Ok(())
    });
}

pub(crate) fn barriers_hold_everybody(world: World) {
    for procs in [1, 2, 3, 5] {
        let entered = AtomicU64::new(0);
        world.run(procs, &|runtime| {
            for round in 1..=30 {
                entered.fetch_add(1, Ordering::SeqCst);
                runtime.barrier()?;
                let seen = entered.load(Ordering::SeqCst);
                assert!(seen >= round * u64::from(procs), "one left too early");
                assert!(seen < (round + 1) * u64::from(procs) + 1, "one was ahead");
            }
            Ok(())
        });
    }
}

pub(crate) fn reductions_are_those_of_a_serial_run(world: World) {
    for procs in [1, 2, 3, 6] {
        world.run(procs, &|runtime| {
            let own = i64::from(runtime.proc());
            let value = |proc: i64| (proc * 37 + 11) % 17 - 8;
            let all = || (0..i64::from(procs)).map(value);
            type Combine = fn(i64, i64) -> i64;
            let reductions: [(Reduction, Combine); 7] = [
                (Reduction::Add, |a, b| a + b),
                (Reduction::Max, i64::max),
                (Reduction::Min, i64::min),
                (Reduction::And, |a, b| a & b),
                (Reduction::Or, |a, b| a | b),
                (Reduction::Xor, |a, b| a ^ b),
                (Reduction::Mul, |a, b| a * b),
            ];
            for (reduction, combine) in reductions {
                let expected = all().reduce(combine).unwrap();
                assert_eq!(runtime.reduce_to_all(reduction, value(own))?, expected);
                let one = runtime.reduce_to_one(reduction, value(own) as i32)?;
                let expected_one = if own == 0 { expected } else { value(own) };
                assert_eq!(i64::from(one), expected_one);
                let scanned = runtime.scan(reduction, value(own))?;
                let before = all().take(own as usize + 1).reduce(combine).unwrap();
                assert_eq!(scanned, before, "{reduction:?}");
            }
            // The same bits on all processors.
            let sum = runtime.reduce_to_all(Reduction::Add, 0.1_f64 * own as f64)?;
            let least = runtime.reduce_to_all(Reduction::Min, sum)?;
            assert_eq!(sum.to_bits(), least.to_bits());
            let most = runtime.reduce_to_all(Reduction::Max, -2.5_f32)?;
            assert_eq!(most, -2.5);
            let refused = runtime.reduce_to_all(Reduction::Xor, 1.0_f64);
            assert!(matches!(refused, Err(Error::BadOperation { .. })));
            Ok(())
        });
    }
}

pub(crate) fn broadcasts_come_from_any_root(world: World) {
    for procs in [1, 2, 5] {
        world.run(procs, &|runtime| {
            for root in 0..procs {
                for length in [1, 8, 100] {
                    let mut bytes = match runtime.proc() == root {
                        true => pattern(u64::from(root), length),
                        false => vec![0; length],
                    };
                    runtime.broadcast(root, &mut bytes)?;
                    assert!(bytes == pattern(u64::from(root), length));
                }
            }
            assert!(runtime.broadcast(procs, &mut [0]).is_err());
            Ok(())
        });
    }
}

/// A processor that needs nobody else's value goes on at once; those behind must still find each
/// value.
pub(crate) fn values_of_many_collectives_do_not_mix(world: World) {
    world.run(3, &|runtime| {
        let own = u64::from(runtime.proc());
        for round in 0..100_u64 {
            let sum = runtime.reduce_to_one(Reduction::Add, round * 10 + own)?;
            if own == 0 {
                assert_eq!(sum, 3 * round * 10 + 3);
            }
        }
        for round in 0..100_u64 {
            let mut bytes = (round + own).to_le_bytes();
            runtime.broadcast(0, &mut bytes)?;
            assert_eq!(u64::from_le_bytes(bytes), round);
        }
        Ok(())
    });
}

pub(crate) fn spread_arrays_lie_where_pointers_step(world: World) {
    world.run(3, &|runtime| {
        let own = u64::from(runtime.proc());
        for count in [1, 3, 10, 100] {
            let array = runtime.all_spread::<u32>(count)?;
            let second = runtime.all_spread::<u64>(count)?;
            assert!(array.address().place() >= SPREAD);
            for element in (own..count).step_by(3) {
                let at = array.add(element as i64).global();
                assert_eq!(u64::from(at.proc()), own);
                runtime.write(at, element as u32 * 3)?;
                runtime.write(second.add(element as i64).global(), element * 5)?;
            }
            runtime.barrier()?;
            for element in 0..count {
                let read = runtime.read(array.add(element as i64).global())?;
                assert_eq!(u64::from(read), element * 3);
                let read = runtime.read(second.add(element as i64).global())?;
                assert_eq!(read, element * 5);
            }
            runtime.all_spread_free(array.address())?;
            runtime.all_spread_free(second.address())?;
        }
        // Each allocates alone; nobody has another's.
        let lone = runtime.spread_allocate(30, 8)?;
        for element in 0..30 {
            let at = GlobalPtr::<u64>::at(lone.spread_add(element, 8, 3));
            runtime.write(at, own << 32 | element as u64)?;
        }
        runtime.barrier()?;
        for element in 0..30 {
            let at = GlobalPtr::<u64>::at(lone.spread_add(element, 8, 3));
            assert_eq!(runtime.read(at)?, own << 32 | element as u64);
        }
        runtime.spread_free(lone)?;
        assert!(matches!(
            runtime.spread_free(lone),
            Err(Error::NotAllocated { .. })
        ));
        Ok(())
    });
}

/// Processors take turns in a random order that all know, so a plain array says what each read must
/// find.
pub(crate) fn random_programs_agree_with_a_model(world: World) {
    const WORDS: u64 = 40;
    world.run(3, &|runtime| {
        let (own, procs) = (runtime.proc(), runtime.procs());
        let mut model = vec![0_u64; (u64::from(procs) * WORDS) as usize];
        let mut state = 99_u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (state >> 33) % below
        };
        for round in 0..60 {
            let actor = random(u64::from(procs)) as u32;
            for _ in 0..random(8) {
                let (to, number, value) =
                    (random(u64::from(procs)), random(WORDS), random(1 << 30));
                let known = &mut model[(to * WORDS + number) as usize];
                let pointer = word(to as u32, number);
                let choice = random(6);
                let is_mine = actor == own;
                match choice {
                    0 if is_mine => assert_eq!(runtime.read(pointer)?, *known, "round {round}"),
                    0 => {}
                    1 | 2 => {
                        *known = value;
                        if is_mine && choice == 1 {
                            runtime.write(pointer, value)?;
                        } else if is_mine {
                            runtime.put(pointer, value)?;
                            runtime.sync()?;
                        }
                    }
                    3 => {
                        let before = std::mem::replace(known, known.wrapping_add(value));
                        if is_mine {
                            let atomic = Atomic::new(Change::Add, Width::Bits64, value);
                            assert_eq!(runtime.change(pointer.address(), atomic)?, before);
                        }
                    }
                    4 => {
                        let before = std::mem::replace(known, known.wrapping_add(value));
                        if is_mine {
                            let mut result = [0; 8];
                            let argument = value.to_le_bytes();
                            runtime.atomic(pointer.address(), ADD, &argument, &mut result)?;
                            assert_eq!(u64::from_le_bytes(result), before);
                        }
                    }
                    _ => {
                        if is_mine {
                            runtime.get(START + 8 * 5000, pointer)?;
                            runtime.sync()?;
                            assert_eq!(runtime.program().word(START + 8 * 5000), *known);
                        }
                    }
                }
            }
            runtime.barrier()?;
        }
        for number in 0..WORDS {
            let known = model[(u64::from(own) * WORDS + number) as usize];
            assert_eq!(runtime.program().word(START + 8 * number), known);
        }
        Ok(())
    });
}
