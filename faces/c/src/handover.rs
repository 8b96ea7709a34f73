//! Areas that change hands (`Hamlyn 2.7`): a piece is open to peers, or in the program's hands, which reads it where it lies.
//!
//! A pointer into a piece is a *view*. While there is one, the piece cannot be opened, so that no peer writes what the program reads; and
//! there is none into a piece that is open.

use std::ffi::c_void;
use std::ops::Range;

use hamlyn::{Area, HandoverReader};

use crate::area::AreaHandle;
use crate::boundary::{call, room};
use crate::handle::{self, kind};
use crate::lower::with_interface;
use crate::manager::{ManagerHandle, manager_is_shared};
use crate::status::{Error, Failure, Status};

/// The program's end of an area in pieces that change hands: it sees the pieces that it has, and opens them to peers again.
#[derive(Debug)]
pub struct HandoverHandle {
    _of_the_library: [u8; 0],
}

pub(crate) struct Handover {
    reader: HandoverReader,
    /// How many views there are of each piece.
    views: Vec<u32>,
}

kind!(HandoverHandle, Handover, 30, "handover");

pub(crate) const HANDED_OVER: Failure = Failure::new(
    Status::Held,
    "this area was handed over to a slot, which alone writes it: allocate another area",
);
const IS_VIEWED: Failure = Failure::new(
    Status::Held,
    "a view of a piece is not ended: call hamlyn_end_view for each",
);
const IS_OPEN: Failure = Failure::new(
    Status::Held,
    "a piece is open to peers: it is the program's again when its entry has had a whole message",
);
const NOT_VIEWED: Failure = Failure::new(
    Status::Held,
    "there is no view of these bytes that could be ended",
);
const OUTSIDE: Failure = Failure::new(
    Status::Invalid,
    "that does not lie in the area: hamlyn_get_handover_info tells its pieces",
);

impl Handover {
    fn new(reader: HandoverReader) -> Self {
        let views = vec![0; reader.pieces() as usize];
        Self { reader, views }
    }

    /// Pieces of that range, if they exist.
    fn pieces(&self, first: u32, count: u32) -> Result<Range<usize>, Failure> {
        let pieces = first as usize..first as usize + count as usize;
        match pieces.end <= self.views.len() {
            true => Ok(pieces),
            false => Err(OUTSIDE),
        }
    }

    /// The pieces that have one of these bytes.
    fn touched(&self, offset: u64, length_bytes: usize) -> Result<Range<usize>, Failure> {
        let pieces = self.reader.pieces_of(offset, length_bytes).ok_or(OUTSIDE)?;
        Ok(pieces.start as usize..pieces.end as usize)
    }

    fn view(&mut self, offset: u64, length_bytes: usize) -> Result<*const u8, Failure> {
        let pieces = self.touched(offset, length_bytes)?;
        if self.views[pieces.clone()].contains(&u32::MAX) {
            return Err(Failure::new(
                Status::Limit,
                "there are too many views of a piece: end some",
            ));
        }
        let bytes = self.reader.view(offset, length_bytes).ok_or(IS_OPEN)?;
        self.views[pieces].iter_mut().for_each(|views| *views += 1);
        Ok(bytes.as_ptr())
    }

    fn end_view(&mut self, offset: u64, length_bytes: usize) -> Result<(), Failure> {
        let pieces = self.touched(offset, length_bytes)?;
        let views = &mut self.views[pieces];
        if views.contains(&0) {
            return Err(NOT_VIEWED);
        }
        views.iter_mut().for_each(|views| *views -= 1);
        Ok(())
    }

    fn open(&mut self, first: u32, count: u32) -> Result<(), Failure> {
        let pieces = self.pieces(first, count)?;
        if self.views[pieces].iter().any(|&views| views > 0) {
            return Err(IS_VIEWED);
        }
        self.reader.open(first..first + count);
        Ok(())
    }
}

/// The area for a slot that is to be opened. One that changes hands becomes the slot's own, and its handle reads only.
pub(crate) fn for_a_slot(area: &mut Area) -> Result<Area, Failure> {
    if !area.may_write() {
        return Err(HANDED_OVER);
    }
    let reads = area.clone();
    Ok(std::mem::replace(area, reads))
}

