//! Input and output of all processors together: text in the order of processors, and spread arrays from and into files. All are
//! collective. Files are those of each processor's host: a job over several hosts needs a file system that they share.

use std::ffi::{CStr, OsStr, c_char, c_int};
use std::fs::File;
use std::io::{Error as IoError, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::FileExt as _;
use std::slice::from_raw_parts;

use hamlyn_splitc::{Error, GlobalAddress, Reduction};

use crate::boundary::{Place, Runtime, with};

/// Elements shorter than this are read many at a time, with those of other processors between them.
const LONG_BYTES: usize = 4096;
/// So much is read or written at a time.
const PIECE_BYTES: usize = 1 << 20;

/// Prints a text of each processor on the standard output of processor 0, in the order of their numbers. Returns when that is done.
///
/// # Safety
///
/// `text` has `bytes` bytes; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_print_text(
    text: *const c_char,
    bytes: usize,
    place: *const Place,
) {
    let own: &[u8] = match bytes {
        0 => &[],
        // SAFETY: the caller's promise.
        _ => unsafe { from_raw_parts(text.cast(), bytes) },
    };
    with("all_printf", place, |runtime| print_in_order(runtime, own));
}

fn print_in_order(runtime: &mut Runtime, own: &[u8]) -> Result<(), Error> {
    let longest = runtime.reduce_to_all(Reduction::Max, own.len() as u64)?;
    // The length before each text, and at least a byte behind.
    let array = runtime.all_spread_allocate(u64::from(runtime.procs()), 8 + longest)?;
    let (me, procs) = (runtime.proc(), runtime.procs());
    let of = |proc: u32| array.spread_add(i64::from(proc), 8 + longest, procs);
    runtime.write_bytes(of(me), &(own.len() as u64).to_le_bytes())?;
    runtime.write_bytes(of(me).add_bytes(8), own)?;
    runtime.barrier()?;
    if me == 0 {
        // SAFETY: flushing all streams of the C library is allowed at any time. What the program printed before comes before.
        unsafe { libc::fflush(std::ptr::null_mut()) };
        let mut output = std::io::stdout().lock();
        for proc in 0..procs {
            let mut length = [0; 8];
            runtime.read_bytes(of(proc), &mut length)?;
            let length = u64::from_le_bytes(length).min(longest);
            let mut text = vec![0; length as usize];
            runtime.read_bytes(of(proc).add_bytes(8), &mut text)?;
            // If nobody reads this any more, the job goes on.
            let _ = output.write_all(&text);
        }
        let _ = output.flush();
    }
    runtime.barrier()?;
    runtime.all_spread_free(array)
}

/// Fills the elements of a spread array from a file, where they lie one after the other. The result is how many whole elements there
/// were, at most `count`; or -1, with `errno` set, on all processors, if one could not read.
///
/// # Safety
///
/// `path` is a string; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_read_file(
    path: *const c_char,
    array: u64,
    count: i64,
    element_bytes: usize,
    place: *const Place,
) -> i64 {
    // SAFETY: the caller's promise.
    let path = unsafe { name_of(path) };
    with_shape(
        "all_read_file",
        place,
        (array, count, element_bytes),
        |runtime, shape| {
            let read = shape.read(runtime, path)?;
            agree(runtime, read)
        },
    )
}

/// Writes the elements of a spread array into a file, one after the other; what was in it is gone. The result is `count`; or -1, with
/// `errno` set, on all processors, if one could not write. Returns when all have written.
///
/// # Safety
///
/// `path` is a string; `place` is null or a place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn splitc_all_write_file(
    path: *const c_char,
    array: u64,
    count: i64,
    element_bytes: usize,
    place: *const Place,
) -> i64 {
    // SAFETY: the caller's promise.
    let path = unsafe { name_of(path) };
    with_shape(
        "all_write_file",
        place,
        (array, count, element_bytes),
        |runtime, shape| {
            // Made by one, then filled by all, when all have come here with what they wrote into the array.
            let made = match runtime.proc() {
                0 => File::create(path).map(|_| 0),
                _ => Ok(0),
            };
            match agree(runtime, made)? {
                Ok(_) => {
                    let written = shape.write(runtime, path)?;
                    agree(runtime, written)
                }
                failed => Ok(failed),
            }
        },
    )
}

/// # Safety
///
/// `path` is a string.
unsafe fn name_of<'p>(path: *const c_char) -> &'p OsStr {
    if path.is_null() {
        return OsStr::new("");
    }
    // SAFETY: the caller's promise.
    OsStr::from_bytes(unsafe { CStr::from_ptr(path) }.to_bytes())
}

/// The result of all: the least number, or the error of one.
fn agree(runtime: &mut Runtime, own: Result<i64, IoError>) -> Result<Result<i64, c_int>, Error> {
    let (number, code) = match own {
        Ok(number) => (number, 0),
        Err(error) => (i64::MAX, error.raw_os_error().unwrap_or(libc::EIO)),
    };
    let code = runtime.reduce_to_all(Reduction::Max, code)?;
    let number = runtime.reduce_to_all(Reduction::Min, number)?;
    Ok(if code == 0 { Ok(number) } else { Err(code) })
}

