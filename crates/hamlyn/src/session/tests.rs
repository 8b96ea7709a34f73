//! State that a session keeps while a step is made.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn_host::HostError;
use hamlyn_host::process::Options;

use crate::wait::Wait;

#[test]
fn a_wait_for_room_ends_with_a_step_that_panics() {
    let namespace = format!("session{}", std::process::id());
    let host = Options::default().in_namespace(&namespace);
    let manager = crate::open_with(host, crate::ManagerOptions::default()).unwrap();
    let mut session = manager.session();
    let mut panics = |wait| {
        let step = |session: &mut super::Session<'_>| -> Result<Option<()>, HostError> {
            assert!(!session.awaits_room, "the program fails");
            Ok(Some(()))
        };
        catch_unwind(AssertUnwindSafe(|| session.wait_for_room(wait, step))).is_err()
    };
    assert!(panics(Wait::millis(20_000)));
    assert!(!panics(Wait::Poll), "nobody waits any more");
}
