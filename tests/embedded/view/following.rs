//! What views show without faults.

use std::time::Duration;

use lockkeeper::view::{ViewBounds, ViewChange, ViewState};
use lockkeeper::znodes::{CreateMode, Version};
use lockkeeper::{ChildrenView, NodeView, TreeView};

use lockkeeper_testserver::machine::Machine;
use lockkeeper_testserver::{Fault, Isolation, Op, When};

use super::witness::{Witness, copy_of, tree_of};
use super::{ROOT, SESSION, client, newest_session, put, soon};
use crate::limit::within;
use crate::server_fixture::{ServerFixture, TICK, builder, children, servers};

#[tokio::test]
async fn a_node_that_does_not_exist_is_no_error_and_may_come_go_and_come_again() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let view = NodeView::new(&client(&server_fixture).await, "/deep/below/node").unwrap();
    assert!(soon("the first load", view.ready()).await.is_empty());
    let mut witness = Witness::new(view.changes());
    for data in ["1", "2"] {
        put(&server_fixture.rival, "/deep/below/node", data).await;
        let created = witness.changed().await;
        assert!(matches!(created.changes(), [ViewChange::Created { .. }]), "{created:?}");
        assert_eq!(view.node().unwrap().data(), data.as_bytes());
        for path in ["/deep/below/node", "/deep/below", "/deep"] {
            assert!(server_fixture.rival.znodes().delete(path).await.unwrap());
        }
        let deleted = witness.changed().await;
        assert!(matches!(deleted.changes(), [ViewChange::Deleted { .. }]), "{deleted:?}");
        assert!(view.node().is_none());
    }
}

#[tokio::test]
async fn a_synced_view_shows_everything_that_was_committed_before() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let tree = TreeView::new(&manager, ROOT).unwrap();
    let children = ChildrenView::new(&manager, ROOT).unwrap();
    let node = NodeView::new(&manager, ROOT).unwrap();
    let mut witness = Witness::new(tree.changes());
    put(&server_fixture.rival, ROOT, "").await;
    for number in 0..40 {
        put(&server_fixture.rival, &format!("{ROOT}/{}/{}", number % 7, number % 3), &number.to_string())
            .await;
        if number % 5 == 0 {
            let path = format!("{ROOT}/{}/{}", number % 7, number % 3);
            assert!(server_fixture.rival.znodes().delete(path.as_str()).await.unwrap());
        }
        let shown =
            soon("a sync", async { tokio::try_join!(tree.sync(), children.sync(), node.sync()) }).await;
        server_fixture.server.inspect(|machine| {
            assert_eq!(copy_of(&shown.0), tree_of(machine, ROOT, 9));
            assert_eq!(copy_of(&shown.1), tree_of(machine, ROOT, 1));
            assert_eq!(copy_of(&shown.2), tree_of(machine, ROOT, 0));
        });
    }
    witness.read();
    assert_eq!(witness.copy(), &copy_of(&tree.snapshot()));
}

#[tokio::test]
async fn a_view_waits_for_a_transaction_and_for_a_fencing_token() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    put(&server_fixture.rival, ROOT, "before").await;
    let (tree, node) = (TreeView::new(&manager, ROOT).unwrap(), NodeView::new(&manager, ROOT).unwrap());
    for number in 0..10 {
        let stat = server_fixture.rival.znodes().write(ROOT, number.to_string(), Version::Any).await.unwrap();
        for snapshot in [
            soon("the transaction", tree.await_until(stat.mzxid)).await,
            soon("the transaction", node.await_until(stat.mzxid)).await,
        ] {
            assert!(snapshot.root().unwrap().stat().mzxid >= stat.mzxid);
        }
    }
    put(&server_fixture.rival, ROOT, "under the lock").await;
    let guard = lockkeeper::Mutex::new(&manager, "/locks/a").unwrap().acquire().await.unwrap();
    let snapshot = soon("the token", node.await_until(guard.fencing_token())).await;
    assert_eq!(snapshot.root().unwrap().data(), b"under the lock");
}

