//! A program runs under each kind of lock.

use lockkeeper::FencingToken;
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::fault::{Passed, Subject};
use lockkeeper_testserver::{Fault, Op, When};

use crate::fixture::Fixture;

#[tokio::test]
async fn the_program_gets_its_input_and_the_lock_in_its_environment_and_gives_its_code() {
    for fixture in Fixture::both().await {
        let script = "cat; echo $LOCKKEEPER_PATH; echo $LOCKKEEPER_NODE; echo $LOCKKEEPER_TOKEN; \
            test $LOCKKEEPER_VALID_UNTIL -ge $(date +%s) && echo valid; exit 7";
        let mut running = fixture.start(["lock", "/run/env", "--", "sh", "-c", script]);
        running.write("input\n").await;
        drop(running.input.take());
        assert_eq!(running.line().await, "input");
        assert_eq!(running.line().await, "/run/env");
        assert!(running.line().await.starts_with("/run/env/_c_"));
        assert!(FencingToken::from_u128(running.line().await.parse().unwrap()).as_u64() > 0);
        assert_eq!(running.line().await, "valid");
        let ended = running.ended().await;
        assert_eq!((ended.code, ended.messages.as_str()), (Some(7), ""), "{ended:?}");
    }
}

#[tokio::test]
async fn the_code_of_a_program_that_does_not_run_is_that_of_a_shell() {
    for fixture in Fixture::both().await {
        for (program, code) in [("/no/such/program", 127), ("/etc/passwd", 126)] {
            let ended = fixture.ended(["lock", "/run/none", "--", program]).await;
            assert_eq!(ended.code, Some(code), "{ended:?}");
            assert!(ended.messages.contains(program), "{ended:?}");
        }
        let ended = fixture.ended(["lock", "/run/none", "--", "sh", "-c", "kill -s SEGV $$"]).await;
        assert_eq!(ended.code, Some(128 + 11), "{ended:?}");
    }
}

#[tokio::test]
async fn each_kind_of_lock_excludes_what_it_has_to() {
    for fixture in Fixture::both().await {
        // What is held, and which try is admitted beside it.
        let cases: &[(&[&str], &[&str], bool)] = &[
            (&["lock", "/kind/lock"], &["lock", "/kind/lock"], false),
            (&["read", "/kind/rw"], &["read", "/kind/rw"], true),
            (&["read", "/kind/rw2"], &["write", "/kind/rw2"], false),
            (&["write", "/kind/rw3"], &["read", "/kind/rw3"], false),
            (&["semaphore", "-n", "2", "/kind/s"], &["semaphore", "-n", "2", "/kind/s"], true),
            (
                &["semaphore", "-n", "2", "--take", "2", "/kind/s2"],
                &["semaphore", "-n", "2", "/kind/s2"],
                false,
            ),
            (&["multi", "/kind/a", "/kind/b"], &["lock", "/kind/b"], false),
            (&["elect", "/kind/e", "--id", "first"], &["elect", "/kind/e"], false),
        ];
        for (held, tried, is_admitted) in cases {
            let mut holder = fixture.start([*held, &["--", "sh", "-c", "echo held; read line"]].concat());
            holder.until("held").await;
            let tried = fixture.ended([*tried, &["--try", "--", "true"]].concat()).await;
            let code = if *is_admitted { 0 } else { 75 };
            assert_eq!(tried.code, Some(code), "{held:?}: {tried:?}");
            holder.ended().await;
        }
    }
}

#[tokio::test]
async fn several_locks_are_listed_line_by_line_in_the_order_of_their_paths() {
    for fixture in Fixture::both().await {
        let script = "echo \"$LOCKKEEPER_PATH\"; echo \"$LOCKKEEPER_TOKEN\" | wc -l";
        let ended = fixture.ended(["multi", "/several/b", "/several/a", "--", "sh", "-c", script]).await;
        assert_eq!(ended.output, "/several/a\n/several/b\n2\n", "{ended:?}");
    }
}

#[tokio::test]
async fn many_locks_with_long_paths_are_listed_and_too_many_end_the_command() {
    let fixture = Fixture::embedded().await;
    let multi = |count: usize, length: usize| {
        let path = move |number| format!("/several/{}-{number}", "p".repeat(length));
        let paths = (0..count).map(path);
        let program = ["--", "sh", "-c", "echo \"$LOCKKEEPER_PATH\" | wc -l"].map(str::to_owned);
        std::iter::once("multi".to_owned()).chain(paths).chain(program).collect::<Vec<_>>()
    };
    // More than 64 KiB of environment.
    let ended = fixture.ended(multi(40, 1_000)).await;
    assert_eq!((ended.code, ended.output.trim()), (Some(0), "40"), "{ended:?}");
    let ended = fixture.ended(multi(110, 1_000)).await;
    assert_eq!(ended.code, Some(70), "{ended:?}");
    assert_eq!(ended.messages.lines().count(), 1, "{ended:?}");
}

