use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::routing::get as on_get;
use axum::{Extension, Router};
use futures::future::join_all;
use lockkeeper::{ConnectionManager, Mutex, MutexGuard};
use lockkeeper_tests::{Timing, bounded, eventually};
use lockkeeper_testserver::TestServer;
use lockkeeper_tower::LockLayer;
use tokio::sync::Barrier;
use tokio::task::yield_now;
use tower_layer::Layer;
use tower_service::Service;

use crate::answer::{get, send};
use crate::fixture::{connect, serve, server};

/// By the order of the path.
fn orders(manager: &ConnectionManager) -> LockLayer {
    let key_of = |parts: &Parts| parts.uri.path().strip_prefix("/orders/").map(str::to_owned);
    LockLayer::new(manager, "/orders", key_of).unwrap().with_wait(Timing::settle())
}

/// Waits until the server has this number of contenders.
async fn contenders(server: &TestServer, count: usize) {
    let reached = server.wait_until(|machine| machine.tree().ephemeral_count() == count);
    bounded(Timing::settle(), reached).await.expect("the contenders");
}

#[tokio::test]
async fn requests_for_one_order_are_served_one_after_another_with_growing_tokens() {
    let server = server().await;
    let is_served = Arc::new(AtomicBool::new(false));
    let mut services = Vec::new();
    for _ in 0..2 {
        let is_served = Arc::clone(&is_served);
        let handler = async move |Extension(guard): Extension<Arc<MutexGuard>>| {
            assert!(!is_served.swap(true, Ordering::SeqCst), "two requests at a time");
            for _ in 0..100 {
                yield_now().await;
            }
            assert!(is_served.swap(false, Ordering::SeqCst));
            guard.fencing_token().to_string()
        };
        let layer = orders(&connect(&server).await);
        services.push(serve(Router::new().route("/orders/{order}", on_get(handler)).layer(layer)).await);
    }
    let answers = join_all((0..20).map(|number| get(services[number % 2], "/orders/7"))).await;
    let mut tokens: Vec<&str> = answers.iter().map(|answer| answer.body.as_str()).collect();
    assert!(answers.iter().all(|answer| answer.status == 200), "{answers:?}");
    tokens.sort_unstable();
    tokens.dedup();
    assert_eq!(tokens.len(), 20, "a token for each grant: {tokens:?}");
    contenders(&server, 0).await;
}

#[tokio::test]
async fn requests_for_two_orders_and_those_without_a_key_do_not_wait_for_each_other() {
    let server = server().await;
    let all = Arc::new(Barrier::new(4));
    let handler = async move |guard: Option<Extension<Arc<MutexGuard>>>| {
        all.wait().await;
        guard.is_some().to_string()
    };
    let layer = orders(&connect(&server).await);
    let service = serve(Router::new().fallback(handler).layer(layer)).await;
    let paths = ["/orders/7", "/orders/7%2F8", "/stock", "/stock"];
    let answers = join_all(paths.map(|path| get(service, path))).await;
    let bodies: Vec<&str> = answers.iter().map(|answer| answer.body.as_str()).collect();
    assert_eq!(bodies, ["true", "true", "false", "false"]);
    assert_eq!(get(service, "/orders/").await.status, 400);
}

#[tokio::test]
async fn a_request_that_does_not_get_its_lock_in_time_is_answered_503() {
    let server = server().await;
    let manager = connect(&server).await;
    let _held = Mutex::new(&manager, "/orders/7").unwrap().acquire().await.unwrap();
    let other = connect(&server).await;
    for wait in [Duration::ZERO, Duration::from_millis(1)] {
        let layer = orders(&other).with_wait(wait);
        let service = serve(Router::new().fallback(async || "served").layer(layer)).await;
        let refused = get(service, "/orders/7").await;
        assert_eq!((refused.status, refused.retry_after()), (503, 1), "{refused:?}");
        let free = async || (get(service, "/orders/8").await.status == 200).then_some(());
        eventually("a free lock is taken", Timing::settle(), free).await.unwrap();
    }
}

#[tokio::test]
async fn a_client_that_goes_away_frees_the_lock_and_leaves_the_queue() {
    let server = server().await;
    let layer = orders(&connect(&server).await);
    let service =
        serve(Router::new().fallback(async || std::future::pending::<()>().await).layer(layer)).await;
    let served = send(service, "/orders/7", "").await;
    contenders(&server, 1).await;
    let waits = send(service, "/orders/7", "").await;
    contenders(&server, 2).await;
    drop(waits);
    contenders(&server, 1).await;
    drop(served);
    contenders(&server, 0).await;
}

#[tokio::test]
async fn a_future_that_is_dropped_at_any_poll_leaves_no_node() {
    let server = server().await;
    let manager = connect(&server).await;
    let mut service = orders(&manager).layer(Router::new().fallback(async || "served"));
    for polls in 1..40 {
        let request = Request::get("/orders/7").body(axum::body::Body::empty()).unwrap();
        let mut served = service.call(request);
        for _ in 0..polls {
            if futures::poll!(&mut served).is_ready() {
                break;
            }
            yield_now().await;
        }
        drop(served);
    }
    contenders(&server, 0).await;
    assert_eq!(manager.health().held, 0);
}

#[tokio::test]
async fn without_zookeeper_a_request_that_needs_a_lock_is_answered_503_until_it_is_back() {
    let server = server().await;
    let manager = connect(&server).await;
    let layer = orders(&manager.with_operation_timeout(Duration::from_millis(200)).unwrap());
    let layer = layer.with_wait(Duration::ZERO);
    let service = serve(Router::new().fallback(async || "served").layer(layer)).await;
    let becomes = async |status: u16| {
        let seen = async || (get(service, "/orders/7").await.status == status).then_some(());
        eventually("the status is another one", Timing::settle(), seen).await.unwrap();
    };
    becomes(200).await;
    server.refuse_connections();
    server.drop_connections();
    becomes(503).await;
    let answers = join_all((0..20).map(|_| get(service, "/orders/7"))).await;
    assert!(answers.iter().all(|answer| answer.status == 503), "{answers:?}");
    assert_eq!(get(service, "/stock").await.status, 200, "it takes no lock");
    server.accept_connections();
    becomes(200).await;
}
