//! Arbitrary bytes as a ticket. For any bytes: no panic, and what is accepted has one
//! form and stays within what offsets can name.

use hamlyn::ticket::TICKET_BYTES;
use hamlyn::ticket::TicketKind;
use hamlyn::{Ticket, TicketError};

/// Decodes the bytes; and, as no fuzzer finds a checksum, decodes them with the right one, too.
pub fn run(bytes: &[u8]) -> Result<Ticket, TicketError> {
    let decoded = check(bytes);
    let Some(fields) = bytes.get(..TICKET_BYTES - 4) else {
        return decoded;
    };
    check(&with_sum(fields))
}

/// FNV-1a of the bytes, after them.
pub fn with_sum(fields: &[u8]) -> Vec<u8> {
    let sum = fields.iter().fold(0x811c_9dc5_u32, |sum, &byte| {
        (sum ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    [fields, &sum.to_le_bytes()].concat()
}

fn check(bytes: &[u8]) -> Result<Ticket, TicketError> {
    let decoded = Ticket::from_bytes(bytes);
    match &decoded {
        Ok(ticket) => {
            assert_eq!(ticket.to_bytes(), bytes, "a second form of {ticket:?}");
            let end = ticket.base.checked_add(ticket.length_bytes);
            // A port has a group there.
            let is_port = ticket.kind == TicketKind::Port;
            assert!(end.is_some() || is_port, "{ticket:?}");
            let whole = ticket.narrow(0, ticket.length_bytes);
            assert_eq!(whole.as_ref(), Ok(ticket));
            assert!(ticket.narrow(ticket.length_bytes, 1).is_err());
            assert!(ticket.narrow(u64::MAX, 2).is_err());
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    decoded
}
