use super::*;
use proptest::prelude::*;

fn ticket() -> impl Strategy<Value = GrantTicket> {
    any::<(u32, u32, u64, u32, u32, u64, u64)>().prop_map(
        |(node, user, interface, slot, start, length_bytes, secret)| GrantTicket {
            destination: Destination {
                node,
                user,
                interface,
            },
            slot: SlotName::from_bits(slot),
            start: start.into(),
            length_bytes: length_bytes >> 1,
            secret,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_is_read(ticket in ticket()) {
        prop_assert_eq!(GrantTicket::from_bytes(&ticket.to_bytes()), Ok(ticket));
    }

    #[test]
    fn any_bytes_are_judged(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
        let _ = GrantTicket::from_bytes(&bytes);
    }

    #[test]
    fn damage_is_seen(ticket in ticket(), at in 0..GRANT_TICKET_BYTES, flip in 1_u8..) {
        let mut bytes = ticket.to_bytes();
        bytes[at] ^= flip;
        prop_assert!(GrantTicket::from_bytes(&bytes).is_err());
    }

    #[test]
    fn whatever_has_a_check_sum_has_one_form(mut bytes in proptest::collection::vec(any::<u8>(), FIELDS_BYTES..=FIELDS_BYTES), known: bool) {
        if known {
            bytes[..4].copy_from_slice(&[VERSION, 0, 0, 0]);
        }
        let sum = check_sum(&bytes);
        bytes.extend(sum.to_le_bytes());
        if let Ok(ticket) = GrantTicket::from_bytes(&bytes) {
            prop_assert_eq!(ticket.to_bytes().to_vec(), bytes);
        } else {
            prop_assert!(!known || u64::from_le_bytes(bytes[24..32].try_into().unwrap()).checked_add(u64::from_le_bytes(bytes[32..40].try_into().unwrap())).is_none());
        }
    }
}
