//! The table against a small model: names that were given, and what was removed is never found
//! again.

use std::collections::BTreeMap;

use hamlyn_engine::table::{Name, Table};
use proptest::prelude::*;

#[derive(Clone, Debug)]
enum Act {
    Insert(u32),
    /// The name that was given so many insertions ago.
    Remove(usize),
    Change(usize, u32),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let act = prop_oneof![
        3 => any::<u32>().prop_map(Act::Insert),
        2 => (0_usize..30).prop_map(Act::Remove),
        1 => (0_usize..30, any::<u32>()).prop_map(|(ago, value)| Act::Change(ago, value)),
    ];
    prop::collection::vec(act, 0..120)
}

proptest! {
    #[test]
    fn a_table_is_a_map_of_names_that_are_never_used_twice(
        acts in acts(), places_max in 0_usize..20, generation_max in 0_u32..4,
    ) {
        let mut table = Table::<u32>::new(places_max, generation_max);
        let (mut model, mut given) = (BTreeMap::new(), Vec::<Name>::new());
        let ago = |given: &[Name], ago: usize| given.iter().rev().nth(ago).copied();
        for act in acts {
            match act {
                Act::Insert(value) => match table.insert(value) {
                    Some(name) => {
                        prop_assert!(!given.contains(&name), "used twice: {name:?}");
                        prop_assert!((name.index as usize) < places_max);
                        prop_assert!(name.generation <= generation_max);
                        given.push(name);
                        model.insert(name, value);
                    }
                    None => {
                        // Every place is occupied, or its generations are used up.
                        let is_used_up = |index: u32| {
                            let of_place = |name: &&Name| name.index == index;
                            let last = given.iter().rfind(of_place);
                            last.is_some_and(|name| {
                                model.contains_key(name) || name.generation == generation_max
                            })
                        };
                        prop_assert!((0..places_max as u32).all(is_used_up));
                    }
                },
                Act::Remove(at) => {
                    if let Some(name) = ago(&given, at) {
                        prop_assert_eq!(table.remove(name), model.remove(&name));
                    }
                }
                Act::Change(at, value) => {
                    if let Some(name) = ago(&given, at) {
                        let found = table.get_mut(name).map(|place| *place = value);
                        let known = model.get_mut(&name).map(|place| *place = value);
                        prop_assert_eq!(found, known);
                    }
                }
            }
            prop_assert_eq!((table.len(), table.is_empty()), (model.len(), model.is_empty()));
            for name in &given {
                prop_assert_eq!(table.get(*name), model.get(name));
                prop_assert_eq!(table.contains(*name), model.contains_key(name));
                prop_assert!(table.was_used(name.index as usize));
            }
            let beyond = Name { index: u32::MAX, generation: 0 };
            prop_assert_eq!(table.get(beyond), None);
            let all: BTreeMap<_, _> = table.iter().map(|(name, value)| (name, *value)).collect();
            prop_assert_eq!(&all, &model);
        }
    }
}
