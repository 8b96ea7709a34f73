//! The extension module of the Python package `hamlyn` (decision 40): the library's interface as Python objects.
//!
//! One thread at a time uses a manager and what belongs to it ([`gate`]); messages are read where they landed, as long as a view of
//! them lives ([`lending`]); a call that waits lets other Python threads run, and Ctrl-C ends it ([`waiting`]). Exceptions, asyncio,
//! `Channel` and `shared_array` are written in Python, beside it.

mod address;
mod aio;
mod area;
mod borrowing;
mod bytes;
mod completions;
mod connecting;
mod datagram;
mod ending;
mod endpoint;
mod error;
mod event;
mod fencing;
mod figures;
mod format;
mod gate;
mod group;
mod handover;
mod host;
mod interface;
mod landing;
mod lanes;
mod lending;
mod loans;
mod mailbox;
mod manager;
mod message;
mod number;
mod one_sided;
mod operation;
mod options;
mod peer;
mod pool;
mod region;
mod request;
mod sending;
mod service;
mod sleep;
mod slot;
mod sources;
mod stream;
mod tagged_write;
mod terminus;
mod ticket;
mod waiting;
mod window;
mod words;

use pyo3::prelude::*;

/// Programs that do not trust each other exchange messages at memory speed: the sender names the place in the receiver's memory.
#[pymodule(gil_used = false)]
fn _hamlyn(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(manager::open, module)?)?;
    module.add_class::<manager::Manager>()?;
    module.add_class::<sleep::Sleep>()?;
    module.add_class::<options::Network>()?;
    module.add_class::<endpoint::EndPoint>()?;
    module.add_class::<message::Message>()?;
    module.add_class::<datagram::Datagram>()?;
    module.add_class::<datagram::DatagramReceiver>()?;
    module.add_class::<datagram::DatagramSender>()?;
    module.add_class::<stream::Record>()?;
    module.add_class::<stream::StreamReceiver>()?;
    module.add_class::<stream::StreamSender>()?;
    module.add_class::<tagged_write::Tag>()?;
    module.add_class::<tagged_write::TaggedWriteReceiver>()?;
    module.add_class::<tagged_write::TaggedWriteSender>()?;
    module.add_class::<mailbox::Mail>()?;
    module.add_class::<mailbox::MailboxReceiver>()?;
    module.add_class::<mailbox::MailboxSender>()?;
    module.add_class::<group::Gathered>()?;
    module.add_class::<group::GroupReceiver>()?;
    module.add_class::<group::GroupSender>()?;
    module.add_class::<service::Call>()?;
    module.add_class::<service::Service>()?;
    module.add_class::<service::Reply>()?;
    module.add_class::<service::Pending>()?;
    module.add_class::<service::Client>()?;
    module.add_class::<loans::Loan>()?;
    module.add_class::<loans::Published>()?;
    module.add_class::<loans::Publisher>()?;
    module.add_class::<loans::Sample>()?;
    module.add_class::<loans::Subscriber>()?;
    module.add_class::<interface::Interface>()?;
    module.add_class::<area::Area>()?;
    module.add_class::<slot::Queue>()?;
    module.add_class::<slot::Notification>()?;
    module.add_class::<slot::Slot>()?;
    module.add_class::<slot::Target>()?;
    module.add_class::<one_sided::Initiator>()?;
    module.add_class::<operation::Operation>()?;
    module.add_class::<operation::CompletionCounter>()?;
    module.add_class::<completions::CompletionQueue>()?;
    module.add_class::<completions::Completion>()?;
    module.add_class::<lanes::Lane>()?;
    module.add_class::<lanes::LaneMessage>()?;
    module.add_class::<lanes::LaneSender>()?;
    module.add_class::<lanes::SharedLane>()?;
    module.add_class::<terminus::Terminus>()?;
    module.add_class::<sending::OutgoingMessage>()?;
    module.add_class::<sending::SendHandle>()?;
    module.add_class::<sending::Sent>()?;
    module.add_class::<figures::SlotInfo>()?;
    module.add_class::<figures::MailboxInfo>()?;
    module.add_class::<figures::ConnectionState>()?;
    module.add_class::<handover::HandoverReader>()?;
    module.add_class::<handover::HandoverView>()?;
    module.add_class::<pool::Pool>()?;
    module.add_class::<pool::Chunk>()?;
    module.add_class::<pool::SharedPool>()?;
    module.add_class::<region::Region>()?;
    module.add_class::<region::RegionTicket>()?;
    module.add_class::<region::Attached>()?;
    module.add_class::<window::Window>()?;
    module.add_class::<ticket::Ticket>()?;
    module.add_class::<ticket::Member>()?;
    module.add_class::<peer::Peer>()?;
    module.add_class::<event::Event>()?;
    module.add_class::<aio::Step>()?;
    module.add_class::<connecting::Connecting>()?;
    Ok(())
}
