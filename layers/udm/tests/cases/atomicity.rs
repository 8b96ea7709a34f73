//! Sections keep handlers out, and handlers are sections.

use std::panic::{AssertUnwindSafe, catch_unwind};

use hamlyn::Wait;
use hamlyn_udm::{
    ATOMICITY_EXTEND, AtomError, DISPOSE_PENDING, Error, INTERRUPT_DISABLE, Interrupt, Message,
    TIMER_FORCE, UdmOptions,
};

use crate::World;
use crate::world::{LONG, adds, serve_until};

const COUNT: u16 = 0;

pub(crate) fn handlers_wait_for_the_end_of_a_section(world: World) {
    world.run(
        1,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            adds(udm, COUNT, 1);
            let mut section = udm.atomic();
            section.inject(0, COUNT, &[]).unwrap();
            assert_eq!(*section, 0);
            section.inject(0, COUNT, &[]).unwrap();
            assert!(section.await_message(LONG).unwrap());
            assert_eq!(*section, 0, "no handler runs in a section");
            assert_eq!(section.poll(1).unwrap(), 1);
            assert_eq!(*section, 1, "but for those that it polls for");
            assert!(section.await_message(LONG).unwrap());
            section.end().unwrap();
            assert_eq!(*udm.state(), 2, "its end runs the rest");
            {
                let mut outer = udm.atomic();
                outer.inject(0, COUNT, &[]).unwrap();
                assert!(outer.await_message(LONG).unwrap());
            }
            assert_eq!(*udm.state(), 3);
            assert_eq!(udm.uac(), 0);
        },
    );
}

pub(crate) fn sections_extract_without_handlers(world: World) {
    world.run(
        1,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            adds(udm, COUNT, 1);
            udm.begin_atomic(INTERRUPT_DISABLE).unwrap();
            udm.inject(0, COUNT, &[5, 6]).unwrap();
            assert!(udm.await_message(LONG).unwrap());
            let mut section = udm.atomic();
            let message = section.extract().unwrap().unwrap();
            assert_eq!(
                (message.word(0), message.word(1), message.source()),
                (5, 6, 0)
            );
            assert!(section.extract().unwrap().is_none());
            section.end().unwrap();
            assert_eq!(
                udm.uac(),
                INTERRUPT_DISABLE,
                "an inner section ends nothing"
            );
            udm.end_atomic(INTERRUPT_DISABLE).unwrap();
            assert_eq!((udm.uac(), *udm.state()), (0, 0));
        },
    );
}

pub(crate) fn a_peek_shows_the_next_message_again(world: World) {
    const TAKE: u16 = 1;
    world.run(
        1,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            adds(udm, COUNT, 1);
            // One that looks at the next message in its own section, and takes it then.
            udm.on(TAKE, |mut arrival| {
                assert_eq!(arrival.context().uac() & DISPOSE_PENDING, DISPOSE_PENDING);
                let pending = arrival.context().end_atomic(INTERRUPT_DISABLE);
                assert_eq!(pending, Err(AtomError::DisposeFailure));
                arrival.context().try_inject(0, COUNT, &[8]).unwrap();
                let mut call = arrival.extract();
                // The network decides whether it is there by now.
                let mut shown = call.peek_next().unwrap().map(|next| next.word(0));
                if shown.is_some() {
                    let mut next = Message::new();
                    shown = call.peek_next().unwrap().map(|next| next.word(0));
                    assert!(call.extract_next(&mut next).unwrap());
                    assert_eq!((shown, next.word(0)), (Some(7), 7));
                    *call.state() += 1;
                }
                assert_eq!(call.word(0), 6, "the own one stays as it is");
                call.end_atomic(INTERRUPT_DISABLE).unwrap();
                assert_eq!(call.uac() & INTERRUPT_DISABLE, 0);
                call.begin_atomic(INTERRUPT_DISABLE).unwrap();
                call
            })
            .unwrap();
            udm.begin_atomic(INTERRUPT_DISABLE).unwrap();
            assert!(udm.peek().unwrap().is_none());
            for (handler, word) in [(COUNT, 4), (COUNT, 5), (TAKE, 6), (COUNT, 7)] {
                udm.inject(0, handler, &[word]).unwrap();
            }
            for word in [4, 5] {
                assert!(udm.await_message(LONG).unwrap());
                for _ in 0..2 {
                    assert_eq!(udm.peek().unwrap().unwrap().word(0), word);
                    assert!(udm.is_available().unwrap());
                }
                assert_eq!(udm.statistics().received, u64::from(word) - 4);
                assert_eq!(udm.extract().unwrap().unwrap().word(0), word);
            }
            // One that was shown is for its handler, if nobody takes it.
            assert!(udm.await_message(LONG).unwrap());
            assert_eq!(udm.peek().unwrap().unwrap().word(0), 6);
            udm.end_atomic(INTERRUPT_DISABLE).unwrap();
            serve_until(udm, |state| *state == 2);
            assert_eq!(udm.statistics().received, 5);
        },
    );
}

