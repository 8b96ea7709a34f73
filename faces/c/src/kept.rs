//! Records and samples that are kept beyond the next one (`stream::Kept`, `loans::Kept`): handles of their own, any number at a time, of the
//! thread that kept them.

use std::ffi::c_void;

use hamlyn::{loans, stream};

use crate::boundary::{bytes_mut, call, room, room_if_asked};
use crate::datagram::Message;
use crate::handle::{self, kind};
use crate::loans::{Subscriber, SubscriberHandle};
use crate::manager::each;
use crate::status::{Error, Failure, Status};
use crate::stream::{StreamReceiver, StreamReceiverHandle};

/// A record that is kept. Its sender is told of memory in order: it has to wait, or the stream has to grow, as long as an old record is kept.
#[derive(Debug)]
pub struct KeptRecordHandle {
    _of_the_library: [u8; 0],
}

kind!(KeptRecordHandle, stream::Kept, 27, "kept record");

/// A message of a publisher that is kept.
#[derive(Debug)]
pub struct KeptSampleHandle {
    _of_the_library: [u8; 0],
}

kind!(KeptSampleHandle, loans::Kept, 28, "kept sample");

/// Keeps the record that is held, instead of releasing it: the next one can be received. Closing what is kept gives its memory back, in any
/// order, at the next call of the stream. Allocates now and then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_keep_record(
    receiver: *mut StreamReceiverHandle,
    kept: *mut *mut KeptRecordHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the record", kept)?;
        handle::with(receiver, |StreamReceiver(end)| {
            let kept = each!(end, end => end.release()?.keep());
            place.put(handle::make(kept, false));
            Ok(())
        })
    })
}

/// Where a record that is kept lies: valid until it or its receiver is closed. No other record may be held.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_view_kept_record(
    receiver: *mut StreamReceiverHandle,
    kept: *mut KeptRecordHandle,
    record: *mut Message,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the record", record)?;
        handle::with(kept, |kept| {
            handle::with(receiver, |StreamReceiver(end)| {
                let found = each!(end, end => end.end()?.view(kept).map(Message::of));
                place.put(found.ok_or(Failure::new(
                    Status::Invalid,
                    "the record was kept of another stream",
                ))?);
                Ok(())
            })
        })
    })
}

/// Gives back the memory of kept records that were closed, as the next call of the stream would.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reclaim_records(
    receiver: *mut StreamReceiverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(receiver, |StreamReceiver(end)| {
            each!(end, end => end.end()?.reclaim());
            Ok(())
        })
    })
}

/// Closes a record that is kept. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_kept_record(
    kept: *mut KeptRecordHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(kept).map(drop))
}

/// Keeps the sample that is held, instead of releasing it. As long as it is kept, its reader gets no more than those in between and as many as
/// its depth. Closing it gives it back at the next call of the subscriber. Allocates.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_keep_sample(
    subscriber: *mut SubscriberHandle,
    kept: *mut *mut KeptSampleHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the sample", kept)?;
        handle::with(subscriber, |Subscriber(end)| {
            let kept = each!(end, end => end.release()?.keep());
            place.put(handle::make(kept, false));
            Ok(())
        })
    })
}

/// The length and the number of a sample that is kept. Null for `number`: nobody asks.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_kept_sample(
    kept: *mut KeptSampleHandle,
    length_bytes: *mut usize,
    number: *mut u64,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the length", length_bytes)?;
        let place_of_number = room_if_asked("the place for the number", number)?;
        handle::with(kept, |kept| {
            place.put(kept.len());
            if let Some(place) = place_of_number {
                place.put(kept.number());
            }
            Ok(())
        })
    })
}

/// Copies from a sample that is kept, as hamlyn_read_sample does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_read_kept_sample(
    kept: *mut KeptSampleHandle,
    offset: usize,
    into: *mut c_void,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        let into = bytes_mut(into, length_bytes)?;
        handle::with(kept, |kept| {
            (kept.read_at(offset, into)).map_err(|outside| Failure::of(Status::Invalid, &outside))
        })
    })
}

/// Gives back samples that were kept and closed, as the next call of the subscriber would.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_reclaim_samples(
    subscriber: *mut SubscriberHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(subscriber, |Subscriber(end)| {
            each!(end, end => end.end()?.reclaim());
            Ok(())
        })
    })
}

/// Closes a sample that is kept. Null is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_kept_sample(
    kept: *mut KeptSampleHandle,
    error: *mut Error,
) -> Status {
    call(error, || handle::close(kept).map(drop))
}