/// Does something with a spread array of so many elements of so many bytes. A number of the system for an error goes into `errno`.
fn with_shape(
    what: &str,
    place: *const Place,
    (array, count, element_bytes): (u64, i64, usize),
    act: impl FnOnce(&mut Runtime, &Shape) -> Result<Result<i64, c_int>, Error>,
) -> i64 {
    let done = with(what, place, |runtime| {
        let shape = Shape::new(runtime, array, count, element_bytes)?;
        act(runtime, &shape)
    });
    match done {
        Ok(number) => number,
        Err(code) => {
            // SAFETY: the place of the number of the last error of this thread.
            unsafe { *libc::__errno_location() = code };
            -1
        }
    }
}

/// A spread array, and which of it is here.
struct Shape {
    array: GlobalAddress,
    count: u64,
    element_bytes: usize,
    procs: u64,
    /// The first element of this processor.
    first: u64,
}

impl Shape {
    fn new(runtime: &Runtime, array: u64, count: i64, element_bytes: usize) -> Result<Self, Error> {
        let array = GlobalAddress::from_bits(array);
        let count = u64::try_from(count).ok();
        let bytes = count.and_then(|count| count.checked_mul(element_bytes as u64));
        let (Some(count), Some(0..=0x7FFF_FFFF_FFFF), 1..) = (count, bytes, element_bytes) else {
            return Err(Error::BadOperation {
                what: "a file of so many elements: count and size are not negative, and the size is not 0",
            });
        };
        let (me, procs) = (u64::from(runtime.proc()), u64::from(runtime.procs()));
        let first = (me + procs - u64::from(array.proc()) % procs) % procs;
        Ok(Self {
            array,
            count,
            element_bytes,
            procs,
            first,
        })
    }

    fn address(&self, element: u64) -> GlobalAddress {
        let procs = self.procs as u32;
        self.array
            .spread_add(element as i64, self.element_bytes as u64, procs)
    }

    fn mine(&self, count: u64) -> impl Iterator<Item = u64> + use<> {
        (self.first..count).step_by(self.procs as usize)
    }

    fn read(&self, runtime: &mut Runtime, path: &OsStr) -> Result<Result<i64, IoError>, Error> {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        let (length_bytes, mut file) = match opened {
            Ok(opened) => opened,
            Err(error) => return Ok(Err(error)),
        };
        let count = self.count.min(length_bytes / self.element_bytes as u64);
        let mut buffer = Vec::new();
        if self.element_bytes >= LONG_BYTES {
            buffer.resize(self.element_bytes, 0);
            for element in self.mine(count) {
                let at = element * self.element_bytes as u64;
                if let Err(error) = file.read_exact_at(&mut buffer, at) {
                    return Ok(Err(error));
                }
                runtime.write_bytes(self.address(element), &buffer)?;
            }
            return Ok(Ok(count as i64));
        }
        let per_piece = (PIECE_BYTES / self.element_bytes) as u64;
        let mut begin = 0;
        while begin < count {
            let end = count.min(begin + per_piece);
            buffer.resize((end - begin) as usize * self.element_bytes, 0);
            if let Err(error) = file.read_exact(&mut buffer) {
                return Ok(Err(error));
            }
            for element in self.mine(end).skip_while(|element| *element < begin) {
                let at = (element - begin) as usize * self.element_bytes;
                let bytes = &buffer[at..at + self.element_bytes];
                runtime.write_bytes(self.address(element), bytes)?;
            }
            begin = end;
        }
        Ok(Ok(count as i64))
    }

    fn write(&self, runtime: &mut Runtime, path: &OsStr) -> Result<Result<i64, IoError>, Error> {
        let file = match File::options().write(true).open(path) {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        let mut buffer = vec![0; self.element_bytes];
        if self.element_bytes >= LONG_BYTES {
            for element in self.mine(self.count) {
                runtime.read_bytes(self.address(element), &mut buffer)?;
                let at = element * self.element_bytes as u64;
                if let Err(error) = file.write_all_at(&buffer, at) {
                    return Ok(Err(error));
                }
            }
            return Ok(Ok(self.count as i64));
        }
        // Whole pieces of the file, those of different processors in turn: elements of others are read.
        let per_piece = (PIECE_BYTES / self.element_bytes) as u64;
        let mut begin = u64::from(runtime.proc()) * per_piece;
        while begin < self.count {
            let end = self.count.min(begin + per_piece);
            buffer.resize((end - begin) as usize * self.element_bytes, 0);
            for (element, into) in (begin..end).zip(buffer.chunks_mut(self.element_bytes)) {
                runtime.read_bytes(self.address(element), into)?;
            }
            if let Err(error) = file.write_all_at(&buffer, begin * self.element_bytes as u64) {
                return Ok(Err(error));
            }
            begin += per_piece * self.procs;
        }
        Ok(Ok(self.count as i64))
    }
}
