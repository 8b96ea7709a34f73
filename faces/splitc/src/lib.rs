//! The runtime of Split-C for programs in C, C++ and Split-C (decision 0038): the library `libsplitc.so` behind
//! `include/splitc_abi.h`.
//!
//! Functions of this library may be called by the thread that called `splitc_start`, between its call of the program's main function
//! and its return. None of them unwinds into C: an error ends the process with a message that names the processor, the file and
//! the line, and the launcher ends the others.
//!
//! | module | content |
//! |---|---|
//! | `start` | the start and the end of a processor |
//! | `shared_memory` | the segment, the static data, and the windows of the inline functions |
//! | `stack` | the main function on a stack in the segment |
//! | `boundary` | the way from C into the runtime: one thread, no panic, errors with their place |
//! | `program` | what the runtime asks of the program: delivery of gets, atomic procedures |
//! | `access`, `collective`, `changes` | the functions of the header |
//! | `error_texts` | `sys_errlist`, for programs of the 1990s |
//! | `files` | text in the order of processors, spread arrays from and into files |
//! | `heap` | the allocator of the shared heap |

pub mod access;
pub mod boundary;
pub mod changes;
pub mod collective;
pub mod error_texts;
pub mod files;
pub mod heap;
pub mod program;
mod shared_memory;
mod stack;
pub mod start;
