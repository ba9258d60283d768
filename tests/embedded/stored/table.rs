//! Tables: each change once, whatever becomes of the answers, and entries that are removed.

use futures::future::join_all;
use lockkeeper::error::{ErrorKind, Outcome, TableError};
use lockkeeper::table::{Plain, Removal};
use lockkeeper::value::CompareAndSet;
use lockkeeper::znodes::CreateMode;
use lockkeeper::{ConnectionManager, Error, Table};
use lockkeeper_testserver::{Fault, Op, When};
use serde::{Deserialize, Serialize};

use super::{data, started};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, children};

const QUOTAS: &str = "/quotas";
const ALICE: &str = "/quotas/alice";

fn quotas(manager: &ConnectionManager) -> Table<i64> {
    Table::with_codec(manager, QUOTAS, Plain).unwrap()
}

/// The transactions that change the entry.
fn change() -> When {
    When::op(Op::Multi).path(ALICE)
}

async fn value_of(table: &Table<i64>, key: &str) -> Option<i64> {
    within("the read", table.get(key)).await.unwrap().unwrap().map(|entry| entry.value)
}

fn table_error(error: &Error) -> &TableError {
    error.recipe().unwrap_or_else(|| panic!("{error:?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_of_an_entry_is_applied_once_though_its_answer_is_lost() {
    // The first change creates the node, later ones write.
    for nth in 1..=3 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let (server_fixture, manager) = started().await;
            let table = quotas(&manager);
            let lost = server_fixture.server.fault(change().nth(nth), fault);
            for expected in 1..=3 {
                let add = table.update("alice", |quota| Some(quota.map_or(1, |quota| quota + 1)));
                let entry = within("the change", add).await.unwrap().unwrap().unwrap();
                assert_eq!(entry.value, expected, "{fault:?} at {nth}");
            }
            assert_eq!((lost.hits(), value_of(&table, "alice").await), (1, Some(3)), "{fault:?} at {nth}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_is_inserted_and_removed_once_though_the_answers_are_lost() {
    for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
        let (server_fixture, manager) = started().await;
        let table = quotas(&manager);
        let lost = server_fixture.server.fault(change(), fault);
        let inserted = within("the insert", table.insert("alice", 7)).await.unwrap().unwrap();
        assert!(inserted.is_set() && lost.hits() == 1, "{fault:?}: {inserted:?}");
        let again = table.insert("alice", 8).await.unwrap();
        assert!(matches!(again, CompareAndSet::Differs(present) if present.value == 7));
        let lost = server_fixture.server.fault(change(), fault);
        let removed = within("the remove", table.remove("alice", None)).await.unwrap().unwrap();
        assert_eq!((removed, lost.hits()), (Removal::Removed, 1), "{fault:?}");
        assert_eq!(table.remove("alice", None).await.unwrap(), Removal::Missing);
        assert_eq!(value_of(&table, "alice").await, None);
        let gone = server_fixture.server.wait_until(|machine| data(machine, ALICE).is_none());
        within("the node is deleted", gone).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_changes_of_many_clients_are_counted_and_none_leaves_a_node() {
    let (server_fixture, manager) = started().await;
    let tables = [quotas(&manager), quotas(&server_fixture.rival), quotas(&manager)];
    let adds = (0..30).map(|n| tables[n % 3].update("alice", |quota| Some(quota.unwrap_or(&0) + 1)));
    for added in within("the changes", join_all(adds)).await.unwrap() {
        added.unwrap();
    }
    assert_eq!(value_of(&tables[0], "alice").await, Some(30));
    let idle = server_fixture
        .server
        .wait_until(|machine| children(machine, ALICE).is_empty() && children(machine, QUOTAS) == ["alice"]);
    within("no writer node", idle).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_is_removed_only_if_its_last_write_is_the_one_that_was_seen() {
    let (server_fixture, manager) = started().await;
    let table = quotas(&manager);
    let first = table.insert("alice", 1).await.unwrap().into_current();
    let second = table.update("alice", |_| Some(2)).await.unwrap().unwrap();
    assert_eq!(table.remove("alice", first.revision).await.unwrap(), Removal::Differs(second.revision));
    assert_eq!(table.remove("alice", second.revision).await.unwrap(), Removal::Removed);
    // Another entry in the same place is another write.
    let third = table.insert("alice", 2).await.unwrap().into_current();
    assert_eq!(table.remove("alice", second.revision).await.unwrap(), Removal::Differs(third.revision));
    assert!(server_fixture.server.inspect(|machine| data(machine, ALICE).is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_delete_of_a_removed_entry_deletes_no_entry_in_its_place() {
    let (server_fixture, manager) = started().await;
    let table = quotas(&manager);
    assert!(table.insert("alice", 1).await.unwrap().is_set());
    // The delete of the node is the only transaction that names the child for it.
    let late = server_fixture.server.fault(
        When::op(Op::Multi)
            .path("/quotas/alice/removed-*")
            .session(server_fixture.sessions_of_actor()[0])
            .nth(2),
        Fault::HoldRequest,
    );
    let removing = tokio::spawn({
        let table = table.clone();
        async move { table.remove("alice", None).await }
    });
    within("the delete of the node", late.hit()).await.unwrap();
    let other = quotas(&server_fixture.rival);
    assert_eq!(value_of(&other, "alice").await, None, "it is removed");
    assert!(within("the insert", other.insert("alice", 2)).await.unwrap().unwrap().is_set());
    // The child of the insert would prevent the delete as well.
    let alone = server_fixture.server.wait_until(|machine| children(machine, ALICE).len() == 1);
    within("the end of the writer", alone).await.unwrap();
    late.release();
    assert_eq!(within("the remove", removing).await.unwrap().unwrap().unwrap(), Removal::Removed);
    assert_eq!(value_of(&other, "alice").await, Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_remove_leaves_a_mark_and_no_entry() {
    let (server_fixture, manager) = started().await;
    manager.znodes().create(ALICE, b"removed\n", CreateMode::Persistent).await.unwrap();
    let table = quotas(&manager);
    let view = table.view().unwrap();
    assert_eq!(value_of(&table, "alice").await, None);
    assert!(table.scan(None, 9).await.unwrap().is_empty());
    assert!(view.ready().await.unwrap().is_empty());
    assert_eq!(table.remove("alice", None).await.unwrap(), Removal::Missing);
    assert!(
        server_fixture.server.inspect(|machine| data(machine, ALICE).is_none()),
        "the next remove deletes it"
    );
    manager.znodes().create(ALICE, b"removed\n", CreateMode::Persistent).await.unwrap();
    assert!(table.insert("alice", 3).await.unwrap().is_set());
    assert_eq!(value_of(&table, "alice").await, Some(3));
}

#[tokio::test]
async fn keys_of_any_text_come_back_from_a_scan_in_pages_and_from_a_view() {
    let (_server, manager) = started().await;
    let table = quotas(&manager);
    let mut keys = ["..", "a/b", "100%", "größe", "x-creation-y", "seat 42", "\u{0}"].map(str::to_owned);
    for key in &keys {
        assert!(table.insert(key, 1).await.unwrap().is_set(), "{key:?}");
    }
    let (mut seen, mut after) = (Vec::new(), None);
    loop {
        let page = table.scan(after.as_deref(), 3).await.unwrap();
        assert!(page.len() <= 3);
        let Some(last) = page.last() else { break };
        after = Some(last.key.clone());
        seen.extend(page.into_iter().map(|entry| entry.key));
    }
    let entries = table.view().unwrap().sync().await.unwrap();
    let viewed: Vec<String> = entries.iter().map(|(key, _)| key).collect();
    assert_eq!(seen, viewed);
    seen.sort();
    keys.sort();
    assert_eq!(seen, keys);
    assert!(keys.iter().all(|key| entries.get(key).unwrap() == Some(&1)));
    let none = table.insert("", 1).await.unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Misuse, "{none}");
}

#[tokio::test]
async fn a_view_tells_the_keys_that_changed_and_its_revisions_are_those_of_the_table() {
    let (_server, manager) = started().await;
    let table = quotas(&manager);
    let view = table.view().unwrap();
    view.ready().await.unwrap();
    let mut changes = view.changes();
    let entry = table.insert("alice", 1).await.unwrap().into_current();
    let snapshot = loop {
        let (snapshot, keys) = within("the change", changes.next()).await.unwrap().unwrap();
        if keys == ["alice"] && snapshot.get("alice").unwrap().is_some() {
            break snapshot;
        }
    };
    assert_eq!(snapshot.revision("alice"), Some(entry.revision));
    let removed = table.remove("alice", snapshot.revision("alice")).await.unwrap();
    assert_eq!((removed, view.sync().await.unwrap().get("alice").unwrap()), (Removal::Removed, None));
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Quota {
    requests: u32,
    window_seconds: u32,
}

/// Schema 0 has the number of requests alone.
fn of_schema_0(_: u32, data: &[u8]) -> Result<Quota, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Quota { requests: serde_json::from_slice(data)?, window_seconds: 60 })
}

async fn stored(server_fixture: &ServerFixture) -> Vec<u8> {
    server_fixture.server.inspect(|machine| data(machine, ALICE)).unwrap()
}

#[tokio::test]
async fn an_older_schema_is_converted_and_a_newer_one_is_an_error_and_is_not_overwritten() {
    let (server_fixture, manager) = started().await;
    let oldest: Table<u32> = Table::new(&manager, QUOTAS).unwrap();
    let newest: Table<Quota> = Table::new(&manager, QUOTAS).unwrap().with_schema(2, of_schema_0);
    assert!(oldest.insert("alice", 10).await.unwrap().is_set());
    assert_eq!(stored(&server_fixture).await, b"10");
    let quota = Quota { requests: 10, window_seconds: 60 };
    assert_eq!(newest.get("alice").await.unwrap().unwrap().value, quota);
    let double = |quota: Option<&Quota>| {
        quota.map(|quota| Quota { requests: quota.requests * 2, window_seconds: quota.window_seconds })
    };
    newest.update("alice", double).await.unwrap();
    let after = b"schema 2\n{\"requests\":20,\"window_seconds\":60}";
    assert_eq!(stored(&server_fixture).await, after);

    let view = oldest.view().unwrap();
    let shown = view.sync().await.unwrap().get("alice").unwrap_err();
    assert!(shown.to_string().contains("schema 2"), "{shown}");
    let errors = [
        oldest.get("alice").await.map(drop).unwrap_err(),
        oldest.update("alice", |_| Some(1)).await.map(drop).unwrap_err(),
        oldest.insert("alice", 1).await.map(drop).unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(table_error(&error), TableError::NewerSchema { found: 2, known: 0, .. }), "{error}");
        assert_eq!(error.outcome(), Outcome::NotApplied);
    }
    assert!(oldest.scan(None, 1).await.unwrap()[0].value.is_err());
    assert_eq!(stored(&server_fixture).await, after);
}

#[tokio::test]
async fn data_that_is_no_value_is_a_typed_error_and_can_be_removed() {
    let (_server, manager) = started().await;
    manager.znodes().create(ALICE, "no number", CreateMode::Persistent).await.unwrap();
    let table = quotas(&manager);
    for error in [
        table.get("alice").await.map(drop).unwrap_err(),
        table.update("alice", |_| Some(1)).await.map(drop).unwrap_err(),
    ] {
        assert!(matches!(table_error(&error), TableError::Undecodable { .. }), "{error}");
    }
    assert_eq!(table.remove("alice", None).await.unwrap(), Removal::Removed);
    assert_eq!(value_of(&table, "alice").await, None);
    let large: Table<Vec<u8>> = Table::with_codec(&manager, "/large", Plain).unwrap();
    let error = large.insert("a", vec![0; 1_100_000]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Misuse, "{error}");
}
