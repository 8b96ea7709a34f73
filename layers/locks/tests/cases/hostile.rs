//! A client that sends garbage, foreign numbers and floods, beside one that locks.

use std::cell::Cell;

use hamlyn::Wait;
use hamlyn_am::{Error, Reason};
use hamlyn_locks::Mode;

use crate::World;
use crate::bare::{Bare, HELLO};
use crate::player::{LONG, Player, SHORT};

const MESSAGES: u64 = 3_000;
const ROUNDS: u32 = 60;

pub(crate) fn garbage_harms_nobody(world: World) {
    world.run(3, &|player| match player.number {
        0 => {
            let statistics = player.serve(1, 2)?;
            assert!(
                statistics.violations > 0 && statistics.refused > 0,
                "{statistics:?}"
            );
            assert_eq!(
                (statistics.clients, statistics.locks),
                (0, 0),
                "{statistics:?}"
            );
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
            player.finish()
        }
    });
}

fn lie(player: &Player<'_>) -> Result<(), Error> {
    let mut bare = Bare::open(player)?;
    bare.greet(&player.servers(1))?;
    let own = bare.id.get();
    let returned = std::rc::Rc::new(Cell::new(0));
    let seen = std::rc::Rc::clone(&returned);
    bare.endpoint.on_returned(move |back| {
        // The server has no other handlers, and no segment.
        let reasons = [Reason::BadHandler, Reason::BadOffset, Reason::BadLength];
        assert!(reasons.contains(&back.reason), "{back:?}");
        seen.set(seen.get() + 1);
    })?;
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
            arguments[0] = [own, own, own, own ^ 1, 0][random(5) as usize];
            arguments[1] = number + [0, 0, 0, 1, 2, 30, u32::MAX][random(7) as usize];
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
            0 => bare.endpoint.request(&bare.to, HELLO, arguments, LONG),
            1 => bare
                .endpoint
                .request(&bare.to, random(256) as u8 | 8, arguments, LONG),
            2 => bare
                .endpoint
                .transfer(&bare.to, 2, 0, &data, arguments, LONG),
            3..10 => bare.send(arguments, &[], LONG),
            _ => bare.send(arguments, &data, LONG),
        };
        sent?;
        if random(50) == 0 {
            bare.bundle.serve(SHORT)?;
        }
    }
    assert!(returned.get() > 0);
    Ok(())
}
