//! The lower layer of a pair of managers: what it exchanges, and its calls in a forked child.

use hamlyn::engine::slot::Rights;
use hamlyn::one_sided::{Change, Initiator, InitiatorOptions};
use hamlyn::region::SharedOptions;
use hamlyn::{
    Access, Address, Area, Holders, Host, Manager, Message, NewSlot, Queue, Session, Slot, Target,
    Wait,
};

use crate::Complaints;
use crate::support::{LONG, until};

const BYTES: u64 = 4096;

pub(crate) struct Lower {
    queue: Option<Queue>,
    slot: Option<Slot>,
    area: Area,
    target: Target,
    initiator: Initiator,
}

impl Lower {
    pub(crate) fn new<H: Host>(there: &Manager<H>, here: &Manager<H>) -> Self {
        let (queue, slot, area) = {
            let mut interface = there.session();
            let queue = interface.open_queue(64).unwrap();
            let area = Area::shared(SharedOptions::reserved(BYTES)).unwrap();
            let new = NewSlot::new(&area).rights(Rights::ALL).queue(&queue);
            (queue, interface.open_slot(new).unwrap(), area)
        };
        let ticket = slot.fast_ticket(0, BYTES).unwrap();
        let mut interface = here.session();
        let target = interface.target(&ticket, LONG).unwrap();
        let options = InitiatorOptions::default();
        let initiator = interface.open_initiator(target, options).unwrap();
        Self {
            queue: Some(queue),
            slot: Some(slot),
            area,
            target,
            initiator,
        }
    }

    /// A message, and a one-sided operation.
    pub(crate) fn exchange<H: Host>(&mut self, managers: &[Manager<H>; 2], round: u64) {
        let [there, here] = managers;
        let terminus = here.terminus();
        let message = Message::new(b"from the parent").word(round);
        let sent = here
            .session()
            .send_msg(terminus, &self.target, &message, LONG);
        sent.unwrap();
        let queue = self.queue.as_mut().unwrap();
        let came = until("the message", || {
            here.session().poll();
            there.session().rcv(queue).unwrap()
        });
        assert_eq!(came.word, round);
        let operation = here.session().begin_read_word(&mut self.initiator, 0, LONG);
        let operation = operation.unwrap();
        let word = until("the word", || {
            there.session().poll();
            let mut interface = here.session();
            interface
                .finish_word(&mut self.initiator, operation, Wait::Poll)
                .ok()
        });
        assert_eq!(word.to_le_bytes(), *b"from the");
        assert!(there.session().rcv(queue).unwrap().is_none());
    }

    /// Every public call of the lower layer, as a forked child would make it.
    pub(crate) fn use_all<H: Host>(&mut self, managers: &[Manager<H>; 2], told: &mut Complaints) {
        let [there, here] = managers;
        let terminus = here.terminus();
        self.send(&mut here.session(), terminus, told);
        self.operate(&mut here.session(), told);
        let queue = self.queue.as_mut().unwrap();
        let mut interface = there.session();
        told.refused("rcv", interface.rcv(queue));
        told.refused("receive_many", interface.receive_many(queue, 9, |_| ()));
        told.refused("rcv_block", interface.rcv_block(queue, Wait::millis(1)));
        for wait in [Wait::Poll, Wait::millis(50), Wait::Forever] {
            let step = |session: &mut Session<'_, H>| {
                session.poll();
                Ok::<Option<()>, hamlyn::host::HostError>(None)
            };
            told.refused("wait_for", interface.wait_for(wait, step));
        }
        told.refused("open_queue", interface.open_queue(4));
        told.refused("new_key", interface.new_key());
        let mut slot = self.slot.take().unwrap();
        told.refused("open_slot", interface.open_slot(NewSlot::new(&self.area)));
        told.refused("rekey_slot", interface.rekey_slot(&mut slot));
        told.refused("revoke_slot", interface.revoke_slot(&slot));
        told.refused("slot_info", interface.slot_info(&slot));
        let all = (Access::Writable, Holders::Linked);
        told.refused("share", interface.share(&slot, 0..BYTES, all.0, all.1));
        told.refused("close_slot", interface.close_slot(slot));
        let options = Default::default();
        told.refused("open_terminus", interface.open_terminus(options));
        told.refused(
            "offer",
            interface.offer("x", hamlyn::host::Supply::Always, b"x"),
        );
        let at = Address::Destination(self.target.ticket().destination);
        told.refused("connect", interface.connect(at, Wait::millis(1)));
        told.refused("ask", interface.ask(at, "x", Wait::millis(1)));
        // These have no error to tell. They must come back, and change nothing.
        interface.withdraw("inbox");
        interface.set_bad_keys_max(1);
        interface.between_packets(|| ());
        let links: Vec<_> = interface.peers().map(|(link, _)| link).collect();
        for link in links {
            interface.disconnect(link);
            let _ = interface.identity_of(link);
            let _ = (interface.link_end(link), interface.connection_state(link));
        }
        let _ = (
            interface.poll(),
            interface.slots_open(),
            interface.refusals(),
        );
        let _ = (interface.next_event(), interface.next_undelivered());
        let _ = (interface.prepare_wait(), interface.activity());
        interface.end_wait();
        interface.close_queue(self.queue.take().unwrap());
    }

    fn send<H: Host>(
        &mut self,
        interface: &mut Session<'_, H>,
        terminus: hamlyn::engine::terminus::TerminusId,
        told: &mut Complaints,
    ) {
        let to = &self.target;
        let data = [3; 100];
        for bytes in [8, 100] {
            let message = Message::new(&data[..bytes]);
            let sent = interface.send_msg(terminus, to, &message, Wait::Poll);
            told.refused("send_msg", sent);
            let sent = interface.send_many(terminus, to, [message], Wait::Poll);
            told.refused("send_many", sent);
            let stored = interface.store(terminus, to, 0, &data[..bytes], Wait::Poll);
            told.refused("store", stored);
        }
        told.refused("flush", interface.flush(Wait::Poll));
        told.refused("flush_link", interface.flush_link(to.link(), Wait::Poll));
        told.refused("fence", interface.fence(Wait::Poll));
        told.refused("fence_link", interface.fence_link(to.link(), Wait::Poll));
        let ticket = to.ticket();
        told.refused("target", interface.target(ticket, Wait::millis(1)));
        told.refused(
            "bind_area",
            interface.bind_area(terminus, &self.area, 0..64),
        );
        told.refused("close_terminus", interface.close_terminus(terminus));
    }

    fn operate<H: Host>(&mut self, interface: &mut Session<'_, H>, told: &mut Complaints) {
        let initiator = &mut self.initiator;
        let wait = Wait::millis(1);
        told.refused("read_word", interface.read_word(initiator, 0, wait));
        told.refused("read", interface.read(initiator, 0, &mut [0; 8], wait));
        told.refused("put", interface.put(initiator, 0, &[9; 8], wait));
        told.refused(
            "change",
            interface.change(initiator, 0, Change::Add, 1, wait),
        );
        told.refused("begin_read", interface.begin_read(initiator, 0, 0, 8, wait));
        told.refused(
            "begin_put",
            interface.begin_put(initiator, 0, &[9; 8], wait),
        );
        told.refused("begin_word", interface.begin_read_word(initiator, 0, wait));
        told.refused("finish_all", interface.finish_all(initiator, wait));
        let _ = (
            interface.outstanding(initiator),
            interface.awaits_given_up(initiator),
        );
        let options = InitiatorOptions::default();
        let opened = interface.open_initiator(self.target, options);
        told.refused("open_initiator", opened);
    }
}
