//! A program under a lock that runs the command again.

use crate::fixture::{Running, Site};

/// A program that waits for a line, and then runs under a further lock, which is its first argument.
const NESTED: &str = "echo held; read line; exec \"$0\" lock \"$1\" -- true";

fn start(site: &Site, held: &str, wanted: &str) -> Running {
    site.start(["lock", held, "--", "sh", "-c", NESTED, env!("CARGO_BIN_EXE_lockkeeper"), wanted])
}

#[tokio::test]
async fn commands_that_wait_for_each_other_within_their_locks_are_a_deadlock_that_is_found() {
    for site in Site::both().await {
        let mut first = start(&site, "/nested/a", "/nested/b");
        let mut second = start(&site, "/nested/b", "/nested/a");
        for running in [&mut first, &mut second] {
            running.until("held").await;
        }
        for running in [&mut first, &mut second] {
            running.write("line\n").await;
        }
        for path in ["/nested/a", "/nested/b"] {
            site.contenders(path, 2).await;
        }
        let found = site.ended(["deadlocks", "/nested", "--pause", "0"]).await;
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
    let site = Site::embedded().await;
    let mut holder = site.start(["lock", "/nested/d", "--", "sh", "-c", "echo held; read line"]);
    holder.until("held").await;
    let mut first = start(&site, "/nested/c", "/nested/d");
    first.until("held").await;
    first.write("line\n").await;
    site.contenders("/nested/d", 2).await;
    let none = site.ended(["deadlocks", "/nested", "--pause", "0"]).await;
    assert_eq!((none.code, none.output.as_str()), (Some(0), "2 locks, 1 waits: no deadlock\n"), "{none:?}");
    holder.ended().await;
    assert_eq!(first.ended().await.code, Some(0));
}
