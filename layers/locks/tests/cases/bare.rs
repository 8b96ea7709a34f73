//! A client that speaks to a server directly, by active messages, and says what it likes.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use hamlyn::Wait;
use hamlyn_am::{Bundle, Endpoint, Error, Node, NodeOptions, Translation};

use crate::Host;
use crate::player::{LONG, Player, TAG};

/// Handlers of the server, and of clients.
pub(crate) const HELLO: u8 = 1;
pub(crate) const REQUEST: u8 = 2;
pub(crate) const REQUEST_WITH: u8 = 3;
pub(crate) const WELCOME: u8 = 1;
const STATE: u8 = 2;
const STATE_WITH: u8 = 3;
const ENDED: u8 = 4;
/// Kinds of requests.
pub(crate) const LOCK: u32 = 1;
pub(crate) const CONVERT: u32 = 2;
pub(crate) const CANCEL: u32 = 3;
pub(crate) const RELEASE: u32 = 4;
pub(crate) const EX: u32 = 5 << 8;

pub(crate) struct Bare {
    pub(crate) bundle: Bundle<Host>,
    pub(crate) endpoint: Endpoint<Host>,
    pub(crate) to: Translation,
    /// Its number, once it is welcome.
    pub(crate) id: Rc<Cell<u32>>,
    /// The code of the refusal when it was ended.
    ended: Rc<Cell<u32>>,
    states: Rc<RefCell<Vec<Vec<u32>>>>,
    pub(crate) number: Cell<u32>,
}

/// The sum of the servers' hashes.
pub(crate) fn digest(servers: &[&str]) -> [u32; 2] {
    let hash = |name: &str| {
        let fold = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        let mut bits = name.bytes().fold(0xcbf2_9ce4_8422_2325, fold);
        bits = (bits ^ bits >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ bits >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ bits >> 31
    };
    let sum = servers
        .iter()
        .map(|name| hash(name))
        .fold(0, u64::wrapping_add);
    [sum as u32, (sum >> 32) as u32]
}

impl Bare {
    /// On a node of its own. It answers the server's watch by an empty reply at once, so that the
    /// server is not told of its end.
    pub(crate) fn open(player: &Player<'_>) -> Result<Self, Error> {
        let node = Node::new(crate::open_unnamed(), NodeOptions::default())?;
        let bundle = node.bundle()?;
        let mut endpoint = bundle.endpoint()?;
        endpoint.set_tag(hamlyn_am::Tag::Any)?;
        let (id, ended, states) = (Rc::<Cell<u32>>::default(), Rc::default(), Rc::default());
        let seen = Rc::clone(&id);
        endpoint.on_short(WELCOME, move |_, arguments| {
            seen.set(arguments[0]);
            Ok(())
        })?;
        let seen: Rc<RefCell<Vec<Vec<u32>>>> = Rc::clone(&states);
        let also = Rc::clone(&states);
        endpoint.on_short(STATE, move |_, arguments| {
            seen.borrow_mut().push(arguments.to_vec());
            Ok(())
        })?;
        endpoint.on_medium(STATE_WITH, move |_, _, arguments| {
            also.borrow_mut().push(arguments.to_vec());
            Ok(())
        })?;
        let seen: Rc<Cell<u32>> = Rc::clone(&ended);
        endpoint.on_short(ENDED, move |_, arguments| {
            seen.set(arguments[0]);
            Ok(())
        })?;
        let name = node.look_up(&player.names[0], "locks", LONG)?;
        let to = endpoint.map(&name, TAG, LONG)?;
        let number = Cell::new(0);
        Ok(Self {
            bundle,
            endpoint,
            to,
            id,
            ended,
            states,
            number,
        })
    }

    /// Introduces itself. The code of the refusal, if it is not welcome.
    pub(crate) fn hello(&self, arguments: &[u32]) -> Result<u32, Error> {
        self.id.set(0);
        self.ended.set(0);
        self.endpoint.request(&self.to, HELLO, arguments, LONG)?;
        let is_over = || self.id.get() != 0 || self.ended.get() != 0;
        assert!(self.bundle.serve_until(LONG, is_over)?);
        Ok(self.ended.get())
    }

    pub(crate) fn greet(&self, servers: &[&str]) -> Result<(), Error> {
        let [low, high] = digest(servers);
        assert_eq!(self.hello(&[1, low, high, 7])?, 0);
        Ok(())
    }

    /// Sends an operation in its turn, and waits for its answer: the code of the refusal, or 0.
    pub(crate) fn operate(&self, handle: u32, word: u32, data: &[u8]) -> Result<u32, Error> {
        let number = self.number.replace(self.number.get() + 1);
        let operation = number + 1_000;
        self.send(
            &[self.id.get(), number, handle, operation, word],
            data,
            LONG,
        )?;
        // Beside what it is told by itself.
        let answer = || {
            let states = self.states.borrow();
            let mut answers = states.iter().filter(|state| state[1] == operation);
            answers.next().map(|state| state[2] & 0xff)
        };
        assert!(self.bundle.serve_until(LONG, || answer().is_some())?);
        Ok(answer().unwrap_or(0))
    }

    pub(crate) fn send(&self, arguments: &[u32], data: &[u8], wait: Wait) -> Result<(), Error> {
        match data {
            [] => self.endpoint.request(&self.to, REQUEST, arguments, wait),
            _ => {
                let (over, to) = (REQUEST_WITH, &self.to);
                self.endpoint
                    .request_medium(to, over, data, arguments, wait)
            }
        }
    }
}