#[tokio::test]
async fn the_lock_is_free_when_the_command_has_ended() {
    for fixture in Fixture::both().await {
        for _ in 0..3 {
            assert_eq!(fixture.ended(["lock", "/run/again", "--try", "--", "true"]).await.code, Some(0));
        }
    }
}

#[tokio::test]
async fn between_the_session_and_the_program_there_is_one_round_trip() {
    let fixture = Fixture::embedded().await;
    // Makes the directory of the lock.
    assert_eq!(fixture.ended(["lock", "/run/cost", "--", "true"]).await.code, Some(0));
    let server = fixture.embedded.as_ref().unwrap();
    let create = server.fault(When::op(Op::Create2), Fault::HoldReply);
    // The confirmation of the session, and the watch of a hold: the program does not wait for their answers.
    let beside = server.fault(When::ops([Op::Multi, Op::GetData]).always(), Fault::DropReply);
    let transcript = server.transcript();
    let mut running = fixture.start(["lock", "/run/cost", "--", "sh", "-c", "echo runs; exec sleep 1000"]);
    create.hit().await;
    // The list is sent behind the create, and does not wait for its answer.
    let listed = async || transcript.passed().iter().any(|of| is(of, Op::GetChildren)).then_some(());
    eventually("the list", Timing::event(), listed).await.unwrap();
    create.release();
    running.until("runs").await;
    let needed = |of: &Passed| ![Op::Ping, Op::Multi, Op::GetData].iter().any(|op| is(of, *op));
    let sent: Vec<Subject> =
        transcript.passed().iter().filter(|of| needed(of)).map(|of| of.subject).collect();
    assert_eq!(sent, [Op::Connect, Op::Create2, Op::GetChildren].map(Subject::Request));
    beside.disarm();
    running.signal("KILL");
    running.ended().await;
}

fn is(passed: &Passed, op: Op) -> bool {
    passed.subject == Subject::Request(op)
}

#[tokio::test]
async fn a_note_is_shown_wherever_the_holder_is() {
    for fixture in Fixture::both().await {
        let script = "echo held; read line";
        // As long as one may be.
        let note = "ticket 4711, ask Grace Hopper 555-0100 before you release it";
        for (subcommand, path, of_lock) in [
            ("lock", "/run/note/lock", "/run/note/lock"),
            ("elect", "/run/note/elect", "/run/note/elect"),
            ("once", "/run/note/once", "/run/note/once/locks"),
        ] {
            let padded = format!(" {note} ");
            let command = [subcommand, path, "--note", &padded, "--", "sh", "-c", script];
            let mut running = fixture.start(command);
            running.until("held").await;
            let named = format!("pid={} {note}", running.pid());
            for look in [
                &["tree", "/run/note"][..],
                &["top", "-b", "-n", "1", "/run/note"],
                &["inspect", of_lock],
                &["ls", "-l", of_lock],
                &["wait", of_lock, "--timeout", "0.1"],
                &["lock", of_lock, "--try", "--", "true"],
                &["check", "/run/note", "--holder-older", "0s"],
                &["revoke", of_lock],
            ] {
                // No election is too old, and no lock is at its path.
                if subcommand == "elect" && ["check", "lock"].contains(&look[0]) {
                    continue;
                }
                // The clock of the servers has milliseconds: a new lock may not be older than none.
                let look = async || {
                    let ended = fixture.ended(look).await;
                    format!("{}{}", ended.output, ended.messages).contains(&named).then_some(())
                };
                eventually(format!("{named} by {subcommand}"), Timing::event(), look).await.unwrap();
            }
            running.ended().await;
        }
        let both = ["elect", "/run/note/id", "--id", "a", "--note", "b", "--", "echo", "ran"];
        assert_eq!(fixture.ended(both).await.code, Some(64));
        for wrong in ["", " ", "a=b", "a\nb", &"x".repeat(61)] {
            let ended = fixture.ended(["lock", "/run/note", "--note", wrong, "--", "echo", "ran"]).await;
            assert_eq!((ended.code, ended.output.as_str()), (Some(64), ""), "{wrong:?}: {ended:?}");
        }
    }
}
