use proptest::prelude::*;

use super::*;

const MS: u64 = 1_000_000;

/// A path that carries so many bytes.
struct Path {
    mtu: PathMtu,
    carries: usize,
    now_ns: u64,
    probes: Vec<usize>,
}

impl Path {
    fn new(carries: usize) -> Self {
        let mtu = PathMtu::new(MtuSettings::default(), 0);
        Self {
            mtu,
            carries,
            now_ns: 0,
            probes: Vec::new(),
        }
    }

    /// Until nothing is to be tried. `loses` says of each probe whether it is lost though it is not
    /// too long.
    fn settle(&mut self, mut loses: impl FnMut() -> bool) {
        for _ in 0..1_000 {
            self.now_ns = self.now_ns.max(self.mtu.deadline_ns());
            if let Some(bytes) = self.mtu.poll(self.now_ns) {
                self.probes.push(bytes);
                if bytes <= self.carries && !loses() {
                    self.now_ns += MS / 10;
                    self.mtu.probe_arrived(self.now_ns, bytes);
                }
            }
            if self.mtu.is_settled() {
                return;
            }
        }
        panic!("it never settles: {:?}", self.mtu);
    }

    fn is_right(&self) -> bool {
        let found = self.mtu.datagram_bytes();
        found <= self.carries && self.carries - found < MtuSettings::default().step_bytes
    }
}

#[test]
fn usual_paths_are_found_exactly() {
    for carries in USUAL_BYTES.into_iter().chain([DATAGRAM_BYTES_MIN]) {
        let mut path = Path::new(carries);
        assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
        path.settle(|| false);
        assert!(path.is_right(), "{carries}: {:?}", path.mtu);
        assert!(USUAL_BYTES.contains(&path.mtu.datagram_bytes()) || carries == DATAGRAM_BYTES_MIN);
    }
    // The longest of all takes no longer than the answers do.
    let mut path = Path::new(8_972);
    path.settle(|| false);
    assert_eq!(path.probes, USUAL_BYTES);
    assert_eq!(path.now_ns, 9 * MS / 10);
}

#[test]
fn what_the_system_knows_is_tried_first_and_is_the_ceiling() {
    let mut path = Path::new(1_472);
    path.mtu.route(0, 1_472);
    path.settle(|| false);
    assert_eq!(
        (path.probes.as_slice(), path.mtu.datagram_bytes()),
        ([1_472].as_slice(), 1_472)
    );
    // A tunnel on the way, of which nobody told.
    let mut path = Path::new(1_410);
    path.mtu.route(0, 8_972);
    path.settle(|| false);
    assert!(path.is_right());
    assert_eq!(path.probes[0], 8_972);
    // The system knows better than the settings, in both directions.
    let mut path = Path::new(65_000);
    path.mtu.route(0, 65_000);
    path.settle(|| false);
    assert_eq!(path.mtu.datagram_bytes(), 8_972);
    path.mtu.route(path.now_ns, 100);
    assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
    path.settle(|| false);
    assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
}

#[test]
fn a_black_hole_is_left_and_searched_anew() {
    let mut path = Path::new(8_972);
    path.settle(|| false);
    path.carries = 1_472;
    let suspected_ns = path.now_ns;
    path.mtu.suspect(suspected_ns);
    while path.mtu.black_holes() == 0 {
        assert_eq!(path.mtu.datagram_bytes(), 8_972);
        path.now_ns = path.mtu.deadline_ns();
        path.mtu.poll(path.now_ns);
        // While it is looked into, more losses say nothing new.
        path.mtu.suspect(path.now_ns);
    }
    assert_eq!(path.now_ns - suspected_ns, 600 * MS);
    assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
    path.settle(|| false);
    assert_eq!(path.mtu.datagram_bytes(), 1_472);
    assert_eq!(path.mtu.black_holes(), 1);
}

/// A path that loses much carries long datagrams all the same: it costs a probe now and then.
#[test]
fn ordinary_loss_is_no_black_hole() {
    let mut path = Path::new(8_972);
    path.settle(|| false);
    path.probes.clear();
    let (begun_ns, mut sent) = (path.now_ns, 0);
    for _ in 0..10_000 {
        path.now_ns += MS / 10;
        path.mtu.suspect(path.now_ns);
        // One probe in three is lost, too.
        path.settle(|| {
            sent += 1;
            sent % 3 == 0
        });
        assert_eq!(path.mtu.datagram_bytes(), 8_972);
    }
    assert_eq!(path.mtu.black_holes(), 0);
    let probes_max = (path.now_ns - begun_ns) / (200 * MS) * 2 + 2;
    assert!(
        path.probes.len() as u64 <= probes_max,
        "{}",
        path.probes.len()
    );
    assert!(path.probes.iter().all(|bytes| *bytes == 8_972));
}

