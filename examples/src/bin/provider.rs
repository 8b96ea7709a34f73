//! A sketch of a libfabric provider, in the names of its manual pages (`docs/writing-a-layer.md`).
//! Run without arguments, it starts itself once more, as its peer.

use std::collections::VecDeque;
use std::ptr::NonNull;

use hamlyn::lane::{SharedLane, SharedLaneOptions, SharedMessage};
use hamlyn::one_sided::{Initiator, InitiatorOptions, OperationError};
use hamlyn::{
    Access, Address, Area, CompletionQueue, Holders, Message, NewSlot, RegionTicket, SendError,
    Session, Slot, Target, Ticket, Wait, engine::slot::Rights, host::Supply, region::SharedOptions,
};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;
type FiDomain<'m> = Session<'m>;
type FiAddr = u64;
const FI_ADDR_UNSPEC: FiAddr = u64::MAX;
const LONG: Wait = Wait::millis(20_000);
/// Sends, writes and reads that may be outstanding.
const WORK_MAX: usize = 64;
const READ_BYTES_MAX: u64 = 4096;
/// Memory of the program, into which a message or a read goes.
type Buffer = (Area, std::ops::Range<u64>);
/// The context of work; of a read its key and buffer, too.
type Posted = (u64, Option<(usize, Buffer)>);

/// Registers memory: its slot and raw key. If it can be shared, local peers need no packets.
fn mr_reg(domain: &mut FiDomain, area: &Area) -> Result<(Slot, Vec<u8>)> {
    let slot = domain.open_slot(NewSlot::new(area).rights(Rights::ALL))?;
    let all = 0..slot.length_bytes();
    let raw_key = match domain.share(&slot, all.clone(), Access::Writable, Holders::Linked) {
        Ok(region) => region.ticket().to_bytes().to_vec(),
        Err(_) => slot.fast_ticket(0, all.end)?.to_bytes().to_vec(),
    };
    Ok((slot, raw_key))
}

/// The messages that a receive takes: source, tag, and bits of the tag to ignore.
type Wanted = (FiAddr, u64, u64);
type Receive = (Wanted, Buffer, u64);

fn takes((source, tag, ignore): Wanted, domain: &FiDomain, message: &SharedMessage) -> bool {
    (source == FI_ADDR_UNSPEC || source == domain.link_context(message.from()))
        && (tag ^ tag_of(message)) & !ignore == 0
}

/// A message begins with its tag.
fn tag_of(message: &SharedMessage) -> u64 {
    u64::from_le_bytes(*message.first_chunk().unwrap_or(&[0; 8]))
}

