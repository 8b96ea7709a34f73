//! Clients and servers end.

use std::sync::atomic::{AtomicUsize, Ordering};

use hamlyn_locks::{LockError, Mode, ServerOptions, ValueBlock};

use crate::World;
use crate::bare::{Bare, EX, LOCK};
use crate::player::{LONG, SHORT};

pub(crate) fn locks_of_a_client_that_ends_are_released(world: World) {
    world.run(3, &|player| match player.number {
        0 => {
            let statistics = player.serve(1, 2)?;
            assert_eq!(
                (statistics.clients, statistics.locks),
                (0, 0),
                "{statistics:?}"
            );
            Ok(())
        }
        1 => {
            let client = player.client();
            let held = client.acquire("row", Mode::Ex, LONG)?;
            let other = player.client();
            let waiting = other.enqueue("row", Mode::Ex, LONG)?;
            player.reach(1);
            player.await_step(&client, 2);
            // One waits and goes, the other one holds and goes.
            drop((waiting, other));
            drop((held, client));
            player.finish()
        }
        _ => {
            let client = player.client();
            player.await_step(&client, 1);
            let lock = client.enqueue("row", Mode::Ex, LONG)?;
            player.reach(2);
            lock.granted(LONG)?;
            drop((lock, client));
            player.finish()
        }
    });
}

/// A client whose node ends says nothing; this one has also answered the watch that would tell.
pub(crate) fn a_node_that_ends_leaves_a_value_in_doubt(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let statistics = player.serve(1, 1)?;
            assert_eq!(
                (statistics.clients, statistics.locks),
                (0, 0),
                "{statistics:?}"
            );
            assert_eq!(statistics.died, 1);
            return Ok(());
        }
        let client = player.client();
        let mut keeps = client.acquire("row", Mode::Pw, LONG)?;
        keeps.set_value(b"good")?;
        keeps.convert(Mode::Nl, LONG)?;
        let bare = Bare::open(player)?;
        bare.greet(&player.servers(1))?;
        assert_eq!(bare.operate(3, LOCK | EX, b"row")?, 0);
        let waiting = client.enqueue("row", Mode::Ex, LONG)?;
        assert_eq!(waiting.granted(SHORT), Err(LockError::TimedOut));
        // It has answered all that it was told, so nothing of the server's comes back.
        while bare.bundle.serve(SHORT)? > 0 {}
        drop(bare);
        waiting.granted(LONG)?;
        let ValueBlock::NotValid(bytes) = waiting.value()? else {
            panic!("{:?}", waiting.value());
        };
        assert_eq!(&bytes[..5], b"good\0");
        // Until it is written again.
        let mut waiting = waiting;
        waiting.set_value(b"new")?;
        waiting.convert(Mode::Nl, LONG)?;
        keeps.convert(Mode::Pr, LONG)?;
        assert!(matches!(keeps.value()?, ValueBlock::Valid(bytes) if &bytes[..4] == b"new\0"));
        drop((keeps, waiting, client));
        player.finish()
    });
}

pub(crate) fn a_server_that_ends_is_told(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let mut server = player.server(1, ServerOptions::default());
            while server.statistics().waiting == 0 {
                server.serve(SHORT)?;
            }
            drop(server);
            // Another one of the same name has no locks.
            let statistics = player.serve(1, 1)?;
            assert_eq!(statistics.locks, 0);
            return Ok(());
        }
        let (one, other) = (player.client(), player.client());
        let held = one.acquire("row", Mode::Ex, LONG)?;
        let waiting = other.enqueue("row", Mode::Ex, LONG)?;
        let lost = waiting.granted(LONG);
        assert!(
            matches!(lost, Err(LockError::ServerLost { .. })),
            "{lost:?}"
        );
        player.serve_until(&one, "the news", || held.mode().is_none());
        let lost = held.release();
        assert!(
            matches!(lost, Err(LockError::ServerLost { .. })),
            "{lost:?}"
        );
        // It may not be there yet.
        let again = loop {
            match one.acquire("row", Mode::Ex, LONG) {
                Ok(lock) => break lock,
                Err(LockError::ServerLost { .. } | LockError::Messages(_)) => {
                    other.serve(SHORT)?;
                }
                Err(error) => return Err(error),
            }
        };
        drop((again, waiting, one, other));
        player.finish()
    });
}

/// Their last requests are more than a server takes in one go.
pub(crate) fn clients_that_said_so_before_they_ended_have_not_died(world: World) {
    const CLIENTS: usize = 8;
    const LOCKS: usize = 15;
    let next = AtomicUsize::new(1);
    let is_next = |number: usize| next.load(Ordering::SeqCst) == number;
    world.run(1 + CLIENTS, &|player| {
        let number = player.number;
        if number == 0 {
            let mut server = player.server(1, ServerOptions::default());
            let all = CLIENTS * (LOCKS + 1);
            while server.statistics().locks < all {
                server.serve(SHORT)?;
            }
            player.reach(1);
            player.await_end_of(CLIENTS)?;
            let mut looks = 0;
            while server.statistics().clients > 0 {
                server.serve(SHORT)?;
                looks += 1;
                assert!(looks < 1_000, "{:?}", server.statistics());
            }
            let statistics = server.statistics();
            assert_eq!(
                (statistics.locks, statistics.died),
                (0, 0),
                "{statistics:?}"
            );
            return Ok(());
        }
        let client = player.client();
        let own = (0..LOCKS).map(|lock| format!("{number} {lock}"));
        let locks: Result<Vec<_>, _> = own
            .map(|name| client.acquire(&name, Mode::Ex, LONG))
            .collect();
        player.serve_until(&client, "its turn", || is_next(number));
        // Each is granted it when the one before ends.
        let shared = client.enqueue("shared", Mode::Ex, LONG)?;
        next.fetch_add(1, Ordering::SeqCst);
        player.await_step(&client, 1);
        player.serve_until(&client, "its end", || is_next(CLIENTS + number));
        drop((locks, shared, client));
        next.fetch_add(1, Ordering::SeqCst);
        player.finish()
    });
}
