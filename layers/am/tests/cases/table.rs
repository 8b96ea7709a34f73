//! The cases, for each world.

macro_rules! everything {
    ($module:ident, $strategy:ident) => {
        everything!($module, $strategy;
            messages::requests_are_answered,
        );
    };
    ($module:ident, $strategy:ident; $($cases:ident::$case:ident,)*) => {
        mod $module {
            $(
                #[test]
                fn $case() {
                    let strategy = hamlyn::Strategy::$strategy;
                    crate::$cases::$case(crate::World::new(strategy));
                }
            )*
        }
    };
}
