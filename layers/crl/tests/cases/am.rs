//! Over Active Messages alone.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hamlyn::Wait;
use hamlyn_am::{
    Bundle, Call, Deferred, Endpoint, Error, Incoming as Data, Node as AmNode, NodeOptions, Tag,
    Translation,
};
use hamlyn_crl::{
    AmCourier, Courier, Crl, CrlError, CrlOptions, Incoming, RegionHandle, RegionId, Regions,
};

use crate::couriers::Node;
use crate::world::{LONG, narrow, program_of};
use crate::{Host, World};

/// Runs couriers on nodes of Active Messages with these options.
fn run(
    world: &World,
    nodes: usize,
    options: NodeOptions,
    program: &(dyn Fn(&AmNode<Host>, AmCourier<Host>) + Sync),
) {
    world.place.run(nodes, &|manager, number, names| {
        let node = AmNode::new(manager, options).unwrap();
        let courier = AmCourier::open(&node, &program_of(number, names), "main", LONG);
        program(&node, courier.unwrap());
    });
}

/// Lets others send, and takes nothing of them, until that holds.
fn idle_until(node: &AmNode<Host>, holds: impl Fn() -> bool) {
    let bundle = node.bundle().unwrap();
    while !holds() {
        bundle.serve(Wait::millis(1)).unwrap();
    }
}

/// Makes a call in a handler of this node, where nothing can be sent.
fn in_a_handler(node: &AmNode<Host>, mut call: impl FnMut() + 'static) {
    let bundle = node.bundle().unwrap();
    let mut endpoint = bundle.endpoint().unwrap();
    endpoint.set_tag(Tag::Any).unwrap();
    let has_run = Rc::new(Cell::new(false));
    let ran = Rc::clone(&has_run);
    let handler = move |_: &mut Call<'_>, _: &[u32]| {
        call();
        ran.set(true);
        Ok(())
    };
    endpoint.on_short(1, handler).unwrap();
    let own = endpoint
        .map(&endpoint.name().unwrap(), Tag::Any, LONG)
        .unwrap();
    endpoint.request(&own, 1, &[], LONG).unwrap();
    assert!(bundle.serve_until(LONG, || has_run.get()).unwrap());
}

/// What was accepted while nothing could be sent arrives, in its order.
pub(crate) fn a_send_that_fails_loses_nothing(world: World) {
    const MESSAGES: usize = 100;
    let done = AtomicUsize::new(0);
    run(&world, 2, NodeOptions::default(), &|am, courier| {
        let courier = Rc::new(RefCell::new(courier));
        let me = courier.borrow().me();
        for number in 0..MESSAGES as u32 {
            let sender = Rc::clone(&courier);
            let send = move || {
                let mut courier = sender.borrow_mut();
                courier.send(1 - me, 0, &[number], &[]).unwrap();
                assert!(courier.flush(Wait::Poll).is_err(), "a handler runs");
            };
            match number % 3 {
                0 => in_a_handler(am, send),
                _ => courier
                    .borrow_mut()
                    .send(1 - me, 0, &[number], &[])
                    .unwrap(),
            }
        }
        let mut courier = courier.borrow_mut();
        let mut count = 0;
        while count < MESSAGES {
            match courier.receive(LONG).unwrap() {
                Some(Incoming::Message { words, .. }) => {
                    assert_eq!(words[0], count as u32);
                    count += 1;
                }
                other => panic!("{other:?} is no message"),
            }
        }
        assert!(courier.flush(LONG).unwrap());
        done.fetch_add(1, Ordering::SeqCst);
        while done.load(Ordering::SeqCst) < 2 {
            courier.receive(Wait::millis(1)).unwrap();
        }
    });
}

