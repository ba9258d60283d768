//! Two holders at the same time, at every level of isolation.

use std::time::Duration;

use lockkeeper_fence::{FenceError, FencingToken};
use lockkeeper_tests::Timing;
use tokio::time::Instant;

use crate::database::Database;
use crate::link::Link;

const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];

/// Returns once a session of PostgreSQL waits for a lock.
async fn wait_until_one_waits(watcher: &mut Link) {
    let end = Instant::now() + Timing::scaled(Duration::from_secs(30));
    let waiting = "SELECT count(*) FROM pg_stat_activity \
                   WHERE wait_event_type = 'Lock' AND datname = current_database()";
    while watcher.number(waiting).await.unwrap() == 0 {
        assert!(Instant::now() < end, "no session waits");
    }
}

/// What the second check says after the first transaction, which it waited for, ended by `end`.
async fn second_of_two(level: &str, first: u64, second: u64, end: &str) -> Option<Result<(), FenceError>> {
    let database = Database::postgres().await?;
    let (mut one, mut other) = (database.link().await, database.link().await);
    let mut watcher = database.link().await;
    // The row is there, so that both checks change one.
    one.check("stock", FencingToken::new(1)).await.unwrap();
    let begin = format!("BEGIN ISOLATION LEVEL {level}");
    one.run(&begin).await.unwrap();
    other.run(&begin).await.unwrap();
    one.check("stock", FencingToken::new(first)).await.unwrap();
    let ended = async {
        wait_until_one_waits(&mut watcher).await;
        one.run(end).await.unwrap();
    };
    let (checked, ()) = tokio::join!(other.check("stock", FencingToken::new(second)), ended);
    // Whatever it says, a transaction that is begun again decides by what was committed.
    if checked.as_ref().is_err_and(FenceError::is_transient) {
        other.run("ROLLBACK").await.unwrap();
        other.run(&begin).await.unwrap();
        let again = other.check("stock", FencingToken::new(second)).await;
        assert_eq!(again.is_ok(), first <= second, "{level}: {again:?}");
    }
    Some(checked)
}

#[tokio::test]
async fn a_newer_holder_waits_for_the_end_of_an_older_one_that_has_checked() {
    for level in LEVELS {
        let Some(checked) = second_of_two(level, 5, 6, "COMMIT").await else { return };
        match level {
            "READ COMMITTED" => checked.unwrap(),
            _ => assert!(checked.unwrap_err().is_transient(), "{level}"),
        }
    }
}

#[tokio::test]
async fn an_older_holder_is_refused_after_the_end_of_a_newer_one_that_has_checked() {
    for level in LEVELS {
        let Some(checked) = second_of_two(level, 6, 5, "COMMIT").await else { return };
        let refused = checked.unwrap_err();
        match level {
            "READ COMMITTED" => assert!(refused.is_stale(), "{refused}"),
            _ => assert!(refused.is_transient(), "{level}: {refused}"),
        }
    }
}

#[tokio::test]
async fn a_transaction_that_is_rolled_back_leaves_no_mark() {
    for level in LEVELS {
        let Some(checked) = second_of_two(level, 6, 5, "ROLLBACK").await else { return };
        checked.unwrap();
    }
}

#[tokio::test]
async fn of_two_first_holders_at_a_resource_one_waits_as_well() {
    for level in LEVELS {
        let Some(database) = Database::postgres().await else { return };
        let (mut one, mut other) = (database.link().await, database.link().await);
        let mut watcher = database.link().await;
        let begin = format!("BEGIN ISOLATION LEVEL {level}");
        one.run(&begin).await.unwrap();
        other.run(&begin).await.unwrap();
        one.check("stock", FencingToken::new(6)).await.unwrap();
        let ended = async {
            wait_until_one_waits(&mut watcher).await;
            one.run("COMMIT").await.unwrap();
        };
        let (checked, ()) = tokio::join!(other.check("stock", FencingToken::new(5)), ended);
        let refused = checked.unwrap_err();
        assert!(
            if level == "READ COMMITTED" { refused.is_stale() } else { refused.is_transient() },
            "{refused}"
        );
    }
}

#[tokio::test]
async fn of_two_writers_of_sqlite_one_is_busy_and_begins_again() {
    let database = Database::sqlite().await;
    let (mut one, mut other) = (database.link().await, database.link().await);
    one.run("BEGIN IMMEDIATE").await.unwrap();
    one.check("stock", FencingToken::new(6)).await.unwrap();
    // A transaction that has read before its check does not decide by what it has read.
    other.run("BEGIN").await.unwrap();
    other.number("SELECT count(*) FROM lockkeeper_fence").await.unwrap();
    assert!(other.check("stock", FencingToken::new(5)).await.unwrap_err().is_transient());
    one.run("COMMIT").await.unwrap();
    let behind = other.check("stock", FencingToken::new(7)).await.unwrap_err();
    assert!(behind.is_transient(), "its snapshot is of before the commit: {behind}");
    other.run("ROLLBACK").await.unwrap();
    other.run("BEGIN IMMEDIATE").await.unwrap();
    assert!(other.check("stock", FencingToken::new(5)).await.unwrap_err().is_stale());
}

#[tokio::test]
async fn on_mysql_a_check_reads_what_was_committed_and_not_its_snapshot() {
    for level in LEVELS {
        let Some(database) = Database::mysql().await else { return };
        let (mut one, mut other) = (database.link().await, database.link().await);
        for link in [&mut one, &mut other] {
            link.run(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).await.unwrap();
        }
        one.check("stock", FencingToken::new(1)).await.unwrap();
        other.run("BEGIN").await.unwrap();
        // Makes the snapshot of another table.
        other.number("SELECT count(*) FROM orders").await.unwrap();
        one.check("stock", FencingToken::new(6)).await.unwrap();
        let refused = other.check("stock", FencingToken::new(5)).await.unwrap_err();
        assert!(refused.is_stale() || refused.is_transient(), "{level}: {refused}");
    }
}
