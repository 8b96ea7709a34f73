//! The messages of layers.

use anyhow::{Result, ensure};
use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Wait};
use hamlyn_am::{Bundle, Endpoint, Node, NodeOptions, Tag, Translation};
use hamlyn_udm::{Group, GroupOptions, Interrupt, Udm, UdmOptions};

use super::ends::{BATCH, Ends, GROWTH};

/// A node that injects messages for itself: it goes through the same cells and checks as another.
fn node<S: 'static>(options: Options, state: S) -> Result<Udm<S>> {
    let mut options = options;
    options.name = Some("node".to_owned());
    let manager = hamlyn::open_with(options, ManagerOptions::default())?;
    let group = GroupOptions {
        name: "counted".to_owned(),
        me: 0,
        addresses: vec!["node".to_owned()],
    };
    let group = Group::new(manager, group)?;
    let polling = UdmOptions {
        interrupt: Interrupt::Polling,
        ..UdmOptions::default()
    };
    Ok(Udm::open(&group, "node", polling, state, GROWTH)?)
}

pub(super) struct Direct<const WORDS: usize> {
    udm: Udm<u32>,
}

impl<const WORDS: usize> Direct<WORDS> {
    const DATA: [u32; WORDS] = [7; WORDS];

    pub(super) fn open(options: Options) -> Result<Self> {
        let mut udm = node(options, 0)?;
        udm.on(0, |arrival| {
            let mut call = arrival.extract();
            let (message, state) = call.parts();
            for number in 0..WORDS {
                *state ^= message.word(number);
            }
            call
        })?;
        Ok(Self { udm })
    }
}

impl<const WORDS: usize> Ends for Direct<WORDS> {
    #[inline]
    fn send(&mut self, _: usize) -> Result<()> {
        Ok(self.udm.try_inject(0, 0, &Self::DATA)?)
    }

    #[inline]
    fn receive(&mut self, _: usize) -> Result<()> {
        ensure!(self.udm.poll(1)? == 1, "no message");
        Ok(())
    }
}

pub(super) struct Sections {
    udm: Udm<u32>,
}

impl Sections {
    pub(super) fn open(options: Options) -> Result<Self> {
        let udm = node(options, 0)?;
        Ok(Self { udm })
    }
}

impl Ends for Sections {
    #[inline]
    fn send(&mut self, _: usize) -> Result<()> {
        *self.udm.atomic() += 1;
        Ok(())
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        self.send(turn)
    }
}

/// Handlers of both ends.
const TAKEN: u8 = 1;
const ANSWERED: u8 = 2;
const TAG: Tag = Tag::new(7);
const ARGUMENTS: [u32; 4] = [7; 4];
/// Nodes that send, one after the other, so that a batch is within what each may have outstanding.
const SENDERS: usize = 2;
/// Polls in which all credits come back.
const POLLS: usize = 16;

/// Nodes that send, and one that receives. A receive is a poll; the first one of a batch takes all
/// that was sent. Before a batch is sent, answers and credits of the one before are taken.
pub(super) struct Requests {
    senders: Vec<(Bundle, Endpoint, Translation)>,
    receiving: Bundle,
    _asked: Endpoint,
    taken: usize,
}

impl Requests {
    pub(super) fn open(options: &Options, are_answered: bool) -> Result<Self> {
        let bundle = || Node::open(options.clone(), NodeOptions::default())?.bundle();
        let receiving = bundle()?;
        let mut asked = receiving.endpoint()?;
        asked.set_tag(TAG)?;
        asked.on_short(TAKEN, move |call, arguments| match are_answered {
            true => call.reply(ANSWERED, arguments),
            false => Ok(()),
        })?;
        let name = asked.name()?;
        let sender = |_| -> Result<_> {
            let sending = bundle()?;
            let mut from = sending.endpoint()?;
            from.set_tag(TAG)?;
            from.on_short(ANSWERED, |_, arguments| {
                std::hint::black_box(arguments);
                Ok(())
            })?;
            let to = from.map(&name, TAG, GROWTH)?;
            Ok((sending, from, to))
        };
        Ok(Self {
            senders: (0..SENDERS).map(sender).collect::<Result<_>>()?,
            receiving,
            _asked: asked,
            taken: 0,
        })
    }

    /// Has all answers and credits come.
    fn settle(&self) -> Result<()> {
        for _ in 0..POLLS {
            let mut outstanding = 0;
            for (sending, from, _) in &self.senders {
                sending.poll()?;
                outstanding += from.outstanding()?;
            }
            if outstanding == 0 {
                break;
            }
            // The other end gives credits back when it finds nothing more.
            self.receiving.poll()?;
        }
        Ok(())
    }
}

impl Ends for Requests {
    #[inline]
    fn send(&mut self, turn: usize) -> Result<()> {
        if turn == 0 {
            self.settle()?;
        }
        let (_, from, to) = &self.senders[turn * SENDERS / BATCH];
        Ok(from.request(to, TAKEN, &ARGUMENTS, Wait::Poll)?)
    }

    #[inline]
    fn receive(&mut self, turn: usize) -> Result<()> {
        if self.taken < BATCH {
            self.taken += self.receiving.poll()?;
        }
        if turn == BATCH - 1 {
            ensure!(std::mem::take(&mut self.taken) == BATCH, "no message");
        }
        Ok(())
    }
}
