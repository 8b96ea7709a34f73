//! Random operations beside a reference model, which looks at everything each time.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::*;
use crate::mode::{MATRIX, MODES};
use crate::resource::PASSES_MAX;

const CLIENTS: u32 = 4;
const HANDLES: u32 = 4;
const NAMES: [&[u8]; 3] = [b"a", b"b", b"c"];

fn agree(one: Mode, other: Mode) -> bool {
    MATRIX[one as usize].as_bytes()[other as usize] == b'1'
}

/// True if the mode conflicts with nothing that the other one does not conflict with.
fn is_weaker(one: Mode, other: Mode) -> bool {
    MODES
        .iter()
        .all(|third| agree(one, *third) || !agree(other, *third))
}

/// A lock: its client and its handle.
type Key = (u32, u32);

#[derive(Clone, Debug)]
struct Entry {
    key: Key,
    wanted: Mode,
    is_conversion: bool,
    passed: u8,
}

#[derive(Clone, Debug, Default)]
struct Model {
    held: BTreeMap<Key, (usize, Mode)>,
    queues: [Vec<Entry>; NAMES.len()],
    values: [Option<(u8, bool)>; NAMES.len()],
    /// The resource of each lock.
    at: BTreeMap<Key, usize>,
}

impl Model {
    fn is_free(&self, name: usize, key: Key, wanted: Mode) -> bool {
        let others = self
            .held
            .iter()
            .filter(|(other, (at, _))| *at == name && **other != key);
        others
            .into_iter()
            .all(|(_, (_, mode))| agree(*mode, wanted))
    }

    fn place(&self, name: usize, key: Key, wanted: Mode) -> usize {
        let queue = &self.queues[name];
        let own = self.held.get(&key).map(|(_, mode)| *mode);
        if is_weaker(wanted, own.unwrap_or(Mode::Nl)) {
            return 0;
        }
        let Some(own) = own else {
            return queue.len();
        };
        // Before all that it blocks, and before new requests that were not passed too often.
        let may_pass = |one: &Entry| !one.is_conversion && one.passed < PASSES_MAX;
        let is_place = |at: &usize| {
            queue[*at..].iter().all(may_pass)
                || (*at < queue.len() && !agree(queue[*at].wanted, own))
        };
        (0..=queue.len()).find(is_place).unwrap()
    }

    /// The clients that each client waits for, and whether it does so for more than its own turn.
    fn edges(&self) -> BTreeSet<(u32, u32)> {
        let mut edges = BTreeSet::new();
        for (name, queue) in self.queues.iter().enumerate() {
            for (at, entry) in queue.iter().enumerate() {
                for before in &queue[..at] {
                    if before.key.0 != entry.key.0 || !agree(before.wanted, entry.wanted) {
                        edges.insert((entry.key.0, before.key.0));
                    }
                }
                for (key, (of, mode)) in &self.held {
                    if *of == name && *key != entry.key && !agree(*mode, entry.wanted) {
                        edges.insert((entry.key.0, key.0));
                    }
                }
            }
        }
        edges
    }

    fn has_circle(&self) -> bool {
        let mut edges = self.edges();
        for _ in 0..CLIENTS {
            for (a, b) in edges.clone() {
                for (c, d) in edges.clone() {
                    if b == c {
                        edges.insert((a, d));
                    }
                }
            }
        }
        edges.iter().any(|(a, b)| a == b)
    }

    fn want(&mut self, name: usize, key: Key, wanted: Mode, is_try: bool) -> Result<(), Refusal> {
        let at = self.place(name, key, wanted);
        if !(at == 0 && self.is_free(name, key, wanted)) && is_try {
            return Err(Refusal::Busy);
        }
        let own = self.held.get(&key).map(|(_, mode)| *mode);
        let mut with = self.clone();
        if !is_weaker(wanted, own.unwrap_or(Mode::Nl)) {
            with.queues[name][at..]
                .iter_mut()
                .for_each(|one| one.passed += 1);
        }
        let is_conversion = own.is_some();
        let passed = 0;
        with.queues[name].insert(
            at,
            Entry {
                key,
                wanted,
                is_conversion,
                passed,
            },
        );
        let is_deadlock = with.has_circle();
        *self = with;
        if is_deadlock {
            self.queues[name].retain(|one| one.key != key);
        }
        self.grant(name);
        if is_deadlock {
            Err(Refusal::Deadlock)
        } else {
            Ok(())
        }
    }

    fn grant(&mut self, name: usize) {
        while let Some(first) = self.queues[name].first().cloned() {
            if !self.is_free(name, first.key, first.wanted) {
                break;
            }
            self.queues[name].remove(0);
            self.held.insert(first.key, (name, first.wanted));
        }
    }

