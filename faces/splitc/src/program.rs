//! What the runtime asks of a C program.

use std::ffi::c_void;
use std::ptr::copy_nonoverlapping;

use hamlyn::host::process::ProcessHost;
use hamlyn_splitc::{ARGUMENT_BYTES_MAX, Program, RESULT_BYTES_MAX, Splitc};

use crate::boundary::{Runtime, set_current};

/// `splitc_handler`.
pub type Handler = unsafe extern "C" fn(*mut c_void, *const c_void, *mut c_void);

pub(crate) struct CProgram;

/// What nearly all procedures have, and what they may have.
const FEW_BYTES: usize = 64;
const MOST_BYTES: usize = 4096;
const _: () = assert!(ARGUMENT_BYTES_MAX <= MOST_BYTES && RESULT_BYTES_MAX <= MOST_BYTES);

/// Room for values of any type, aligned for any.
#[repr(C, align(64))]
struct Room<const BYTES: usize>([u8; BYTES]);

impl Program<ProcessHost> for CProgram {
    fn deliver(&mut self, to: u64, bytes: &[u8]) {
        // SAFETY: the program named the place in a get of that many bytes, which it must keep until the next sync; the compiler and
        // the header pass the address of a variable of the program. A place that it made up harms only this program.
        unsafe { copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
    }

    fn procedure(
        runtime: &mut Splitc<ProcessHost, Self>,
        procedure: u64,
        place: u64,
        arguments: &[u8],
        result: &mut [u8],
    ) -> Result<(), String> {
        if procedure == 0 {
            return Err("the procedure is a null pointer".to_owned());
        }
        // Clearing room for the most that there may be takes longer than most procedures.
        match arguments.len() <= FEW_BYTES && result.len() <= FEW_BYTES {
            true => call::<FEW_BYTES>(runtime, procedure, place, arguments, result),
            false => call::<MOST_BYTES>(runtime, procedure, place, arguments, result),
        }
        Ok(())
    }
}

/// Calls a handler with room for so many bytes of arguments, and of the result, each of which has no more.
fn call<const BYTES: usize>(
    runtime: &mut Runtime,
    procedure: u64,
    place: u64,
    arguments: &[u8],
    result: &mut [u8],
) {
    let mut aligned_arguments = Room([0; BYTES]);
    let mut aligned_result = Room([0; BYTES]);
    aligned_arguments.0[..arguments.len()].copy_from_slice(arguments);
    // SAFETY: processors of a job run one program at the same addresses and trust each other (decision 0038); the number is
    // the address of a handler, which `splitc_atomic` takes with its type.
    let handler = unsafe { std::mem::transmute::<usize, Handler>(procedure as usize) };
    // The handler may call the runtime, through the reference that this was given.
    let before = set_current(runtime);
    // SAFETY: the place lies in this processor's memory, as the runtime of the caller found; arguments and result have room
    // for all that the caller passes.
    unsafe {
        handler(
            place as *mut c_void,
            aligned_arguments.0.as_ptr().cast(),
            aligned_result.0.as_mut_ptr().cast(),
        );
    }
    set_current(before);
    let length = result.len();
    result.copy_from_slice(&aligned_result.0[..length]);
}
