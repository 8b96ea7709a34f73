//! The trace of this process: one file for all its interfaces, if the environment names one
//! (decision 13).
//!
//! A program that has more rights than the user who started it is not traced: it would write where
//! that user may not, and show what that user may not see.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use hamlyn_link::trace::Trace;

use super::NetworkError;

/// The file. See [`hamlyn_link::trace`].
const TRACE: &str = "HAMLYN_TRACE";
/// The kernel's word, in the auxiliary vector, that a program has more rights than the user who
/// started it.
const AT_SECURE: usize = 23;

/// The trace, if one is wanted.
pub(super) fn of_this_process() -> Result<Option<Arc<Trace>>, NetworkError> {
    static OPENED: Mutex<Option<Arc<Trace>>> = Mutex::new(None);
    let Some(path) = std::env::var_os(TRACE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let path = PathBuf::from(path);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    if opened.is_none() {
        *opened = Some(Arc::new(open(&path)?));
    }
    Ok(opened.clone())
}

fn open(path: &Path) -> Result<Trace, NetworkError> {
    let failed = |reason: String| NetworkError::Trace {
        path: path.to_owned(),
        reason,
    };
    let vector = std::fs::read("/proc/self/auxv");
    // Of such a program not even this can be read.
    if vector.map_or(true, |vector| has_more_rights(&vector)) {
        return Err(failed(
            "this program has more rights than the user who started it".to_owned(),
        ));
    }
    Trace::open(path).map_err(|error| failed(error.to_string()))
}

/// Whether the auxiliary vector says so; it is a row of pairs of words.
fn has_more_rights(vector: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map(usize::from_ne_bytes).unwrap_or(0);
    vector.chunks_exact(2 * size_of::<usize>()).any(|pair| {
        let (kind, value) = pair.split_at(size_of::<usize>());
        word(kind) == AT_SECURE && word(value) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vector(pairs: &[(usize, usize)]) -> Vec<u8> {
        let words = pairs.iter().flat_map(|&(kind, value)| [kind, value]);
        words.flat_map(usize::to_ne_bytes).collect()
    }

    #[test]
    fn more_rights_are_what_the_kernel_says() {
        assert!(!has_more_rights(&vector(&[(3, 1), (23, 0), (0, 0)])));
        assert!(has_more_rights(&vector(&[(3, 0), (23, 1), (0, 0)])));
        assert!(!has_more_rights(&vector(&[(23, 0), (24, 23), (25, 1)])));
        let own = std::fs::read("/proc/self/auxv").unwrap();
        assert!(!has_more_rights(&own));
    }
}
