//! A peer that speaks to the ports directly, with the keys that it has, and says what it likes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::engine::key::Key;
use hamlyn::engine::packet::SlotName;
use hamlyn::{NewPort, Target, Ticket, Wait};
use hamlyn_am::{Error, Name, Tag};
use ring::hmac;

use crate::World;
use crate::player::LONG;

const TAG: Tag = Tag::new(7);
const ASK: u8 = 3;

/// The tickets that follow from a name and a tag: of the port of its endpoint, and of that of its
/// node to which answers go.
fn tickets(name: &Name, any: &Ticket) -> [Ticket; 2] {
    let bytes = name.to_bytes();
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let mut text = *b"am-tag/2........";
    text[8..].copy_from_slice(&7_u64.to_le_bytes());
    let sum = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes[24..40]), &text);
    let key = u64::from_le_bytes(sum.as_ref()[..8].try_into().unwrap());
    let ticket = |port, key| Ticket {
        destination: name.interface(),
        slot: SlotName::from_bits(port),
        key: Key::from_bits(key),
        ..*any
    };
    [ticket(half(20), key), ticket(half(40), word(44))]
}

/// Whatever a peer with the right tag sends, nothing is harmed but its own link.
pub(crate) fn a_peer_that_lies_harms_nobody(world: World) {
    const MESSAGES: u64 = 3_000;
    world.run(3, &|player| {
        let mut endpoint = player.endpoint("server", TAG);
        let (asked, lies) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (counted, lied) = (Rc::clone(&asked), Rc::clone(&lies));
        endpoint.on_short(ASK, move |call, arguments| {
            match arguments {
                [1234, number] => {
                    assert_eq!(*number, counted.get());
                    counted.set(counted.get() + 1);
                    call.reply(ASK + 1, &[*number])
                }
                // Of the liar: its source is itself, or nobody.
                _ => {
                    lied.set(lied.get() + 1);
                    let _ = call.source();
                    call.reply(99, &[])
                }
            }
        })?;
        match player.number {
            0 => {
                let returned = Rc::new(RefCell::new(0_u64));
                let seen = Rc::clone(&returned);
                endpoint.on_returned(move |_| *seen.borrow_mut() += 1)?;
                player.finish()?;
                let statistics = player.node.statistics()?;
                assert_eq!(asked.get(), 200);
                assert!(statistics.violations > 0, "{statistics:?}");
                Ok(())
            }
            1 => {
                let answers = Rc::new(Cell::new(0));
                let counted = Rc::clone(&answers);
                endpoint.on_short(ASK + 1, move |_, arguments| {
                    assert_eq!(arguments, [counted.get()]);
                    counted.set(counted.get() + 1);
                    Ok(())
                })?;
                endpoint.on_returned(|back| panic!("{back:?}"))?;
                let to = player.map(&endpoint, 0, "server", TAG);
                for number in 0..200 {
                    endpoint.request(&to, ASK, &[1234, number], LONG)?;
                    player.serve_until("the answer", || answers.get() == number + 1);
                }
                player.finish()
            }
            _ => {
                lie(player, MESSAGES)?;
                player.finish()
            }
        }
    });
}

/// Sends random messages, many of which look like good ones.
fn lie(player: &crate::player::Player<'_>, messages: u64) -> Result<(), Error> {
    let name = player.look_up(0, "server");
    let manager = crate::open_unnamed();
    let mut session = manager.session();
    let own = session.open_port(NewPort::new().handlers(4096))?;
    let targets: Vec<Target> = tickets(&name, &own.ticket())
        .iter()
        .map(|ticket| session.target(ticket, LONG).unwrap())
        .collect();
    let terminus = session.terminus();
    let mut state = 99_u64;
    let mut random = move |end: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(3);
        (state >> 33) % end
    };
    for _ in 0..messages {
        let mut bytes = vec![0; random(200) as usize];
        for byte in &mut bytes {
            *byte = random(256) as u8;
        }
        if bytes.len() >= 8 && random(8) > 0 {
            // A handler, a small number of arguments, a category, introduced or not.
            bytes[0] = [ASK, 0, 99][random(3) as usize];
            bytes[1] = random(20) as u8;
            bytes[2] = random(11) as u8;
            bytes[3] = random(2) as u8;
            if bytes[1] == 2 && random(2) == 0 {
                bytes.truncate(16);
            }
        }
        let stamp = match random(3) {
            0 => random(4096) as u16,
            _ => random(31) as u16,
        };
        let to = &targets[random(2) as usize];
        let mut sent = None;
        for _ in 0..200 {
            match session.try_send_message(terminus, to, stamp, &bytes) {
                Ok(None) => drop(session.wait_for(Wait::millis(5), |session| {
                    session.poll();
                    Ok::<_, Error>(None::<()>)
                })?),
                // It was cut off, which is right.
                Err(_) => return Ok(()),
                Ok(done) => {
                    sent = done;
                    break;
                }
            }
        }
        assert!(sent.is_some(), "the victim takes what comes");
    }
    assert!(session.flush(LONG)?);
    Ok(())
}
