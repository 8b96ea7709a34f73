//! Locks as programs use them.

use std::sync::atomic::{AtomicU32, Ordering};

use hamlyn::Wait;
use hamlyn_locks::{LockError, Mode, Refusal, ValueBlock};

use crate::World;
use crate::player::{LONG, SHORT, refusal};

pub(crate) fn a_lock_excludes_others(world: World) {
    const CLIENTS: usize = 3;
    const ROUNDS: u32 = 40;
    let (inside, count) = (&AtomicU32::new(0), &AtomicU32::new(0));
    world.run(1 + CLIENTS, &|player| {
        if player.number == 0 {
            let statistics = player.serve(1, CLIENTS)?;
            assert_eq!((statistics.locks, statistics.resources), (0, 0));
            assert_eq!((statistics.refused, statistics.violations), (0, 0));
            assert_eq!(statistics.requests, 2 * u64::from(ROUNDS) * CLIENTS as u64);
            return Ok(());
        }
        let client = player.client();
        for _ in 0..ROUNDS {
            let lock = client.acquire("counter", Mode::Ex, LONG)?;
            assert_eq!(lock.mode(), Some(Mode::Ex));
            assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "nobody else");
            // Not in one step.
            let before = count.load(Ordering::SeqCst);
            client.serve(Wait::Poll)?;
            count.store(before + 1, Ordering::SeqCst);
            inside.fetch_sub(1, Ordering::SeqCst);
        }
        player.finish()
    });
    assert_eq!(count.load(Ordering::SeqCst), ROUNDS * CLIENTS as u32);
}

/// Each pair of modes, over the wire.
pub(crate) fn modes_are_shared_as_the_matrix_says(world: World) {
    const MODES: [Mode; 6] = [Mode::Nl, Mode::Cr, Mode::Cw, Mode::Pr, Mode::Pw, Mode::Ex];
    const MATRIX: [&str; 6] = ["111111", "111110", "111000", "110100", "110000", "100000"];
    world.run(2, &|player| {
        if player.number == 0 {
            return player.serve(1, 1).map(drop);
        }
        let (one, other) = (player.client(), player.client());
        for (held, row) in MODES.into_iter().zip(MATRIX) {
            for (wanted, is_compatible) in MODES.into_iter().zip(row.bytes()) {
                let first = one.acquire("shared", held, LONG)?;
                let second = other.try_acquire("shared", wanted, LONG);
                match is_compatible {
                    b'1' => assert_eq!(second?.mode(), Some(wanted)),
                    _ => assert_eq!(refusal(second), Some(Refusal::Busy)),
                }
                drop(first);
                // Requests of two clients are in no order.
                drop(other.acquire("shared", Mode::Ex, LONG)?);
            }
        }
        player.finish()
    });
}

pub(crate) fn a_waiting_lock_is_granted_when_the_holder_goes(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            return player.serve(1, 1).map(drop);
        }
        let (one, other) = (player.client(), player.client());
        let held = one.acquire("row", Mode::Ex, LONG)?;
        let waiting = other.enqueue("row", Mode::Pr, LONG)?;
        let also = other.enqueue("row", Mode::Pr, LONG)?;
        assert_eq!(waiting.granted(SHORT), Err(LockError::TimedOut));
        assert_eq!(waiting.mode(), None);
        held.release()?;
        waiting.granted(LONG)?;
        also.granted(LONG)?;
        assert_eq!(waiting.mode(), Some(Mode::Pr));
        drop((waiting, also));
        player.finish()
    });
}

pub(crate) fn holders_hear_whom_they_block(world: World) {
    world.run(3, &|player| match player.number {
        0 => player.serve(1, 2).map(drop),
        1 => {
            let client = player.client();
            let mut held = client.acquire("cached", Mode::Ex, LONG)?;
            player.reach(1);
            player.serve_until(&client, "a reader", || held.blocking().is_some());
            assert_eq!(held.blocking(), Some(Mode::Pr));
            held.convert(Mode::Pr, LONG)?;
            assert_eq!(held.blocking(), None);
            player.await_step(&client, 2);
            player.reach(3);
            player.serve_until(&client, "a writer", || held.blocking().is_some());
            assert_eq!(held.blocking(), Some(Mode::Ex));
            drop(held);
            player.finish()
        }
        _ => {
            let client = player.client();
            player.await_step(&client, 1);
            let read = client.acquire("cached", Mode::Pr, LONG)?;
            player.reach(2);
            drop(read);
            player.await_step(&client, 3);
            drop(client.acquire("cached", Mode::Ex, LONG)?);
            player.finish()
        }
    });
}

pub(crate) fn conversions_go_before_new_requests(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            return player.serve(1, 1).map(drop);
        }
        let [holder, converter, waiter] = [(); 3].map(|()| player.client());
        for own in [Mode::Nl, Mode::Cr] {
            let held = holder.acquire("row", Mode::Pw, LONG)?;
            let mut converted = converter.acquire("row", own, LONG)?;
            let new = waiter.enqueue("row", Mode::Pw, LONG)?;
            // The server has it.
            assert_eq!(new.granted(SHORT), Err(LockError::TimedOut));
            converted.begin_convert(Mode::Pw, LONG)?;
            assert_eq!(converted.granted(SHORT), Err(LockError::TimedOut));
            assert_eq!(converted.mode(), Some(own));
            drop(held);
            converted.granted(LONG)?;
            assert_eq!((converted.mode(), new.mode()), (Some(Mode::Pw), None));
            // A weaker mode is granted at once, and lets the other one in.
            converted.convert(own, LONG)?;
            new.granted(LONG)?;
            // And it is cancelled, or refused, without harm.
            assert_eq!(
                refusal(converted.try_convert(Mode::Pw, LONG)),
                Some(Refusal::Busy)
            );
            assert_eq!(converted.mode(), Some(own));
            assert_eq!(converted.convert(Mode::Pw, SHORT), Err(LockError::TimedOut));
            let _ = converted.granted(LONG);
            assert_eq!(converted.mode(), Some(own));
            drop(new);
            converted.convert(Mode::Pw, LONG)?;
        }
        player.finish()
    });
}

