//! Pools: memory that one program writes in place, and that peers only read (decision 24), without a protocol.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hamlyn::forks::Birth;
use hamlyn::pool::{self, Chunks, PoolError};
use pyo3::exceptions::{PyBufferError, PyIndexError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::bytes::with_writable;
use crate::connecting::{self, Connect};
use crate::error::{Failure, Kind};
use crate::gate::{Guarded, forked};
use crate::host::Handle;
use crate::lending::{has_views, released};
use crate::message::fill;
use crate::number;
use crate::peer::Peer;
use crate::ticket::Ticket;

impl From<PoolError> for Failure {
    #[cold]
    fn from(error: PoolError) -> Self {
        let kind = match error {
            PoolError::Memory(_) => Kind::SystemFailed,
            _ => Kind::Invalid,
        };
        Self::of(kind, &error)
    }
}

/// What a pool and its chunks share.
struct Pooled {
    pool: Mutex<pool::Pool>,
    chunk_bytes: usize,
    /// Of the process that made it.
    birth: Birth,
}

impl Pooled {
    fn enter(&self) -> Result<MutexGuard<'_, pool::Pool>, Failure> {
        self.check_fork()?;
        Ok(self.pool.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn check_fork(&self) -> Result<(), Failure> {
        match self.birth.is_here() {
            true => Ok(()),
            false => Err(forked()),
        }
    }
}

/// `count` chunks of memory for messages of up to `chunk_bytes` each, all of it present. This program writes them, and peers that fetch the pool
/// (`Interface.show_pool`, `fetch_pool`) read them. What a pool holds, now or later, is not secret from anybody to whom it was shown. Any
/// thread may use it.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Pool(Arc<Pooled>);

#[pymethods]
impl Pool {
    /// Allocates it. Invalid if it would be empty, or 4 GiB and more.
    #[new]
    #[pyo3(signature = (chunk_bytes, count))]
    fn new(
        #[pyo3(from_py_with = number::chunk_bytes)] chunk_bytes: usize,
        #[pyo3(from_py_with = number::count)] count: u32,
    ) -> PyResult<Self> {
        let pool = pool::Pool::new(chunk_bytes, count).map_err(Failure::from)?;
        Ok(Self(Arc::new(Pooled {
            pool: Mutex::new(pool),
            chunk_bytes,
            birth: Birth::here(),
        })))
    }

    /// A free chunk for a message of so many bytes; None if none is free. TooLong if the message is longer than a chunk.
    fn take(
        &self,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<Option<Chunk>> {
        if length > self.0.chunk_bytes {
            let text = format_args!(
                "a message of {length} bytes, and chunks of {}: make a pool with longer ones",
                self.0.chunk_bytes
            );
            return Err(Failure::of(Kind::TooLong, &text).into());
        }
        let mut chunk = match self.0.enter()?.chunks().take(length) {
            Some(chunk) => chunk,
            None => return Ok(None),
        };
        Ok(Some(Chunk {
            data: chunk.as_mut_ptr(),
            length,
            index: chunk.index(),
            views: AtomicUsize::new(0),
            chunk: Mutex::new(Some(chunk)),
            pooled: Arc::clone(&self.0),
        }))
    }

    /// Takes a chunk back, to be given out again. BufferError if a memoryview or an array on it is alive. A chunk that is deleted without this is
    /// never given out again.
    fn give_back(&self, chunk: &Chunk) -> PyResult<()> {
        if !Arc::ptr_eq(&self.0, &chunk.pooled) {
            return Err(Failure::new(Kind::Invalid, "the chunk is another pool's").into());
        }
        let mut pool = self.0.enter()?;
        let mut held = chunk.held();
        if chunk.views.load(Ordering::SeqCst) != 0 {
            drop((held, pool));
            return Err(has_views("chunk").into());
        }
        let Some(whole) = held.take() else {
            drop((held, pool));
            return Err(released("chunk").into());
        };
        pool.chunks().give_back(whole);
        Ok(())
    }

    /// How many chunks there are.
    #[getter]
    fn count(&self) -> PyResult<u32> {
        Ok(self.0.enter()?.state().count())
    }

    /// How many are free.
    #[getter]
    fn free(&self) -> PyResult<usize> {
        Ok(self.0.enter()?.state().free())
    }

    /// Bytes of the longest message.
    #[getter]
    fn chunk_bytes(&self) -> usize {
        self.0.chunk_bytes
    }

    /// How many bytes those who fetch it see.
    fn __len__(&self) -> PyResult<usize> {
        let length = self.0.enter()?.length_bytes();
        Ok(usize::try_from(length).unwrap_or(usize::MAX))
    }
}

/// A chunk of a pool that was taken: memory to be written in place, by the buffer protocol.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct Chunk {
    pooled: Arc<Pooled>,
    /// Nothing: it was given back.
    chunk: Mutex<Option<pool::Chunk>>,
    data: *mut u8,
    length: usize,
    index: u32,
    views: AtomicUsize,
}

// SAFETY: the pointer leads to memory of the chunk, and is used while a view is counted, during which the chunk stays.
unsafe impl Send for Chunk {}
// SAFETY: as above.
unsafe impl Sync for Chunk {}

impl Chunk {
    fn held(&self) -> MutexGuard<'_, Option<pool::Chunk>> {
        self.chunk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Chunk {
    fn __len__(&self) -> usize {
        self.length
    }

    /// Its number in the pool.
    #[getter]
    fn index(&self) -> u32 {
        self.index
    }

    /// Where it lies in what those see who fetch the pool.
    #[getter]
    fn offset(&self) -> usize {
        Chunks::offset_of(self.index, self.pooled.chunk_bytes)
    }

    /// Whether it was given back.
    #[getter]
    fn released(&self) -> bool {
        self.held().is_none()
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        this.pooled.check_fork()?;
        {
            let held = this.held();
            if held.is_none() {
                drop(held);
                return Err(released("chunk").into());
            }
            this.views.fetch_add(1, Ordering::SeqCst);
        }
        // SAFETY: a view is counted, so that the chunk is not given back, and the object lives as long as its views.
        let filled = unsafe { fill(view, slf.as_any(), this.data, this.length, false, flags) };
        if filled.is_err() {
            this.views.fetch_sub(1, Ordering::SeqCst);
        }
        filled
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {
        self.views.fetch_sub(1, Ordering::SeqCst);
    }

    fn __repr__(&self) -> String {
        let released = if self.released() { ", released" } else { "" };
        format!("<hamlyn.Chunk of {} bytes{released}>", self.length)
    }
}

/// A pool of a peer, which this program only reads. Its owner may write it at any time, so it is read by copies; fetched with `trust_peers`,
/// it has the buffer protocol, read-only. It stays mapped as long as this or a view lives, also after its owner's end. Any thread may use it.
#[pyclass(frozen, module = "hamlyn")]
pub(crate) struct SharedPool {
    pool: pool::SharedPool,
    is_trusting: bool,
}

impl SharedPool {
    fn view(&self, offset: usize, length: usize) -> PyResult<hamlyn::View<'_>> {
        let view = self.pool.view(offset, length);
        view.ok_or_else(|| PyIndexError::new_err("that does not lie in the pool"))
    }

    fn length(&self) -> usize {
        usize::try_from(self.pool.length_bytes()).unwrap_or(usize::MAX)
    }
}

#[pymethods]
impl SharedPool {
    fn __len__(&self) -> usize {
        self.length()
    }

    /// A copy of so many bytes from `offset` on, `Chunk.offset`. Bytes that are written meanwhile come out old or new.
    fn read<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = number::offset)] offset: usize,
        #[pyo3(from_py_with = number::length)] length: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let view = self.view(offset, length)?;
        PyBytes::new_with(py, length, |into| {
            let outside = |_| PyIndexError::new_err("that does not lie in the pool");
            view.read_at(0, into).map_err(outside)
        })
    }

    /// Copies from `offset` on into a buffer that can be written, all of which is filled.
    #[pyo3(signature = (buffer, offset=0))]
    fn read_into(
        &self,
        buffer: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = number::offset)] offset: usize,
    ) -> PyResult<()> {
        with_writable(buffer, "the buffer", |into| {
            let outside = |_| PyIndexError::new_err("that does not lie in the pool");
            self.view(offset, into.len())?
                .read_at(0, into)
                .map_err(outside)
        })
    }

    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let this = slf.get();
        if !this.is_trusting {
            return Err(PyBufferError::new_err(
                "the pool's owner may write it at any time, so a view of it is not safe to use: copy with `read` or `read_into`, or, if it is trusted, fetch the pool with trust_peers=True",
            ));
        }
        let length = this.length();
        // SAFETY: the program says that it trusts the owner not to write what it shows; the mapping lives as long as this object, which
        // its views hold.
        let bytes = unsafe { this.view(0, length)?.as_slice() };
        // SAFETY: as above.
        unsafe { fill(view, slf.as_any(), bytes.as_ptr(), length, true, flags) }
    }

    unsafe fn __releasebuffer__(&self, _view: *mut ffi::Py_buffer) {}

    fn __repr__(&self) -> String {
        format!("<hamlyn.SharedPool of {} bytes>", self.length())
    }
}

/// Whose pool.
#[derive(FromPyObject)]
pub(crate) enum PoolOwner<'py> {
    Ticket(PyRef<'py, Ticket>),
    Peer(PyRef<'py, Peer>),
}

pub(crate) fn show(manager: &Arc<Guarded<Handle>>, pool: &Pool, peer: &Peer) -> PyResult<u64> {
    let entered = manager.enter()?;
    let pool = pool.0.enter()?;
    let shown = entered
        .session()
        .show_pool(&pool, hamlyn::Holders::One(peer.identity.link));
    Ok(shown.map_err(Failure::from)?)
}

pub(crate) fn fetching(owner: &PoolOwner<'_>, number: u64, is_trusting: bool) -> Connect {
    let from = match owner {
        PoolOwner::Ticket(ticket) => ticket.0.destination,
        PoolOwner::Peer(peer) => peer.identity.interface,
    };
    connecting::fetching(
        move |it, wait| it.session().fetch_pool(from, number, wait),
        move |manager, pool| {
            let pool = SharedPool { pool, is_trusting };
            Ok(Py::new(manager.py(), pool)?.into_any())
        },
    )
}
