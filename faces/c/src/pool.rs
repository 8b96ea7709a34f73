//! Pools (decision 24): memory in chunks that this program writes in place, and that the peers to which it is shown only read. Loans are
//! made of them.

use std::ffi::c_void;

use hamlyn::engine::memory::LinkId;
use hamlyn::pool::{Chunk as Taken, Chunks, Pool, PoolError, SharedPool};

use crate::boundary::{bytes_mut, call, room, wait_of};
use crate::handle::{self, kind};
use crate::lower::with_interface;
use crate::manager::ManagerHandle;
use crate::region::holders_of;
use crate::status::{Error, Failure, Status};

/// A pool of this program's. Any thread may use it, one at a time.
#[derive(Debug)]
pub struct PoolHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct OwnPool {
    pool: Pool,
    /// By their numbers.
    taken: Vec<Option<Taken>>,
}

kind!(PoolHandle, OwnPool, 31, "pool");

/// A pool of a peer's, which this program reads. Any thread may use it, one at a time.
#[derive(Debug)]
pub struct SharedPoolHandle {
    _of_the_library: [u8; 0],
}

kind!(SharedPoolHandle, SharedPool, 32, "shared pool");

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        let status = match &error {
            PoolError::Size { .. } => Status::Invalid,
            _ => Status::System,
        };
        Self::of(status, &error)
    }
}

/// Makes a pool of `chunks` chunks of up to `chunk_bytes` bytes, less than 4 GiB together. Allocates all of it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_pool(
    chunk_bytes: usize,
    chunks: u32,
    pool: *mut *mut PoolHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the pool", pool)?;
        let pool = Pool::new(chunk_bytes, chunks)?;
        let taken = (0..chunks).map(|_| None).collect();
        place.put(handle::make_for_any_thread(OwnPool { pool, taken }));
        Ok(())
    })
}

/// A chunk that was taken from a pool.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Its first byte, for this program to write and read until the chunk is given back or the pool is closed. Peers that have the pool read
    /// it at any time.
    pub data: *mut c_void,
    /// How many bytes were asked for.
    pub length_bytes: usize,
    /// Where it lies in the pool, for hamlyn_read_shared_pool of peers.
    pub offset: u64,
    /// Its number, for hamlyn_give_back_chunk.
    pub index: u32,
}

/// Takes a free chunk for `length_bytes` bytes; they are those of some use before. HAMLYN_TIMED_OUT if none is free, HAMLYN_TOO_LONG if chunks
/// are shorter. Does not block, and does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_take_chunk(
    pool: *mut PoolHandle,
    length_bytes: usize,
    chunk: *mut Chunk,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the chunk", chunk)?;
        handle::with(pool, |OwnPool { pool, taken }| {
            let chunk_bytes = pool.state().chunk_bytes();
            if length_bytes > chunk_bytes {
                return Err(Failure::of(
                    Status::TooLong,
                    &format_args!("the chunks of this pool have {chunk_bytes} bytes"),
                ));
            }
            let mut chunk = pool
                .chunks()
                .take(length_bytes)
                .ok_or(Failure::timed_out("no chunk is free: give one back"))?;
            let index = chunk.index();
            place.put(Chunk {
                data: chunk.as_mut_ptr().cast(),
                length_bytes,
                offset: Chunks::offset_of(index, chunk_bytes) as u64,
                index,
            });
            taken[index as usize] = Some(chunk);
            Ok(())
        })
    })
}

/// Gives a chunk back: it must not be written any more. What it holds stays for those who read it, until it is taken again. HAMLYN_INVALID if
/// no chunk of that number is taken.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_give_back_chunk(
    pool: *mut PoolHandle,
    index: u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(pool, |OwnPool { pool, taken }| {
            let chunk = taken.get_mut(index as usize).and_then(Option::take);
            let chunk = chunk.ok_or(Failure::new(
                Status::Invalid,
                "no chunk of that number is taken: it was given back before, or is another pool's",
            ))?;
            pool.chunks().give_back(chunk);
            Ok(())
        })
    })
}

/// What a pool is like.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PoolInfo {
    /// Bytes of all of it, as peers map it.
    pub length_bytes: u64,
    /// The most bytes that a chunk has.
    pub chunk_bytes: usize,
    /// How many chunks there are.
    pub chunks: u32,
    /// How many are free.
    pub free: u32,
}

