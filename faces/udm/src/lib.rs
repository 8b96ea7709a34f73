//! User Direct Messaging and CRL for C and C++ (decision 63): the library behind `include/udm.h`
//! and `include/crl.h`, over the layers `hamlyn_udm` and `hamlyn_crl`.
//!
//! The headers give each function its name without `hamlyn_`. A `udm_t *` is a number that is
//! looked up, never followed. No function unwinds into C: an error is a code, and its text is kept.
//! One thread of a process has the library; handlers of upcalls run in another one.
//!
//! | module | content |
//! |---|---|
//! | `status` | codes and texts of errors |
//! | `group` | groups that are open: interfaces that end points and CRL share |
//! | `library` | the objects that the thread has open |
//! | `node` | that which a program, a handler and a task can do, whatever the host |
//! | `program` | the program's part of that |
//! | `running` | the way out to handlers and tasks, and their part |
//! | `object` | an end point as C knows it, in one thread or with upcalls |
//! | `boundary` | the way in from C |
//! | `setup`, `messages`, `atomicity`, `progress`, `report` | the functions of `udm.h` |
//! | `regions` | regions as C knows them: by the address of their bytes |
//! | `crl` | the functions of `crl.h` |

#![expect(
    clippy::missing_safety_doc,
    reason = "the heads of udm.h and crl.h say once what all functions demand of pointers"
)]

pub mod atomicity;
mod boundary;
pub mod crl;
mod group;
mod library;
pub mod messages;
mod node;
mod object;
mod program;
pub mod progress;
mod regions;
pub mod report;
mod running;
pub mod setup;
pub mod status;
