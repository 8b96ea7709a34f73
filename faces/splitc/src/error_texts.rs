//! The texts of errors as programs of the 1990s find them: `sys_errlist[errno]`. The C library has no such table for new programs.
//!
//! The texts are those of Linux, in English, by number. A number that has no error has a text that says so.

use std::ffi::{CStr, c_char, c_int};

/// The table. It is copied into the program when that is loaded.
#[repr(transparent)]
pub struct ErrorTexts([*const c_char; COUNT]);

// SAFETY: the strings are constants, and nothing of this library changes the table.
unsafe impl Sync for ErrorTexts {}

/// `sys_errlist`.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "programs know it by this name")]
pub static sys_errlist: ErrorTexts = ErrorTexts(pointers());

/// `sys_nerr`: how many there are.
#[unsafe(no_mangle)]
#[allow(non_upper_case_globals, reason = "programs know it by this name")]
pub static sys_nerr: c_int = COUNT as c_int;

const fn pointers() -> [*const c_char; COUNT] {
    let mut pointers = [c"".as_ptr(); COUNT];
    let mut at = 0;
    while at < COUNT {
        pointers[at] = TEXTS[at].as_ptr();
        at += 1;
    }
    pointers
}

const COUNT: usize = TEXTS.len();

const TEXTS: [&CStr; 134] = [
    c"Success",
    c"Operation not permitted",
    c"No such file or directory",
    c"No such process",
    c"Interrupted system call",
    c"Input/output error",
    c"No such device or address",
    c"Argument list too long",
    c"Exec format error",
    c"Bad file descriptor",
    c"No child processes",
    c"Resource temporarily unavailable",
    c"Cannot allocate memory",
    c"Permission denied",
    c"Bad address",
    c"Block device required",
    c"Device or resource busy",
    c"File exists",
    c"Invalid cross-device link",
    c"No such device",
    c"Not a directory",
    c"Is a directory",
    c"Invalid argument",
    c"Too many open files in system",
    c"Too many open files",
    c"Inappropriate ioctl for device",
    c"Text file busy",
    c"File too large",
    c"No space left on device",
    c"Illegal seek",
    c"Read-only file system",
    c"Too many links",
    c"Broken pipe",
    c"Numerical argument out of domain",
    c"Numerical result out of range",
    c"Resource deadlock avoided",
    c"File name too long",
    c"No locks available",
    c"Function not implemented",
    c"Directory not empty",
    c"Too many levels of symbolic links",
    c"Unknown error 41",
    c"No message of desired type",
    c"Identifier removed",
    c"Channel number out of range",
    c"Level 2 not synchronized",
    c"Level 3 halted",
    c"Level 3 reset",
    c"Link number out of range",
    c"Protocol driver not attached",
    c"No CSI structure available",
    c"Level 2 halted",
    c"Invalid exchange",
    c"Invalid request descriptor",
    c"Exchange full",
    c"No anode",
    c"Invalid request code",
    c"Invalid slot",
    c"Unknown error 58",
    c"Bad font file format",
    c"Device not a stream",
    c"No data available",
    c"Timer expired",
    c"Out of streams resources",
    c"Machine is not on the network",
    c"Package not installed",
    c"Object is remote",
    c"Link has been severed",
    c"Advertise error",
    c"Srmount error",
    c"Communication error on send",
    c"Protocol error",
    c"Multihop attempted",
    c"RFS specific error",
    c"Bad message",
    c"Value too large for defined data type",
    c"Name not unique on network",
    c"File descriptor in bad state",
    c"Remote address changed",
    c"Can not access a needed shared library",
    c"Accessing a corrupted shared library",
    c".lib section in a.out corrupted",
    c"Attempting to link in too many shared libraries",
    c"Cannot exec a shared library directly",
    c"Invalid or incomplete multibyte or wide character",
    c"Interrupted system call should be restarted",
    c"Streams pipe error",
    c"Too many users",
    c"Socket operation on non-socket",
    c"Destination address required",
    c"Message too long",
    c"Protocol wrong type for socket",
    c"Protocol not available",
    c"Protocol not supported",
    c"Socket type not supported",
    c"Operation not supported",
    c"Protocol family not supported",
    c"Address family not supported by protocol",
    c"Address already in use",
    c"Cannot assign requested address",
    c"Network is down",
    c"Network is unreachable",
    c"Network dropped connection on reset",
    c"Software caused connection abort",
    c"Connection reset by peer",
    c"No buffer space available",
    c"Transport endpoint is already connected",
    c"Transport endpoint is not connected",
    c"Cannot send after transport endpoint shutdown",
    c"Too many references: cannot splice",
    c"Connection timed out",
    c"Connection refused",
    c"Host is down",
    c"No route to host",
    c"Operation already in progress",
    c"Operation now in progress",
    c"Stale file handle",
    c"Structure needs cleaning",
    c"Not a XENIX named type file",
    c"No XENIX semaphores available",
    c"Is a named type file",
    c"Remote I/O error",
    c"Disk quota exceeded",
    c"No medium found",
    c"Wrong medium type",
    c"Operation canceled",
    c"Required key not available",
    c"Key has expired",
    c"Key has been revoked",
    c"Key was rejected by service",
    c"Owner died",
    c"State not recoverable",
    c"Operation not possible due to RF-kill",
    c"Memory page has hardware error",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_those_of_the_c_library() {
        for number in [
            0,
            libc::ENOENT,
            libc::EAGAIN,
            libc::EDEADLK,
            libc::EHWPOISON,
        ] {
            // SAFETY: it returns a string for any number; this process has one locale, the one of C.
            let text = unsafe { CStr::from_ptr(libc::strerror(number)) };
            assert_eq!(text, TEXTS[number as usize]);
        }
    }
}
