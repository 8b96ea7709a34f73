//! Limits, each refused by name; and misuse.

use hamlyn_am::{Node, NodeOptions};
use hamlyn_locks::{Limits, LockClient, LockError, LockServer, Mode, Refusal, ServerOptions};

use crate::World;
use crate::bare::{Bare, CANCEL, CONVERT, EX, LOCK, RELEASE, digest};
use crate::player::{LONG, SHORT, TAG, refusal};

pub(crate) fn each_limit_is_refused_by_name(world: World) {
    let limits = Limits {
        clients: 4,
        clients_of_link: 2,
        locks: 4,
        waiting: 1,
        locks_of_resource: 3,
        resources: 3,
        name_bytes: 8,
    };
    world.run(2, &|player| {
        if player.number == 0 {
            let options = ServerOptions {
                limits,
                ..ServerOptions::default()
            };
            let statistics = player.serve_with(1, 1, options)?;
            assert_eq!(
                (statistics.clients, statistics.locks),
                (0, 0),
                "{statistics:?}"
            );
            return Ok(());
        }
        let (one, other) = (player.client(), player.client());
        let refused = |result| assert_eq!(refusal(result).map(Some), Some(Some(Refusal::Busy)));
        let lock = |name: &str, mode| one.acquire(name, mode, LONG);
        let a = lock("a", Mode::Ex)?;
        let long = lock("123456789", Mode::Ex);
        assert_eq!(refusal(long), Some(Refusal::NameTooLong));
        let (b, c) = (lock("b", Mode::Nl)?, lock("12345678", Mode::Nl)?);
        assert_eq!(
            refusal(lock("d", Mode::Nl)),
            Some(Refusal::TooManyResources)
        );
        let again = lock("b", Mode::Nl)?;
        assert_eq!(refusal(lock("b", Mode::Nl)), Some(Refusal::TooManyLocks));
        refused(other.try_acquire("a", Mode::Cr, LONG));
        let waits = other.enqueue("a", Mode::Cr, LONG)?;
        let also = other.acquire("a", Mode::Cr, LONG);
        assert_eq!(refusal(also), Some(Refusal::TooManyWaiting));
        let third = other.acquire("b", Mode::Nl, LONG)?;
        let fourth = other.acquire("b", Mode::Nl, LONG);
        assert_eq!(refusal(fourth), Some(Refusal::ResourceFull));

        let many = player.client().acquire("b", Mode::Nl, LONG);
        assert_eq!(refusal(many), Some(Refusal::TooManyClientsOfLink));
        let node = || Node::new(crate::open_unnamed(), NodeOptions::default());
        let nodes = [node()?, node()?, node()?];
        let client = |node| LockClient::open(node, &player.servers(1), TAG);
        let clients = [client(&nodes[0])?, client(&nodes[1])?, client(&nodes[2])?];
        drop(again);
        for client in &clients[..2] {
            drop(client.acquire("b", Mode::Nl, LONG)?);
        }
        let full = || clients[2].acquire("b", Mode::Nl, LONG);
        assert_eq!(refusal(full()), Some(Refusal::TooManyClients));
        let [first, ..] = clients;
        drop(first);
        // Its place is free when the server has heard of its end.
        let third_client = client(&nodes[2])?;
        let got = loop {
            match third_client.acquire("b", Mode::Nl, LONG) {
                Err(LockError::Refused { .. }) => drop(other.serve(SHORT)?),
                got => break got?,
            }
        };
        drop((a, b, c, waits, third, got, third_client));
        drop((one, other));
        drop(nodes);
        player.finish()
    });
}

