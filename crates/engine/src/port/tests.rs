use alloc::collections::VecDeque as Model;
use alloc::vec::Vec;

use proptest::prelude::*;

use super::*;

/// A link's messages in the model: who, which handler, which bytes.
type Message = (u32, u16, Vec<u8>);

fn units(length: usize) -> u32 {
    64 * (length.max(1) as u32).div_ceil(64)
}

#[derive(Clone, Debug)]
enum Step {
    Push { link: u32, length: usize },
    Pop,
}

fn step() -> impl Strategy<Value = Step> {
    let length = prop_oneof![0_usize..200, Just(64), Just(0), 200_usize..1500];
    prop_oneof![
        3 => (0_u32..3, length).prop_map(|(link, length)| Step::Push { link, length }),
        2 => Just(Step::Pop),
    ]
}

proptest! {
    /// The queue gives what was put in, in order and whole; refuses what would exceed the share of
    /// its sender; and takes what fits an empty queue, and lines as long as there is one.
    #[test]
    fn a_queue_is_bounded_and_in_order(
        lines in 1_u32..24,
        share in 1_u32..24,
        steps in prop::collection::vec(step(), 0..200),
    ) {
        let (capacity, peer_bytes) = (64 * lines, 64 * share);
        let mut queue = MessageQueue::new(capacity, peer_bytes, &mut Vec::new());
        let mut model = Model::<Message>::new();
        let mut serial = 0_u8;
        for step in steps {
            match step {
                Step::Push { link, length } => {
                    serial = serial.wrapping_add(1);
                    let bytes: Vec<u8> = (0..length).map(|at| serial ^ at as u8).collect();
                    let arrived = Arrived {
                        handler: serial.into(),
                        length_bytes: length as u32,
                        from: LinkId { index: link, generation: 0 },
                    };
                    let pushed = queue.push(arrived, |into| {
                        into.copy_from_slice(&bytes);
                        Ok(())
                    });
                    let used: u32 = model.iter().map(|(.., bytes)| units(bytes.len())).sum();
                    let of_link: u32 = model
                        .iter()
                        .filter(|(from, ..)| *from == link)
                        .map(|(.., bytes)| units(bytes.len()))
                        .sum();
                    let needed = units(length);
                    if needed > capacity - used.min(capacity) || of_link + needed > peer_bytes {
                        prop_assert_eq!(pushed, Err(Refusal::QueueFull));
                    } else if used == 0 || model.iter().all(|(.., bytes)| bytes.len() <= 64) && length <= 64 {
                        // Only longer ones leave gaps.
                        prop_assert_eq!(pushed, Ok(()));
                    }
                    if pushed.is_ok() {
                        model.push_back((link, serial.into(), bytes));
                    }
                }
                Step::Pop => {
                    let mut taken = Vec::new();
                    let popped = queue.pop(|bytes| taken.extend_from_slice(bytes));
                    let expected = model.pop_front();
                    prop_assert_eq!(
                        popped.map(|arrived| (arrived.from.index, arrived.handler, taken)),
                        expected
                    );
                }
            }
        }
        while let Some((link, handler, bytes)) = model.pop_front() {
            let mut taken = Vec::new();
            let popped = queue.pop(|bytes| taken.extend_from_slice(bytes));
            let popped = popped.map(|arrived| (arrived.from.index, arrived.handler, taken));
            prop_assert_eq!(popped, Some((link, handler, bytes)));
        }
        prop_assert_eq!(queue.used_bytes, 0);
        prop_assert!(queue.peers.iter().all(|(_, bytes)| *bytes == 0));
    }
}

/// A queue takes what a link had not filled when its place is another's.
#[test]
fn a_new_link_has_a_share_of_its_own() {
    let mut queue = MessageQueue::new(256, 64, &mut Vec::new());
    let arrived = |generation| Arrived {
        handler: 0,
        length_bytes: 8,
        from: LinkId {
            index: 1,
            generation,
        },
    };
    assert_eq!(queue.push(arrived(0), |_| Ok(())), Ok(()));
    assert_eq!(queue.push(arrived(0), |_| Ok(())), Err(Refusal::QueueFull));
    assert_eq!(queue.push(arrived(1), |_| Ok(())), Ok(()));
    assert_eq!(queue.pop(|_| ()), Some(arrived(0)));
    // The old link's message is not counted to the new one.
    assert_eq!(queue.push(arrived(1), |_| Ok(())), Err(Refusal::QueueFull));
}
