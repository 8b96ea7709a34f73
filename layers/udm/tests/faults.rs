//! A handler that waits for a page: its senders do not.

use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::ptr::null_mut;
use std::sync::mpsc::channel;

use hamlyn::Wait;
use hamlyn_udm::{Group, GroupOptions, Mode, Udm, UdmOptions};
use rustix::io::Errno;
use rustix::ioctl::{Updater, ioctl, opcode};
use rustix::mm::{MapFlags, ProtFlags, UserfaultfdFlags, mmap_anonymous, userfaultfd};
use rustix::param::page_size;

const LONG: Wait = Wait::millis(60_000);
/// Messages during the fault: many times what a ring has.
const FLOOD: u32 = 20_000;
const TOUCH: u16 = 0;
const NUMBER: u16 = 1;

/// As in `linux/userfaultfd.h`.
const API: u64 = 0xaa;
const UFFDIO: u8 = 0xaa;
const MODE_MISSING: u64 = 1;
const EVENT_BYTES: usize = 32;

#[repr(C)]
struct Handshake {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// A range, and what is asked or answered of it.
#[repr(C)]
struct OfRange {
    start: u64,
    length_bytes: u64,
    mode: u64,
    answer: u64,
}

/// A page that nobody has touched; the first who does waits until it is [`HeldPage::give`]n. It
/// stays mapped as long as the program runs.
struct HeldPage {
    faults: OwnedFd,
    at: u64,
}

impl HeldPage {
    /// Nothing, said aloud, where the kernel has none.
    fn or_skip() -> Option<Self> {
        // Only faults of programs, for which no right is needed.
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(1);
        // SAFETY: its faults are served below, for a page that is nobody else's.
        let faults = match unsafe { userfaultfd(flags) } {
            Ok(faults) => faults,
            // Older ones serve no faults of programs alone.
            Err(why @ (Errno::NOSYS | Errno::PERM | Errno::INVAL)) => {
                let _ = writeln!(std::io::stderr(), "SKIPPED: no userfaultfd: {why}");
                return None;
            }
            Err(why) => panic!("{why}"),
        };
        let (readable, private) = (ProtFlags::READ, MapFlags::PRIVATE);
        // SAFETY: a new mapping, wherever there is room.
        let page = unsafe { mmap_anonymous(null_mut(), page_size(), readable, private) };
        let page = Self {
            faults,
            at: page.unwrap() as u64,
        };
        let mut handshake = Handshake {
            api: API,
            features: 0,
            ioctls: 0,
        };
        const BEGIN: u32 = opcode::read_write::<Handshake>(UFFDIO, 0x3f);
        // SAFETY: the structure of that call.
        unsafe { ioctl(&page.faults, Updater::<BEGIN, _>::new(&mut handshake)) }.unwrap();
        page.ask::<{ opcode::read_write::<OfRange>(UFFDIO, 0) }>(MODE_MISSING);
        Some(page)
    }

    fn ask<const OPCODE: u32>(&self, mode: u64) {
        let mut range = OfRange {
            start: self.at,
            length_bytes: page_size() as u64,
            mode,
            answer: 0,
        };
        // SAFETY: both calls that are made take a structure of this form, and the page is ours.
        unsafe { ioctl(&self.faults, Updater::<OPCODE, _>::new(&mut range)) }.unwrap();
    }

    /// Waits until somebody waits for it.
    fn await_fault(&self) {
        let mut event = [0; EVENT_BYTES];
        let read = rustix::io::read(&self.faults, &mut event).unwrap();
        assert_eq!(read, EVENT_BYTES);
    }

    /// Lets go on whoever waits for it.
    fn give(&self) {
        self.ask::<{ opcode::read_write::<OfRange>(UFFDIO, 4) }>(0);
    }

    /// Reads it.
    fn touch(at: u64) -> u8 {
        // SAFETY: it is mapped for reading, and stays so.
        unsafe { std::ptr::read_volatile(at as *const u8) }
    }
}

fn open(me: u32, page_at: u64) -> Udm<u32> {
    let name = |node: u32| format!("udm-fault-{}-{node}", std::process::id());
    let manager = hamlyn::open(&name(me)).unwrap();
    let options = GroupOptions {
        name: "fault".into(),
        me,
        addresses: (0..2).map(name).collect(),
    };
    let group = Group::new(manager, options).unwrap();
    let options = UdmOptions {
        wait: Wait::millis(20_000),
        ..UdmOptions::default()
    };
    let mut udm = Udm::open(&group, "main", options, 0, LONG).unwrap();
    udm.on(TOUCH, move |arrival| {
        let mut call = arrival.extract();
        assert_eq!(HeldPage::touch(page_at), 0);
        assert_eq!(*call.state(), 0, "nothing else was handled meanwhile");
        call
    })
    .unwrap();
    udm.on(NUMBER, |arrival| {
        let mut call = arrival.extract();
        let number = call.word(0);
        // In order, and once.
        assert_eq!(*call.state(), number);
        *call.state() += 1;
        call
    })
    .unwrap();
    udm
}

/// The handler stands still in the middle of an access to memory, and the thread of its node with
/// it. All messages of the sender go on to memory that the node lends, before the page is there.
#[test]
fn a_page_fault_in_a_handler_keeps_no_sender_waiting() {
    let Some(page) = HeldPage::or_skip() else {
        return;
    };
    let at = page.at;
    let (say, said) = channel();
    let faulting = std::thread::spawn(move || {
        let mut udm = open(1, at);
        while *udm.state() < FLOOD {
            udm.serve(LONG).unwrap();
        }
        say.send(*udm.state()).unwrap();
    });
    let mut udm = open(0, at);
    udm.inject(1, TOUCH, &[]).unwrap();
    page.await_fault();
    for number in 0..FLOOD {
        udm.inject(1, NUMBER, &[number]).unwrap();
    }
    assert!(matches!(udm.mode(1), Mode::Buffered { .. }));
    assert!(said.try_recv().is_err(), "the page was not given yet");
    page.give();
    assert!(udm.flush(LONG).unwrap());
    assert_eq!(said.recv(), Ok(FLOOD));
    faulting.join().unwrap();
}
