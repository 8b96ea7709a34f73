use std::fs::File;
use std::io::{Read, Write};

use super::*;

unsafe extern "C" {
    fn fork() -> i32;
    fn _exit(status: i32) -> !;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
}

/// True if it holds in a forked child.
fn in_child(holds: impl FnOnce() -> bool) -> bool {
    // SAFETY: the child makes calls of the system, and ends.
    let child = unsafe { fork() };
    if child == 0 {
        // SAFETY: ends this process, whose memory nobody else uses.
        unsafe { _exit(i32::from(!holds())) };
    }
    let mut status = -1;
    // SAFETY: waits for our child, and stores how it ended.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

#[test]
fn a_child_and_its_child_are_told_apart() {
    let here = Birth::here();
    assert!(here.is_here());
    assert!(in_child(|| {
        let own = Birth::here();
        let grandchild = in_child(|| !own.is_here() && !here.is_here() && Birth::here() != own);
        here.check() == Err(Forked) && own.is_here() && grandchild
    }));
    assert!(here.is_here());
}

#[test]
fn a_child_keeps_no_descriptor_of_the_table() {
    let (mut reads, writes) = std::io::pipe().unwrap();
    let number = writes.as_raw_fd();
    let writes = Uninherited::from(OwnedFd::from(writes));
    let is_closed = in_child(|| {
        // SAFETY: it is the number of a descriptor that is open, and it is not closed here.
        let inherited = ManuallyDrop::new(unsafe { File::from_raw_fd(number) });
        // An eventfd takes eight bytes, no others.
        let is_replaced = (&*inherited).write_all(&[1]).is_err();
        drop(writes.try_clone());
        is_replaced && (&*inherited).write_all(&[1, 0, 0, 0, 0, 0, 0, 0]).is_ok()
    });
    assert!(is_closed);
    drop(writes);
    // Nobody else has it: the pipe is at its end.
    assert_eq!(reads.read(&mut [0]).unwrap(), 0);
}

#[test]
fn what_was_closed_is_not_in_the_table() {
    let (reads, writes) = std::io::pipe().unwrap();
    drop(Uninherited::from(OwnedFd::from(reads)));
    let (mut reads, mut again) = std::io::pipe().unwrap();
    assert!(in_child(|| again.write_all(b"x").is_ok()));
    assert_eq!(reads.read(&mut [0]).unwrap(), 1);
    drop(writes);
}
