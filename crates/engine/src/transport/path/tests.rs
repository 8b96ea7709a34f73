use super::*;

fn path() -> Path {
    Path::new(&Settings::default())
}

/// The newest timestamp goes back, with the time that it waited here; after a while any is new, as
/// timestamps go round.
#[test]
fn the_newest_timestamp_goes_back() {
    let mut path = path();
    assert_eq!(path.echo(0), None);
    path.stamp_received(1_000, u32::MAX);
    path.stamp_received(3_000, 2);
    path.stamp_received(4_000, u32::MAX);
    assert_eq!(path.echo(10_999), Some((2, 7)));
    let late_ns = 3_000 + u64::from(u16::MAX - 1) * 1_000;
    assert_eq!(path.echo(late_ns), Some((2, u16::MAX - 1)));
    assert_eq!(path.echo(late_ns + 1_000), Some((2, HOLD_UNKNOWN)));
    path.stamp_received(3_000 + FORGET_NS, 1);
    assert_eq!(path.newest_stamp, Some((2, 3_000)));
    path.stamp_received(3_001 + FORGET_NS, 1);
    assert_eq!(path.newest_stamp, Some((1, 3_001 + FORGET_NS)));
}

/// A timestamp that comes back again is no second round trip.
#[test]
fn a_timestamp_comes_back_once() {
    let mut path = path();
    assert!(path.echoed(5, 0) && !path.echoed(5, 0));
    // Nor does one that a later one has overtaken.
    assert!(path.echoed(6, 0) && !path.echoed(5, 0));
    // Unless the numbers have gone round since.
    assert!(path.echoed(4, FORGET_NS + 1));
}

#[test]
fn three_losses_in_a_row_are_a_reason_to_leave_a_path() {
    let mut path = path();
    for _ in 0..5 {
        assert!(!path.lost(0, 10) && !path.lost(0, 10));
        path.delivered(10);
    }
    assert!(!path.lost(0, 10) && !path.lost(0, 10) && path.lost(0, 10));
    path.deactivate(1_000);
    assert!(
        path.is_inactive() && !path.lost(0, 10),
        "it is left already"
    );
}

/// Of what was sent before a path was left an echo says nothing, nor does that of the same moment.
#[test]
fn a_path_is_used_again_when_what_was_sent_since_comes_back() {
    let mut path = path();
    path.window.collapse();
    path.deactivate(1_000);
    assert_eq!(path.probe_ns(), Some(1_000 + FIRST_PROBE_NS));
    path.echoed(1, 1_000);
    assert!(path.is_inactive());
    path.echoed(2, 1_001);
    assert!(!path.is_inactive());
    assert_eq!(path.probe_ns(), None);
    assert_eq!(path.window.milliframes(), 16_000);
    // And three losses are needed again.
    assert!(!path.lost(0, 10) && !path.lost(0, 10) && path.lost(0, 10));
}

#[test]
fn probes_follow_ever_more_seldom() {
    let mut path = path();
    path.round_trip.measured(0, 1_000_000);
    path.deactivate(0);
    let mut pause_ns = 4_000_000;
    for _ in 0..20 {
        let at_ns = path.probe_ns().unwrap();
        assert_eq!(at_ns, path.inactive.unwrap().probe_ns);
        path.probed(at_ns);
        pause_ns = (2 * pause_ns).min(PROBE_MAX_NS);
        assert_eq!(path.probe_ns(), Some(at_ns + pause_ns));
    }
}

/// That short frames arrive does not show that long ones do.
#[test]
fn losses_end_with_a_frame_as_long_as_the_shortest_lost() {
    let mut path = path();
    path.lost(0, 900);
    path.lost(0, 700);
    path.delivered(699);
    assert_eq!(path.losses, (2, 700));
    path.delivered(700);
    assert_eq!(path.losses, (0, usize::MAX));
}

#[test]
fn a_frame_that_was_late_widens_the_reorder_window() {
    let mut path = path();
    path.round_trip.measured(0, 80_000);
    for eighths in [2, 4, 8, 16, 32, 32] {
        assert_eq!(path.reorder_window_ns(), 84_000 + 10_000 * eighths);
        path.was_spurious(1_000_000);
    }
    // And a while without one narrows it again.
    path.lost(1_000_000 + 16 * 80_000, 10);
    assert_eq!(path.reorder_window_ns(), 84_000 + 10_000 * 32);
    path.lost(1_000_001 + 16 * 80_000, 10);
    assert_eq!(path.reorder_window_ns(), 84_000 + 10_000 * 2);
}
