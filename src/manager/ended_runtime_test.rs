//! A runtime ends: the one that a manager runs on, or one that its views and registrations were made on.

use lockkeeper_testserver::TestServer;
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
async fn all_views_share_a_session_although_the_runtime_of_the_first_view_has_ended() {
    let server = TestServer::start().await.unwrap();
    let manager = ConnectionManager::connect(&server.connect_string()).await.unwrap();
    let first = on_another_runtime(view_session(manager.clone())).await;
    let second = view_session(manager).await;
    assert!(first.is_same_as(&second), "one session for all views");
}

#[tokio::test]
async fn a_view_and_a_presence_report_that_the_managers_runtime_has_ended_and_not_a_shutdown() {
    let server = TestServer::start().await.unwrap();
    let servers = server.connect_string();
    let (view, presence) = on_another_runtime(async move {
        let manager = ConnectionManager::connect(&servers).await.unwrap();
        let view = View::new(&manager, "/node", ViewScope::Node, ViewBounds::default(), |_, _, _| Ok(()));
        (view.unwrap(), Presence::new(&manager, "/node", "", OnDeletion::Recreate).unwrap())
    })
    .await;
    assert!(matches!(view.ready().await, Err(Error::RuntimeEnded { .. })));
    assert!(matches!(presence.registered().await, Err(Error::RuntimeEnded { .. })));
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