pub(crate) fn misuse_is_an_error(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let own = player.names[0].as_str();
            let open = |servers: &[&str], limits: Limits| {
                let options = ServerOptions {
                    limits,
                    ..ServerOptions::default()
                };
                LockServer::open(&player.node, own, servers, options).map(drop)
            };
            let limits = Limits::default();
            for servers in [&[][..], &["other"], &[own, own]] {
                let wrong = open(servers, limits);
                assert!(matches!(wrong, Err(LockError::Servers { .. })), "{wrong:?}");
            }
            let wrong = open(
                &[own],
                Limits {
                    clients: 1 << 16,
                    ..limits
                },
            );
            assert!(matches!(
                wrong,
                Err(LockError::Setting {
                    setting: "clients",
                    ..
                })
            ));
            let statistics = player.serve(1, 1)?;
            assert_eq!(
                (statistics.clients, statistics.locks),
                (0, 0),
                "{statistics:?}"
            );
            return Ok(());
        }
        let long = player.client().acquire(&"x".repeat(201), Mode::Ex, LONG);
        assert!(matches!(long, Err(LockError::NameTooLong { .. })));
        let others = [player.names[0].as_str(), "other"];
        let client = LockClient::open(&player.node, &others, TAG)?;
        let mut names = (0..).map(|number| format!("row/{number}"));
        let name = names
            .find(|name| client.server_of(name) == others[0])
            .unwrap();
        let refused = client.acquire(&name, Mode::Ex, LONG);
        assert_eq!(refusal(refused), Some(Refusal::OtherServers));
        assert!(matches!(
            LockClient::open(&player.node, &[], TAG),
            Err(LockError::Servers { .. })
        ));

        let client = player.client();
        let held = client.acquire("row", Mode::Ex, LONG)?;
        let other = player.client();
        let mut waiting = other.enqueue("row", Mode::Ex, LONG)?;
        assert_eq!(refusal(waiting.cancel(LONG)), Some(Refusal::Waits));
        assert_eq!(waiting.convert(Mode::Pr, SHORT), Err(LockError::TimedOut));
        drop((held, waiting, client, other));

        // Requests of a client of another make.
        let bare = Bare::open(player)?;
        let code = |refusal: Refusal| refusal as u32 + 1;
        let [low, high] = digest(&player.servers(1));
        assert_eq!(bare.hello(&[2, low, high, 7])?, code(Refusal::Version));
        assert_eq!(bare.hello(&[1, low])?, code(Refusal::BadRequest));
        assert_eq!(
            bare.hello(&[1, low, !high, 7])?,
            code(Refusal::OtherServers)
        );
        bare.greet(&player.servers(1))?;
        let operate = |handle, word, data: &[u8]| bare.operate(handle, word, data);
        assert_eq!(operate(0, LOCK | EX, b"a")?, 0);
        assert_eq!(operate(0, LOCK | EX, b"b")?, code(Refusal::HandleInUse));
        assert_eq!(operate(1, CONVERT | EX, b"")?, code(Refusal::NoSuchLock));
        assert_eq!(operate(u32::MAX, RELEASE, b"")?, code(Refusal::NoSuchLock));
        assert_eq!(operate(u32::MAX, LOCK, b"c")?, code(Refusal::TooManyLocks));
        assert_eq!(
            operate(0, CONVERT | 6 << 8, b"")?,
            code(Refusal::BadRequest)
        );
        assert_eq!(operate(0, CONVERT, b"short")?, code(Refusal::BadRequest));
        assert_eq!(operate(0, 99, b"")?, code(Refusal::BadRequest));
        assert_eq!(operate(1, LOCK | EX, b"a")?, code(Refusal::Deadlock));
        let other = player.client();
        let waits = other.enqueue("a", Mode::Ex, LONG)?;
        assert_eq!(waits.granted(SHORT), Err(LockError::TimedOut));
        let id = bare.id.replace(bare.id.get() ^ 1 << 16);
        assert_eq!(
            operate(0, CANCEL, b"")?,
            code(Refusal::NoSuchClient),
            "of another use"
        );
        bare.id.set(id);
        drop(bare);
        waits.granted(LONG)?;
        drop((waits, other));
        player.finish()
    });
}
