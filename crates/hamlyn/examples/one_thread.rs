//! Sends 16-byte messages from one interface to another in the same thread, so that an
//! instruction counter (callgrind) sees what a message costs and nothing else.
//!
//! `one_thread fast_mode|tagged_write|datagram|stream COUNT`
use hamlyn::host::process::Options;
use hamlyn::{ManagerOptions, Message, NewSlot, Wait, datagram, stream, tagged_write};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let protocol = arguments.next().unwrap_or_else(|| "fast_mode".to_owned());
    let count: u64 = arguments.next().map_or(Ok(1000), |count| count.parse())?;
    let mut options = Options::default().in_namespace(&format!("one-{}", std::process::id()));
    options.spin_ns = Some(u64::MAX / 4);
    let mut there = hamlyn::open_with(options.clone(), ManagerOptions::default())?;
    let mut here = hamlyn::open_with(options, ManagerOptions::default())?;
    let wait = Wait::millis(5000);
    let data = [7; 16];
    match protocol.as_str() {
        "fast_mode" => {
            let area = here.interface_mut().allocate(4096)?;
            let mut queue = here.interface_mut().open_queue(1024)?;
            let slot = here
                .interface_mut()
                .open_slot(NewSlot::new(&area).queue(&queue))?;
            let ticket = slot.fast_ticket(0, 4096)?;
            let terminus = there.terminus();
            let target = there.interface_mut().target(&ticket, wait)?;
            for turn in 0..count {
                let message = Message::new(&data).at(turn % 64 * 16).word(turn);
                there
                    .interface_mut()
                    .send_msg(terminus, &target, &message, Wait::Forever)?;
                while here.interface_mut().rcv(&mut queue)?.is_none() {}
            }
        }
        "tagged_write" => {
            let mut receiver = tagged_write::Receiver::new(&mut here, 4096, 1024)?;
            let sender = tagged_write::Sender::grow(&mut there, &receiver.ticket(), wait)?;
            for turn in 0..count {
                sender.send(&mut there, turn % 64 * 16, &data, turn, Wait::Forever)?;
                receiver.get_tag(&mut here, Wait::Forever)?;
            }
        }
        "datagram" => {
            let mut receiver = datagram::Receiver::new(&mut here, 4096)?;
            let sender = datagram::Sender::grow(&mut there, &receiver.ticket(), wait)?;
            for turn in 0..count {
                receiver.ready();
                sender.send(
                    &mut there,
                    (turn % 64 * 16) as u32,
                    &data,
                    None,
                    Wait::Forever,
                )?;
                receiver.receive(&mut here, Wait::Forever)?;
            }
        }
        "stream" => {
            let mut receiver = stream::Receiver::new(&mut here, stream::StreamOptions::default())?;
            let mut sender = stream::Sender::grow(&mut there, &receiver.make_seed(&here), wait)?;
            for _ in 0..count {
                sender.send(&mut there, &data, Wait::Forever)?;
                if let Some(record) = receiver.receive(&mut here, Wait::Forever)? {
                    receiver.release(&mut here, &record);
                }
            }
        }
        other => return Err(format!("no protocol {other:?}").into()),
    }
    Ok(())
}
