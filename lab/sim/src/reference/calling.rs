//! Calls of a service: the server takes each at most once, and each ends once at its client. It
//! ends with the server's answer or with an error that names the end, and only if there was that
//! end.

use std::collections::BTreeMap;

use super::Violation;

/// State of a call at its server.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Served {
    /// It has not come.
    No,
    /// The server's program has it.
    Held,
    Answered(Vec<u8>),
    /// The server's program dropped it.
    Dropped,
}

#[derive(Clone, Debug)]
struct Call {
    request: Vec<u8>,
    /// The connection by which it was made.
    connection: u64,
    served: Served,
    /// The client gave it up, or dropped the end point by which it was made.
    is_given_up: bool,
    /// The client has its reply, or the reason why there is none.
    is_over: bool,
}

/// Calls of one service, by the numbers that their requests begin with.
#[derive(Clone, Debug, Default)]
pub struct Calls {
    calls: BTreeMap<u64, Call>,
    connections: u64,
    /// Lanes that were taken away: the service was dropped, or dismissed its clients.
    ends: u64,
    /// The ends when each connection began, by its number.
    begun_at: BTreeMap<u64, u64>,
}

fn wrong(number: u64, why: &'static str) -> Violation {
    Violation::Call { number, why }
}

impl Calls {
    /// A client begins to connect. Number of the connection.
    ///
    /// It may have found the service in an attempt that came to nothing, and is told of by its
    /// number.
    pub fn connecting(&mut self, attempt: Option<u64>) -> u64 {
        let begun_at = attempt.and_then(|attempt| self.begun_at.get(&attempt));
        let begun_at = begun_at.copied().unwrap_or(self.ends);
        self.connections += 1;
        self.begun_at.insert(self.connections, begun_at);
        self.connections
    }

    /// The client drops its end point: it gives up all that it asked by it.
    pub fn disconnecting(&mut self, connection: u64) {
        for call in self.calls.values_mut() {
            call.is_given_up |= call.connection == connection;
        }
    }

    /// A call is about to be made.
    pub fn asking(&mut self, number: u64, connection: u64, request: &[u8]) {
        let call = Call {
            request: request.to_vec(),
            connection,
            served: Served::No,
            is_given_up: false,
            is_over: false,
        };
        self.calls.insert(number, call);
    }

    /// It was not made after all: the server must not have it.
    pub fn unasked(&mut self, number: u64) -> Result<(), Violation> {
        match self.calls.remove(&number) {
            Some(call) if call.served != Served::No => {
                Err(wrong(number, "was served, and was never made"))
            }
            _ => Ok(()),
        }
    }

    /// The client gives a call up.
    pub fn giving_up(&mut self, number: u64) {
        if let Some(call) = self.calls.get_mut(&number) {
            (call.is_given_up, call.is_over) = (true, true);
        }
    }

    /// A request came to the server's program; which call it is.
    pub fn came(&mut self, request: &[u8]) -> Result<u64, Violation> {
        let number = request
            .first_chunk()
            .map(|bytes| u64::from_le_bytes(*bytes));
        let number = number.unwrap_or(u64::MAX);
        let Some(call) = self.calls.get_mut(&number) else {
            return Err(wrong(number, "was served, and was never made"));
        };
        if call.request != request {
            return Err(wrong(number, "has another request than its client sent"));
        }
        if call.served != Served::No {
            return Err(wrong(number, "was served twice"));
        }
        call.served = Served::Held;
        Ok(number)
    }

    /// The request of a call in the server's hands.
    pub fn request(&self, number: u64) -> Option<&[u8]> {
        self.calls.get(&number).map(|call| call.request.as_slice())
    }

    /// The server's program is about to answer, or drops the call if there is no reply.
    pub fn answering(&mut self, number: u64, reply: Option<&[u8]>) {
        if let Some(call) = self.calls.get_mut(&number) {
            call.served = match reply {
                Some(reply) => Served::Answered(reply.to_vec()),
                None => Served::Dropped,
            };
        }
    }

    /// The service told its program that the client had given the call up.
    pub fn cancelled(&self, number: u64) -> Result<(), Violation> {
        match self.calls.get(&number) {
            Some(call) if call.is_given_up => Ok(()),
            _ => Err(wrong(
                number,
                "is said to be cancelled, and its client waits",
            )),
        }
    }

