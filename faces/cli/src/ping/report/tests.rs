use super::*;

fn report(times: Times) -> Report {
    let peer = Peer {
        token: 0,
        destination: hamlyn::Destination {
            node: 0,
            user: 0,
            interface: 1,
        },
        group: 0,
        process: 7,
        name: None,
    };
    Report::new("echo", 16, Path::new(&peer, None), times, 0)
}

fn answer(came_ns: u64, held_ns: u32) -> Answer {
    Answer {
        number: 0,
        held_ns,
        came_ns,
    }
}

#[test]
fn with_one_clock_each_way_is_what_it_took() {
    let mut report = report(Times::measured());
    report.sent = 2;
    report.note_answer(1_000, &answer(1_300, 50), 1_850);
    let shown = report.to_json();
    assert_eq!(shown["one_way"]["measured"], true);
    assert_eq!(shown["one_way"]["there"]["p50_ns"], 300);
    assert_eq!(shown["one_way"]["back"]["p50_ns"], 500);
    assert_eq!(shown["round_trip"]["max_ns"], 850);
    assert_eq!(shown["lost"], 1);
}

#[test]
fn with_two_clocks_nothing_is_measured_but_the_round_trip() {
    let mut report = report(Times::halved("two hosts have two clocks"));
    report.sent = 1;
    report.note_answer(1_000, &answer(77, 50), 1_850);
    let one_way = &report.to_json()["one_way"];
    assert_eq!(one_way["measured"], false);
    assert_eq!(one_way["half_of_round_trip"]["p50_ns"], 400);
    assert_eq!(one_way["there"], Value::Null);
}

#[test]
fn clocks_that_contradict_each_other_are_not_believed() {
    let mut report = report(Times::measured());
    report.sent = 3;
    report.note_answer(1_000, &answer(1_300, 50), 1_850);
    // It came there before it was sent.
    report.note_answer(2_000, &answer(1_999, 0), 2_600);
    report.note_answer(3_000, &answer(3_100, 0), 3_600);
    let one_way = &report.to_json()["one_way"];
    assert_eq!(one_way["measured"], false);
    assert_eq!(one_way["half_of_round_trip"]["count"], 2);
    assert_eq!(report.answered, 3);
}

#[test]
fn what_came_back_is_counted_by_reason() {
    let mut report = report(Times::measured());
    for reason in ["wrong key", "wrong key", "the peer is dead"] {
        report.note_undelivered(reason.to_owned());
    }
    let shown = report.to_json();
    assert_eq!(shown["undelivered"]["wrong key"], 2);
    assert_eq!(shown["undelivered"]["the peer is dead"], 1);
    assert_eq!(shown["round_trip"], Value::Null);
}
