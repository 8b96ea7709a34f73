//! Active Messages of Hamlyn in Rust: the same orders as `peers/harness/active.h` has for C.
//!
//! The segment is shared memory, into which senders of the same host store long messages
//! themselves. A process polls, and never sleeps.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use anyhow::{Context, Result, ensure};
use hamlyn::host::process::Options;
use hamlyn::region::SharedOptions;
use hamlyn::{Area, Wait};
use hamlyn_am::{Bundle, Call, Endpoint, Name, Node, NodeOptions, Outcome, Tag, Translation};
use hamlyn_compare_session::{
    ARGUMENTS_MAX, Acted, Category, Order, Peer, RECEIVER, Session, Stamp, now_ns,
};

/// Handlers of requests and replies; of the question of a receiver that has all, and of answers.
const REQUESTED: u8 = 1;
const REPLIED: u8 = 2;
const REQUESTED_MEDIUM: u8 = 3;
const REPLIED_MEDIUM: u8 = 4;
const REQUESTED_LONG: u8 = 5;
const ASKED: u8 = 6;
const ANSWERED: u8 = 7;

const SEGMENT_BYTES: u64 = 4 << 20;
/// Messages whose data are on their way at a time: so many bytes together, but at least four
/// messages.
const BUFFERS_BYTES: usize = 256 << 10;
const BUFFERS: std::ops::RangeInclusive<usize> = 4..=64;
/// Bytes of the longest medium message. The queue has room for as many as there are credits.
const MEDIUM_BYTES_MAX: u32 = 64 << 10;
const QUEUE_BYTES: u32 = 4 << 20;
/// Longer than anything takes.
const WAIT: Wait = Wait::millis(20_000);
/// In which both ends are.
const TAG: u64 = 7;
/// The end that sends.
const SENDER: usize = 1;

fn main() -> Result<()> {
    Session::open()?.run(Active::open)
}

/// The state that handlers and loops share.
struct State {
    category: Cell<Category>,
    size: Cell<usize>,
    is_latency: Cell<bool>,
    buffers: Cell<usize>,
    count: Cell<u64>,
    /// Messages that came, and those of them that were right.
    came: Cell<u64>,
    right: Cell<u64>,
    answers: Cell<u64>,
    /// The other has all.
    is_over: Cell<bool>,
    /// A message came back.
    is_returned: Cell<bool>,
    /// A bit for each number that came.
    numbers: RefCell<Vec<u64>>,
    /// Data that are sent.
    source: RefCell<Vec<u8>>,
    area: Area,
}

/// The data between two stamps.
const FILLING: u8 = 1;

fn add(counter: &Cell<u64>, count: u64) {
    counter.set(counter.get() + count);
}

impl State {
    fn new(area: Area) -> Self {
        Self {
            category: Cell::new(Category::Short),
            size: Cell::new(0),
            is_latency: Cell::new(false),
            buffers: Cell::new(1),
            count: Cell::new(0),
            came: Cell::new(0),
            right: Cell::new(0),
            answers: Cell::new(0),
            is_over: Cell::new(false),
            is_returned: Cell::new(false),
            numbers: RefCell::default(),
            source: RefCell::new(vec![FILLING; SEGMENT_BYTES as usize]),
            area,
        }
    }

    fn begin(&self, order: &Order, category: Category) {
        let size = order.size_bytes;
        let buffers = BUFFERS_BYTES / size.max(1);
        self.category.set(category);
        self.size.set(size);
        self.is_latency.set(order.is_latency);
        self.buffers
            .set(buffers.clamp(*BUFFERS.start(), *BUFFERS.end()));
        self.count.set(order.count);
        for counter in [&self.came, &self.right, &self.answers] {
            counter.set(0);
        }
        self.is_over.set(false);
        // Without the stamps of the order before.
        self.source.borrow_mut().fill(FILLING);
        let words = (order.count / 64 + 1) as usize;
        *self.numbers.borrow_mut() = vec![0; words];
    }

    /// Long messages that are answered together.
    fn batch(&self) -> u64 {
        self.buffers.get() as u64 / 4
    }

    fn place(&self, turn: u64) -> usize {
        turn as usize % self.buffers.get() * self.size.get()
    }