pub(crate) fn an_upcall_waits_for_the_section(world: World) {
    let options = UdmOptions {
        interrupt: Interrupt::Polling,
        ..UdmOptions::default()
    };
    world.run(
        1,
        options,
        || 0_u32,
        |udm| {
            adds(udm, COUNT, 1);
            udm.begin_atomic(INTERRUPT_DISABLE | TIMER_FORCE).unwrap();
            assert_eq!(udm.upcall(9).unwrap(), 0);
            assert_eq!(udm.uac() & ATOMICITY_EXTEND, 0, "nothing waits");
            udm.inject(0, COUNT, &[]).unwrap();
            assert!(udm.await_message(LONG).unwrap());
            assert_eq!(udm.upcall(9).unwrap(), 0);
            assert_eq!(udm.uac() & ATOMICITY_EXTEND, ATOMICITY_EXTEND);
            udm.end_atomic(INTERRUPT_DISABLE | TIMER_FORCE).unwrap();
            assert_eq!((*udm.state(), udm.uac()), (1, 0));
            let statistics = udm.statistics();
            assert_eq!((statistics.extended, statistics.upcalls), (1, 1));
            udm.inject(0, COUNT, &[]).unwrap();
            assert!(udm.await_message(LONG).unwrap());
            assert_eq!(udm.upcall(9).unwrap(), 1);
            assert_eq!(udm.statistics().upcalls, 2);
        },
    );
}

pub(crate) fn a_handler_extracts_several(world: World) {
    world.run(
        1,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            udm.on(COUNT, |arrival| {
                let mut call = arrival.extract();
                *call.state() += call.word(0);
                let mut next = Message::new();
                while call.extract_next(&mut next).unwrap() {
                    *call.state() += 100 * next.word(0);
                }
                call
            })
            .unwrap();
            let mut section = udm.atomic();
            for number in 1..=3 {
                section.inject(0, COUNT, &[number]).unwrap();
            }
            assert!(section.await_message(LONG).unwrap());
            section.end().unwrap();
            while udm.statistics().received < 3 {
                udm.serve(LONG).unwrap();
            }
            // The network decides how many of them a handler finds; each is had once.
            assert!([501, 204, 303, 6].contains(udm.state()), "{}", udm.state());
        },
    );
}

pub(crate) fn tasks_run_after_atomicity_in_order(world: World) {
    world.run(1, UdmOptions::default(), Vec::new, |udm| {
        udm.on(COUNT, |arrival| {
            let mut call = arrival.extract();
            let number = call.word(0);
            call.state().push(number);
            call.spawn(move |context| {
                context.state().push(10 + number);
                context.spawn(move |context| context.state().push(20 + number));
            });
            call
        })
        .unwrap();
        let mut section = udm.atomic();
        section.inject(0, COUNT, &[1]).unwrap();
        section.inject(0, COUNT, &[2]).unwrap();
        let mut ran = 0;
        while ran < 2 {
            assert!(section.await_message(LONG).unwrap());
            ran += section.poll(1).unwrap();
        }
        assert_eq!(*section, [1, 2], "tasks wait for the end of the section");
        section.end().unwrap();
        assert_eq!(*udm.state(), [1, 2, 11, 12, 21, 22]);
    });
}

