//! Active Messages II for C and C++ (decision 55): the library behind `include/am.h`, over the
//! layer `hamlyn_am`.
//!
//! The functions here are those of `include/hamlyn_am.h`. The names that programs use
//! (`AM_Request3`) are inline functions of `am.h` and `am1996.h` over them, so both sets of
//! numbers come from one library.
//!
//! C has handles, tokens and translations as numbers: they are looked up, never followed, so one
//! that is old is an error. No function unwinds into C: an error is a code, and its text is kept
//! for `AMX_ErrorText`. The library belongs to the thread that started it; other threads are told
//! so.
//!
//! | module | content |
//! |---|---|
//! | `status`, `kind` | codes of errors; the kinds of objects that C knows by numbers |
//! | `state`, `translations`, `library` | the objects that a thread has open |
//! | `dispatch`, `policy` | the way out to handlers; the default one for messages that come back |
//! | `boundary` | the way in from C, over `hamlyn_boundary` |
//! | `setup`, `bundle`, `endpoint`, `translation`, `handlers` | functions on the objects |
//! | `request`, `token`, `returned` | requests; questions and replies of handlers; messages that come back |
//! | `names` | names as values and texts, published and looked up |
//! | `spmd`, `collective` | programs that are started as several processes |

#![expect(
    clippy::missing_safety_doc,
    reason = "the head of hamlyn_am.h says once what all functions demand of pointers"
)]

mod boundary;
pub mod bundle;
mod collective;
mod dispatch;
pub mod endpoint;
pub mod handlers;
mod kind;
mod library;
pub mod names;
mod policy;
pub mod request;
pub mod returned;
pub mod setup;
pub mod spmd;
mod state;
pub mod status;
pub mod token;
pub mod translation;
mod translations;