    /// The arguments of a short message with that number.
    fn arguments(&self, turn: u64) -> [u32; ARGUMENTS_MAX] {
        let mut arguments = [0; ARGUMENTS_MAX];
        if let Some(last) = self.size.get().checked_sub(1) {
            arguments[0] = turn as u32;
            arguments[last] = turn as u32;
        }
        arguments
    }

    /// Has the data of a message with that number sent.
    fn with_data<T>(&self, turn: u64, send: impl FnOnce(&[u8]) -> T) -> T {
        let place = self.place(turn);
        let mut source = self.source.borrow_mut();
        let data = &mut source[place..place + self.size.get()];
        Stamp::of(SENDER, turn).write(data);
        send(data)
    }

    /// Counts a message with that number; nothing if it is damaged.
    #[inline]
    fn arrived(&self, number: Option<u64>) {
        add(&self.came, 1);
        let Some(number) = number.filter(|&number| number < self.count.get()) else {
            return;
        };
        let mut numbers = self.numbers.borrow_mut();
        let word = &mut numbers[(number / 64) as usize];
        let bit = 1 << (number % 64);
        if *word & bit == 0 {
            *word |= bit;
            add(&self.right, 1);
        }
    }

    /// A short message; one without arguments has no number, and is counted.
    #[inline]
    fn arrived_short(&self, arguments: &[u32]) {
        match (arguments, self.size.get()) {
            ([], 0) => {
                add(&self.came, 1);
                add(&self.right, 1);
            }
            ([first, .., last], size) if arguments.len() == size => {
                self.arrived((first == last).then_some(u64::from(*first)));
            }
            _ => self.arrived(None),
        }
    }

    /// A message with data of that length.
    #[inline]
    fn arrived_data(&self, stamp: Option<Stamp>, length_bytes: usize) {
        let whole = stamp.filter(|stamp| {
            stamp.first == stamp.last && stamp.sender() == SENDER && length_bytes == self.size.get()
        });
        let number = whole.map(|stamp| stamp.first - Stamp::of(SENDER, 0).first);
        self.arrived(number);
    }
}

/// The stamp of data that are as they were sent: all of them are looked at, as by one that uses
/// them.
fn stamp_of_whole(data: &[u8]) -> Option<Stamp> {
    let between = data.get(8..data.len().checked_sub(8)?)?;
    let (words, rest) = between.as_chunks::<8>();
    let changed = words.iter().fold(0, |changed, word| {
        changed | (u64::from_ne_bytes(*word) ^ u64::from_ne_bytes([FILLING; 8]))
    });
    let is_whole = changed == 0 && rest.iter().all(|&byte| byte == FILLING);
    Stamp::read(data).filter(|_| is_whole)
}

struct Active {
    role: usize,
    bundle: Bundle,
    endpoint: Endpoint,
    to: Translation,
    state: Rc<State>,
}

impl Active {
    fn open(session: &Session) -> Result<Self> {
        let mut host = Options::default().in_namespace("compare");
        host.spin_ns = Some(u64::MAX / 4);
        let options = NodeOptions {
            medium_bytes_max: MEDIUM_BYTES_MAX,
            queue_bytes: QUEUE_BYTES,
            ..NodeOptions::default()
        };
        let node = Node::open(host, options)?;
        let bundle = node.bundle()?;
        let mut endpoint = bundle.endpoint()?;
        endpoint.set_tag(Tag::new(TAG))?;
        let area = Area::shared(SharedOptions::reserved(SEGMENT_BYTES))?;
        area.fill(0, SEGMENT_BYTES, 1).ok().context("a segment")?;
        endpoint.set_segment(Some((area.clone(), SEGMENT_BYTES)))?;
        let state = Rc::new(State::new(area));
        set_handlers(&mut endpoint, &state)?;
        let [own, other] = match session.role {
            RECEIVER => ["name.0", "name.1"],
            _ => ["name.1", "name.0"],
        };
        session.publish(own, &endpoint.name()?.to_bytes())?;
        let name = Name::from_bytes(&session.awaited(other)?)?;
        let to = endpoint.map(&name, Tag::new(TAG), WAIT)?;
        Ok(Self {
            role: session.role,
            bundle,
            endpoint,
            to,
            state,
        })
    }

    #[inline]
    fn poll(&self) -> Result<()> {
        self.bundle.poll()?;
        ensure!(!self.state.is_returned.get(), "a message came back");
        Ok(())
    }

    /// Polls until nothing is outstanding.
    fn settle(&self) -> Result<()> {
        loop {
            self.poll()?;
            if self.endpoint.outstanding()? == 0 {
                return Ok(());
            }
        }
    }

