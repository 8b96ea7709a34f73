//! The simulator: a world in virtual time, in which programs that use the library run unchanged.
//!
//! It is the third host, never shipped in a product (decision 0011). One seed is one history:
//! nothing here reads a clock, starts a thread, or asks the system for anything random, and nothing
//! depends on the order of a hash table.
//!
//! ```
//! use hamlyn::{Host, Manager, ManagerOptions, Wait};
//! use hamlyn_sim::network::{Mesh, Impairment};
//! use hamlyn_sim::random::Random;
//! use hamlyn_sim::time::{Span, Time};
//! use hamlyn_sim::world::{Settings, Simulation};
//!
//! type Failed = Box<dyn std::error::Error>;
//!
//! /// On any host.
//! fn serve<H: Host>(here: Manager<H>) -> Result<(), Failed> {
//!     let mut inbox = here.bind_datagram("inbox", 4096)?;
//!     let message = inbox.recv(Wait::Forever)?.ok_or("nothing came")?;
//!     assert_eq!(*message, *b"hello");
//!     Ok(())
//! }
//!
//! fn greet<H: Host>(there: Manager<H>) -> Result<(), Failed> {
//!     let outbox = there.connect_datagram("alice/inbox", Wait::Forever)?;
//!     outbox.send(b"hello", Wait::Forever)?;
//!     there.flush(Wait::Forever)?;
//!     Ok(())
//! }
//!
//! fn main() -> Result<(), Failed> {
//!     let options = ManagerOptions::default();
//!     let mut world = Simulation::new(Settings { seed: 7, ..Settings::default() });
//!     let (one, other) = (world.node(2), world.node(2));
//!     let impairments = [Impairment::Delay { delay_ps: 2_000_000 }, Impairment::Lose { per_million: 200_000, run_frames: 1 }];
//!     let network = Mesh::new(2, &impairments, &mut Random::new(7))?;
//!     world.set_network(Box::new(network), Span::from_us(20_000));
//!     world.process(one, "alice", || serve(hamlyn_sim::host::open(Some("alice"), options).unwrap()).unwrap());
//!     world.process(other, "bob", || greet(hamlyn_sim::host::open(None, options).unwrap()).unwrap());
//!     let outcome = world.run(Time::NEVER);
//!     assert!(outcome.failures.is_empty(), "{:?}", outcome.failures);
//!     println!("{} events, over at {}", outcome.events, outcome.at);
//!     Ok(())
//! }
//! ```

#![forbid(unsafe_code)]

pub mod divert;
mod event_queue;
pub mod host;
pub mod link;
pub mod machine;
pub mod network;
pub mod random;
pub mod reference;
pub mod reproduce;
pub mod scenario;
pub mod time;
pub mod world;
