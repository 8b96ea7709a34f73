//! Two interfaces that never poll: whatever they wait for, they sleep. What is missed here is
//! missed for ever, so a lost wake-up shows as a wait that ends without result.

use hamlyn::host::process::{Options, ProcessHost};
use hamlyn::{Manager, ManagerOptions, Wait, stream, tagged_write};

const WAIT: Wait = Wait::millis(20_000);

fn sleeper(test: &str) -> Manager<ProcessHost> {
    let mut options = Options::default().in_namespace(&format!("{test}-{}", std::process::id()));
    options.spin_ns = Some(0);
    hamlyn::open_with(options, ManagerOptions::default()).expect("an interface opens")
}

/// The work queue fills, empties in the sender's last look before sleep, and fills again.
#[test]
fn flood_of_short_messages_between_sleepers_is_complete() {
    const MESSAGES: u64 = 50_000;
    let mut here = sleeper("flood");
    let mut receiver = tagged_write::Receiver::new(&mut here, 512, 8192).expect("a receiver");
    let ticket = receiver.ticket();
    let sender = std::thread::spawn(move || {
        let mut there = sleeper("flood");
        let sender = tagged_write::Sender::grow(&mut there, &ticket, WAIT).expect("a sender");
        for tag in 0..MESSAGES {
            let data = tag.to_le_bytes();
            sender
                .send(&mut there, tag % 64 * 8, &data, tag, WAIT)
                .expect("it is sent");
        }
        assert_eq!(there.interface_mut().flush(WAIT), Ok(true));
    });
    for expected in 0..MESSAGES {
        let tag = receiver.get_tag(&mut here, WAIT).expect("no error");
        assert_eq!(tag, Some(expected));
    }
    sender.join().expect("the sender ends");
}

/// Records that need all pieces, so that the sender waits for every release.
#[test]
fn large_records_between_sleepers_are_complete() {
    const RECORDS: usize = 300;
    let mut here = sleeper("records");
    let options = stream::StreamOptions {
        pieces: 4,
        piece_bytes: 64 << 10,
        limit_bytes: 256 << 10,
    };
    let mut receiver = stream::Receiver::new(&mut here, options).expect("a receiver");
    let seed = receiver.make_seed(&here);
    let sender = std::thread::spawn(move || {
        let mut there = sleeper("records");
        let mut sender = stream::Sender::grow(&mut there, &seed, WAIT).expect("a sender");
        for index in 0..RECORDS {
            let record = vec![index as u8; (index * 7919) % (256 << 10)];
            sender.send(&mut there, &record, WAIT).expect("it is sent");
        }
        sender.close(&mut there, WAIT).expect("it closes");
    });
    for index in 0..RECORDS {
        let record = receiver
            .receive(&mut here, WAIT)
            .expect("no error")
            .expect("a record");
        let bytes = receiver.bytes(&record).expect("its bytes");
        assert_eq!(bytes.len(), (index * 7919) % (256 << 10));
        assert!(bytes.iter().all(|&byte| byte == index as u8));
        receiver.release(&mut here, &record);
    }
    sender.join().expect("the sender ends");
}