/// Tells what a pool is like.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_pool_info(
    pool: *mut PoolHandle,
    info: *mut PoolInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", info)?;
        handle::with(pool, |OwnPool { pool, .. }| {
            let state = pool.state();
            place.put(PoolInfo {
                length_bytes: pool.length_bytes(),
                chunk_bytes: state.chunk_bytes(),
                chunks: state.count(),
                free: state.free() as u32,
            });
            Ok(())
        })
    })
}

/// Lets the peer of a link, on this host, fetch a pool once, or with HAMLYN_ALL_LINKED every peer that is linked, with the number that `number` is told (hamlyn_fetch_pool); send it in a message.
/// It reads all of the pool, now and later, for as long as it likes: nothing that is ever in it is secret from it. HAMLYN_PEER_LOST if
/// the link is not up, HAMLYN_LIMIT or HAMLYN_SYSTEM if too much waits to be fetched. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_show_pool(
    manager: *mut ManagerHandle,
    pool: *mut PoolHandle,
    link: u64,
    number: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", number)?;
        handle::with(pool, |OwnPool { pool, .. }| {
            place.put(with_interface!(manager, interface => {
                Ok(interface.show_pool(pool, holders_of(link))?)
            })?);
            Ok(())
        })
    })
}

/// A pool that was shown and not fetched cannot be fetched any more with that number. Nothing for any other number.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_hide_pool(
    manager: *mut ManagerHandle,
    number: u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        with_interface!(manager, interface => {
            interface.hide_pool(number);
            Ok(())
        })
    })
}

/// Closes a pool: its chunks must not be written any more. Peers keep what they have mapped. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_pool(pool: *mut PoolHandle, error: *mut Error) -> Status {
    call(error, || handle::close(pool).map(drop))
}

/// Fetches the pool that the peer of a link shows under that number, if the kernel confirms that it can neither shrink nor be written by others
/// than its owner. HAMLYN_NOT_FOUND if the link is not known, or if nothing is shown under that number. Blocks for `wait_ns` at most. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_fetch_pool(
    manager: *mut ManagerHandle,
    link: u64,
    number: u64,
    wait_ns: i64,
    pool: *mut *mut SharedPoolHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the pool", pool)?;
        let fetched = with_interface!(manager, interface => {
            let peer = interface.identity_of(LinkId::from_bits(link)).ok_or(Failure::new(
                Status::NotFound,
                "the peer that shows the pool is not known: the link has ended long ago",
            ))?;
            let fetched = interface.fetch_pool(peer.interface, number, wait_of(wait_ns));
            Ok(fetched?)
        })?;
        place.put(handle::make_for_any_thread(fetched));
        Ok(())
    })
}

/// How many bytes a pool of a peer has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_shared_pool_bytes(
    pool: *mut SharedPoolHandle,
    length_bytes: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        handle::with(pool, |pool| {
            place.put(pool.length_bytes());
            Ok(())
        })
    })
}

const OUTSIDE: Failure = Failure::new(Status::Invalid, "that does not lie in the pool");

/// Copies bytes out of a pool of a peer. The peer may write them at any time: check what was copied, and copy it once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_shared_pool(
    pool: *mut SharedPoolHandle,
    offset: u64,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(pool, |pool| {
            let offset = usize::try_from(offset).map_err(|_| OUTSIDE)?;
            let view = pool.view(offset, length_bytes).ok_or(OUTSIDE)?;
            view.read_at(0, into).map_err(|_| OUTSIDE)
        })
    })
}

/// Tells where bytes of a peer's pool lie, until the pool's handle is closed. The peer may write them at any time: use atomic loads, or volatile
/// ones, unless it is trusted not to. They may only be read: the kernel ends a program that writes them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_view_shared_pool(
    pool: *mut SharedPoolHandle,
    offset: u64,
    length_bytes: usize,
    data: *mut *const c_void,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the bytes", data)?;
        handle::with(pool, |pool| {
            let offset = usize::try_from(offset).map_err(|_| OUTSIDE)?;
            let view = pool.view(offset, length_bytes).ok_or(OUTSIDE)?;
            place.put(view.as_ptr().cast());
            Ok(())
        })
    })
}

/// Closes a pool of a peer: its memory is unmapped. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_shared_pool(
    pool: *mut SharedPoolHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(pool).map(drop))
}