/// A node that takes nothing for so long that messages come back has them all in the end.
pub(crate) fn messages_that_come_back_keep_their_order(world: World) {
    const NODES: usize = 4;
    const MESSAGES: usize = 200;
    let (returned, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // More than the queue has room for.
    let options = NodeOptions {
        credits: 16,
        ..narrow()
    };
    run(&world, NODES, options, &|am, mut courier| {
        let mut node = Node::new(&mut courier);
        if node.courier.me() == 0 {
            idle_until(am, || returned.load(Ordering::SeqCst) == NODES - 1);
            node.receive_until("a message", |node| node.has_all_of(&[1, 2, 3], MESSAGES));
        } else {
            node.send(&[0], MESSAGES, true);
            // All of them, as no node has the queue for itself for long.
            while am.statistics().unwrap().returned == 0 {
                node.receive(Wait::millis(1));
            }
            returned.fetch_add(1, Ordering::SeqCst);
        }
        assert!(node.courier.flush(LONG).unwrap());
        done.fetch_add(1, Ordering::SeqCst);
        while done.load(Ordering::SeqCst) < NODES {
            node.receive(Wait::millis(1));
        }
    });
}

/// As many messages wait for it as may, and none of them is taken.
pub(crate) fn a_node_that_takes_nothing_is_lost(world: World) {
    const MESSAGES: usize = 5_000;
    let (heard, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    run(&world, 3, narrow(), &|am, courier| {
        let courier = Rc::new(RefCell::new(courier));
        let lender = Rc::clone(&courier);
        let me = courier.borrow().me();
        if me == 1 {
            let mut courier = courier.borrow_mut();
            Node::new(&mut *courier).send(&[0], MESSAGES, false);
            drop(courier);
            // That the other one is given up is to be told still.
            in_a_handler(am, move || {
                let flushed = lender.borrow_mut().flush(Wait::Poll);
                assert!(flushed.is_err(), "a handler runs");
            });
        }
        let mut courier = courier.borrow_mut();
        let mut node = Node::new(&mut *courier);
        match me {
            0 => {
                idle_until(am, || heard.load(Ordering::SeqCst) == 1);
                // It is told that the other one has given it up, and has nothing more of it.
                node.receive_until("a message", |node| {
                    node.is_lost(1) && node.has_all_of(&[2], 100)
                });
                assert!(node.count_of(1) < 200, "no more than were under way");
            }
            1 => {
                node.receive_until("the loss", |node| node.is_lost(0));
                heard.fetch_add(1, Ordering::SeqCst);
                node.receive_until("a message", |node| node.has_all_of(&[2], 100));
                assert!(!node.is_lost(2));
            }
            _ => node.send(&[0, 1], 100, false),
        }
        done.fetch_add(1, Ordering::SeqCst);
        while done.load(Ordering::SeqCst) < 3 {
            node.receive(Wait::millis(1));
        }
    });
}

/// Several programs share a node, and one ends while the others go on.
pub(crate) fn couriers_of_a_node_are_apart(world: World) {
    let heard = AtomicUsize::new(0);
    world.place.run(2, &|manager, number, names| {
        let am = AmNode::new(manager, NodeOptions::default()).unwrap();
        let program = program_of(number, names);
        let join = |name| {
            let options = CrlOptions::default();
            Crl::join_over_am(&am, &program, name, options, LONG).unwrap()
        };
        let mut first = AmCourier::open(&am, &program, "first", LONG).unwrap();
        let second = join("second");
        let regions = {
            let own = second.create(8).unwrap();
            second.barrier().unwrap();
            [0, 1].map(|home| RegionId::from_u64(home << 32 | own.to_u64() & 0xffff_ffff))
        };
        let handles = regions.map(|id| second.map(id).unwrap());
        let mut node = Node::new(&mut first);
        node.send(&[1 - number as u32], 50, true);
        for _ in 0..50 {
            handles[1].write().unwrap()[0] += 1;
        }
        while node.count_of(1 - number as u32) < 50 {
            assert!(node.receive(Wait::millis(1)) || second.serve(Wait::millis(1)).is_ok());
        }
        assert!(node.courier.flush(LONG).unwrap());
        second.barrier().unwrap();
        if number == 0 {
            // Its node lives on.
            drop(first);
            idle_until(&am, || heard.load(Ordering::SeqCst) == 1);
        } else {
            node.receive_until("the loss", |node| node.is_lost(0));
            heard.fetch_add(1, Ordering::SeqCst);
        }
        second.barrier().unwrap();
        assert_eq!(handles[1].read().unwrap()[0], 100);
        assert!(second.finish(LONG).unwrap());
    });
}

/// A program that stands where a node should, and sends what it likes.
///
/// It takes all messages, and never says that it leaves: nothing but its words harm it.
struct Liar {
    bundle: Bundle<Host>,
    endpoint: Endpoint<Host>,
    to: Vec<Translation>,
    watches: Rc<RefCell<Vec<Deferred>>>,
}

/// Handlers of a courier.
const MESSAGE: u8 = 1;
const WATCH: u8 = 3;
const LEFT: u8 = 4;

impl Liar {
    /// It answers messages by that handler and number, if it is to.
    fn open(
        node: &AmNode<Host>,
        names: &[String],
        honest: usize,
        answer: Option<(u8, u32)>,
    ) -> Self {
        let bundle = node.bundle().unwrap();
        let mut endpoint = bundle.endpoint().unwrap();
        endpoint.set_tag(Tag::Any).unwrap();
        let reply = move |call: &mut Call<'_>, _: Data<'_>, _: &[u32]| match answer {
            Some((handler, number)) => call.reply(handler, &[number, 2]),
            None => Ok(()),
        };
        endpoint.on_any(MESSAGE, reply).unwrap();
        let watches = Rc::new(RefCell::new(Vec::new()));
        let kept = Rc::clone(&watches);
        let keep = move |call: &mut Call<'_>, _: &[u32]| {
            kept.borrow_mut().push(call.defer()?);
            Ok(())
        };
        endpoint.on_short(WATCH, keep).unwrap();
        let item = "crl.cases.main";
        node.publish(item, &endpoint.name().unwrap()).unwrap();
        let map = |name: &String| {
            let found = node.look_up(name, item, LONG).unwrap();
            endpoint.map(&found, Tag::Any, LONG).unwrap()
        };
        Self {
            to: names[..honest].iter().map(map).collect(),
            watches,
            bundle,
            endpoint,
        }
    }

    /// Sends this to all honest nodes, from that handler on.
    fn say(&self, handler: u8, arguments: &[u32], data: &[u8]) {
        for to in &self.to {
            let sent = match data {
                [] => self.endpoint.request(to, handler, arguments, LONG),
                data => (self.endpoint).request_medium(to, handler, data, arguments, LONG),
            };
            match sent {
                Ok(()) | Err(Error::PeerLost(_)) => {}
                Err(error) => panic!("{error}"),
            }
        }
    }
}

/// Whatever it says, it harms itself: its regions are lost by name, and others go on.
pub(crate) fn a_node_that_breaks_the_rules_is_lost(world: World) {
    // Each is the last word of a liar, after its first message: a number that was there, one that
    // is too far ahead, and too many words.
    let words: [&[u32]; 5] = [
        &[0, 2, 0, 0, 0, 0],
        &[u32::MAX, 2, 0, 0, 0, 0],
        &[129, 2, 0, 0, 0, 0],
        &[1 << 31, 2, 0, 0, 0, 0],
        &[1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    ];
    let words = words.map(|words| (words, None));
    // And answers that are to be answered.
    let answers = [(MESSAGE, 31), (WATCH, 0)].map(|answer| (&[][..], Some(answer)));
    for (last, answer) in words.into_iter().chain(answers) {
        let done = AtomicUsize::new(0);
        world.place.run(3, &|manager, number, names| {
            let am = AmNode::new(manager, NodeOptions::default()).unwrap();
            if number == 2 {
                let liar = Liar::open(&am, names, 2, answer);
                while liar.watches.borrow().len() < 2 {
                    liar.bundle.serve(LONG).unwrap();
                }
                lie(&liar, last);
                while done.load(Ordering::SeqCst) < 2 {
                    liar.bundle.serve(Wait::millis(1)).unwrap();
                }
                return;
            }
            let program = program_of(number, names);
            let mut options = CrlOptions::default();
            options.patience = Some(Duration::from_secs(30));
            let crl = Crl::join_over_am(&am, &program, "main", options, LONG).unwrap();
            let own = crl.create(8).unwrap();
            let first = RegionId::from_u64(0);
            // The other one has created it when it answers.
            let handle = loop {
                match crl.map(first) {
                    Ok(handle) => break handle,
                    Err(error) => assert_eq!(error, CrlError::NoRegion { region: first }),
                }
            };
            for _ in 0..100 {
                handle.write().unwrap()[0] += 1;
            }
            let region = RegionId::from_u64(2 << 32);
            let lost = CrlError::Lost { region, node: 2 };
            assert_eq!(crl.map(region).map(drop), Err(lost));
            assert_eq!(crl.barrier(), Err(CrlError::NodeLost { node: 2 }));
            while handle.read().unwrap()[0] < 200 {
                crl.serve(Wait::millis(1)).unwrap();
            }
            drop(crl.map(own).unwrap().write().unwrap());
            done.fetch_add(1, Ordering::SeqCst);
            while done.load(Ordering::SeqCst) < 2 {
                crl.serve(Wait::millis(1)).unwrap();
            }
        });
    }
}

fn lie(liar: &Liar, last: &[u32]) {
    // In another one's name, of nobody, and of no kind: these have no effect.
    for (number, node) in [(0, 0), (0, 1), (500, 1), (0, 3), (0, u32::MAX), (7, 0xffff)] {
        liar.say(MESSAGE, &[number, node, 9, 9], &[]);
        liar.say(MESSAGE, &[number, node, 9, 9], &[7; 900]);
        for handler in MESSAGE + 1..=LEFT {
            liar.say(handler, &[number, node], &[]);
        }
    }
    for count in [0, 1, 16] {
        for handler in MESSAGE..=LEFT + 1 {
            liar.say(handler, &[0xffff_ffff; 16][..count], &[]);
            liar.say(handler, &[0xffff_ffff; 16][..count], &[1; 3]);
        }
    }
    // Acknowledgements of what was never sent, in its own name.
    for number in [1, 32, 1 << 20, u32::MAX] {
        liar.say(MESSAGE + 1, &[number, 2], &[]);
    }
    // A message of a kind that there is not.
    liar.say(MESSAGE, &[0, 2 | 200 << 16, 1, 2, 3], &[5; 100]);
    while liar.bundle.serve(Wait::millis(1)).unwrap() > 0 {}
    liar.say(MESSAGE, last, &[]);
}

/// A reduction sends the values of half of the nodes in one message.
pub(crate) fn messages_must_be_long_enough(world: World) {
    let options = NodeOptions {
        medium_bytes_max: 11,
        ..NodeOptions::default()
    };
    let done = AtomicUsize::new(0);
    world.place.run(3, &|manager, number, names| {
        let node = AmNode::new(manager, options).unwrap();
        let program = program_of(number, names);
        let error = AmCourier::open(&node, &program, "main", LONG).unwrap_err();
        assert!(error.to_string().contains("medium_bytes_max"), "{error}");
        let mut far = program.clone();
        far.me = 3;
        let error = AmCourier::open(&node, &far, "main", LONG).unwrap_err();
        assert_eq!(error, CrlError::Nodes { me: 3, nodes: 3 });
        // Of a name that no other one has.
        let alone = AmCourier::open(&node, &program, &names[number], Wait::millis(5));
        let error = alone.unwrap_err().to_string();
        assert!(error.contains("was not met"), "{error}");
        done.fetch_add(1, Ordering::SeqCst);
        idle_until(&node, || done.load(Ordering::SeqCst) == 3);
    });
}
