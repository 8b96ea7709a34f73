//! Tells a forked child from its parent. An object notes the process that made it, and its calls
//! fail with [`Forked`] in every other one. A child opens a manager of its own.
//!
//! For faces in other languages, whose handles do the same.

pub use hamlyn_ring::forks::{Birth, Forked};

/// Every error that can be the host's can be that of a forked child.
macro_rules! from_forked {
    ($($error:ty: $by:path;)*) => {$(
        impl From<hamlyn_ring::forks::Forked> for $error {
            #[inline]
            fn from(forked: hamlyn_ring::forks::Forked) -> Self {
                $by(forked.into())
            }
        }
    )*};
}

pub(crate) use from_forked;
