//! Revocation: a service that dismisses a client which asks for what it must not. Its key is
//! worthless from then on; others are served as before.
//!
//! ```text
//! bouncer serve 2               # ends after two good calls
//! bouncer ask public            # prints the answer
//! bouncer ask secret public     # is dismissed, and gets no answer to the other call either
//! ```

use hamlyn::Wait;
use hamlyn::service::ServiceOptions;
use hamlyn_examples::Outcome;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", calls] => serve(calls.parse()?),
        ["ask", ref calls @ ..] => ask(calls),
        _ => Err("usage: bouncer serve CALLS | bouncer ask WHAT...".into()),
    }
}

fn serve(calls: usize) -> Outcome {
    let door = hamlyn::open("door")?;
    let mut service = door.bind_service("service", ServiceOptions::default())?;
    let mut answered = 0;
    while answered < calls {
        let Some(call) = service.next(Wait::Forever)? else {
            continue;
        };
        if *call != *b"secret" {
            call.reply(b"come in")?;
            answered += 1;
        } else if let Some(client) = call.client() {
            println!("{client} is dismissed");
            drop(call);
            service.dismiss(client.link);
        }
    }
    door.flush(Wait::millis(1_000))?;
    Ok(())
}

fn ask(calls: &[&str]) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let mut door = me.connect_service("door/service", Wait::millis(5_000))?;
    for what in calls {
        match door.call(what.as_bytes(), Wait::millis(5_000)) {
            Ok(answer) => println!("{}", String::from_utf8_lossy(&answer)),
            Err(error) => println!("{error}"),
        }
    }
    Ok(())
}