pub(crate) fn polling_runs_nothing_of_itself(world: World) {
    let options = UdmOptions {
        interrupt: Interrupt::Polling,
        wait: Wait::Forever,
        ..UdmOptions::default()
    };
    world.run(
        1,
        options,
        || 0_u32,
        |udm| {
            adds(udm, COUNT, 1);
            for _ in 0..1000 {
                udm.inject(0, COUNT, &[]).unwrap();
            }
            drop(udm.atomic());
            assert_eq!(*udm.state(), 0);
            serve_until(udm, |had| *had == 1000);
        },
    );
}

pub(crate) fn kernel_bits_are_protected(world: World) {
    world.run(
        1,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            for mask in [DISPOSE_PENDING, ATOMICITY_EXTEND, 16] {
                let refused = AtomError::KernelBit { mask };
                assert_eq!(udm.begin_atomic(mask), Err(refused));
                assert_eq!(udm.end_atomic(mask), Err(refused.into()));
            }
            assert_eq!(udm.uac(), 0);
        },
    );
}

pub(crate) fn a_handler_may_panic(world: World) {
    world.run_group(1, |group| {
        let options = UdmOptions::default();
        let mut udm = hamlyn_udm::Udm::open(&group, "main", options, 0_u32, LONG).unwrap();
        udm.on(COUNT, |_| std::panic::panic_any("a handler of a test"))
            .unwrap();
        udm.begin_atomic(INTERRUPT_DISABLE).unwrap();
        udm.inject(0, COUNT, &[]).unwrap();
        assert!(udm.await_message(LONG).unwrap());
        let polled = catch_unwind(AssertUnwindSafe(|| udm.poll(1)));
        assert!(polled.is_err());
        assert_eq!(udm.poll(1), Err(Error::HandlerPanicked));
        assert_eq!(udm.extract().err(), Some(Error::HandlerPanicked));
    });
}

/// A handler that takes all that is there leaves the barrier to the layer.
pub(crate) fn a_handler_that_takes_all_leaves_barriers(world: World) {
    world.run(
        2,
        UdmOptions::default(),
        || 0_u32,
        |udm| {
            udm.on(COUNT, |arrival| {
                let mut call = arrival.extract();
                *call.state() += 1;
                let mut next = Message::new();
                while call.extract_next(&mut next).unwrap() {
                    assert_eq!(next.handler(), COUNT);
                    *call.state() += 1;
                }
                call
            })
            .unwrap();
            let other = 1 - udm.me();
            for round in 1..=20 {
                for _ in 0..3 {
                    udm.inject(other, COUNT, &[]).unwrap();
                }
                udm.barrier(LONG).unwrap();
                serve_until(udm, |had| *had >= 3 * round);
            }
        },
    );
}

/// A section that panics leaves its state as it is: no handler sees it, also later.
pub(crate) fn a_section_may_panic(world: World) {
    world.run_group(1, |group| {
        let options = UdmOptions::default();
        let mut udm = hamlyn_udm::Udm::open(&group, "main", options, 0_u32, LONG).unwrap();
        adds(&mut udm, COUNT, 1);
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut section = udm.atomic();
            section.inject(0, COUNT, &[]).unwrap();
            assert!(section.await_message(LONG).unwrap());
            std::panic::panic_any("a section of a test");
        }));
        assert!(panicked.is_err());
        for _ in 0..2 {
            assert_eq!(udm.poll(1), Err(Error::HandlerPanicked));
        }
        assert_eq!(*udm.state(), 0);
    });
}
