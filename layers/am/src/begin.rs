//! Requests of the application begin: at once, or as transfers of many parts.

use std::ops::Range;

use hamlyn::{Host, Session};

use crate::error::{Blocked, Error};
use crate::poll::NodeState;
use crate::send::{Attempt, Request};
use crate::transfer::Transfer;
use crate::translation::Translation;
use crate::wire::{Arguments, Category, Place};

/// Sends a request, if nothing stands in its way; loads the endpoint, if that stands there.
pub(crate) fn attempt<H: Host>(
    node: &mut NodeState,
    session: &mut Session<'_, H>,
    over: &Translation,
    request: &Request<'_>,
) -> Attempt {
    let attempted = node.state.try_request(session, over, request)?;
    if attempted == Err(Blocked::Frame) {
        node.fault_by_call(session, over.endpoint)?;
        return node.state.try_request(session, over, request);
    }
    Ok(attempted)
}

/// Sends data to a segment: in one message, or as a transfer.
pub(crate) fn begin_transfer<H: Host>(
    node: &mut NodeState,
    session: &mut Session<'_, H>,
    over: &Translation,
    handler: u8,
    offset: u64,
    data: &[u8],
    arguments: &[u32],
) -> Attempt {
    let part_bytes = node.state.part_bytes_max(session, over)?;
    if data.len() <= part_bytes {
        let request = Request {
            category: Category::Bulk,
            place: Place {
                offset,
                length_bytes: data.len() as u64,
            },
            data,
            ..Request::short(handler, arguments)
        };
        return attempt(node, session, over, &request);
    }
    if node.state.transfers.is_full() {
        return Ok(Err(Blocked::Transfer));
    }
    if !load(node, session, over)? {
        return Ok(Err(Blocked::Frame));
    }
    let arguments = Arguments::new(arguments);
    let mut transfer = Transfer::new(*over, false, handler, arguments, part_bytes as u64);
    transfer.data = data.to_vec();
    (transfer.to, transfer.length_bytes) = (offset, data.len() as u64);
    begin(node, session, transfer)
}

/// Asks for data of a segment.
pub(crate) fn begin_get<H: Host>(
    node: &mut NodeState,
    session: &mut Session<'_, H>,
    over: &Translation,
    handler: u8,
    from: &Range<u64>,
    to: u64,
    arguments: &[u32],
) -> Attempt {
    let part_bytes = node.state.part_bytes_max(session, over)?;
    let length_bytes = from.end.saturating_sub(from.start);
    let endpoint = node.state.endpoints.get(over.endpoint);
    let endpoint = endpoint.ok_or(Error::Stale)?;
    let place = Place {
        offset: to,
        length_bytes,
    };
    if endpoint.receiving.segment_at(place).is_err() {
        let segment = endpoint.receiving.segment.as_ref();
        return Err(Error::OutsideSegment {
            offset: to,
            length_bytes,
            segment_bytes: segment.map_or(0, |segment| segment.length_bytes),
        });
    }
    if node.state.transfers.is_full() {
        return Ok(Err(Blocked::Transfer));
    }
    if !load(node, session, over)? {
        return Ok(Err(Blocked::Frame));
    }
    let arguments = Arguments::new(arguments);
    let mut transfer = Transfer::new(*over, true, handler, arguments, part_bytes as u64);
    (transfer.from, transfer.to) = (from.start, to);
    transfer.length_bytes = length_bytes;
    begin(node, session, transfer)
}

/// Loads the endpoint of a translation. False if no frame is free.
fn load<H: Host>(
    node: &mut NodeState,
    session: &mut Session<'_, H>,
    over: &Translation,
) -> Result<bool, Error> {
    let is_resident = |node: &mut NodeState| {
        let endpoint = node.state.endpoints.get(over.endpoint);
        endpoint.is_none_or(|endpoint| endpoint.is_resident)
    };
    if !is_resident(node) {
        node.fault_by_call(session, over.endpoint)?;
    }
    Ok(is_resident(node))
}

fn begin<H: Host>(
    node: &mut NodeState,
    session: &mut Session<'_, H>,
    transfer: Transfer,
) -> Attempt {
    node.state.transfers.insert(transfer);
    node.state.advance_transfers(session)?;
    Ok(Ok(()))
}
