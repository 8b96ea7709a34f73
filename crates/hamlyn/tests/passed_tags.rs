//! Tags that were passed over are taken before those that come later, in order.

use crate::support::{LONG, namespace, open, until};
use hamlyn::{Wait, tagged_write};

#[test]
fn tags_that_were_passed_over_come_before_later_ones() {
    let namespace = namespace();
    let (here, there) = (open(&namespace), open(&namespace));
    let mut receiver = tagged_write::Receiver::new(&here, 64, 16).unwrap();
    let sender = tagged_write::Sender::grow(&there, &receiver.ticket(), LONG).unwrap();
    let send = |tag| sender.send(0, &[], tag, LONG).unwrap();
    for round in 0..3 {
        [1, 2, 3].into_iter().for_each(|tag| {
            send(tag);
        });
        assert_eq!(receiver.get_specific_tag(3, LONG), Ok(Some(3)));
        // The queue is seen to be empty.
        assert_eq!(receiver.get_specific_tag(9, Wait::Poll), Ok(None));
        send(4);
        assert_eq!(there.flush(LONG), Ok(true));
        let mut came = Vec::new();
        until("all tags", || {
            came.extend(receiver.get_tag(Wait::Poll).unwrap());
            (came.len() == 3).then_some(())
        });
        assert_eq!(came, [1, 2, 4], "round {round}");
    }
}