#[tokio::test]
async fn a_view_that_waits_for_a_token_shows_what_the_last_holder_wrote() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (manager, rival) = (client(&server_fixture).await, &server_fixture.rival);
    put(rival, ROOT, "before").await;
    let view = NodeView::new(&manager, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let views = newest_session(&server_fixture);
    let last = lockkeeper::Mutex::new(rival, "/locks/a").unwrap().acquire().await.unwrap();
    let mutex = lockkeeper::Mutex::new(&manager, "/locks/a").unwrap();
    let waiting = tokio::spawn(async move { mutex.acquire().await });
    let are_two = |machine: &Machine| children(machine, "/locks/a").len() == 2;
    within("the waiter", server_fixture.server.wait_until(are_two)).await.unwrap();
    // Newer than the node of the waiter, which its token is the zxid of.
    put(rival, ROOT, "first").await;
    soon("a sync", view.sync()).await;
    let held = server_fixture.server.fault(When::event().session(views), Fault::HoldReply);
    put(rival, ROOT, "last").await;
    within("the event", held.hit()).await.unwrap();
    last.release().await.unwrap();
    let guard = within("the hold", waiting).await.unwrap().unwrap().unwrap();
    let mut shown = Box::pin(view.await_until(guard.fencing_token()));
    let early = futures::poll!(shown.as_mut());
    assert!(early.is_pending(), "{early:?}");
    held.release();
    assert_eq!(soon("the token", shown).await.root().unwrap().data(), b"last");
}

#[tokio::test]
async fn a_slow_reader_gets_the_changes_merged_and_none_twice() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let view = TreeView::new(&client(&server_fixture).await, ROOT).unwrap();
    for path in ["", "/stays", "/goes", "/again"] {
        put(&server_fixture.rival, &format!("{ROOT}{path}"), "first").await;
    }
    soon("a sync", view.sync()).await;
    let (mut fast, mut slow) = (Witness::new(view.changes()), Witness::new(view.changes()));
    for data in ["a", "b", "c"] {
        put(&server_fixture.rival, &format!("{ROOT}/stays"), data).await;
        put(&server_fixture.rival, &format!("{ROOT}/between"), data).await;
        server_fixture.rival.znodes().delete(format!("{ROOT}/between")).await.unwrap();
        soon("a sync", view.sync()).await;
        fast.read();
    }
    let again = format!("{ROOT}/again");
    server_fixture.rival.znodes().delete(again.as_str()).await.unwrap();
    put(&server_fixture.rival, &again, "first").await;
    server_fixture.rival.znodes().delete(format!("{ROOT}/goes")).await.unwrap();
    soon("a sync", view.sync()).await;
    fast.read();

    let merged = slow.changed().await;
    let paths: Vec<&str> = merged.changes().iter().map(ViewChange::path).collect();
    assert_eq!(paths, ["again", "goes", "stays"]);
    assert!(matches!(
        merged.changes(),
        [ViewChange::Recreated { .. }, ViewChange::Deleted { .. }, ViewChange::Updated { .. }]
    ));
    assert!(fast.read > slow.read);
    assert_eq!(fast.copy(), slow.copy());
}

#[tokio::test]
async fn views_of_one_path_do_not_end_each_others_watches() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    put(&server_fixture.rival, ROOT, "").await;
    let before = NodeView::new(&manager, ROOT).unwrap();
    soon("the first load", before.ready()).await;
    let tree = TreeView::new(&manager, ROOT).unwrap();
    soon("the first load", tree.ready()).await;
    // A watch on the node alone, set now, would end the events of the tree (ZOOKEEPER-4466).
    let after = NodeView::new(&manager, ROOT).unwrap();
    soon("the first load", after.ready()).await;
    for round in 0..2 {
        let mut witnesses = [&before, &after].map(|view| Witness::new(view.changes()));
        let mut below = Witness::new(tree.changes());
        put(&server_fixture.rival, &format!("{ROOT}/{round}"), "").await;
        below.changed().await;
        put(&server_fixture.rival, ROOT, &round.to_string()).await;
        below.changed().await;
        for witness in &mut witnesses {
            witness.changed().await;
        }
        // The same on the next connection, where they are set in any order.
        server_fixture.server.drop_connections();
        below.state_is(ViewState::Stale).await;
        below.state_is(ViewState::Live).await;
        for view in [&before, &after] {
            soon("the views of a node", view.sync()).await;
        }
    }
    drop(tree);
    let mut witness = Witness::new(after.changes());
    put(&server_fixture.rival, ROOT, "last").await;
    witness.changed().await;
}

#[tokio::test]
async fn the_session_of_the_views_ends_with_the_last_view_and_with_the_manager() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let sessions = server_fixture.server.sessions();
    let first = NodeView::new(&manager, ROOT).unwrap();
    let second = TreeView::new(&manager, "/").unwrap();
    soon("the views", async { tokio::try_join!(first.ready(), second.ready()) }).await;
    assert_eq!(server_fixture.server.sessions().len(), sessions.len() + 1);
    assert_eq!(server_fixture.server.inspect(|machine| machine.watch_count(0)), 4);
    drop(first);
    let fewer = server_fixture.server.wait_until(|machine| machine.watch_count(0) == 2);
    within("the end of a watch", fewer).await.unwrap();
    drop(second);
    let closed = server_fixture.server.wait_until(|machine| machine.sessions() == sessions);
    within("the end of the session", closed).await.unwrap();

    let view = NodeView::new(&manager, ROOT).unwrap();
    soon("the view", view.ready()).await;
    let session = newest_session(&server_fixture);
    let mut changes = view.changes();
    manager.shutdown().await.unwrap();
    assert!(!server_fixture.server.sessions().contains(&session));
    let end = async { while changes.next().await.is_some() {} };
    within("the end of the stream", end).await.unwrap();
    assert_eq!(view.state(), ViewState::Closed);
    assert!(view.ready().await.unwrap_err().is_closed() && view.sync().await.unwrap_err().is_closed());
    assert!(NodeView::new(&manager, ROOT).unwrap_err().is_closed());
}

