//! What messages do.

use std::cell::RefCell;
use std::rc::Rc;

use hamlyn_am::Tag;

use crate::World;
use crate::player::LONG;

/// Handlers of these cases.
const ADD: u8 = 3;
const SUM: u8 = 4;

pub(crate) fn requests_are_answered(world: World) {
    const REQUESTS: u32 = 200;
    world.run(2, &|player| {
        let tag = Tag::new(7);
        let mut endpoint = player.endpoint("server", tag);
        endpoint.on_short(ADD, |call, arguments| {
            call.reply(SUM, &[arguments[0] + arguments[1]])
        })?;
        if player.number == 0 {
            return player.finish();
        }
        let sums = Rc::new(RefCell::new(Vec::new()));
        let seen = Rc::clone(&sums);
        endpoint.on_short(SUM, move |_, arguments| {
            seen.borrow_mut().push(arguments[0]);
            Ok(())
        })?;
        let to = player.map(&endpoint, 0, "server", tag);
        for number in 0..REQUESTS {
            endpoint.request(&to, ADD, &[number, 1000], LONG)?;
        }
        player.serve_until("all answers", || sums.borrow().len() == REQUESTS as usize);
        let mut sums = sums.borrow().clone();
        sums.sort();
        assert_eq!(sums, (1000..1000 + REQUESTS).collect::<Vec<_>>());
        assert_eq!(endpoint.outstanding()?, 0);
        player.finish()
    });
}
