//! Two hosts: the same calls, with `host/name/item` for an address. What the network is, the
//! environment says; without it the program stays on its host.
//!
//! ```text
//! export HAMLYN_SECRET=cluster.secret HAMLYN_HOSTS=hosts   # on both; see docs/hosts.md
//! HAMLYN_HOST=zeus hosts serve 1                           # on one
//! HAMLYN_HOST=hera hosts ask zeus "who is there?"          # on the other
//! ```

use hamlyn::service::ServiceOptions;
use hamlyn::{FenceError, Wait};
use hamlyn_examples::Outcome;

fn main() -> Outcome {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", calls] => serve(calls.parse()?),
        ["ask", host, question] => ask(host, question),
        _ => Err("usage: hosts serve CALLS | hosts ask HOST QUESTION".into()),
    }
}

fn serve(calls: usize) -> Outcome {
    let here = hamlyn::open("oracle")?;
    let mut questions = here.bind_service("questions", ServiceOptions::default())?;
    for _ in 0..calls {
        if let Some(call) = questions.next(Wait::Forever)? {
            let who = call.client().map_or("nobody".into(), |it| it.to_string());
            let answer = format!("{who} asked: {}", String::from_utf8_lossy(&call));
            call.reply(answer.as_bytes())?;
        }
    }
    // Until the answer has arrived, or its client has ended; then this program may end.
    match here.fence(Wait::millis(5_000)) {
        Ok(()) | Err(FenceError::PeerLost(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn ask(host: &str, question: &str) -> Outcome {
    let me = hamlyn::open_unnamed()?;
    let to = format!("{host}/oracle/questions");
    let mut oracle = me.connect_service(&to, Wait::millis(10_000))?;
    let answer = oracle.call(question.as_bytes(), Wait::millis(10_000))?;
    println!("{}", String::from_utf8_lossy(&answer));
    Ok(())
}
