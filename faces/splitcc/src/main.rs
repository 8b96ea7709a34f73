//! `splitcc`: see the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    splitcc::driver::run(std::env::args_os().skip(1).collect())
}