#[tokio::test]
async fn a_node_that_cannot_be_decoded_keeps_its_bytes_and_ends_nothing() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let number = |_: &str, data: &[u8]| std::str::from_utf8(data).unwrap().parse::<u32>();
    let manager = client(&server_fixture).await;
    put(&server_fixture.rival, ROOT, "0").await;
    let view = TreeView::new_decoded(&manager, ROOT, ViewBounds::default(), number).unwrap();
    put(&server_fixture.rival, &format!("{ROOT}/a"), "x").await;
    let binary = format!("{ROOT}/b");
    server_fixture.rival.znodes().create(binary.as_str(), [0xff], CreateMode::Persistent).await.unwrap();
    put(&server_fixture.rival, &format!("{ROOT}/c"), "7").await;
    let snapshot = soon("a sync", view.sync()).await;
    let values: Vec<_> =
        snapshot.children("").map(|(name, node)| (name, node.value().ok().copied())).collect();
    assert_eq!(values, [("a", None), ("b", None), ("c", Some(7))]);
    assert_eq!(snapshot.get("b").unwrap().data(), [0xff]);
    put(&server_fixture.rival, &binary, "9").await;
    assert_eq!(soon("a sync", view.sync()).await.get("b").unwrap().value().unwrap(), &9);
}

#[tokio::test]
async fn a_sync_without_a_change_sends_two_requests() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "").await;
    put(&server_fixture.rival, &format!("{ROOT}/child"), "").await;
    let view = TreeView::new(&client(&server_fixture).await, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    soon("a sync", view.sync()).await;
    let views = newest_session(&server_fixture);
    let requests = [Op::Sync, Op::Multi, Op::Exists, Op::GetData, Op::GetChildren2, Op::MultiRead];
    let all = When::ops(requests).session(views).always();
    let requests = server_fixture.server.fault(all, Fault::DelayReply(Duration::ZERO));
    soon("a sync", view.sync()).await;
    assert_eq!(requests.hits(), 2, "a transaction of one check, and exists");
}

#[tokio::test]
async fn a_view_at_a_deposed_leader_is_not_synced_before_it_shows_what_the_quorum_committed() {
    let servers = servers().tick(TICK).session_timeouts(TICK * 2, SESSION);
    let ensemble = servers.start_ensemble(3).await.unwrap();
    let server = |index: usize| ensemble.server(index).unwrap();
    let at = |index: usize| builder(&server(index).connect_string()).session_timeout(SESSION).connect();
    let (reader, writer) = (at(0).await.unwrap(), at(1).await.unwrap());
    put(&writer, ROOT, "before").await;
    let view = NodeView::new(&reader, ROOT).unwrap();
    assert_eq!(soon("a sync", view.sync()).await.root().unwrap().data(), b"before");
    server(0).cut_off(Isolation::Deposed);
    put(&writer, ROOT, "after").await;
    let answers_others = async {
        for _ in 0..100 {
            assert_eq!(reader.znodes().read(ROOT).await.unwrap().unwrap().0, b"before");
        }
        server(0).heal();
    };
    let (synced, ()) = within("a sync", async { tokio::join!(view.sync(), answers_others) }).await.unwrap();
    assert_eq!(synced.unwrap().root().unwrap().data(), b"after");
}

#[tokio::test]
async fn a_sync_shows_a_root_whose_event_was_not_sent() {
    let server_fixture = ServerFixture::start().await.unwrap();
    put(&server_fixture.rival, ROOT, "before").await;
    let view = NodeView::new(&client(&server_fixture).await, ROOT).unwrap();
    soon("the first load", view.ready()).await;
    let event = When::event().session(newest_session(&server_fixture));
    let lost = server_fixture.server.fault(event, Fault::DropReply);
    put(&server_fixture.rival, ROOT, "after").await;
    within("the event", lost.hit()).await.unwrap();
    assert_eq!(soon("a sync", view.sync()).await.root().unwrap().data(), b"after");
}
