//! Areas that change hands: memory in pieces, each of which is open to the interface, or in the program's hands, which reads it in place.
//!
//! A view object shows pieces as they were when it was made. Once one of them was opened again, it raises. While a `memoryview` of it is
//! alive, which CPython cannot take back, its pieces cannot be opened. So no view shows what the interface writes.

use std::ffi::c_int;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::{PyIndexError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::area::Area;
use crate::error::{Failure, Kind};
use crate::gate::{Guarded, forked};
use crate::host::Handle;
use crate::lending::has_views;
use crate::message::fill;
use crate::number;

/// What the views of each piece hang on.
struct Pieces {
    /// How often pieces were opened.
    turns: u64,
    /// In which turn each was opened last.
    opened: Box<[u64]>,
    /// How many memoryviews show a part of it.
    views: Box<[usize]>,
}

/// What a reader and its views share.
struct Handed {
    reader: Guarded<hamlyn::HandoverReader>,
    pieces: Mutex<Pieces>,
    count: u32,
    piece_bytes: u32,
}

impl Handed {
    fn pieces(&self) -> MutexGuard<'_, Pieces> {
        self.pieces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn no_such_piece(&self) -> PyErr {
        PyIndexError::new_err(format!("the area has {} pieces", self.count))
    }
}

/// The program's end of an area that changes hands: shows the pieces that it has, and opens them to the interface again. Messages come into
/// open pieces alone; when one is whole, its pieces are the program's.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct HandoverReader(Arc<Handed>);

/// Allocates such an area. All pieces are the program's at first.
pub(crate) fn allocate(
    manager: &Arc<Guarded<Handle>>,
    pieces: u32,
    piece_bytes: u32,
) -> PyResult<(Area, HandoverReader)> {
    let entered = manager.enter()?;
    let allocated = entered.session().allocate_handover(pieces, piece_bytes);
    let (area, reader) = allocated.map_err(Failure::from)?;
    let length_bytes = u64::from(pieces) * u64::from(piece_bytes);
    let states = Pieces {
        turns: 0,
        opened: vec![0; pieces as usize].into(),
        views: vec![0; pieces as usize].into(),
    };
    let handed = Handed {
        reader: Guarded::new(manager.gate(), "reader of an area", reader),
        pieces: Mutex::new(states),
        count: pieces,
        piece_bytes,
    };
    Ok((
        Area::handover(manager.gate(), area, length_bytes),
        HandoverReader(Arc::new(handed)),
    ))
}

#[pymethods]
impl HandoverReader {
    /// Opens pieces to the interface, a `range` of their numbers. BufferError if a memoryview or an array that shows one of them is alive. Views
    /// of them raise Released from now on.
    fn open(&self, pieces: &Bound<'_, PyAny>) -> PyResult<()> {
        let number = |name: &str| -> PyResult<i64> {
            let attribute = pieces.getattr(name).map_err(|_| {
                PyTypeError::new_err("pieces are opened by a range of their numbers: range(0, 4)")
            })?;
            attribute.extract().map_err(|_| self.0.no_such_piece())
        };
        let (start, stop, step) = (number("start")?, number("stop")?, number("step")?);
        if step != 1 {
            return Err(PyTypeError::new_err("the pieces follow one another"));
        }
        let of = |number: i64| u32::try_from(number).map_err(|_| self.0.no_such_piece());
        let (start, stop) = (of(start)?, of(stop)?);
        self.open_range(start..stop.max(start))
    }

    /// Opens one piece.
    fn open_one(&self, #[pyo3(from_py_with = number::piece)] piece: u32) -> PyResult<()> {
        let end = piece.checked_add(1).ok_or_else(|| self.0.no_such_piece())?;
        self.open_range(piece..end)
    }

    /// Bytes from `offset` on, in place, if all pieces in which they lie are the program's: Released otherwise. It has the buffer protocol,
    /// read-only.
    fn view(
        &self,
        #[pyo3(from_py_with = number::offset)] offset: u64,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<HandoverView> {
        let handed = &self.0;
        let reader = handed.reader.enter()?;
        let pieces = reader.pieces_of(offset, length);
        let pieces =
            pieces.ok_or_else(|| PyIndexError::new_err("that does not lie in the area"))?;
        let bytes = reader.view(offset, length).ok_or(Failure::new(
            Kind::Released,
            "a piece of that range is open to the interface: it is the program's again when a message to it is whole",
        ))?;
        let (data, turn) = (bytes.as_ptr(), handed.pieces().turns);
        Ok(HandoverView {
            handed: Arc::clone(handed),
            data,
            length,
            pieces: pieces.start as usize..pieces.end as usize,
            turn,
        })
    }

    /// Whether a piece is the program's.
    fn is_held(&self, #[pyo3(from_py_with = number::piece)] piece: u32) -> PyResult<bool> {
        if piece >= self.0.count {
            return Err(self.0.no_such_piece());
        }
        Ok(self.0.reader.enter()?.is_held(piece))
    }

    /// How many pieces there are.
    #[getter]
    fn pieces(&self) -> u32 {
        self.0.count
    }

    /// Bytes of a piece.
    #[getter]
    fn piece_bytes(&self) -> u32 {
        self.0.piece_bytes
    }

    fn __repr__(&self) -> String {
        let Handed {
            count, piece_bytes, ..
        } = *self.0;
        format!("<hamlyn.HandoverReader of {count} pieces of {piece_bytes} bytes>")
    }
}

impl HandoverReader {
    fn open_range(&self, range: Range<u32>) -> PyResult<()> {
        let handed = &self.0;
        if range.end > handed.count {
            return Err(handed.no_such_piece());
        }
        let touched = range.start as usize..range.end as usize;
        let mut reader = handed.reader.enter()?;
        // As long as this is locked, no memoryview is made.
        let mut pieces = handed.pieces();
        if pieces.views[touched.clone()].iter().any(|&views| views > 0) {
            drop(pieces);
            return Err(has_views("piece").into());
        }
        pieces.turns += 1;
        let turn = pieces.turns;
        pieces.opened[touched].fill(turn);
        reader.open(range);
        Ok(())
    }
}

/// Bytes of an area that changes hands, which are the program's. It reads as its bytes, by the buffer protocol. After a piece in which they
/// lie was opened again, it raises Released.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct HandoverView {
    handed: Arc<Handed>,
    data: *const u8,
    length: usize,
    pieces: Range<usize>,
    /// Pieces that were opened in a later turn are not those of this view.
    turn: u64,
}