/// A length is given up after so many probes, and a shorter one that passes says nothing of a
/// longer one that is suspected.
#[test]
fn a_length_is_tried_so_often_and_a_suspicion_ends_with_that_length() {
    let mut path = Path::new(1_472);
    path.mtu.route(0, 8_972);
    path.settle(|| false);
    let tries = path.probes.iter().filter(|bytes| **bytes == 8_972).count();
    assert_eq!(tries, usize::from(MtuSettings::default().probes_max));
    path.mtu.suspect(path.now_ns);
    assert!(!path.mtu.is_settled());
    assert_eq!(path.mtu.poll(path.now_ns), Some(1_472));
    path.mtu.probe_arrived(path.now_ns, 1_471);
    assert!(!path.mtu.is_settled());
    path.mtu.probe_arrived(path.now_ns, 1_472);
    assert!(path.mtu.is_settled());
}

/// What the system believes in may be on its way as a probe already: then nothing is left to be
/// tried.
#[test]
fn a_length_that_passes_is_not_tried_again() {
    let mut mtu = PathMtu::new(MtuSettings::default(), 0);
    let bytes = mtu.poll(0).unwrap();
    mtu.route(0, bytes);
    mtu.probe_arrived(0, bytes);
    assert_eq!(mtu.datagram_bytes(), bytes);
    assert!(mtu.is_settled());
    assert_eq!(mtu.poll(1), None);
}

/// A sender that sends no longer datagrams has another reason to lose them.
#[test]
fn the_least_is_no_black_hole() {
    let mut path = Path::new(DATAGRAM_BYTES_MIN);
    path.settle(|| false);
    path.mtu.suspect(path.now_ns);
    assert!(path.mtu.is_settled());
}

#[test]
fn a_path_that_becomes_wider_is_noticed() {
    let mut path = Path::new(1_472);
    path.settle(|| false);
    let settled_ns = path.now_ns;
    assert_eq!(path.mtu.poll(settled_ns + 1), None);
    path.carries = 8_972;
    path.now_ns = path.mtu.deadline_ns();
    assert!(path.now_ns >= settled_ns + 599_000 * MS);
    path.now_ns = path.mtu.deadline_ns();
    let bytes = path.mtu.poll(path.now_ns).unwrap();
    path.mtu.probe_arrived(path.now_ns, bytes);
    path.settle(|| false);
    assert_eq!(path.mtu.datagram_bytes(), 8_972);
}

#[test]
fn what_the_system_refuses_is_believed_at_once() {
    let mut path = Path::new(8_972);
    path.settle(|| false);
    path.carries = 1_472;
    path.mtu.too_long(path.now_ns, 8_972);
    assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
    path.settle(|| false);
    assert_eq!(path.mtu.datagram_bytes(), 1_472);
    assert!(path.probes.iter().filter(|&&bytes| bytes > 8_971).count() == 1);
    path.mtu.too_long(path.now_ns, 0);
    assert_eq!(path.mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
}

#[test]
fn answers_that_nobody_asked_for_mean_nothing() {
    let mut mtu = PathMtu::new(MtuSettings::default(), 0);
    mtu.probe_arrived(0, 8_972);
    assert_eq!(mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
    let bytes = mtu.poll(0).unwrap();
    mtu.probe_arrived(0, bytes + 1);
    mtu.probe_arrived(0, usize::MAX);
    assert_eq!(mtu.datagram_bytes(), DATAGRAM_BYTES_MIN);
    mtu.probe_arrived(0, bytes);
    mtu.probe_arrived(0, bytes);
    assert_eq!(mtu.datagram_bytes(), bytes);
}

proptest! {
    #[test]
    fn any_path_is_found(carries in DATAGRAM_BYTES_MIN..12_000) {
        let mut path = Path::new(carries);
        path.settle(|| false);
        path.carries = carries.min(8_972);
        prop_assert!(path.is_right(), "{:?}", path.mtu);
        prop_assert!(path.probes.len() <= 60, "{} probes", path.probes.len());
    }

    #[test]
    fn losses_only_make_it_shorter(carries in DATAGRAM_BYTES_MIN..9_000, losses in prop::collection::vec(any::<bool>(), 200)) {
        let mut path = Path::new(carries);
        let mut losses = losses.into_iter().cycle();
        path.settle(|| losses.next().unwrap());
        prop_assert!(path.mtu.datagram_bytes() <= carries);
    }

    #[test]
    fn whatever_happens_it_stays_within_its_bounds(steps in prop::collection::vec((0..6_u8, 0..10_000_usize), 1..200)) {
        let mut mtu = PathMtu::new(MtuSettings::default(), 0);
        let mut now_ns = 0;
        for (what, bytes) in steps {
            match what {
                0 => mtu.probe_arrived(now_ns, bytes),
                1 => mtu.suspect(now_ns),
                2 => mtu.too_long(now_ns, bytes),
                3 => mtu.route(now_ns, bytes),
                4 => now_ns += bytes as u64 * 10 * MS,
                _ => now_ns = now_ns.max(mtu.deadline_ns()),
            }
            if let Some(probe) = mtu.poll(now_ns) {
                prop_assert!(probe >= mtu.datagram_bytes() && probe <= 8_972);
                if bytes % 2 == 0 {
                    mtu.probe_arrived(now_ns, probe);
                }
            }
            prop_assert!((DATAGRAM_BYTES_MIN..=8_972).contains(&mtu.datagram_bytes()));
        }
    }
}