    /// The service told its program that the client is gone.
    pub fn client_gone(&self, number: u64) -> Result<(), Violation> {
        match self.calls.get(&number) {
            Some(call) if call.is_given_up || self.has_ended(call.connection) => Ok(()),
            _ => Err(wrong(number, "is said to have no client, and it waits")),
        }
    }

    /// The service is about to be dropped, or to dismiss its clients.
    pub fn ending(&mut self) {
        self.ends += 1;
    }

    fn has_ended(&self, connection: u64) -> bool {
        let begun_at = self.begun_at.get(&connection);
        begun_at.is_some_and(|begun_at| *begun_at < self.ends)
    }

    /// The client was told that the service ended or dismissed it.
    pub fn dismissed(&self, connection: u64) -> Result<(), Violation> {
        match self.has_ended(connection) {
            true => Ok(()),
            false => Err(wrong(
                u64::MAX,
                "was dismissed, and its service did not end",
            )),
        }
    }

    fn end(&mut self, number: u64) -> Result<&Call, Violation> {
        let Some(call) = self.calls.get_mut(&number) else {
            return Err(wrong(number, "ended, and was never made"));
        };
        if std::mem::replace(&mut call.is_over, true) {
            return Err(wrong(number, "ended twice"));
        }
        Ok(call)
    }

    /// A reply came to the client.
    pub fn replied(&mut self, number: u64, reply: &[u8]) -> Result<(), Violation> {
        match &self.end(number)?.served {
            Served::Answered(answer) if answer == reply => Ok(()),
            Served::Answered(_) => Err(wrong(number, "has another reply than its server gave")),
            _ => Err(wrong(number, "has a reply, and its server gave none")),
        }
    }

    /// The client was told that the server dropped the call.
    pub fn unanswered(&mut self, number: u64) -> Result<(), Violation> {
        match self.end(number)?.served {
            Served::Dropped => Ok(()),
            _ => Err(wrong(
                number,
                "is said to be dropped, and its server did not",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> (Calls, u64) {
        let mut calls = Calls::default();
        let connection = calls.connecting(None);
        for number in 0..2_u64 {
            calls.asking(number, connection, &number.to_le_bytes());
        }
        (calls, connection)
    }

    #[test]
    fn each_call_is_served_once_and_ends_once() {
        let (mut calls, _) = asked();
        assert_eq!(calls.came(&0_u64.to_le_bytes()), Ok(0));
        assert!(calls.came(&0_u64.to_le_bytes()).is_err());
        assert!(calls.came(&7_u64.to_le_bytes()).is_err());
        calls.answering(0, Some(b"yes"));
        assert_eq!(calls.replied(0, b"yes"), Ok(()));
        assert!(calls.replied(0, b"yes").is_err());
    }

    #[test]
    fn a_reply_is_the_one_that_was_given_to_this_call() {
        let (mut calls, _) = asked();
        for number in 0..2_u64 {
            calls.came(&number.to_le_bytes()).unwrap();
            calls.answering(number, Some(&[number as u8]));
        }
        assert!(calls.clone().replied(0, &[1]).is_err());
        assert!(calls.clone().unanswered(0).is_err());
        let (mut calls, _) = asked();
        assert!(calls.clone().replied(0, &[]).is_err());
        calls.came(&0_u64.to_le_bytes()).unwrap();
        calls.answering(0, None);
        assert_eq!(calls.unanswered(0), Ok(()));
    }

    #[test]
    fn an_end_is_told_if_there_was_one() {
        let (mut calls, connection) = asked();
        assert!(calls.dismissed(connection).is_err());
        assert!(calls.cancelled(0).is_err() && calls.client_gone(0).is_err());
        calls.giving_up(0);
        assert_eq!((calls.cancelled(0), calls.client_gone(0)), (Ok(()), Ok(())));
        calls.ending();
        assert_eq!(
            (calls.dismissed(connection), calls.client_gone(1)),
            (Ok(()), Ok(()))
        );
        let later = calls.connecting(None);
        assert!(calls.dismissed(later).is_err());
    }

    #[test]
    fn a_call_that_was_not_made_is_not_served() {
        let (mut calls, _) = asked();
        assert_eq!(calls.clone().unasked(0), Ok(()));
        calls.came(&0_u64.to_le_bytes()).unwrap();
        assert!(calls.unasked(0).is_err());
    }
}