/// Work to be posted: `fi_tsend`, `fi_write`, `fi_read`. Keys have numbers, and memory offsets.
enum Work<'w> {
    /// Complete when the message is at its receiver (`FI_DELIVERY_COMPLETE`). Between hosts
    /// messages overtake each other (`FI_ORDER_NONE`).
    Tsend(FiAddr, u64, &'w [u8]),
    Write(usize, u64, &'w [u8]),
    Read(usize, u64, Buffer),
}

/// An endpoint of type `FI_EP_RDM`, with its address vector, completion queue and counters.
struct FiEp {
    lane: SharedLane,
    peers: Vec<Target>,
    keys: Vec<Initiator>,
    /// Its contexts are places in `work`.
    queue: CompletionQueue,
    work: [Option<Posted>; WORK_MAX],
    expected: VecDeque<Receive>,
    unexpected: VecDeque<SharedMessage>,
    /// Context, and bytes and tag that came.
    cq: VecDeque<(u64, Result<(u64, u64)>)>,
    cntr_and_errors: [u64; 2],
}

impl FiEp {
    fn av_insert(&mut self, domain: &mut FiDomain, name: &[u8]) -> Result<FiAddr> {
        let target = domain.target(&Ticket::from_bytes(name)?, LONG)?;
        self.peers.push(target);
        // So messages tell their source. 0 is the context of all other links.
        domain.set_link_context(target.link(), self.peers.len() as FiAddr);
        Ok(self.peers.len() as FiAddr)
    }

    fn mr_map_raw(&mut self, domain: &mut FiDomain, raw_key: &[u8]) -> Result<usize> {
        let region = RegionTicket::from_bytes(raw_key);
        let ticket = match &region {
            Ok(region) => region.ticket,
            Err(_) => Ticket::from_bytes(raw_key)?,
        };
        let target = domain.target(&ticket, LONG)?;
        if let Ok(region) = region {
            // If it cannot be attached, as that of another host, operations go as packets.
            let _ = domain.attach(&region, LONG);
        }
        let landing_bytes = WORK_MAX as u64 * READ_BYTES_MAX;
        let initiator = domain.open_initiator(target, InitiatorOptions { landing_bytes })?;
        self.keys.push(initiator);
        Ok(self.keys.len() - 1)
    }

    /// Begins work. Nothing if there is no room (`-FI_EAGAIN`).
    fn post(&mut self, domain: &mut FiDomain, work: &Work, context: u64) -> Result<Option<()>> {
        self.progress(domain)?;
        let Some(place) = self.work.iter().position(Option::is_none) else {
            return Ok(None);
        };
        let number = place as u64;
        let (key, read, begun) = match *work {
            Work::Tsend(to, tag, data) => {
                let (to, terminus) = (&self.peers[to as usize - 1], domain.terminus());
                let bytes = [&tag.to_le_bytes(), data].concat();
                let sent = domain.try_send_owned(terminus, to, &Message::new(&[]), bytes);
                match sent.map_err(|not_sent| not_sent.error) {
                    Err(SendError::WouldBlock { .. }) => return Ok(None),
                    sent => drop(sent?),
                }
                domain.track_fence(&self.queue, to.link(), number)?;
                self.work[place] = Some((context, None));
                return Ok(Some(()));
            }
            Work::Write(key, to, data) => {
                let begun = domain.begin_put(&mut self.keys[key], to, data, Wait::Poll);
                (key, None, begun)
            }
            Work::Read(key, from, ref into) => {
                let (at, bytes) = (number * READ_BYTES_MAX, into.1.end - into.1.start);
                assert!(bytes <= READ_BYTES_MAX, "longer than a landing place");
                let begun = domain.begin_read(&mut self.keys[key], from, at, bytes, Wait::Poll);
                (key, Some((key, into.clone())), begun)
            }
        };
        match begun {
            Err(OperationError::WouldBlock | OperationError::TooMany) => return Ok(None),
            begun => domain.track_operation(&self.queue, &mut self.keys[key], begun?, number)?,
        }
        self.work[place] = Some((context, read));
        Ok(Some(()))
    }

    fn trecv(&mut self, domain: &FiDomain, receive: Receive) {
        let mut came = self.unexpected.iter();
        let place = came.position(|message| takes(receive.0, domain, message));
        match place.and_then(|place| self.unexpected.remove(place)) {
            Some(message) => self.deliver(receive, message),
            None => self.expected.push_back(receive),
        }
    }

    fn deliver(&mut self, (_, (area, range), context): Receive, message: SharedMessage) {
        let data = message.get(8..).unwrap_or_default();
        let stored = data.len().min((range.end - range.start) as usize);
        let result = match area.write_at(range.start, &data[..stored]) {
            Ok(()) if stored < data.len() => Err("FI_ETRUNC".into()),
            Ok(()) => Ok((stored as u64, tag_of(&message))),
            Err(denied) => Err(denied.into()),
        };
        self.lane.give_back(message);
        self.ended(context, result);
    }

    fn ended(&mut self, context: u64, result: Result<(u64, u64)>) {
        self.cntr_and_errors[usize::from(result.is_err())] += 1;
        self.cq.push_back((context, result));
    }

    fn progress(&mut self, domain: &mut FiDomain) -> Result<()> {
        // Each takes a posted receive, or one of the lane's buffers: so this ends.
        while let Some(message) = self.lane.next(domain)? {
            let mut expected = self.expected.iter();
            let place = expected.position(|receive| takes(receive.0, domain, &message));
            match place.and_then(|place| self.expected.remove(place)) {
                Some(receive) => self.deliver(receive, message),
                None => self.unexpected.push_back(message),
            }
        }
        while let Some(end) = domain.next_completion(&self.queue) {
            let work = self.work[end.context as usize].take();
            let (context, read) = work.ok_or("an unknown context")?;
            let mut bytes = Vec::new();
            if let Some((key, (area, range))) = read {
                bytes.resize((range.end - range.start) as usize, 0);
                self.keys[key].landed(end.context * READ_BYTES_MAX, &mut bytes)?;
                area.write_at(range.start, &bytes)?;
            }
            let result = end.result.map(|_| (bytes.len() as u64, 0));
            self.ended(context, result.map_err(Into::into));
        }
        Ok(())
    }

    /// Waits for the end of something (`fi_cq_sread`).
    fn cq_sread(&mut self, domain: &mut FiDomain, context: u64) -> Result<(u64, u64)> {
        let ended: Result<Option<_>> = domain.wait_for(LONG, |domain| {
            self.progress(domain)?;
            let place = self.cq.iter().position(|(of, _)| *of == context);
            Ok(place.and_then(|place| self.cq.remove(place)))
        });
        ended?.ok_or("nothing ended in time")?.1
    }

    fn recv(&mut self, domain: &mut FiDomain, from: Wanted, into: Buffer) -> Result<(u64, u64)> {
        self.trecv(domain, (from, into, 0));
        self.cq_sread(domain, 0)
    }

    fn run(&mut self, domain: &mut FiDomain, work: &Work) -> Result<(u64, u64)> {
        let posted = domain.wait_for(LONG, |domain| self.post(domain, work, 0))?;
        posted.ok_or("no room in time")?;
        self.cq_sread(domain, 0)
    }
}

/// Tags: the name of the sender, or nothing; and one of two keys.
const NAME: u64 = 1;
const KEY: u64 = 16;

fn main() -> Result<()> {
    let own = format!("provider-{}", std::process::id());
    let manager = hamlyn::open(&own)?;
    let domain = &mut manager.session();
    let ep = &mut FiEp {
        lane: SharedLane::open(domain, SharedLaneOptions::default())?,
        peers: Vec::new(),
        keys: Vec::new(),
        queue: domain.open_completions(WORK_MAX)?,
        work: [const { None }; WORK_MAX],
        expected: VecDeque::new(),
        unexpected: VecDeque::new(),
        cq: VecDeque::new(),
        cntr_and_errors: [0; 2],
    };
    domain.offer("ep", Supply::Always, &ep.lane.ticket().to_bytes())?;
    match std::env::args().nth(1) {
        Some(peer) => initiator(domain, ep, &peer),
        None => target(domain, ep, &own),
    }
}

fn bytes_of(area: &Area, range: std::ops::Range<u64>) -> Result<Vec<u8>> {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    area.read_at(range.start, &mut bytes)?;
    Ok(bytes)
}

/// Has its memory written and read.
fn target(domain: &mut FiDomain, ep: &mut FiEp, own: &str) -> Result<()> {
    let program = std::env::current_exe()?;
    let mut child = std::process::Command::new(program).arg(own).spawn()?;
    let mut memory = vec![0_u8; 8192];
    let (start, length) = (NonNull::from(&mut memory[..]).cast(), memory.len());
    // SAFETY: the area alone accesses the memory, which the vector keeps.
    let user = unsafe { Area::from_raw(start, length, memory) };
    let shared = Area::shared(SharedOptions::reserved(8192))?;
    let (slot, key) = mr_reg(domain, &user)?;
    let (_, shared_key) = mr_reg(domain, &shared)?;
    ep.recv(domain, (FI_ADDR_UNSPEC, NAME, 0), (user.clone(), 0..52))?;
    let to = ep.av_insert(domain, &bytes_of(&user, 0..52)?)?;
    ep.run(domain, &Work::Tsend(to, KEY, &key))?;
    ep.run(domain, &Work::Tsend(to, KEY + 1, &shared_key))?;
    ep.recv(domain, (to, NAME, 0), (user.clone(), 0..0))?;
    assert_eq!(bytes_of(&user, 4096..8096)?, [7; 4000]);
    assert_eq!(bytes_of(&shared, 4096..8096)?, [7; 4000]);
    // As `fi_close` of registered memory: its key is worthless.
    domain.close_slot(slot)?;
    ep.run(domain, &Work::Tsend(to, NAME, &[]))?;
    // The peer's work needs progress here, until it has ended.
    let link = ep.peers[0].link();
    domain.wait_for(LONG, |domain| {
        ep.progress(domain).map(|()| domain.link_end(link))
    })?;
    let is_good = child.wait()?.success();
    is_good.then_some(()).ok_or("the peer failed".into())
}

/// Writes and reads memory of its peer.
fn initiator(domain: &mut FiDomain, ep: &mut FiEp, peer: &str) -> Result<()> {
    let name = domain.ask(Address::Name(peer), "ep", LONG)?;
    let to = ep.av_insert(domain, &name)?;
    let area = domain.allocate(8192)?;
    ep.trecv(domain, ((to, KEY + 1, 0), (area.clone(), 0..64), 1));
    ep.run(domain, &Work::Tsend(to, NAME, &ep.lane.ticket().to_bytes()))?;
    let shared = ep.cq_sread(domain, 1)?;
    // The other key came before, unexpected; this would take either.
    assert_eq!(ep.unexpected.len(), 1);
    let user = ep.recv(domain, (to, KEY + 1, 1), (area.clone(), 64..128))?;
    for (at, (length, tag)) in [(0, shared), (64, user)] {
        let key = ep.mr_map_raw(domain, &bytes_of(&area, at..at + length)?)?;
        ep.run(domain, &Work::Write(key, 4096, &[7; 4000]))?;
        ep.run(domain, &Work::Read(key, 4096, (area.clone(), 128..4128)))?;
        assert_eq!(bytes_of(&area, 128..4128)?, [7; 4000]);
        println!("wrote and read by key {tag}, of {length} bytes");
    }
    ep.run(domain, &Work::Tsend(to, NAME, &[]))?;
    ep.recv(domain, (to, NAME, 0), (area, 0..0))?;
    let closed = ep.run(domain, &Work::Write(1, 4096, &[8]));
    println!("closed memory: {}", closed.err().ok_or("written")?);
    assert_eq!(ep.cntr_and_errors, [9, 1]);
    Ok(())
}