/// Allocates an area of `pieces` pieces that change hands, zeroed: each has `piece_bytes` bytes, a power of two, at least 16. A piece is in the
/// program's hands, as all are at first, or open (hamlyn_open_pieces). Peers write open pieces only; what they send to others is refused.
/// When a message to an entry of a slot of HAMLYN_MODE_ONE_SHOT is complete, all pieces between the limits of the entry
/// (hamlyn_permit_entry) are the program's: it reads them in place (hamlyn_view_pieces), opens them, and arms the entry again.
///
/// `area` is for hamlyn_open_slot, once: the slot has the area to itself, and the handle only reads from then on. A second slot over it is
/// refused with HAMLYN_HELD, also if the first is closed or could not be opened. HAMLYN_SYSTEM if there is no memory. Does not block.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_allocate_handover(
    manager: *mut ManagerHandle,
    pieces: u32,
    piece_bytes: u32,
    area: *mut *mut AreaHandle,
    handover: *mut *mut HandoverHandle,
    error: *mut Error,
) -> Status {
    call(error, || {
        let area = room("the place for the area", area)?;
        let handover = room("the place for the handover", handover)?;
        let is_shared = manager_is_shared(manager)?;
        let (made, reader) = with_interface!(manager, interface => {
            Ok(interface.allocate_handover(pieces, piece_bytes)?)
        })?;
        area.put(handle::make(made, is_shared));
        handover.put(handle::make(Handover::new(reader), is_shared));
        Ok(())
    })
}

/// Pieces of an area that change hands.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HandoverInfo {
    /// How many there are.
    pub pieces: u32,
    /// Bytes of each.
    pub piece_bytes: u32,
    /// How many of them are in the program's hands now.
    pub held: u32,
    /// Of how many there are views (hamlyn_view_pieces).
    pub viewed: u32,
}

/// Tells which pieces an area has. Looks at each.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_get_handover_info(
    handover: *mut HandoverHandle,
    info: *mut HandoverInfo,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", info)?;
        handle::with(handover, |Handover { reader, views }| {
            let held = (0..reader.pieces()).filter(|&piece| reader.is_held(piece));
            place.put(HandoverInfo {
                pieces: reader.pieces(),
                piece_bytes: reader.piece_bytes(),
                held: held.count() as u32,
                viewed: views.iter().filter(|&&views| views > 0).count() as u32,
            });
            Ok(())
        })
    })
}

/// Opens pieces to peers: `count` of them, from number `first` on. What was read of them is not to be used any more. HAMLYN_HELD if a view of one
/// of them was not ended; then none is opened. Does not allocate.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_open_pieces(
    handover: *mut HandoverHandle,
    first: u32,
    count: u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(handover, |handover| handover.open(first, count))
    })
}

/// Tells whether a piece is in the program's hands: not 0, or 0 if it is open to peers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_is_piece_held(
    handover: *mut HandoverHandle,
    piece: u32,
    is_held: *mut u32,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the answer", is_held)?;
        handle::with(handover, |handover| {
            handover.pieces(piece, 1)?;
            place.put(handover.reader.is_held(piece).into());
            Ok(())
        })
    })
}

/// Tells where bytes of the area lie, of one piece or of several side by side, all in the program's hands: HAMLYN_HELD if one of them is open.
/// Nothing writes them before hamlyn_end_view is called with the same range: until then these pieces cannot be opened, nor the
/// handover be closed. Of one piece there may be several views. Does not allocate.
///
/// The pointer is of no use after that. As long as the area's memory is there, it leads to bytes that peers may be writing, which come out
/// old or new; once the handover, the area's handle and the slot are closed, it leads nowhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_view_pieces(
    handover: *mut HandoverHandle,
    offset: u64,
    length_bytes: usize,
    data: *mut *const c_void,
    error: *mut Error,
) -> Status {
    call(error, || {
        let place = room("the place for the bytes", data)?;
        handle::with(handover, |handover| {
            place.put(handover.view(offset, length_bytes)?.cast());
            Ok(())
        })
    })
}

/// Ends a view: the program does not use its pointer any more. HAMLYN_HELD if there is none of these bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_end_view(
    handover: *mut HandoverHandle,
    offset: u64,
    length_bytes: usize,
    error: *mut Error,
) -> Status {
    call(error, || {
        handle::with(handover, |handover| handover.end_view(offset, length_bytes))
    })
}

/// Closes the program's end of an area; pieces that are open stay so. HAMLYN_HELD, and it stays open, if a view was not ended. Null is
/// allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hamlyn_close_handover(
    handover: *mut HandoverHandle,
    error: *mut Error,
) -> Status {
    call(error, || match handover.is_null() {
        true => Ok(()),
        false => handle::use_up(handover, |handover| {
            match handover.views.iter().any(|&views| views > 0) {
                true => Err((handover, IS_VIEWED)),
                false => Ok(()),
            }
        }),
    })
}
