//! Plans are made smaller for what was found in them.

use super::*;

/// A plan with several flows.
fn plan() -> Plan {
    let mut plans = (0..100).map(Plan::of_seed);
    plans.find(|plan| plan.flows.len() > 3).expect("most have")
}

#[test]
fn a_plan_shrinks_to_the_violation_that_was_found() {
    // One violation needs two flows, and names how many there are; the other is in every plan.
    let judge = |plan: &Plan| {
        let flows = plan.flows.len();
        let first = (flows > 1).then(|| format!("message 7 of {flows} flows came twice"));
        first
            .into_iter()
            .chain(["process 3 never ended".to_owned()])
            .collect()
    };
    let small = shrink_by(&plan(), judge, |_| {});
    assert_eq!(small.flows.len(), 2);
}

#[test]
fn a_plan_in_which_nothing_is_wrong_stays_as_it_is() {
    let plan = plan();
    let small = shrink_by(
        &plan,
        |_| Vec::new(),
        |_| unreachable!("nothing is smaller"),
    );
    assert_eq!(small, plan);
}

/// Violations of one kind differ in numbers, headers and bytes; others differ in what they say.
#[test]
fn a_kind_has_no_numbers_headers_or_bytes() {
    let left = |flags| format!("a packet left that is no message's: Header {{ flags: {flags} }}");
    assert_eq!(kind(&left("SILENT")), kind(&left("NONE")));
    let entry = |number, bytes: &[u8]| format!("entry {number}: its metadata is {bytes:?}");
    assert_eq!(kind(&entry(1, &[1])), kind(&entry(12, &[1, 2, 3])));
    assert_ne!(
        kind("entry 1: its metadata is [1]"),
        kind("entry 1: its arming is true")
    );
    let found = |what| {
        format!("Ok(Handed(Notification {{ slot: 3 }})), but it must be Err({what}): Header {{ }}")
    };
    assert_ne!(kind(&found("NoRight")), kind(&found("BadKey")));
}
