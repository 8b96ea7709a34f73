//! Pools: memory in chunks that its owner writes in place, and that peers of the same host only
//! read (decision 0024). [`loans`](crate::loans) are made of them; a program that lays its messages
//! out in its own way shows a pool by itself.
//!
//! ```
//! use hamlyn::pool::{Chunks, Pool};
//! use hamlyn::{Holders, NewSlot, Wait};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let owner = hamlyn::open_unnamed()?;
//! let mut pool = Pool::new(1000, 4)?;
//! let mut chunk = pool.chunks().take(5).expect("a chunk is free");
//! chunk.copy_from_slice(b"frame");
//!
//! // Another program, which makes a link to the owner by some ticket.
//! let reader = hamlyn::open_unnamed()?;
//! let area = owner.session().allocate(64)?;
//! let slot = owner.session().open_slot(NewSlot::new(&area))?;
//! let ticket = slot.fast_ticket(0, 64)?;
//! let target = reader.session().target(&ticket, Wait::millis(5000))?;
//!
//! // The number would travel in a message.
//! owner.session().poll();
//! let (link, _) = owner.session().peers().next().map(|(link, peer)| (link, peer.clone())).expect("it is linked");
//! let number = owner.session().show_pool(&pool, Holders::One(link))?;
//! let owner_of = target.ticket().destination;
//! let shared = reader.session().fetch_pool(owner_of, number, Wait::millis(5000))?;
//! let mut frame = [0; 5];
//! let view = shared.view(Chunks::offset_of(chunk.index(), 1000), 5).expect("it lies in the pool");
//! view.read_at(0, &mut frame)?;
//! assert_eq!(&frame, b"frame");
//!
//! // It is fetched once.
//! assert!(reader.session().fetch_pool(owner_of, number, Wait::Poll).is_err());
//! # Ok(())
//! # }
//! ```

pub use hamlyn_ring::pool::{Chunk, Chunks, Pool, PoolError, SharedPool};
