//! A distributed lock manager over Hamlyn, in the tradition of the VMS lock manager (decision 57).
//!
//! A *resource* is a name. A [`Lock`] on it is held in one of six [`Mode`]s, and waits while others
//! hold it in a mode that is not compatible. Each resource is mastered by one [`LockServer`], which
//! each [`LockClient`] finds by the resource's name.
//!
//! ```
//! use hamlyn::Wait;
//! use hamlyn::host::process::Options;
//! use hamlyn_am::{Node, NodeOptions, Tag};
//! use hamlyn_locks::{LockClient, LockServer, Mode, ServerOptions};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server_name = format!("locks-doc-{}", std::process::id());
//! # let server_name = server_name.as_str();
//! let long = Wait::millis(5_000);
//! let (ready, is_ready) = std::sync::mpsc::channel();
//! # std::thread::scope(|scope| {
//! // Usually in a process of its own.
//! let server = scope.spawn(move || {
//!     let node = Node::open(Options::named(server_name), NodeOptions::default()).unwrap();
//!     let servers = [server_name];
//!     let options = ServerOptions::default();
//!     let mut server = LockServer::open(&node, server_name, &servers, options).unwrap();
//!     ready.send(()).unwrap();
//!     while server.statistics().requests < 2 {
//!         server.serve(Wait::millis(100)).unwrap();
//!     }
//! });
//! is_ready.recv().unwrap();
//! let node = Node::open(Options::default(), NodeOptions::default()).unwrap();
//! let client = LockClient::open(&node, &[server_name], Tag::Any).unwrap();
//! let lock = client.acquire("accounts/17", Mode::Ex, long).unwrap();
//! // Nobody else has it.
//! drop(lock);
//! server.join().unwrap();
//! # });
//! # Ok(())
//! # }
//! ```
//!
//! **Fairness.** Waiting locks are granted in the order of their requests. Conversions go before new
//! requests, but a new request is passed by eight of them at most, unless the lock that is
//! converted blocks it already.
//!
//! **Deadlocks** among the locks of one server are found when a request would close a circle: it is
//! refused ([`Refusal::Deadlock`]). Those over several servers end by a time-out.
//!
//! **Deaths.** The locks of a client whose process has ended are released. If one was held in PW or
//! EX, the value block of its resource is [not valid](ValueBlock::NotValid) until it is written
//! again. If a server ends, all of its locks are lost ([`LockError::ServerLost`]).
//!
//! **Cost.** A lock that is free takes one request and one reply, and its release one request. The
//! client allocates when it first uses a server, and when it has more locks than before.
//!
//! **Limits.** All that a client can have a server keep is [limited](Limits) and refused by name.
#![forbid(unsafe_code)]

mod client;
mod clients;
mod error;
mod lock;
mod mode;
mod options;
mod refusal;
mod resource;
mod server;
mod servers;
mod session;
mod table;
mod wire;

pub use client::LockClient;
pub use clients::ServerStatistics;
pub use error::LockError;
pub use lock::{Lock, ValueBlock};
pub use mode::Mode;
pub use options::{Limits, ServerOptions};
pub use refusal::Refusal;
pub use resource::VALUE_BYTES;
pub use server::LockServer;
