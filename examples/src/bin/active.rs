//! Active messages between endpoints with tags (`hamlyn_am`): a counter that clients change, each
//! by a request whose handler replies with the new value.
//!
//! ```text
//! active serve 3          # takes so many requests, and ends
//! active add 5            # adds, and prints the new value
//! active guess 5          # with another tag: the request comes back
//! ```

use std::cell::Cell;
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn::host::process::Options;
use hamlyn_am::{Bundle, Node, NodeOptions, Tag};
use hamlyn_examples::Outcome;

const LONG: Wait = Wait::millis(20_000);
/// The tag of the counter. A client that does not know it sends in vain.
const TAG: Tag = Tag::new(0x00c0_ffee);
/// Handler of requests: adds its argument.
const ADD: u8 = 1;
/// Handler of replies: the new value.
const VALUE: u8 = 2;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", requests] => serve(requests.parse()?),
        ["add", amount] => add(amount.parse()?, TAG),
        ["guess", amount] => add(amount.parse()?, Tag::new(1234)),
        _ => Err("usage: active serve REQUESTS | active add AMOUNT | active guess AMOUNT".into()),
    }
}

fn serve(requests: u32) -> Outcome {
    let node = Node::open(Options::named("active"), NodeOptions::default())?;
    let bundle = node.bundle()?;
    let mut counter = bundle.endpoint()?;
    counter.set_tag(TAG)?;
    let (value, taken) = (Cell::new(0_u32), Rc::new(Cell::new(0)));
    let counted = Rc::clone(&taken);
    counter.on_short(ADD, move |call, arguments| {
        value.set(value.get().wrapping_add(arguments[0]));
        counted.set(counted.get() + 1);
        call.reply(VALUE, &[value.get()])
    })?;
    node.publish("counter", &counter.name()?)?;
    while taken.get() < requests {
        serve_some(&bundle)?;
    }
    node.flush(LONG)?;
    println!("{requests} requests");
    Ok(())
}

fn add(amount: u32, tag: Tag) -> Outcome {
    let node = Node::open(Options::default(), NodeOptions::default())?;
    let bundle = node.bundle()?;
    let mut endpoint = bundle.endpoint()?;
    let is_over = Rc::new(Cell::new(false));
    let seen = Rc::clone(&is_over);
    endpoint.on_short(VALUE, move |_, arguments| {
        println!("{}", arguments[0]);
        seen.set(true);
        Ok(())
    })?;
    let seen = Rc::clone(&is_over);
    endpoint.on_returned(move |back| {
        println!(
            "{:?} of {:?} came back: {}",
            back.operation, back.arguments, back.reason
        );
        seen.set(true);
    })?;
    let name = node.look_up("active", "counter", LONG)?;
    let counter = endpoint.map(&name, tag, LONG)?;
    endpoint.request(&counter, ADD, &[amount], LONG)?;
    while !is_over.get() {
        serve_some(&bundle)?;
    }
    Ok(())
}

fn serve_some(bundle: &Bundle) -> Outcome {
    match bundle.serve(LONG)? {
        0 => Err("nothing came in time".into()),
        _ => Ok(()),
    }
}
