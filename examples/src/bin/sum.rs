//! Request and reply: a server for many clients, of typed messages.
//!
//! ```text
//! sum serve 3              # ends after three calls
//! sum ask 1.5 2.25         # prints 3.75
//! ```

use hamlyn::Wait;
use hamlyn::service::ServiceOptions;
use hamlyn::zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};
use hamlyn_examples::Outcome;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[zerocopy(crate = "hamlyn::zerocopy")]
#[repr(C)]
struct Terms {
    left: f64,
    right: f64,
}

impl hamlyn::typed::Typed for Terms {
    const NAME: &'static str = "Terms";
}

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", calls] => serve(calls.parse()?),
        ["ask", left, right] => ask(left.parse()?, right.parse()?),
        _ => Err("usage: sum serve CALLS | sum ask LEFT RIGHT".into()),
    }
}

fn serve(calls: usize) -> Outcome {
    let alice = hamlyn::open("adder")?;
    let mut sums = alice.bind_service_of::<Terms, f64>("sum", ServiceOptions::default())?;
    for _ in 0..calls {
        // Clients that come, vanish or misbehave are no error here.
        if let Some(call) = sums.next(Wait::Forever)? {
            let sum = call.left + call.right;
            call.reply(&sum)?;
        }
    }
    alice.flush(Wait::millis(1_000))?;
    Ok(())
}

fn ask(left: f64, right: f64) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut sums = me.connect_service_of::<Terms, f64>("adder/sum", Wait::millis(5_000))?;
    let sum = sums.call(&Terms { left, right }, Wait::millis(5_000))?;
    println!("{}", *sum);
    Ok(())
}
