//! A client that sends garbage, foreign numbers and floods, beside one that locks.

use std::cell::Cell;
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{Call, Error, Reason};
use hamlyn_locks::{Limits, Mode, ServerOptions};

use crate::World;
use crate::bare::{Bare, EX, HELLO, LOCK, REQUEST, WELCOME, digest};
use crate::player::{LONG, Player, SHORT};

const MESSAGES: u64 = 3_000;
/// Usually longer than the server takes for a request.
const PATIENCE: Wait = Wait::millis(100);
const ROUNDS: u32 = 60;

pub(crate) fn garbage_harms_nobody(world: World) {
    world.run(3, &|player| match player.number {
        0 => {
            let options = ServerOptions {
                limits: LIMITS,
                ..ServerOptions::default()
            };
            let statistics = player.serve_with(1, 2, options)?;
            assert!(
                statistics.violations > 0 && statistics.refused > 0,
                "{statistics:?}"
            );
            assert!(statistics.clients <= LIMITS.clients, "{statistics:?}");
            Ok(())
        }
        1 => {
            let client = player.client();
            for round in 0..ROUNDS {
                let name = format!("row/{}", round % 4);
                let lock = client.acquire(&name, Mode::Ex, LONG)?;
                assert_eq!(lock.mode(), Some(Mode::Ex));
                client.serve(Wait::Poll)?;
            }
            drop(client);
            player.finish()
        }
        _ => {
            lie(player)?;
            // Those that have gone without a word hold up nobody, though they hold locks; and their
            // places are free when they are wanted.
            let client = player.client();
            for name in ["x", "xx", "xxx"] {
                drop(client.acquire(name, Mode::Ex, LONG)?);
            }
            drop(client);
            player.finish()
        }
    });
}

/// A client that answers its welcome by something that is to be answered harms itself alone.
pub(crate) fn answers_are_no_requests(world: World) {
    world.run(2, &|player| {
        if player.number == 0 {
            let statistics = player.serve(1, 1)?;
            assert_eq!(statistics.violations, 2, "{statistics:?}");
            return Ok(());
        }
        let [low, high] = digest(&player.servers(1));
        for handler in [HELLO, REQUEST] {
            let mut bare = Bare::open(player)?;
            let seen = Rc::clone(&bare.id);
            let answer = move |call: &mut Call<'_>, arguments: &[u32]| {
                seen.set(arguments[0]);
                call.reply(handler, &[1, low, high, 7, LOCK | EX])
            };
            bare.endpoint.on_short(WELCOME, answer)?;
            bare.greet(&player.servers(1))?;
            assert_eq!(bare.operate(3, LOCK | EX, b"row")?, 0);
        }
        drop(player.client().acquire("row", Mode::Ex, LONG)?);
        player.finish()
    });
}

/// Few clients, so that the liar needs the places of those that it was before.
const LIMITS: Limits = Limits {
    clients: 8,
    clients_of_link: 8,
    locks: 4,
    waiting: 4,
    locks_of_resource: 16,
    resources: 16,
    name_bytes: 8,
};

fn lie(player: &Player<'_>) -> Result<(), Error> {
    let (returned, mut stuck) = (Rc::new(Cell::new(0)), 0);
    let open = || {
        let mut bare = Bare::open(player)?;
        let [low, high] = digest(&player.servers(1));
        // Until the server has found that others have gone.
        while bare.hello(&[1, low, high, 7])? != 0 {
            bare.bundle.serve(SHORT)?;
        }
        let seen = Rc::clone(&returned);
        bare.endpoint.on_returned(move |back| {
            // The server has no other handlers, and no segment.
            let reasons = [Reason::BadHandler, Reason::BadOffset, Reason::BadLength];
            assert!(reasons.contains(&back.reason), "{back:?}");
            seen.set(seen.get() + 1);
        })?;
        Ok::<_, Error>(bare)
    };
    let mut bare = open()?;
    let mut state = 57_u64;
    let mut random = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(11);
        (state >> 33) % end
    };
    let mut number = 0;
    for _ in 0..MESSAGES {
        let mut arguments = [0; 16];
        arguments.fill_with(|| random(1 << 32) as u32);
        let mut data = vec![0; random(200) as usize];
        data.fill_with(|| random(256) as u8);
        if random(4) > 0 {
            // Nearly right.
            let own = bare.id.get();
            arguments[0] = [own, own, own, own ^ 1, 0][random(5) as usize];
            let ahead = [0, 0, 0, 1, 2, 30, u32::MAX][random(7) as usize];
            arguments[1] = u32::wrapping_add(number, ahead);
            arguments[2] = random(6) as u32;
            arguments[4] = random(6) as u32 | (random(7) as u32) << 8 | (random(2) as u32) << 16;
            if random(3) > 0 {
                // Names of its own, so that it holds up nobody for as long as it lives.
                data = vec![b'x', random(4) as u8];
            }
            if arguments[1] == number && arguments[0] == own {
                number = number.wrapping_add(1);
            }
        }
        let most = [5, 5, 5, 16][random(4) as usize];
        let arguments = &arguments[..most];
        let sent = match random(20) {
            0 => bare.endpoint.request(&bare.to, HELLO, arguments, PATIENCE),
            1 => bare
                .endpoint
                .request(&bare.to, random(256) as u8 | 8, arguments, PATIENCE),
            2 => bare
                .endpoint
                .transfer(&bare.to, 2, 0, &data, arguments, PATIENCE),
            3..10 => bare.send(arguments, &[], PATIENCE),
            _ => bare.send(arguments, &data, PATIENCE),
        };
        match sent {
            // It has left out numbers, so the server has kept all that it could send.
            Err(Error::WouldBlock(_)) => {
                stuck += 1;
                bare = open()?;
                number = 0;
            }
            sent => sent?,
        }
        if random(50) == 0 {
            bare.bundle.serve(SHORT)?;
        }
    }
    assert!(returned.get() > 0 && stuck > 0);
    Ok(())
}
