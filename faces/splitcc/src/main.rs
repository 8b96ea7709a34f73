//! `splitcc`: see the library.

#![forbid(unsafe_code)]

use std::process::ExitCode;

fn main() -> ExitCode {
    splitcc::driver::run(std::env::args_os().skip(1).collect())
}
