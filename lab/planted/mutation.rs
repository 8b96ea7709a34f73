//! Planted bugs, one at a time, which the tests must find (decision 0016).
//!
//! This module exists only in the copy of the tree that `cargo run -p xtask -- plant` makes, which adds the list of
//! bugs below. No product has a switch.

use core::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// Whose bug it is: what must be run to find it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Level {
    /// Found by driving the two halves of the engine.
    Engine,
    /// Found only by programs that use the library.
    Library,
    /// Found only where such programs work for each other: in scenarios of the simulator's world.
    World,
    /// No promise is broken, and a machine takes longer: found in what its report prints.
    Machine,
    /// Found by driving the two ends of a ring with an overflow log: the ring's test `overflow_mutations`.
    Ring,
    /// Found by driving two associations over a bad network: the engine's test `transport_mutations`.
    Transport,
}

macro_rules! mutations {
    ($($level:ident $name:ident $called:literal $text:literal;)*) => {
        /// A deliberate bug.
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[repr(u8)]
        #[non_exhaustive]
        pub enum Mutation { $(#[doc = $text] $name,)* }

        impl Mutation {
            /// All of them.
            pub const ALL: &'static [Mutation] = &[$(Mutation::$name,)*];

            /// A short name, as it is typed.
            pub const fn name(self) -> &'static str {
                match self { $(Mutation::$name => $called,)* }
            }

            /// What goes wrong.
            pub const fn describe(self) -> &'static str {
                match self { $(Mutation::$name => $text,)* }
            }

            /// Whose bug it is.
            pub const fn level(self) -> Level {
                match self { $(Mutation::$name => Level::$level,)* }
            }
        }
    };
}

const NONE: u8 = u8::MAX;
const _: () = assert!(Mutation::ALL.len() < NONE as usize);

static ON: AtomicU8 = AtomicU8::new(NONE);

/// Whether that bug happens.
#[inline]
pub fn is_on(mutation: Mutation) -> bool {
    ON.load(Relaxed) == mutation as u8
}

/// That bug happens from now on, in the whole process, and no other; none, if that is said.
pub fn switch(mutation: Option<Mutation>) {
    ON.store(mutation.map_or(NONE, |mutation| mutation as u8), Relaxed);
}

