//! A forked child has the keys of its parent's links, and the numbers of the next packets.

use hamlyn_link::udp::packet_header::Kind;
use hamlyn_link::udp::protection::{Key, ProtectError, TxProtection};
use hamlyn_ring::forks::Forked;
use zeroize::Zeroizing;

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
}

#[test]
fn no_packet_number_is_used_twice() {
    for key in [Key::Encrypted(Zeroizing::new([7; 32])), Key::Clear(3)] {
        let mut protection = TxProtection::new(&key, 1);
        let mut protect = || protection.protect(Kind::Data, 0, b"frame", &mut [0; 64]);
        protect().unwrap();
        // SAFETY: the child protects a packet, and ends.
        let child = unsafe { fork() };
        if child == 0 {
            let is_refused = protect() == Err(ProtectError::Forked(Forked));
            // SAFETY: ends this process, whose memory nobody else uses.
            unsafe { _exit(i32::from(!is_refused)) };
        }
        let mut status = -1;
        // SAFETY: waits for our child, and stores how it ended.
        assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
        assert_eq!(status, 0, "the child protected a packet");
        protect().unwrap();
    }
}