pub(crate) fn what_is_not_granted_in_time_is_cancelled(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let statistics = player.serve(1, 1)?;
            assert_eq!(statistics.locks, 0);
            return Ok(());
        }
        let (one, other) = (player.client(), player.client());
        let held = one.acquire("row", Mode::Pr, LONG)?;
        let late = other.acquire("row", Mode::Ex, SHORT);
        assert_eq!(late.map(drop), Err(LockError::TimedOut));
        // Nobody waits any more, so others go on.
        let third = player.client();
        drop(third.acquire("row", Mode::Pr, LONG)?);
        drop(held);
        drop(other.acquire("row", Mode::Ex, LONG)?);
        player.finish()
    });
}

pub(crate) fn circles_are_refused(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let statistics = player.serve(1, 1)?;
            assert_eq!(statistics.deadlocks, 4);
            return Ok(());
        }
        let [one, two, three] = [(); 3].map(|()| player.client());
        // One that waits for itself.
        let own = one.acquire("a", Mode::Pr, LONG)?;
        let again = one.acquire("a", Mode::Ex, LONG);
        assert_eq!(refusal(again), Some(Refusal::Deadlock));
        // Three that wait for each other.
        let b = two.acquire("b", Mode::Ex, LONG)?;
        let c = three.acquire("c", Mode::Ex, LONG)?;
        let waits = two.enqueue("a", Mode::Ex, LONG)?;
        assert_eq!(waits.granted(SHORT), Err(LockError::TimedOut));
        let also = three.enqueue("b", Mode::Pr, LONG)?;
        assert_eq!(also.granted(SHORT), Err(LockError::TimedOut));
        let closes = one.acquire("c", Mode::Pr, LONG);
        assert_eq!(refusal(closes), Some(Refusal::Deadlock));
        let closes = two.acquire("c", Mode::Cr, LONG);
        assert_eq!(refusal(closes), Some(Refusal::Deadlock));
        // A reader waits for those before it, too.
        drop(also);
        // The server has taken that.
        drop(three.acquire("d", Mode::Nl, LONG)?);
        let waits_too = two.enqueue("c", Mode::Cr, LONG)?;
        assert_eq!(waits_too.granted(SHORT), Err(LockError::TimedOut));
        let closes = three.acquire("a", Mode::Pr, LONG);
        assert_eq!(refusal(closes), Some(Refusal::Deadlock));
        drop((own, b, c, waits, waits_too));
        player.finish()
    });
}

pub(crate) fn values_travel_with_locks(world: World) {
    let block = |text: &[u8]| {
        let mut bytes = [0; 64];
        bytes[..text.len()].copy_from_slice(text);
        ValueBlock::Valid(bytes)
    };
    world.run(2, &|player| {
        if player.number == 0 {
            return player.serve(1, 1).map(drop);
        }
        let (one, other) = (player.client(), player.client());
        let mut keeps = one.acquire("row", Mode::Nl, LONG)?;
        assert_eq!(keeps.value()?, ValueBlock::Missing);
        assert!(matches!(
            keeps.set_value(b"no"),
            Err(LockError::NoValue { .. })
        ));
        let mut writes = other.acquire("row", Mode::Ex, LONG)?;
        assert!(matches!(
            writes.set_value(&[0; 65]),
            Err(LockError::ValueTooLong { .. })
        ));
        writes.set_value(b"first")?;
        writes.convert(Mode::Cr, LONG)?;
        keeps.convert(Mode::Pw, LONG)?;
        assert_eq!(keeps.value()?, block(b"first"));
        keeps.set_value(b"second")?;
        drop(keeps);
        writes.convert(Mode::Ex, LONG)?;
        assert_eq!(writes.value()?, block(b"second"));
        // Without locks the resource is gone, with its value.
        drop(writes);
        let fresh = other.acquire("row", Mode::Ex, LONG)?;
        assert_eq!(fresh.value()?, ValueBlock::Missing);
        drop(fresh);
        player.finish()
    });
}

pub(crate) fn servers_share_the_names(world: World) {
    const SERVERS: usize = 3;
    world.run(SERVERS + 1, &|player| {
        if player.number < SERVERS {
            let statistics = player.serve(SERVERS, 1)?;
            assert!(statistics.requests > 20, "{statistics:?}");
            return Ok(());
        }
        let client = player.client_of(SERVERS);
        let locks: Vec<_> = (0..60)
            .map(|number| client.acquire(&format!("row/{number}"), Mode::Ex, LONG))
            .collect::<Result<_, _>>()?;
        // Given in another order they are the same.
        let mut servers = player.servers(SERVERS);
        servers.reverse();
        let other = hamlyn_locks::LockClient::open(&player.node, &servers, crate::player::TAG)?;
        for number in 0..60 {
            let name = format!("row/{number}");
            assert_eq!(other.server_of(&name), client.server_of(&name));
            assert_eq!(
                refusal(other.try_acquire(&name, Mode::Cr, LONG)),
                Some(Refusal::Busy)
            );
        }
        drop(locks);
        player.finish()
    });
}