    fn remove(&mut self, key: Key, value: Option<u8>, has_died: bool) {
        let Some(name) = self.at.remove(&key) else {
            return;
        };
        self.queues[name].retain(|one| one.key != key);
        let mode = self.held.remove(&key).map(|(_, mode)| mode);
        if matches!(mode, Some(Mode::Pw | Mode::Ex)) {
            match value {
                Some(value) => self.values[name] = Some((value, true)),
                None if has_died => {
                    let before = self.values[name].map_or(0, |(value, _)| value);
                    self.values[name] = Some((before, false));
                }
                None => {}
            }
        }
        self.grant(name);
        if !self.at.values().any(|at| *at == name) {
            self.values[name] = None;
        }
    }

    fn waits(&self, key: Key) -> bool {
        self.queues.iter().flatten().any(|one| one.key == key)
    }
}

#[derive(Clone, Debug)]
enum Step {
    Lock(usize, Mode, bool),
    Convert(Mode, bool, Option<u8>),
    Cancel,
    Release(Option<u8>),
    End,
}

fn step() -> impl Strategy<Value = (u32, u32, Step)> {
    let mode = || prop::sample::select(&MODES[..]);
    let value = || prop::option::of(any::<u8>());
    let step = prop_oneof![
        10 => (0..NAMES.len(), mode(), prop::bool::weighted(0.2))
            .prop_map(|(name, mode, is_try)| Step::Lock(name, mode, is_try)),
        8 => (mode(), prop::bool::weighted(0.2), value())
            .prop_map(|(mode, is_try, value)| Step::Convert(mode, is_try, value)),
        2 => Just(Step::Cancel),
        6 => value().prop_map(Step::Release),
        1 => Just(Step::End),
    ];
    (0..CLIENTS, 0..HANDLES, step)
}

/// A client's view of a lock, from all that it was told.
type View = BTreeMap<Key, (Option<Mode>, bool, Option<Mode>)>;

fn see(view: &mut View, client: u32, told: &Told<'_>) {
    let blocking = told.blocking;
    view.insert(
        (client, told.handle),
        (told.held, told.is_waiting, blocking),
    );
}

fn compare(steps: &[(u32, u32, Step)]) -> Result<(), TestCaseError> {
    let mut table = Table::new(Limits::default());
    let clients: Vec<ClientId> = (0..CLIENTS).map(|_| table.add_client()).collect();
    prop_assert_eq!(clients, (0..CLIENTS).collect::<Vec<_>>());
    let (mut model, mut view) = (Model::default(), View::new());
    for (number, (client, handle, step)) in (1..).zip(steps) {
        let key = (*client, *handle);
        let block = match *step {
            Step::Convert(_, _, value) | Step::Release(value) => value,
            _ => None,
        };
        let block = block.map(|value| [value; VALUE_BYTES]);
        let known = model.at.get(&key).copied();
        let (operation, expected) = match *step {
            Step::Lock(name, mode, is_try) => {
                let expected = match known {
                    Some(_) => Err(Refusal::HandleInUse),
                    None => {
                        model.at.insert(key, name);
                        let wanted = model.want(name, key, mode, is_try);
                        if wanted.is_err() {
                            model.remove(key, None, false);
                        }
                        wanted
                    }
                };
                let name = NAMES[name];
                (Operation::Lock { mode, is_try, name }, expected)
            }
            Step::Convert(mode, is_try, value) => {
                let expected = match known {
                    None => Err(Refusal::NoSuchLock),
                    Some(_) if model.waits(key) => Err(Refusal::Waits),
                    Some(name) => {
                        let own = model.held[&key].1;
                        if let (Some(value), Mode::Pw | Mode::Ex) = (value, own) {
                            model.values[name] = Some((value, true));
                        }
                        model.want(name, key, mode, is_try)
                    }
                };
                let operation = Operation::Convert {
                    mode,
                    is_try,
                    value: block.as_ref(),
                };
                (operation, expected)
            }
            Step::Cancel => {
                let expected = match known {
                    None => Err(Refusal::NoSuchLock),
                    Some(_) if !model.held.contains_key(&key) => Err(Refusal::Waits),
                    Some(name) => {
                        model.queues[name].retain(|one| one.key != key);
                        model.grant(name);
                        Ok(())
                    }
                };
                (Operation::Cancel, expected)
            }
            Step::Release(value) => {
                let expected = known.map(drop).ok_or(Refusal::NoSuchLock);
                model.remove(key, value, false);
                view.remove(&key);
                let value = block.as_ref();
                (Operation::Release { value }, expected)
            }
            Step::End => {
                table.remove_client(*client);
                prop_assert_eq!(table.add_client(), *client, "its number is used again");
                for handle in 0..HANDLES {
                    model.remove((*client, handle), None, true);
                    view.remove(&(*client, handle));
                }
                inspect(&mut table, &model, &mut view)?;
                continue;
            }
        };
        let told = table.operate(*client, *handle, number, operation);
        check(&mut view, *client, told, expected)?;
        inspect(&mut table, &model, &mut view)?;
    }
    for client in 0..CLIENTS {
        table.remove_client(client);
    }
    prop_assert_eq!(table.counts(), [0; 3], "nothing stays");
    Ok(())
}