    #[inline]
    fn request(&self, turn: u64) -> Result<()> {
        let (endpoint, to, state) = (&self.endpoint, &self.to, &self.state);
        match state.category.get() {
            Category::Short => {
                let arguments = state.arguments(turn);
                endpoint.request(to, REQUESTED, &arguments[..state.size.get()], WAIT)?;
            }
            Category::Medium => state.with_data(turn, |data| {
                endpoint.request_medium(to, REQUESTED_MEDIUM, data, &[], WAIT)
            })?,
            Category::Long => state.with_data(turn, |data| {
                let place = state.place(turn) as u64;
                endpoint.transfer(to, REQUESTED_LONG, place, data, &[], WAIT)
            })?,
        }
        Ok(())
    }

    fn receive_all(&self, ready: &mut dyn FnMut() -> Result<()>) -> Result<[u64; 2]> {
        let state = &self.state;
        ready()?;
        let begin_ns = now_ns();
        while state.came.get() < state.count.get() {
            self.poll()?;
        }
        let end_ns = now_ns();
        self.endpoint.request(&self.to, ASKED, &[], WAIT)?;
        while state.answers.get() == 0 {
            self.poll()?;
        }
        self.settle()?;
        Ok([begin_ns, end_ns])
    }

    fn send_all(&self) -> Result<[u64; 2]> {
        let state = &self.state;
        let is_long = state.category.get() == Category::Long;
        let begin_ns = now_ns();
        for turn in 0..state.count.get() {
            if state.is_latency.get() {
                self.request(turn)?;
                while state.came.get() == turn {
                    self.poll()?;
                }
                continue;
            }
            while is_long
                && turn - state.answers.get() * state.batch() >= state.buffers.get() as u64
            {
                self.poll()?;
            }
            self.request(turn)?;
            add(&state.right, 1);
        }
        let end_ns = now_ns();
        let answers = match is_long {
            true => state.count.get() / state.batch(),
            false => 0,
        };
        while !state.is_over.get() || state.answers.get() < answers {
            self.poll()?;
        }
        self.settle()?;
        Ok([begin_ns, end_ns])
    }
}

/// The reply to a request, if the order wants one.
#[inline]
fn reply(call: &mut Call<'_>, state: &State) -> Outcome {
    let turn = state.came.get() - 1;
    match state.category.get() {
        Category::Long if state.came.get().is_multiple_of(state.batch()) => {
            call.reply(ANSWERED, &[])
        }
        Category::Short if state.is_latency.get() => {
            call.reply(REPLIED, &state.arguments(turn)[..state.size.get()])
        }
        Category::Medium if state.is_latency.get() => {
            state.with_data(turn, |data| call.reply_medium(REPLIED_MEDIUM, data, &[]))
        }
        _ => Ok(()),
    }
}

fn set_handlers(endpoint: &mut Endpoint, state: &Rc<State>) -> Result<()> {
    let own = Rc::clone(state);
    endpoint.on_short(REQUESTED, move |call, arguments| {
        own.arrived_short(arguments);
        reply(call, &own)
    })?;
    let own = Rc::clone(state);
    endpoint.on_short(REPLIED, move |_, arguments| {
        own.arrived_short(arguments);
        Ok(())
    })?;
    let own = Rc::clone(state);
    endpoint.on_medium(REQUESTED_MEDIUM, move |call, data, _| {
        own.arrived_data(stamp_of_whole(data), data.len());
        reply(call, &own)
    })?;
    let own = Rc::clone(state);
    endpoint.on_medium(REPLIED_MEDIUM, move |_, data, _| {
        own.arrived_data(stamp_of_whole(data), data.len());
        Ok(())
    })?;
    let own = Rc::clone(state);
    endpoint.on_bulk(REQUESTED_LONG, move |call, range, _| {
        let length_bytes = (range.end - range.start) as usize;
        let word = |at| own.area.load_u64(at).ok();
        let stamp =
            (word(range.start).zip(word(range.end - 8))).map(|(first, last)| Stamp { first, last });
        own.arrived_data(stamp, length_bytes);
        reply(call, &own)
    })?;
    let own = Rc::clone(state);
    endpoint.on_short(ASKED, move |call, _| {
        own.is_over.set(true);
        call.reply(ANSWERED, &[])
    })?;
    let own = Rc::clone(state);
    endpoint.on_short(ANSWERED, move |_, _| {
        add(&own.answers, 1);
        Ok(())
    })?;
    let own = Rc::clone(state);
    Ok(endpoint.on_returned(move |returned| {
        eprintln!("{returned:?}");
        own.is_returned.set(true);
    })?)
}

