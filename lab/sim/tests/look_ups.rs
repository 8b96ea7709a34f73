//! End points that were looked up some time ago.

use hamlyn::stream::StreamOptions;
use hamlyn::{ConnectError, ManagerOptions, Wait};
use hamlyn_sim::time::{Span, Time};
use hamlyn_sim::world::{self, Settings, Simulation};

const LONG: Wait = Wait::millis(5_000);
/// Time after which the owner of a stream may have taken it back from a peer that does not come.
const STALE: Span = Span::from_us(6_000_000);

/// An offer for all peers is good as long as its end point lives; one for a single peer is asked
/// for again.
#[test]
fn what_was_looked_up_long_ago_is_asked_for_again_if_it_is_for_one() {
    let mut world = Simulation::new(Settings::default());
    let (one, other) = (world.node(2), world.node(2));
    world.process(one, "owner", || {
        let owner = hamlyn_sim::host::open(Some("owner"), ManagerOptions::default()).unwrap();
        let mut tags = owner.bind_tagged_write("tags", 64, 4).unwrap();
        let mut log = owner.bind_stream("log", StreamOptions::default()).unwrap();
        let answered = || owner.session().host().rendezvous_counters().answered;
        assert_eq!(tags.get_tag(Wait::millis(60_000)), Ok(Some(0)));
        let record = log
            .recv(Wait::millis(60_000))
            .unwrap()
            .map(|it| it.to_vec());
        assert_eq!(record.as_deref(), Some(&b"record"[..]));
        assert_eq!(tags.get_tag(Wait::millis(60_000)), Ok(Some(1)));
        // Two look-ups, and one for the stream that was stale.
        assert_eq!(answered(), 3);
    });
    world.process(other, "peer", || {
        let peer = hamlyn_sim::host::open(Some("peer"), ManagerOptions::default()).unwrap();
        let addresses = ["owner/tags", "owner/log"];
        let look_up = || {
            let found = peer.look_up(&addresses, LONG);
            let found: Vec<_> = found.into_iter().map(Result::unwrap).collect();
            <[_; 2]>::try_from(found).unwrap()
        };
        let [tags, log] = look_up();
        world::pause(STALE);
        let tags = peer.connect_tagged_write(tags, LONG).unwrap();
        tags.send(0, b"", 0, LONG).unwrap();
        // It was offered to this peer, and nobody else has it yet.
        let taken = peer.connect_stream(log, LONG).unwrap_err();
        assert!(matches!(taken, ConnectError::Taken { .. }), "{taken}");
        // Its owner takes it back ten seconds after it has seen that somebody asked.
        world::pause(STALE * 3);
        let [_, log] = look_up();
        let mut log = peer.connect_stream(log, LONG).unwrap();
        log.send(b"record", LONG).unwrap();
        assert_eq!(log.flush(LONG), Ok(()));
        tags.send(0, b"", 1, LONG).unwrap();
        assert_eq!(peer.flush(LONG), Ok(true));
    });
    let outcome = world.run(Time::from_ns(100_000_000_000));
    assert_eq!(outcome.failures, Vec::<String>::new());
}
