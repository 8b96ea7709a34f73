//! A module with one test for each case, in that place and with that strategy. Its table names the
//! `World`.

macro_rules! tests_of {
    ($module:ident, $strategy:ident, $place:ident; $($cases:ident::$case:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let place = crate::Place::$place(hamlyn::Strategy::$strategy);
                    crate::$cases::$case(super::World::new(place));
                }
            )*
        }
    };
}
