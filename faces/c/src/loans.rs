//! Loans: a publisher writes messages in memory that its readers read in place.

use std::ffi::{c_char, c_void};

use hamlyn::loans::{self, LoanError, SlowReaders};

use crate::boundary::{bytes_mut, call, read_or_default, room, room_if_asked, text, wait_of};
use crate::datagram::NOTHING_CAME;
use crate::handle::{self, kind};
use crate::holding::Holding;
use crate::manager::{ManagerHandle, Of, OneThread, Threads, each, make_end};
use crate::status::{Error, Failure, Status};

/// When a reader has no room, a publisher waits.
pub const BLOCK: u32 = 0;
/// The reader does not get the message; it is counted.
pub const LOSE: u32 = 1;
/// The same, but readers get the newest message, also if they come late. On this host that takes no further call of the publisher.
pub const LATEST: u32 = 2;

/// What a publisher is opened with; 0 in a field means its default.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct PublisherOptions {
    /// Bytes of the longest message. Default 1 MiB.
    pub message_bytes: u32,
    /// Messages at a time, those on loan and those that readers have. Default 16.
    pub chunks: u32,
    /// Messages that a reader may have that it has not given back, up to 1,024. Default 4.
    pub depth: u16,
    /// Readers, up to 1,024. Default 64.
    pub readers: u16,
    /// What is done when a reader has no room: HAMLYN_BLOCK, the default, HAMLYN_LOSE or HAMLYN_LATEST.
    pub slow_readers: u32,
}

impl PublisherOptions {
    fn read(self) -> Result<loans::PublisherOptions, Failure> {
        let mut options = loans::PublisherOptions::default();
        if self.message_bytes != 0 {
            options.message_bytes = self.message_bytes;
        }
        if self.chunks != 0 {
            options.chunks = self.chunks;
        }
        if self.depth != 0 {
            options.depth = self.depth;
        }
        if self.readers != 0 {
            options.readers = self.readers;
        }
        options.slow_readers = match self.slow_readers {
            BLOCK => SlowReaders::Block,
            LOSE => SlowReaders::Lose,
            LATEST => SlowReaders::Latest,
            _ => {
                return Err(Failure::new(
                    Status::Invalid,
                    "slow_readers is none of HAMLYN_BLOCK, HAMLYN_LOSE and HAMLYN_LATEST",
                ));
            }
        };
        Ok(options)
    }
}

type Publishing<H> = Holding<loans::Publisher<H>, loans::Loan<'static, H>>;

/// The publishing end.
#[derive(Debug)]
pub struct PublisherHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Publisher(pub(crate) Of<Publishing<OneThread>, Publishing<Threads>>);

kind!(PublisherHandle, Publisher, 14, "publisher");

type Reading<H> = Holding<loans::Subscriber<H>, loans::Sample<'static, H>>;

/// A reading end.
#[derive(Debug)]
pub struct SubscriberHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Subscriber(pub(crate) Of<Reading<OneThread>, Reading<Threads>>);

kind!(SubscriberHandle, Subscriber, 15, "subscriber");

impl From<LoanError> for Failure {
    fn from(error: LoanError) -> Self {
        match error {
            LoanError::TooLong { .. } => Self::of(Status::TooLong, &error),
            LoanError::AllInUse { .. } => Self::of(Status::TimedOut, &error),
            LoanError::Host(host) => host.into(),
            _ => Self::of(Status::Invalid, &error),
        }
    }
}

/// Binds a publisher. Null for `options`: the defaults. Allocates the memory of all messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_bind_publisher(
    manager: *mut ManagerHandle,
    item: *const c_char,
    options: *const PublisherOptions,
    publisher: *mut *mut PublisherHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the publisher", publisher)?;
        let item = text("the item", item)?;
        let options = match read_or_default(options) {
            Some(options) => options.read()?,
            None => loans::PublisherOptions::default(),
        };
        make_end!(manager, place, Publisher, manager => Holding::new(manager.bind_publisher(item, options)?))
    })
}

