//! Peers made of shell, good and bad.

use super::*;

/// What every script begins with: `$1` is the variant, `$2` the directory, `$3` the role.
const OPENING: &str = r#"
exec 3>"$2/answers.$3" 4<"$2/orders.$3"
echo '{"open":true}' >&3
"#;
const FIGURE: Figure = Figure::Rate { size_bytes: 16 };

fn cores() -> Cores {
    Cores::choose(&[]).expect("two cores")
}

/// A session whose processes run that script after they have opened.
fn session(script: &str) -> Result<Session> {
    let script = format!("{OPENING}{script}");
    Session::open(
        &Program::of(&["sh", "-c", &script, "sh"], "test"),
        1,
        cores(),
    )
}

fn error_of(script: &str) -> String {
    let result = session(script).and_then(|mut session| session.order(FIGURE, 7));
    format!("{:#}", result.expect_err("a bad peer"))
}

#[test]
fn time_is_from_the_first_send_to_the_last_receipt() {
    let mut session = session(
        r#"
        while read word size count rest <&4 && [ "$word" = stream ]; do
            if [ "$3" = 0 ]; then
                echo '{"ready":true}' >&3
                echo "{\"begin_ns\":1,\"end_ns\":5000,\"checked\":$count}" >&3
            else
                echo "{\"begin_ns\":2000,\"end_ns\":3000,\"checked\":$count}" >&3
            fi
        done"#,
    )
    .expect("a good peer");
    for count in [1, 7] {
        match session.order(FIGURE, count).expect("a good peer") {
            Outcome::Took(elapsed_ns) => assert_eq!(elapsed_ns, 3000.0),
            Outcome::Unsupported(reason) => panic!("{reason}"),
        }
    }
}

#[test]
fn a_message_that_is_missing_spoils_the_figure() {
    let error = error_of(
        r#"
        read word size count rest <&4
        if [ "$3" = 0 ]; then
            echo '{"ready":true}' >&3
            echo '{"begin_ns":1,"end_ns":5000,"checked":6}' >&3
        else
            echo '{"begin_ns":2000,"end_ns":3000,"checked":7}' >&3
        fi
        read end <&4"#,
    );
    assert!(error.contains("6 of 7"), "{error}");
}

#[test]
fn the_receiver_may_say_that_it_cannot() {
    let mut session = session(
        r#"
        read order <&4
        echo '{"unsupported":"too large"}' >&3
        read end <&4"#,
    )
    .expect("a peer that opens");
    match session.order(FIGURE, 7) {
        Ok(Outcome::Unsupported(reason)) => assert_eq!(reason, "too large"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_program_that_ends_says_why() {
    let error = error_of(r#"read order <&4; echo '{"error":"no memory"}' >&3; exit 1"#);
    assert!(error.contains("no memory"), "{error}");
    let error = error_of(r#"read order <&4; echo out of luck >&2; exit 3"#);
    assert!(error.contains("out of luck"), "{error}");
    // The sender's reason is heard though the receiver is listened to.
    let error = error_of(
        r#"
        read order <&4
        if [ "$3" = 0 ]; then
            echo '{"ready":true}' >&3
            read end <&4
        else
            echo '{"error":"sender has no memory"}' >&3
            exit 1
        fi"#,
    );
    assert!(error.contains("sender has no memory"), "{error}");
}

#[test]
fn what_is_no_answer_is_no_figure() {
    for answer in ["nonsense", "{\"ready\":7}", "[]", ""] {
        let error = error_of(&format!(
            "read order <&4; echo '{answer}' >&3; read end <&4"
        ));
        assert!(error.contains("answered"), "{answer:?}: {error}");
    }
    let error = error_of(r#"read order <&4; echo '{"open":true}' >&3; read end <&4"#);
    assert!(error.contains("ready"), "{error}");
}

#[test]
fn nobody_outlives_the_session() {
    // Deaf to orders and to the polite signal, with a child of its own.
    let session = session(
        r#"
        trap '' TERM
        sleep 1000 &
        echo $! > "$2/child.$3"
        echo $$ > "$2/parent.$3.draft"
        mv "$2/parent.$3.draft" "$2/parent.$3"
        while :; do sleep 1000; done"#,
    )
    .expect("a peer that opens");
    let read = |name: &str| loop {
        let path = session.directory.path().join(name);
        if let Ok(text) = std::fs::read_to_string(path) {
            break text.trim().to_owned();
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    let mut processes = vec![read("parent.0"), read("parent.1")];
    processes.extend([read("child.0"), read("child.1")]);
    drop(session);
    for process in processes {
        // Killed, though perhaps not yet reaped.
        let deadline = Instant::now() + Duration::from_secs(60);
        while is_alive(&process) {
            assert!(Instant::now() < deadline, "process {process} lives on");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

fn is_alive(process: &str) -> bool {
    let Ok(status) = std::fs::read_to_string(format!("/proc/{process}/stat")) else {
        return false;
    };
    // The state follows the name, which is in brackets.
    let state = status
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    !matches!(state, Some('Z' | 'X'))
}
