//! The hunt for planted bugs, one at a time. The tests of several crates use it.

use std::panic::{set_hook, take_hook};

use hamlyn_engine::mutation::{self, Mutation};

/// Switches on each of these bugs by itself: `hunt` must find it. Assertions may fail meanwhile: what runs has seen the bug first.
pub fn all_are_found(
    is_hunted: impl Fn(Mutation) -> bool,
    mut hunt: impl FnMut(Mutation) -> Option<String>,
) {
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let mut missed = Vec::new();
    for &bug in Mutation::ALL.iter().filter(|bug| is_hunted(**bug)) {
        mutation::switch(Some(bug));
        let found = hunt(bug);
        mutation::switch(None);
        match found {
            Some(what) => {
                let what: String = what
                    .lines()
                    .next()
                    .unwrap_or_default()
                    .chars()
                    .take(150)
                    .collect();
                println!("{:24} {what}", bug.name());
            }
            None => missed.push(bug.name()),
        }
    }
    set_hook(hook);
    assert_eq!(missed, Vec::<&str>::new(), "not found");
}