fn check(
    view: &mut View,
    client: u32,
    told: Result<Option<Told<'_>>, Refusal>,
    expected: Result<(), Refusal>,
) -> Result<(), TestCaseError> {
    let result = match &told {
        Ok(told) => told.and_then(|told| told.refusal).map_or(Ok(()), Err),
        Err(refusal) => Err(*refusal),
    };
    prop_assert_eq!(result, expected);
    if let Ok(Some(told)) = told {
        see(view, client, &told);
    }
    Ok(())
}

/// The table is as the model, and clients know it.
fn inspect(table: &mut Table, model: &Model, view: &mut View) -> Result<(), TestCaseError> {
    for client in std::mem::take(&mut table.to_tell) {
        let told_all = table.tell_news(client, |told| {
            see(view, client, told);
            true
        });
        prop_assert!(told_all);
    }
    prop_assert!(!model.has_circle(), "no circle is left");
    let waiting = model.queues.iter().map(Vec::len).sum();
    let resources = model.at.values().collect::<BTreeSet<_>>().len();
    prop_assert_eq!(table.counts(), [resources, model.at.len(), waiting]);
    for (&key, &name) in &model.at {
        let held = model.held.get(&key).map(|(_, mode)| *mode);
        let lock = table.lock_of(key.0, key.1).unwrap();
        prop_assert_eq!(table.mode_of(key.0, key.1), held);
        let resource = &table.resources[table.locks[lock as usize].resource].1;
        let value = resource
            .value()
            .map(|value| (value.bytes[0], value.is_valid));
        prop_assert_eq!(value, model.values[name]);
        let order: Vec<Key> = model.queues[name].iter().map(|one| one.key).collect();
        let found: Vec<Key> = resource
            .waiting()
            .map(|lock| {
                (
                    table.locks[lock as usize].client,
                    table.locks[lock as usize].handle,
                )
            })
            .collect();
        prop_assert_eq!(found, order);
        let (seen, is_waiting, blocking) = view[&key];
        prop_assert_eq!(
            (seen, is_waiting),
            (held, model.waits(key)),
            "{:?} knows it",
            key
        );
        let blocks = held.is_some_and(|held| {
            let queue = model.queues[name].iter();
            queue
                .into_iter()
                .any(|one| one.key != key && !agree(one.wanted, held))
        });
        prop_assert!(
            !blocks || blocking.is_some(),
            "{:?} was told that it blocks",
            key
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn random_operations_agree_with_a_model(steps in prop::collection::vec(step(), 1..60)) {
        compare(&steps)?;
    }
}

/// Conversions of two holders, one after the other, do not starve a request that they do not block.
#[test]
fn conversions_pass_a_new_request_a_few_times_only() {
    let mut table = Table::new(Limits::default());
    let [one, two, new] = [(); 3].map(|()| table.add_client());
    let lock = |mode| Operation::Lock {
        mode,
        is_try: false,
        name: b"row",
    };
    let convert = |mode| Operation::Convert {
        mode,
        is_try: false,
        value: None,
    };
    for client in [one, two] {
        table.operate(client, 0, 0, lock(Mode::Cr)).unwrap();
    }
    table.operate(one, 0, 1, convert(Mode::Pw)).unwrap();
    assert!(
        table
            .operate(new, 0, 1, lock(Mode::Pw))
            .unwrap()
            .unwrap()
            .is_waiting
    );
    let mut passed = 0;
    let (mut holder, mut other) = (one, two);
    while table.mode_of(new, 0).is_none() {
        table.operate(other, 0, 1, convert(Mode::Pw)).unwrap();
        table.operate(holder, 0, 1, convert(Mode::Cr)).unwrap();
        passed += u32::from(table.mode_of(other, 0) == Some(Mode::Pw));
        (holder, other) = (other, holder);
        assert!(passed <= 2 * u32::from(PASSES_MAX), "it is starved");
    }
    assert_eq!(passed, u32::from(PASSES_MAX));
}
