//! Nodes beside the recipes: what is known after a lost answer, and trees that are deleted in parts.

use std::collections::BTreeSet;
use std::time::Duration;

use lockkeeper::config::{Acl, Permissions};
use lockkeeper::error::{ErrorKind, Operation, Outcome, Refusal};
use lockkeeper::znodes::{CreateMode, CreateOptions, Version};
use lockkeeper::{ConnectionManager, Error};
use lockkeeper_testserver::{Fault, Op, When};

use super::{data, started};
use crate::limit::within;
use crate::server_fixture::children;

const LOST: [Fault; 2] = [Fault::DropConnectionAfter, Fault::DropConnectionBefore];

fn refusal(error: &Error) -> Option<(Operation, Refusal)> {
    match error {
        Error::Refused { operation, refusal, .. } => Some((*operation, *refusal)),
        _ => None,
    }
}

#[tokio::test]
async fn a_node_tells_its_stat_without_its_data() {
    let (_server, manager) = started().await;
    let znodes = manager.znodes();
    assert_eq!(znodes.exists("/shop/a").await.unwrap(), None);
    assert_eq!(znodes.children_with_stats("/shop").await.unwrap(), None);
    let created = znodes.create_with("/shop/a", "12345", CreateMode::Persistent).await.unwrap();
    assert_eq!(created.path, "/shop/a");
    let stat = znodes.exists("/shop/a").await.unwrap();
    assert_eq!((stat, stat.unwrap().data_length), (created.stat, 5));
    let numbered = CreateMode::PersistentSequential;
    let second = znodes.create_with("/shop/n-", "", numbered).await.unwrap();
    let listed = znodes.children_with_stats("/shop").await.unwrap().unwrap();
    let expected = [("a".to_owned(), created.stat.unwrap()), ("n-0000000001".into(), second.stat.unwrap())];
    assert_eq!(listed, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_write_without_an_answer_is_unknown_and_is_not_sent_again() {
    for fault in LOST {
        let (server_fixture, manager) = started().await;
        let znodes = manager.znodes();
        znodes.create("/there", "0", CreateMode::Persistent).await.unwrap();
        let open = Acl::open();
        let writes: [(Op, &str); 5] = [
            (Op::SetData, "create or write"),
            (Op::Create2, "create"),
            (Op::SetAcl, "access list"),
            (Op::Delete, "delete"),
            (Op::Create2, "create or write of none"),
        ];
        for (op, name) in writes {
            znodes.create_or_write("/there", "0").await.unwrap();
            let lost = server_fixture.server.fault(When::op(op), fault);
            let outcome = within(name, async {
                match name {
                    "create or write" => znodes.create_or_write("/there", "1").await.map(drop),
                    "create" => znodes.create_with("/new", "", CreateMode::Persistent).await.map(drop),
                    "access list" => znodes.set_acl("/there", &open, 0).await.map(drop),
                    "delete" => znodes.delete("/there").await.map(drop),
                    _ => znodes.create_or_write("/none", "1").await.map(drop),
                }
            });
            let error = outcome.await.unwrap().unwrap_err();
            assert_eq!((error.outcome(), lost.hits()), (Outcome::Unknown, 1), "{name}, {fault:?}: {error}");
        }
        let written = server_fixture.server.inspect(|machine| data(machine, "/none").is_some());
        assert_eq!(written, fault == Fault::DropConnectionAfter);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_ensured_although_the_answers_are_lost_and_the_session_ends() {
    for fault in LOST {
        let (server_fixture, manager) = started().await;
        let lost = server_fixture.server.fault(When::create(), fault);
        within("the node", manager.znodes().ensure("/a/b/c")).await.unwrap().unwrap();
        assert_eq!(lost.hits(), 1, "{fault:?}");
        assert!(server_fixture.server.inspect(|machine| data(machine, "/a/b/c").is_some()));
    }
    let (server_fixture, manager) = started().await;
    let session = server_fixture.sessions_of_actor()[0];
    let held = server_fixture.server.fault(When::create(), Fault::HoldRequest);
    let ensuring = tokio::spawn(async move { manager.znodes().ensure("/a/b/c").await });
    within("the create", held.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    within("the node", ensuring).await.unwrap().unwrap().unwrap();
    assert!(server_fixture.server.inspect(|machine| data(machine, "/a/b/c").is_some()));
}

#[tokio::test]
async fn a_node_is_created_with_its_parents_or_written() {
    let (server_fixture, manager) = started().await;
    let znodes = manager.znodes();
    for (value, version) in [("1", 0), ("2", 1), ("3", 2)] {
        let stat = znodes.create_or_write("/shop/prices/apple", value).await.unwrap().unwrap();
        assert_eq!(stat.version, version);
        let stored = server_fixture.server.inspect(|machine| data(machine, "/shop/prices/apple"));
        assert_eq!(stored.unwrap(), value.as_bytes());
    }
    // Another client creates it between the two requests.
    let session = server_fixture.sessions_of_actor()[0];
    let held =
        server_fixture.server.fault(When::create().path("/other").session(session), Fault::HoldRequest);
    let writing = tokio::spawn(async move { manager.znodes().create_or_write("/other", "ours").await });
    within("the create", held.hit()).await.unwrap();
    server_fixture.rival.znodes().create("/other", "theirs", CreateMode::Persistent).await.unwrap();
    held.release();
    assert_eq!(within("the write", writing).await.unwrap().unwrap().unwrap().unwrap().version, 1);
    assert_eq!(server_fixture.server.inspect(|machine| data(machine, "/other")).unwrap(), b"ours");
}

#[tokio::test]
async fn a_node_is_written_and_deleted_only_in_the_version_asked_for() {
    let (_server, manager) = started().await;
    let znodes = manager.znodes();
    znodes.create("/a", "0", CreateMode::Persistent).await.unwrap();
    let stale = znodes.write("/a", "1", 7).await.unwrap_err();
    assert_eq!(refusal(&stale), Some((Operation::Write, Refusal::BadVersion)));
    assert_eq!(znodes.write("/a", "1", 0).await.unwrap().version, 1);
    let stale = znodes.delete_at("/a", 0).await.unwrap_err();
    assert_eq!(refusal(&stale), Some((Operation::Delete, Refusal::BadVersion)));
    assert!(znodes.delete_at("/a", 1).await.unwrap() && !znodes.delete_at("/a", Version::Any).await.unwrap());
}

/// A tree of 1 + 3 + 9 + 27 nodes.
async fn plant(manager: &ConnectionManager) {
    for path in (0..27).map(|n| format!("/tree/{}/{}/{}", n / 9, n / 3 % 3, n % 3)) {
        manager.znodes().ensure(path).await.unwrap();
    }
}

#[tokio::test]
async fn a_tree_is_deleted_in_parts_of_the_size_asked_for_and_children_first() {
    let (server_fixture, manager) = started().await;
    plant(&manager).await;
    let znodes = manager.znodes();
    let mut parts = Vec::new();
    loop {
        let part = znodes.delete_all("/tree", 9).await.unwrap();
        parts.push(part.nodes);
        if part.is_complete {
            break;
        }
        assert!(server_fixture.server.inspect(|machine| data(machine, "/tree").is_some()));
    }
    assert_eq!(parts, [9, 9, 9, 9, 4]);
    let none = znodes.delete_all("/tree", 9).await.unwrap();
    assert!(none.is_complete && none.nodes == 0);
    let root = znodes.delete_all("/", 9).await.unwrap_err();
    assert_eq!(root.kind(), ErrorKind::Misuse, "{root}");
    assert!(server_fixture.server.inspect(|machine| data(machine, "/zookeeper").is_some()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tree_is_deleted_although_answers_are_lost_and_the_session_ends() {
    for nth in [1, 2, 17, 40] {
        for fault in LOST {
            let (server_fixture, manager) = started().await;
            plant(&manager).await;
            let lost = server_fixture.server.fault(When::op(Op::Delete).nth(nth), fault);
            let deleted =
                within("the tree", manager.znodes().delete_all("/tree", 1_000)).await.unwrap().unwrap();
            assert!(deleted.is_complete && lost.hits() == 1, "{fault:?} at {nth}: {deleted:?}");
            assert!(server_fixture.server.inspect(|machine| data(machine, "/tree").is_none()));
        }
    }
    let (server_fixture, manager) = started().await;
    plant(&manager).await;
    let session = server_fixture.sessions_of_actor()[0];
    let held = server_fixture.server.fault(When::op(Op::Delete).nth(20), Fault::HoldReply);
    let deleting = tokio::spawn(async move { manager.znodes().delete_all("/tree", 1_000).await });
    within("a delete", held.hit()).await.unwrap();
    assert!(server_fixture.server.expire(session));
    assert!(within("the tree", deleting).await.unwrap().unwrap().unwrap().is_complete);
    assert!(server_fixture.server.inspect(|machine| data(machine, "/tree").is_none()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_child_that_another_client_creates_meanwhile_is_deleted_as_well() {
    let (server_fixture, manager) = started().await;
    plant(&manager).await;
    let session = server_fixture.sessions_of_actor()[0];
    let deletes = When::op(Op::Delete).path("/tree").session(session).nth(2);
    let held = server_fixture.server.fault(deletes, Fault::HoldRequest);
    let deleting = tokio::spawn(async move { manager.znodes().delete_all("/tree", 1_000).await });
    within("the last delete", held.hit()).await.unwrap();
    assert_eq!(server_fixture.server.inspect(|machine| children(machine, "/tree")), Vec::<String>::new());
    server_fixture.rival.znodes().ensure("/tree/late/later").await.unwrap();
    held.release();
    let deleted = within("the tree", deleting).await.unwrap().unwrap().unwrap();
    assert!(deleted.is_complete && deleted.nodes == 42, "{deleted:?}");
    assert!(server_fixture.server.inspect(|machine| data(machine, "/tree").is_none()));
}

#[tokio::test]
async fn a_node_has_the_access_list_of_its_create_and_its_parents_that_of_the_manager() {
    let (_server, manager) = started().await;
    let znodes = manager.znodes();
    let frozen = Acl::new(Permissions::READ.and(Permissions::ADMIN), "world", "anyone");
    let options = CreateOptions::new(CreateMode::Persistent).acl(frozen.clone());
    znodes.create_with("/shop/prices", "1", options).await.unwrap();
    assert_eq!(znodes.acl("/shop/prices").await.unwrap(), Some((frozen.clone(), 0)));
    assert_eq!(znodes.acl("/shop").await.unwrap(), Some((Acl::open(), 0)));
    assert_eq!(znodes.acl("/none").await.unwrap(), None);
    let entries: Vec<_> = frozen.entries().collect();
    assert!(matches!(entries[..], [(granted, "world", "anyone")] if granted.contains(Permissions::READ)));
    assert!(!entries[0].0.contains(Permissions::READ.and(Permissions::WRITE)));
    let refused = znodes.write("/shop/prices", "2", 0).await.unwrap_err();
    assert_eq!(refusal(&refused), Some((Operation::Write, Refusal::NoAuth)));

    let stale = znodes.set_acl("/shop/prices", &Acl::open(), 3).await.unwrap_err();
    assert_eq!(refusal(&stale), Some((Operation::Write, Refusal::BadVersion)));
    assert_eq!(znodes.set_acl("/shop/prices", &Acl::open(), 0).await.unwrap(), 1);
    assert_eq!(znodes.acl("/shop/prices").await.unwrap(), Some((Acl::open(), 1)));
    assert_eq!(znodes.write("/shop/prices", "2", 0).await.unwrap().version, 1);
    let unknown = Acl::new(Permissions::ALL, "no-scheme", "x");
    let invalid = znodes.set_acl("/shop/prices", &unknown, Version::Any).await.unwrap_err();
    assert_eq!(refusal(&invalid), Some((Operation::Write, Refusal::InvalidAcl)));
}

#[tokio::test]
async fn a_time_to_live_is_refused_where_it_cannot_be() {
    let (server_fixture, manager) = started().await;
    let znodes = manager.znodes();
    let hour = Duration::from_secs(3_600);
    let with = |mode| CreateOptions::new(mode).time_to_live(hour);
    let refused = znodes.create_with("/offer", "", with(CreateMode::Persistent)).await.unwrap_err();
    assert_eq!(refusal(&refused), Some((Operation::Create, Refusal::Unimplemented)));
    let ephemeral = znodes.create_with("/offer", "", with(CreateMode::Ephemeral)).await.unwrap_err();
    assert_eq!(ephemeral.kind(), ErrorKind::Misuse, "{ephemeral}");
    assert!(server_fixture.server.inspect(|machine| data(machine, "/offer").is_none()));
    let distinct: BTreeSet<String> = [refused, ephemeral].iter().map(ToString::to_string).collect();
    assert_eq!(distinct.len(), 2, "{distinct:?}");
}
