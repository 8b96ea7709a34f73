//! More endpoints than frames.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn_am::Tag;

use crate::World;
use crate::player::LONG;

const ASK: u8 = 3;
const ANSWER: u8 = 4;

/// Twelve endpoints in two frames, three clients: each request is taken once, and no endpoint is
/// forgotten.
pub(crate) fn endpoints_are_paged_under_traffic(mut world: World) {
    const ENDPOINTS: usize = 12;
    const ROUNDS: usize = 25;
    (world.options.frames, world.options.visit) = (2, 8);
    world.run(4, &|player| {
        if player.number == 0 {
            let counts = Rc::new(RefCell::new([0; ENDPOINTS]));
            let mut endpoints = Vec::new();
            for at in 0..ENDPOINTS {
                let mut endpoint = player.endpoint(&format!("e{at}"), Tag::new(at as u64));
                let counts = Rc::clone(&counts);
                endpoint.on_short(ASK, move |call, arguments| {
                    counts.borrow_mut()[at] += 1;
                    call.reply(ANSWER, arguments)
                })?;
                endpoints.push(endpoint);
            }
            let resident = || {
                let is_resident =
                    |endpoint: &&hamlyn_am::Endpoint<_>| endpoint.is_resident().unwrap();
                endpoints.iter().filter(is_resident).count()
            };
            assert_eq!(resident(), 2);
            player.serve_until("all requests", || {
                assert_eq!(resident(), 2);
                counts.borrow().iter().all(|&count| count == 3 * ROUNDS)
            });
            let statistics = player.node.statistics()?;
            assert!(statistics.faults_by_message >= 10, "{statistics:?}");
            assert!(statistics.unloaded >= 10, "{statistics:?}");
            return player.finish();
        }
        let mut endpoint = player.endpoint("client", Tag::None);
        let answers = Rc::new(RefCell::new([[0; ROUNDS]; ENDPOINTS]));
        let seen = Rc::clone(&answers);
        endpoint.on_short(ANSWER, move |_, arguments| {
            seen.borrow_mut()[arguments[0] as usize][arguments[1] as usize] += 1;
            Ok(())
        })?;
        endpoint.on_returned(|back| panic!("{back:?}"))?;
        let to: Vec<_> = (0..ENDPOINTS)
            .map(|at| player.map(&endpoint, 0, &format!("e{at}"), Tag::new(at as u64)))
            .collect();
        for round in 0..ROUNDS {
            for (at, to) in to.iter().enumerate() {
                endpoint.request(to, ASK, &[at as u32, round as u32], LONG)?;
            }
        }
        let outstanding = || endpoint.outstanding().unwrap();
        player.serve_until("all answers", || outstanding() == 0);
        assert!(answers.borrow().iter().flatten().all(|&count| count == 1));
        // Else each would wait for its pause to be over.
        let statistics = player.node.statistics()?;
        assert!(statistics.sent_on_hint > 10, "{statistics:?}");
        player.finish()
    });
}

/// A request by an endpoint without a frame loads it, and the one that has nothing to do goes, also
/// with requests outstanding: their replies need no frame.
pub(crate) fn a_call_loads_its_endpoint(mut world: World) {
    world.options.frames = 1;
    world.run(2, &|player| {
        if player.number == 0 {
            let mut server = player.endpoint("server", Tag::new(1));
            let kept = Rc::new(RefCell::new(Vec::new()));
            let deferred = Rc::clone(&kept);
            server.on_short(ASK, move |call, _| {
                deferred.borrow_mut().push(call.defer()?);
                Ok(())
            })?;
            player.serve_until("two requests", || kept.borrow().len() == 2);
            for request in kept.borrow_mut().drain(..) {
                server.reply(request, ANSWER, &[])?;
            }
            return player.finish();
        }
        let mut one = player.endpoint("one", Tag::None);
        let mut other = player.endpoint("other", Tag::None);
        let count = Rc::new(Cell::new(0));
        for endpoint in [&mut one, &mut other] {
            let counted = Rc::clone(&count);
            endpoint.on_short(ANSWER, move |_, _| {
                counted.set(counted.get() + 1);
                Ok(())
            })?;
        }
        let from_one = player.map(&one, 0, "server", Tag::new(1));
        let from_other = player.map(&other, 0, "server", Tag::new(1));
        assert_eq!((one.is_resident()?, other.is_resident()?), (true, false));
        one.request(&from_one, ASK, &[], LONG)?;
        other.request(&from_other, ASK, &[], LONG)?;
        assert_eq!((one.is_resident()?, other.is_resident()?), (false, true));
        let statistics = player.node.statistics()?;
        assert_eq!((statistics.faults_by_call, statistics.unloaded), (1, 1));
        player.serve_until("both answers", || count.get() == 2);
        assert_eq!((one.outstanding()?, other.outstanding()?), (0, 0));
        assert!(!one.is_resident()?, "its reply needs no frame");
        player.finish()
    });
}
