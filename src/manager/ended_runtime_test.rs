//! A runtime ends on which a manager runs, or views and registrations of it.

use lockkeeper_testserver::{Fault, TestServer, When};
use tokio::runtime::Builder;
use tokio::task::spawn_blocking;

use super::{ConnectionManager, State};
use crate::error::Error;
use crate::presence::{OnDeletion, Presence};
use crate::time::deadline::Deadline;
use crate::view::{View, ViewBounds, ViewScope};

/// Runs `work` on a runtime of its own, which ends with it.
async fn on_another_runtime<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    let run = || Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
    spawn_blocking(run).await.unwrap()
}

async fn view_session(manager: ConnectionManager) -> ConnectionManager {
    let views = manager.view_session().unwrap();
    views.session(Deadline::never(), "/").await.unwrap();
    views
}

#[tokio::test]
async fn a_view_opens_a_session_anew_when_the_runtime_of_the_first_view_has_ended() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let first = on_another_runtime(view_session(manager.clone())).await;
    first.closed().await;
    let second = view_session(manager.clone()).await;
    let third = view_session(manager).await;
    assert!(second.is_same_as(&third), "one session for all views");
}

#[tokio::test]
async fn a_view_and_a_presence_report_that_their_runtime_has_ended_and_not_a_shutdown() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let of = manager.clone();
    let (view, presence) = on_another_runtime(async move {
        let view = View::new(&of, "/node", ViewScope::Node, ViewBounds::default(), |_, _, _| Ok(()));
        (view.unwrap(), Presence::new(&of, "/node", "", OnDeletion::Recreate).unwrap())
    })
    .await;
    assert!(matches!(view.ready().await, Err(Error::RuntimeEnded { .. })));
    assert!(matches!(presence.registered().await, Err(Error::RuntimeEnded { .. })));
    manager.shutdown().await.unwrap();
    assert!(matches!(view.ready().await, Err(Error::Closed)));
    assert!(matches!(presence.registered().await, Err(Error::Closed)));
}

#[tokio::test]
async fn a_manager_whose_runtime_has_ended_says_so_and_not_that_it_was_shut_down() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let connecting = async move { ConnectionManager::connect(&servers).await.unwrap() };
    let manager = on_another_runtime(connecting).await;
    assert_eq!(manager.state(), State::Closed);
    for _ in 0..2 {
        assert!(matches!(manager.znodes().read("/").await, Err(Error::RuntimeEnded { .. })));
        assert!(matches!(manager.view_session(), Err(Error::RuntimeEnded { .. })));
        assert!(matches!(manager.shutdown().await, Err(Error::RuntimeEnded { .. })));
    }
}

#[tokio::test]
async fn a_registration_that_ends_with_its_runtime_leaves_no_node() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let of = manager.clone();
    let registered = on_another_runtime(async move {
        let presence = Presence::new(&of, "/node", "", OnDeletion::Recreate).unwrap();
        presence.registered().await.unwrap();
        presence
    });
    let presence = registered.await;
    server.wait_until(|machine| machine.tree().node("/node").is_none()).await;
    drop(presence);

    // Its create is in flight when the runtime ends.
    let create = server.fault(When::create().path("/other"), Fault::HoldReply);
    let of = manager.clone();
    let registered = on_another_runtime(async move {
        let presence = Presence::new(&of, "/other", "", OnDeletion::Recreate).unwrap();
        create.hit().await;
        presence
    });
    let presence = registered.await;
    server.wait_until(|machine| machine.tree().node("/other").is_none()).await;
    drop(presence);
    assert!(manager.health().is_ready(), "it was not the end of the session");
}