/// A message of that length on loan, to be written in place; its bytes are those of some message before. Then it is published or dropped.
/// Blocks for `wait_ns` at most while all are in use. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_loan(
    publisher: *mut PublisherHandle,
    length_bytes: usize,
    wait_ns: i64,
    data: *mut *mut c_void,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the message", data)?;
        handle::with(publisher, |Publisher(end)| {
            each!(end, end => {
                if let Some(loan) = end.hold(|end| Ok(Some(end.loan(length_bytes, wait_of(wait_ns))?)))? {
                    place.put(loan.as_mut_ptr().cast());
                }
            });
            Ok(())
        })
    })
}

/// Publishes the message on loan: it must not be written any more. `readers` is told how many got it; null: nobody asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_publish(
    publisher: *mut PublisherHandle,
    wait_ns: i64,
    readers: *mut usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room_if_asked("the place for the number of readers", readers)?;
        handle::with(publisher, |Publisher(end)| {
            let published = each!(end, end => end.release()?.publish(wait_of(wait_ns)))?;
            if let Some(place) = place {
                place.put(published.readers);
            }
            Ok(())
        })
    })
}

/// Gives the message on loan back: nobody gets it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_drop_loan(
    publisher: *mut PublisherHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(publisher, |Publisher(end)| end.release())
    })
}

/// Waits until there are as many readers. HAMLYN_TIMED_OUT if there were fewer when the time was over.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_await_readers(
    publisher: *mut PublisherHandle,
    readers: usize,
    wait_ns: i64,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(publisher, |Publisher(end)| {
            let there = each!(end, end => end.end()?.await_readers(readers, wait_of(wait_ns)))?;
            match there >= readers {
                true => Ok(()),
                false => Err(Failure::timed_out(
                    "there were fewer readers when the time was over",
                )),
            }
        })
    })
}

/// Closes a publisher. Readers keep what they hold. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_publisher(
    publisher: *mut PublisherHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(publisher).map(drop))
}

/// Connects to a publisher, as one of its readers. Blocks for `wait_ns` at most.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_connect_subscriber(
    manager: *mut ManagerHandle,
    to: *const c_char,
    wait_ns: i64,
    subscriber: *mut *mut SubscriberHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the subscriber", subscriber)?;
        let to = text("the address", to)?;
        make_end!(manager, place, Subscriber, manager => Holding::new(manager.connect_subscriber(to, wait_of(wait_ns))?))
    })
}

/// The next message: its length and number. It is held until hamlyn_release_sample, and read with hamlyn_read_sample.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_recv_sample(
    subscriber: *mut SubscriberHandle,
    wait_ns: i64,
    length_bytes: *mut usize,
    number: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        let place_of_number = room_if_asked("the place for the number", number)?;
        handle::with(subscriber, |Subscriber(end)| {
            each!(end, end => match end.hold(|end| Ok(end.recv(wait_of(wait_ns))?))? {
                Some(sample) => {
                    place.put(sample.len());
                    if let Some(place) = place_of_number {
                        place.put(sample.number());
                    }
                }
                None => return Err(NOTHING_CAME),
            });
            Ok(())
        })
    })
}

/// Copies from the message that is held. A publisher that does not keep to the protocol can change it at any time: check what was copied, and
/// copy it once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_sample(
    subscriber: *mut SubscriberHandle,
    offset: usize,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(subscriber, |Subscriber(end)| {
            let read = each!(end, end => end.message()?.read_at(offset, into));
            read.map_err(|outside| Failure::of(Status::Invalid, &outside))
        })
    })
}

/// Gives the message back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_release_sample(
    subscriber: *mut SubscriberHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(subscriber, |Subscriber(end)| end.release())
    })
}

/// Messages that this reader had no room for, so far.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_samples_lost(
    subscriber: *mut SubscriberHandle,
    lost: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the number", lost)?;
        handle::with(subscriber, |Subscriber(end)| {
            place.put(each!(end, end => end.end()?.lost()));
            Ok(())
        })
    })
}

/// Closes a subscriber, and gives back what it holds. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_subscriber(
    subscriber: *mut SubscriberHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(subscriber).map(drop))
}
