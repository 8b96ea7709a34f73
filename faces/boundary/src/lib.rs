//! The boundary between C and the layers of Hamlyn, for the faces whose functions return codes
//! (`faces/am`, `faces/udm`).
//!
//! No function unwinds into C: an error is a code, and its text is kept for the thread that made
//! the call. C knows objects by numbers, which are looked up and never followed. A face belongs to
//! the thread that opened it; other threads and forked children are told so.

mod arguments;
mod environment;
mod handle;
mod owner;
mod status;

pub use arguments::{bytes, bytes_mut, options_or, put, text, wait_of, words};
pub use environment::setting;
pub use handle::{Handles, kind_of, serial};
pub use owner::{Absence, Claim, Opened, Owner, Place};
pub use status::{
    BadArgument, Failure, error_text, in_interrupt, is_interrupt, protect, with_error_text,
};
