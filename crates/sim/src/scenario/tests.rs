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