// SAFETY: the memory is read while a view is counted, during which its pieces are not opened, and nobody writes them; it is mapped as long
// as the reader is there.
unsafe impl Send for HandoverView {}
// SAFETY: as above.
unsafe impl Sync for HandoverView {}

impl HandoverView {
    fn is_stale(&self, pieces: &Pieces) -> bool {
        let opened = &pieces.opened[self.pieces.clone()];
        opened.iter().any(|&turn| turn > self.turn)
    }

    /// Counts a view of each piece.
    fn begin_view(&self) -> Result<(), Failure> {
        if self.handed.reader.gate().is_forked() {
            return Err(forked());
        }
        let mut pieces = self.handed.pieces();
        if self.is_stale(&pieces) {
            return Err(Failure::new(
                Kind::Released,
                "a piece of this view was opened to the interface: ask the reader for another view when a message has come",
            ));
        }
        let views = pieces.views[self.pieces.clone()].iter_mut();
        views.for_each(|views| *views += 1);
        Ok(())
    }

    fn end_view(&self) {
        let mut pieces = self.handed.pieces();
        let views = pieces.views[self.pieces.clone()].iter_mut();
        views.for_each(|views| *views -= 1);
    }
}

#[pymethods]
impl HandoverView {
    fn __len__(&self) -> usize {
        self.length
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        this.begin_view()?;
        // SAFETY: a view of its pieces is counted, so that the bytes stay until `end_view`.
        let filled = unsafe { fill(view, slf.as_any(), this.data, this.length, true, flags) };
        if filled.is_err() {
            this.end_view();
        }
        filled
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.end_view();
    }

    /// A copy of the bytes.
    fn __bytes__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.begin_view()?;
        let bytes = match self.length {
            0 => &[],
            // SAFETY: a view of its pieces is counted, so that the bytes stay until `end_view`.
            length => unsafe { std::slice::from_raw_parts(self.data, length) },
        };
        let copy = PyBytes::new(py, bytes);
        self.end_view();
        Ok(copy)
    }

    /// Whether a piece in which it lies was opened again.
    #[getter]
    fn released(&self) -> bool {
        self.is_stale(&self.handed.pieces())
    }

    fn __repr__(&self) -> String {
        let released = if self.released() { ", released" } else { "" };
        format!("<hamlyn.HandoverView of {} bytes{released}>", self.length)
    }
}
