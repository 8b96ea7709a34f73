//! Calls in which handlers run, and those that wait.

use std::ffi::{c_int, c_void};

use hamlyn::Wait;
use hamlyn_boundary::wait_of;

use crate::boundary::{outside, put_if_wanted};
use crate::status::{Code, Failure};

/// A wait of so many milliseconds: 0 polls, below 0 for ever.
pub(crate) fn wait_in(milliseconds: i64) -> Wait {
    match milliseconds {
        0 => Wait::Poll,
        milliseconds => wait_of(milliseconds),
    }
}

const NOT_IN_TIME: Failure = Failure::new(Code::TimedOut, "no message came in time");

/// `udm_poll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_poll(udm: *mut c_void, most: usize, ran: *mut usize) -> c_int {
    outside(udm, |udm| put_if_wanted(ran, udm.poll(most)?))
}

/// `udm_wait`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_udm_wait(
    udm: *mut c_void,
    milliseconds: i64,
    ran: *mut usize,
) -> c_int {
    outside(udm, |udm| {
        put_if_wanted(ran, udm.serve(wait_in(milliseconds))?)
    })
}

/// `udm_await`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_await(udm: *mut c_void, milliseconds: i64) -> c_int {
    outside(udm, |udm| {
        match udm.await_message(wait_in(milliseconds))? {
            true => Ok(()),
            false => Err(NOT_IN_TIME),
        }
    })
}

/// `udm_barrier`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_barrier(udm: *mut c_void, milliseconds: i64) -> c_int {
    outside(udm, |udm| Ok(udm.barrier(wait_in(milliseconds))?))
}

/// `udm_flush`.
#[unsafe(no_mangle)]
pub extern "C" fn hamlyn_udm_flush(udm: *mut c_void, milliseconds: i64) -> c_int {
    outside(udm, |udm| match udm.flush(wait_in(milliseconds))? {
        true => Ok(()),
        false => Err(Failure::new(
            Code::TimedOut,
            "not all messages were handed to their links in time: wait longer",
        )),
    })
}
