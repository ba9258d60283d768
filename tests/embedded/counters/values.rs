//! Shared values.

use lockkeeper::error::{ErrorKind, SharedValueError};
use lockkeeper::value::{CompareAndSet, Revision};
use lockkeeper::{Counter, SharedCount, SharedValue};
use lockkeeper_testserver::{Fault, Isolation, Op, When};

use super::client;
use crate::limit::within;
use crate::server_fixture::{SESSION, ServerFixture, TICK, builder, servers};

const VALUE: &str = "/values/colour";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_is_its_seed_until_it_is_set() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let count = SharedCount::new(&manager, VALUE, 7).unwrap();
    let seed = count.get().await.unwrap();
    assert_eq!((seed.value, seed.revision), (7, Revision::MISSING));
    assert!(!server_fixture.server.inspect(|machine| machine.tree().node(VALUE).is_some()));
    let CompareAndSet::Set(set) = count.compare_and_set(Revision::MISSING, 8).await.unwrap() else {
        panic!("another value")
    };
    assert!(set.value == 8 && set.revision > Revision::MISSING);
    assert_eq!(count.get().await.unwrap(), set);
    let data = server_fixture.server.inspect(|machine| machine.tree().node(VALUE).unwrap().data.clone());
    assert_eq!(data.as_deref(), Some(&[0, 0, 0, 8][..]));
    manager.znodes().write(VALUE, "", -1).await.unwrap();
    assert_eq!(count.get().await.unwrap().value, 7, "empty data, as kazoo makes it");
    manager.znodes().write(VALUE, "five!", -1).await.unwrap();
    let refused = count.get().await.unwrap_err();
    assert!(matches!(refused.recipe(), Some(SharedValueError::Undecodable { .. })), "{refused}");
    assert!(count.compare_and_set(set.revision, 9).await.is_err());
    let revision = count.set(9).await.unwrap();
    assert_eq!(count.compare_and_set(revision, 10).await.unwrap().into_current().value, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conditional_write_whose_answer_is_lost_is_found_to_be_done() {
    for nth in 1..=3 {
        for fault in [Fault::DropConnectionAfter, Fault::DropConnectionBefore] {
            let server_fixture = ServerFixture::start().await.unwrap();
            let value = SharedValue::new(&client(&server_fixture).await, VALUE, String::new()).unwrap();
            let changes = When::op(Op::Multi).path(VALUE);
            let lost = server_fixture.server.fault(changes.nth(nth), fault);
            let mut revision = Revision::MISSING;
            for text in ["a", "b", "c"] {
                let set = value.compare_and_set(revision, text.to_owned());
                let set = within("the write", set).await.unwrap().unwrap();
                assert!(set.is_set(), "{fault:?} at {nth}");
                revision = set.into_current().revision;
                assert_eq!(value.get().await.unwrap().revision, revision);
            }
            assert_eq!(lost.hits(), 1, "{fault:?} at {nth}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_condition_is_compared_with_the_node_as_it_is_and_not_as_the_last_change_left_it() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let here = Counter::new(&client(&server_fixture).await, "/number").unwrap();
    let there = Counter::new(&server_fixture.rival, "/number").unwrap();
    for _ in 0..3 {
        here.set(1).await.unwrap();
    }
    there.set(5).await.unwrap();
    assert_eq!(here.compare_and_set(1, 6).await.unwrap(), CompareAndSet::Differs(5));
    here.set(1).await.unwrap();
    there.set(5).await.unwrap();
    assert_eq!(here.compare_and_set(5, 7).await.unwrap(), CompareAndSet::Set(7));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_deleted_and_created_again_is_another_revision() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let (here, there) = (client(&server_fixture).await, &server_fixture.rival);
    let value = SharedValue::new(&here, VALUE, Vec::new()).unwrap();
    there.znodes().create(VALUE, "red", lockkeeper::znodes::CreateMode::Persistent).await.unwrap();
    let seen = value.get().await.unwrap();
    assert!(there.znodes().delete(VALUE).await.unwrap());
    there.znodes().create(VALUE, "red", lockkeeper::znodes::CreateMode::Persistent).await.unwrap();
    let set = within("the write", value.compare_and_set(seen.revision, b"blue".to_vec())).await.unwrap();
    assert!(matches!(set.unwrap(), CompareAndSet::Differs(other) if other.value == b"red"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_value_that_is_too_large_is_refused_before_any_request() {
    let server_fixture = ServerFixture::start().await.unwrap();
    let manager = client(&server_fixture).await;
    let value = SharedValue::new(&manager, VALUE, Vec::new()).unwrap();
    let refused = value.set(vec![0; 2_000_000]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Misuse, "{refused}");
    for bad in ["", "no path", "/"] {
        assert_eq!(SharedCount::new(&manager, bad, 0).unwrap_err().kind(), ErrorKind::Misuse, "{bad:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_read_at_a_deposed_leader_waits_for_the_quorum() {
    let servers = servers().tick(TICK).session_timeouts(TICK * 2, SESSION * 20);
    let ensemble = servers.start_ensemble(3).await.unwrap();
    let server = |index: usize| ensemble.server(index).unwrap();
    // A read behind a confirmation of the lease waits for the quorum, too.
    let at = |index: usize| {
        let builder = builder(&server(index).connect_string()).session_timeout(SESSION * 20);
        builder.lease_keep_alive(std::time::Duration::ZERO).connect()
    };
    let (reader, other, writer) = (at(0).await.unwrap(), at(0).await.unwrap(), at(1).await.unwrap());
    let at_deposed = SharedCount::new(&reader, VALUE, 7).unwrap();
    assert_eq!(at_deposed.get().await.unwrap().value, 7);
    server(0).cut_off(Isolation::Deposed);
    SharedCount::new(&writer, VALUE, 7).unwrap().set(8).await.unwrap();
    let answers_others = async {
        for _ in 0..100 {
            assert!(other.znodes().read(VALUE).await.unwrap().is_none());
        }
        server(0).heal();
    };
    let (read, ()) =
        within("a read", async { tokio::join!(at_deposed.get(), answers_others) }).await.unwrap();
    assert_eq!(read.unwrap().value, 8);
}