impl Peer for Active {
    fn prepare(&mut self, order: &Order) -> Result<Option<String>> {
        let Some(category) = order.category else {
            return Ok(Some("active messages only".to_owned()));
        };
        let reason = match category {
            Category::Long if order.is_latency => "round trips of long messages are not measured",
            Category::Medium if order.size_bytes > self.endpoint.medium_bytes_max(&self.to)? => {
                "longer than a medium message"
            }
            _ => {
                self.state.begin(order, category);
                let bytes = self.state.buffers.get() * order.size_bytes;
                ensure!(bytes as u64 <= SEGMENT_BYTES, "too long");
                return Ok(None);
            }
        };
        Ok(Some(reason.to_owned()))
    }

    fn act(&mut self, _: &Order, ready: &mut dyn FnMut() -> Result<()>) -> Result<Acted> {
        let [begin_ns, end_ns] = match self.role {
            RECEIVER => self.receive_all(ready)?,
            _ => self.send_all()?,
        };
        Ok(Acted {
            begin_ns,
            end_ns,
            checked: self.state.right.get(),
        })
    }

    fn send(&mut self, _: &[u8]) -> Result<()> {
        anyhow::bail!("active messages only")
    }

    fn receive(&mut self) -> Result<Stamp> {
        anyhow::bail!("active messages only")
    }

    fn settle(&mut self) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(category: Category, size_bytes: usize) -> State {
        let area = Area::shared(SharedOptions::reserved(SEGMENT_BYTES)).unwrap();
        let state = State::new(area);
        let order = Order {
            is_latency: false,
            size_bytes,
            count: 100,
            senders: 1,
            is_fresh: false,
            readers: 0,
            category: Some(category),
        };
        state.begin(&order, category);
        state
    }

    #[test]
    fn each_number_counts_once_in_any_order() {
        let state = state(Category::Short, 8);
        for number in (0..100).rev() {
            state.arrived_short(&state.arguments(number)[..8]);
        }
        assert_eq!((state.came.get(), state.right.get()), (100, 100));
        // Again, beyond the last, of another length, and damaged.
        state.arrived_short(&state.arguments(5)[..8]);
        state.arrived_short(&state.arguments(100)[..8]);
        state.arrived_short(&state.arguments(5)[..7]);
        state.arrived_short(&[5, 0, 0, 0, 0, 0, 0, 6]);
        state.arrived_short(&[]);
        assert_eq!((state.came.get(), state.right.get()), (105, 100));
    }

    #[test]
    fn requests_without_arguments_are_counted() {
        let state = state(Category::Short, 0);
        state.arrived_short(&[]);
        state.arrived_short(&[1]);
        assert_eq!((state.came.get(), state.right.get()), (2, 1));
    }

    #[test]
    fn data_carry_their_number_at_both_ends() {
        let state = state(Category::Medium, 1024);
        let good = state.with_data(7, <[u8]>::to_vec);
        let mut torn = state.with_data(8, <[u8]>::to_vec);
        torn[1023] ^= 1;
        let mut changed = state.with_data(10, <[u8]>::to_vec);
        changed[500] ^= 1;
        let mut of_nobody = good.clone();
        Stamp::of(2, 7).write(&mut of_nobody);
        for data in [&good, &good, &torn, &changed, &of_nobody] {
            state.arrived_data(stamp_of_whole(data), data.len());
            assert_eq!(state.right.get(), 1);
        }
        state.arrived_data(stamp_of_whole(&state.with_data(9, <[u8]>::to_vec)), 1000);
        assert_eq!((state.came.get(), state.right.get()), (6, 1));
    }

    #[test]
    fn buffers_are_as_many_as_in_c() {
        for (size, buffers) in [(8, 64), (16 << 10, 16), (64 << 10, 4), (1 << 20, 4)] {
            let state = state(Category::Long, size);
            assert_eq!(state.buffers.get(), buffers, "{size}");
            assert_eq!(state.batch(), buffers as u64 / 4);
            assert_eq!(state.place(buffers as u64 + 1), size);
        }
    }
}
