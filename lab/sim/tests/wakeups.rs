//! Nobody sleeps beside a message. That a lost wake-up is found is shown by a planted bug
//! (decisions 0009 and 0016).

mod sleepers;

use hamlyn::Strategy;

#[test]
fn nobody_sleeps_beside_a_message() {
    for strategy in Strategy::ALL {
        assert_eq!(sleepers::sleeper(strategy), None, "{strategy:?}");
    }
}
