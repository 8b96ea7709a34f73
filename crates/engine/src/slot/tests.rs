use super::*;

/// Whatever a peer writes for an address: it finds the entry by some of its bits, and a closed
/// entry differs in those.
#[test]
fn no_address_opens_a_closed_entry() {
    let mut table = Table::<(), 16>::new(SLOTS_MAX, u16::MAX as u32);
    while table.insert(()).is_some() {
        let places = table.capacity();
        assert!(places.is_power_of_two() && places > 1);
        let mask = places as u64 - 1;
        for index in [0, 1, places / 2, places - 1] {
            let closed = elsewhere(index).to_bits();
            assert_ne!(closed & mask, index as u64, "{index} of {places}");
        }
    }
}
