//! Requests while ZooKeeper is away.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::routing::get as on_get;
use futures::future::join_all;
use lockkeeper::RateLimiter;
use lockkeeper::znodes::CreateMode;
use lockkeeper_tests::{Timing, eventually};
use lockkeeper_testserver::TestServer;
use lockkeeper_tower::RateLimitLayer;

use crate::answer::{Answer, get};
use crate::fixture::{WINDOW, connect, serve, server};
use crate::log::LoggedLines;

/// The answers of a layer that fails closed and of one that fails open, on one server.
struct Fixture {
    server: TestServer,
    closed: SocketAddr,
    open: SocketAddr,
}

impl Fixture {
    async fn start() -> Self {
        let server = server().await;
        // No answer in this time is an outage. So a busy machine may be one, and each check waits.
        let manager = connect(&server).await.with_operation_timeout(Duration::from_millis(200)).unwrap();
        let limiter = RateLimiter::new(&manager, "/calls", 1_000_000, WINDOW).unwrap();
        let hello = || Router::new().route("/", on_get(async || "hello"));
        let layer = RateLimitLayer::new(limiter);
        let closed = serve(hello().layer(layer.clone())).await;
        let open = serve(hello().layer(layer.fail_open())).await;
        Self { server, closed, open }
    }

    fn cut(&self) {
        self.server.refuse_connections();
        self.server.drop_connections();
    }
}

/// Waits for an answer of this kind.
async fn becomes(address: SocketAddr, is: impl Fn(&Answer) -> bool) {
    let seen = async || is(&get(address, "/").await).then_some(());
    eventually("the answer is another one", Timing::settle(), seen).await.unwrap();
}

/// Whether a rate limiter decided.
fn is_decided(answer: &Answer) -> bool {
    answer.status == 200 && answer.field("ratelimit-policy").is_some()
}

#[tokio::test]
async fn without_zookeeper_a_layer_answers_503_and_recovers() {
    let fixture = Fixture::start().await;
    becomes(fixture.closed, is_decided).await;
    fixture.cut();
    becomes(fixture.closed, |answer| answer.status == 503 && answer.retry_after() == 1).await;
    let answers = join_all((0..20).map(|_| get(fixture.closed, "/"))).await;
    assert!(answers.iter().all(|answer| answer.status == 503), "{answers:?}");
    fixture.server.accept_connections();
    becomes(fixture.closed, is_decided).await;
}

#[tokio::test]
async fn without_zookeeper_a_layer_that_fails_open_passes_requests_on_and_limits_again_afterwards() {
    let fixture = Fixture::start().await;
    becomes(fixture.open, is_decided).await;
    fixture.cut();
    becomes(fixture.open, |answer| !is_decided(answer)).await;
    let answers = join_all((0..20).map(|_| get(fixture.open, "/"))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && !is_decided(answer)), "{answers:?}");
    fixture.server.accept_connections();
    becomes(fixture.open, is_decided).await;
}

#[tokio::test]
async fn an_outage_is_logged_at_its_beginning_and_at_its_end_and_not_for_each_request() {
    let (lines, _logged) = LoggedLines::begin();
    let fixture = Fixture::start().await;
    becomes(fixture.closed, is_decided).await;
    fixture.cut();
    becomes(fixture.closed, |answer| answer.status == 503).await;
    join_all((0..20).map(|_| get(fixture.closed, "/"))).await;
    fixture.server.accept_connections();
    becomes(fixture.closed, is_decided).await;
    let read = lines.read();
    // Both services share one layer. On a busy machine an answer may be late once more.
    let (began, ended) = ("ZooKeeper does not answer a layer", "ZooKeeper answers a layer again");
    let expected = [began, ended].into_iter().cycle().take(read.len());
    assert!(read.len() % 2 == 0 && read.len() < 20 && read.iter().eq(expected), "{read:?}");
}

#[tokio::test]
async fn another_recipe_at_the_path_is_no_outage_and_nothing_is_decided() {
    let server = server().await;
    let manager = connect(&server).await;
    manager.znodes().create("/calls", b"foreign", CreateMode::Persistent).await.unwrap();
    let limiter = RateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap();
    let hello = || Router::new().route("/", on_get(async || "hello"));
    let closed = serve(hello().layer(RateLimitLayer::new(limiter.clone()))).await;
    let open = serve(hello().layer(RateLimitLayer::new(limiter).fail_open())).await;
    for _ in 0..2 {
        assert_eq!(get(closed, "/").await.status, 503);
        assert_eq!(get(open, "/").await.status, 200);
    }
}
