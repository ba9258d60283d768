//! A program under a lock that runs the command again.

use crate::fixture::{Fixture, Running};

/// A program that waits for a line, and then runs under a further lock, which is its first argument.
const NESTED: &str = "echo held; read line; exec \"$0\" lock \"$1\" -- true";

fn start(fixture: &Fixture, held: &str, wanted: &str) -> Running {
    fixture.start(["lock", held, "--", "sh", "-c", NESTED, env!("CARGO_BIN_EXE_lockkeeper"), wanted])
}

#[tokio::test]
async fn commands_that_wait_for_each_other_within_their_locks_are_a_deadlock_that_is_found() {
    for fixture in Fixture::both().await {
        let mut first = start(&fixture, "/nested/a", "/nested/b");
        let mut second = start(&fixture, "/nested/b", "/nested/a");
        for running in [&mut first, &mut second] {
            running.until("held").await;
        }
        for running in [&mut first, &mut second] {
            running.write("line\n").await;
        }
        for path in ["/nested/a", "/nested/b"] {
            fixture.contenders(path, 2).await;
        }
        let found = fixture.ended(["deadlocks", "/nested", "--pause", "0"]).await;
        assert_eq!(found.code, Some(1), "{found:?}");
        assert!(found.output.starts_with("deadlock: 2 owners wait for each other"), "{found:?}");
        for running in [&first, &second] {
            let owner = format!("owner=sh[{}]  waits to lock /nested/", running.pid());
            assert!(found.output.contains(&owner), "{owner}: {found:?}");
        }
        first.signal("TERM");
        assert_eq!(first.ended().await.code, Some(128 + 15));
        assert_eq!(second.ended().await.code, Some(0));
    }
}

#[tokio::test]
async fn a_command_within_a_command_that_waits_for_one_without_is_no_deadlock() {
    let fixture = Fixture::embedded().await;
    let mut holder = fixture.start(["lock", "/nested/d", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    let mut first = start(&fixture, "/nested/c", "/nested/d");
    first.until("held").await;
    first.write("line\n").await;
    fixture.contenders("/nested/d", 2).await;
    let none = fixture.ended(["deadlocks", "/nested", "--pause", "0"]).await;
    assert_eq!((none.code, none.output.as_str()), (Some(0), "2 locks, 1 waits: no deadlock\n"), "{none:?}");
    holder.ended().await;
    assert_eq!(first.ended().await.code, Some(0));
}
