use hamlyn_programs::barrier::Barriers;
use hamlyn_programs::enumerate::Enumeration;
use hamlyn_programs::synth::Synth;

use super::fugu::{Fugu, options};
use crate::machine::Machine;
use crate::time::Span;

#[test]
fn look() {
    let machine = Machine::named("fugu-soft").unwrap();
    for skew in [None, Some(0.0), Some(0.1), Some(0.2), Some(0.5)] {
        let fugu = Fugu {
            machine: machine.clone(),
            nodes: 8,
            skew,
            seed: 1,
        };
        let t = std::time::Instant::now();
        let run = fugu
            .run(Span::from_ns(1), |group, processor| {
                Barriers {
                    barriers: 1000,
                    round_operations: 455,
                }
                .run(group, options(), processor)
            })
            .unwrap();
        println!(
            "barrier {skew:?} {:?} cost {:?} msgs {} buffered {} pages {} hand {:?} took {:?}",
            run.elapsed(),
            run.cost(),
            run.messages(),
            run.buffered(),
            run.pages_max(),
            run.handler_time(),
            t.elapsed()
        );
    }
    for skew in [None, Some(0.0), Some(0.1), Some(0.2), Some(0.5)] {
        let fugu = Fugu {
            machine: machine.clone(),
            nodes: 8,
            skew,
            seed: 1,
        };
        let t = std::time::Instant::now();
        let run = fugu
            .run(Span::from_ns(12), |group, processor| {
                Enumeration {
                    moves_max: 8,
                    ..Enumeration::PAPER
                }
                .run(group, options(), processor)
            })
            .unwrap();
        println!(
            "enum {skew:?} {:?} cost {:?} msgs {} buffered {} pages {} hand {:?} took {:?}",
            run.elapsed(),
            run.cost(),
            run.messages(),
            run.buffered(),
            run.pages_max(),
            run.handler_time(),
            t.elapsed()
        );
    }
    for group in [10, 100, 1000] {
        let fugu = Fugu {
            machine: machine.clone(),
            nodes: 4,
            skew: Some(0.01),
            seed: 1,
        };
        let t = std::time::Instant::now();
        let run = fugu
            .run(Span::from_ns(1), |g, processor| {
                Synth {
                    group,
                    groups: 10000 / group,
                    between: 275,
                    stall: 168,
                    seed: 1,
                }
                .run(g, options(), processor)
            })
            .unwrap();
        println!(
            "synth {group} {:?} cost {:?} msgs {} buffered {} pages {} hand {:?} took {:?}",
            run.elapsed(),
            run.cost(),
            run.messages(),
            run.buffered(),
            run.pages_max(),
            run.handler_time(),
            t.elapsed()
        );
    }
}
