use std::net::SocketAddr;
use std::sync::Arc;

use axum::routing::get as on_get;
use axum::{Extension, Router};
use lockkeeper::{ConnectionManager, Election, Leadership};
use lockkeeper_tests::{Timing, bounded, eventually};
use lockkeeper_testserver::TestServer;
use lockkeeper_tower::LeaderLayer;
use tokio::sync::Notify;

use crate::answer::{Answer, get, send};
use crate::fixture::{connect, serve, server};

/// A process that campaigns, with the session it began with.
struct Process {
    manager: ConnectionManager,
    session: i64,
    layer: LeaderLayer,
    /// Notified when a request begins that has no end.
    begun: Arc<Notify>,
    address: SocketAddr,
}

impl Process {
    async fn start(server: &TestServer, id: &str) -> Self {
        let manager = connect(server).await;
        let session = *server.sessions().last().unwrap();
        let election = Election::new(&manager, "/leader", id).unwrap();
        let layer = LeaderLayer::campaign(&manager, election).await.unwrap();
        let handler = async |leadership: Extension<Arc<Leadership>>| leadership.fencing_token().to_string();
        let redirects = layer.clone().with_redirect(|leader, parts| {
            Some(format!("http://{}.test{}", leader.id(), parts.uri.path_and_query()?))
        });
        let begun = Arc::new(Notify::new());
        let begins = Arc::clone(&begun);
        let waits = async move || {
            begins.notify_one();
            std::future::pending::<()>().await
        };
        let router = Router::new()
            .route("/", on_get(handler))
            .route("/waits", on_get(waits))
            .layer(layer.clone())
            .merge(Router::new().route("/plan", on_get(handler)).layer(redirects));
        Self { manager, session, layer, begun, address: serve(router).await }
    }

    /// Waits for an answer of this status.
    async fn answers(&self, path: &str, status: u16) -> Answer {
        let seen = async || Some(get(self.address, path).await).filter(|answer| answer.status == status);
        eventually("the status is another one", Timing::settle(), seen).await.unwrap()
    }
}

#[tokio::test]
async fn only_the_leader_answers_and_another_process_leads_when_its_session_has_ended() {
    let server = server().await;
    let first = Process::start(&server, "a").await;
    let earlier = first.answers("/", 200).await;
    let second = Process::start(&server, "b").await;
    let refused = get(second.address, "/").await;
    assert_eq!((refused.status, refused.retry_after()), (503, 1), "{refused:?}");
    let redirected = second.answers("/plan?day=7", 307).await;
    assert_eq!(redirected.field("location"), Some("http://a.test/plan?day=7"));
    assert!(first.layer.is_leading() && !second.layer.is_leading());

    assert!(server.expire(first.session));
    let later = second.answers("/", 200).await;
    assert_ne!(later.body, earlier.body, "another term has another token");
    let redirected = first.answers("/plan", 307).await;
    assert_eq!(redirected.field("location"), Some("http://b.test/plan"));
    assert_eq!(get(first.address, "/").await.status, 503);
}

#[tokio::test]
async fn a_request_to_a_leader_that_loses_its_leadership_is_answered_503() {
    let server = server().await;
    let first = Process::start(&server, "a").await;
    first.answers("/", 200).await;
    let waits = tokio::spawn({
        let address = first.address;
        async move { get(address, "/waits").await }
    });
    bounded(Timing::settle(), first.begun.notified()).await.expect("it is served");
    assert!(server.expire(first.session));
    assert_eq!(waits.await.unwrap().status, 503);
    first.answers("/", 200).await;
}

#[tokio::test]
async fn a_leader_that_shuts_down_resigns_at_once() {
    let server = server().await;
    let first = Process::start(&server, "a").await;
    first.answers("/", 200).await;
    let second = Process::start(&server, "b").await;
    assert_eq!(first.manager.shutdown_within(Timing::settle()).await.unwrap(), 0);
    second.answers("/", 200).await;
    assert_eq!(get(first.address, "/").await.status, 503);
}

#[tokio::test]
async fn a_layer_that_is_dropped_resigns() {
    let server = server().await;
    let manager = connect(&server).await;
    let election = Election::new(&manager, "/leader", "a").unwrap();
    let layer = LeaderLayer::campaign(&manager, election).await.unwrap();
    let leads = async || layer.is_leading().then_some(());
    eventually("it leads", Timing::settle(), leads).await.unwrap();
    drop(layer);
    let gone = server.wait_until(|machine| machine.tree().ephemeral_count() == 0);
    bounded(Timing::settle(), gone).await.expect("no candidate");
}

#[tokio::test]
async fn a_request_that_is_dropped_leaves_the_leader_leading() {
    let server = server().await;
    let first = Process::start(&server, "a").await;
    let answer = first.answers("/", 200).await;
    let request = send(first.address, "/waits", "").await;
    bounded(Timing::settle(), first.begun.notified()).await.expect("it is served");
    drop(request);
    assert_eq!(get(first.address, "/").await.body, answer.body);
}
