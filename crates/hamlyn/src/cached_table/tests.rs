use std::collections::BTreeMap;

use proptest::prelude::*;

use super::CachedTable;

#[derive(Clone, Debug)]
enum Act {
    Put(usize, u32),
    Take(usize),
    Reach(usize),
    Change(u32),
}

fn any_act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0_usize..6, any::<u32>()).prop_map(|(place, value)| Act::Put(place, value)),
        (0_usize..8).prop_map(Act::Take),
        (0_usize..8).prop_map(Act::Reach),
        any::<u32>().prop_map(Act::Change),
    ]
}

proptest! {
    #[test]
    fn it_is_a_table_whatever_is_at_hand(acts in prop::collection::vec(any_act(), 0..60)) {
        let mut table = CachedTable::new();
        let mut model = BTreeMap::new();
        let mut current = 0;
        for act in acts {
            match act {
                Act::Put(place, value) => {
                    table.put(place, value);
                    model.insert(place, value);
                }
                Act::Take(place) => {
                    prop_assert_eq!(table.take(place).map(|value| *value), model.remove(&place));
                }
                Act::Reach(place) => {
                    table.reach(place);
                    current = place;
                }
                Act::Change(value) => {
                    if let Some(old) = table.current_mut() {
                        *old = value;
                        model.insert(current, value);
                    }
                }
            }
            prop_assert_eq!(table.place(), current);
            prop_assert_eq!(table.current(), model.get(&current));
            for place in 0..9 {
                prop_assert_eq!(table.get(place), model.get(&place));
                prop_assert_eq!(table.get_mut(place).copied(), model.get(&place).copied());
            }
            let mut all: Vec<u32> = table.iter().copied().collect();
            prop_assert_eq!(all.len(), table.iter_mut().count());
            all.sort_unstable();
            let mut expected: Vec<u32> = model.values().copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(all, expected);
        }
    }
}
