use super::{BATCHES, inclusive};

fn profile(calls: u64) -> String {
    format!(
        "events: Ir\n\nfl=a\nfn=main\n12 3\ncfn=a::one\ncalls=7 4\n13 900\n\
         cfn=a::counted_sends<B>\ncalls={calls} 4\n+2 4000\n\
         fn=a::counted_sends<B>\n4 5\ncfn=a::send_some\ncalls={calls} 9\n* 3000\n\nsummary: 4000\n"
    )
}

#[test]
fn counts_a_function_with_what_it_calls() {
    assert_eq!(
        inclusive(&profile(BATCHES), "counted_sends").expect("a profile"),
        4000
    );
}

#[test]
fn calls_that_are_missing_are_an_error() {
    assert!(inclusive(&profile(BATCHES - 1), "counted_sends").is_err());
    assert!(inclusive(&profile(BATCHES), "counted_receives").is_err());
}
