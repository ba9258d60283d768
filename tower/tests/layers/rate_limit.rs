use std::sync::Arc;
use std::time::Duration;

use axum::http::Request;
use axum::routing::get as on_get;
use axum::{Extension, Router};
use futures::future::join_all;
use lockkeeper::{Admission, ConnectionManager, KeyedRateLimiter, RateLimiter};
use lockkeeper_tests::{Timing, bounded};
use lockkeeper_tower::RateLimitLayer;
use tower_service::Service;

use crate::answer::{get, get_with};
use crate::fixture::{GRACE, WINDOW, connect, serve, server};

fn limiter(manager: &ConnectionManager, starts: u32) -> RateLimiter {
    RateLimiter::new(manager, "/calls", starts, WINDOW).unwrap().with_grace(GRACE)
}

fn hello() -> Router {
    Router::new().route("/", on_get(async || "hello"))
}

#[tokio::test]
async fn of_two_services_on_one_path_together_no_window_has_more_requests_than_the_limit() {
    let server = server().await;
    let mut services = Vec::new();
    for _ in 0..2 {
        let manager = connect(&server).await;
        services.push(serve(hello().layer(RateLimitLayer::new(limiter(&manager, 5)))).await);
    }
    for window in 1..=3 {
        let requests = (0..20).map(|number| get(services[number % 2], "/"));
        let answers = join_all(requests).await;
        let admitted = answers.iter().filter(|answer| answer.status == 200 && answer.body == "hello").count();
        // A try behind one of the other service may be refused though there is room.
        let refused = answers.iter().filter(|answer| answer.status == 429 && answer.body.is_empty()).count();
        assert_eq!(admitted + refused, 20, "{answers:?}");
        assert!((1..=5).contains(&admitted), "window {window}: {admitted}");
        let mut rest = 5 - admitted;
        while get(services[0], "/").await.status == 200 {
            rest -= 1;
        }
        assert_eq!(rest, 0, "window {window}");
        server.advance_clock(WINDOW + GRACE * 2);
    }
}

#[tokio::test]
async fn after_the_time_that_a_refusal_names_a_request_is_admitted() {
    let server = server().await;
    let manager = connect(&server).await;
    let service = serve(hello().layer(RateLimitLayer::new(limiter(&manager, 1)))).await;
    let admitted = get(service, "/").await;
    assert_eq!(admitted.field("ratelimit-policy"), Some("\"default\";q=1;w=600"), "{admitted:?}");
    server.advance_clock(Duration::from_secs(100));
    let refused = get(service, "/").await;
    let wait = refused.retry_after();
    // The start counts for the window and the grace.
    assert!((500..=561).contains(&wait), "{refused:?}");
    assert_eq!(refused.field("ratelimit-policy"), admitted.field("ratelimit-policy"));
    assert_eq!(refused.field("ratelimit"), Some(format!("\"default\";r=0;t={wait}").as_str()));
    server.advance_clock(Duration::from_secs(wait));
    assert_eq!(get(service, "/").await.status, 200);
}

#[tokio::test]
async fn each_key_has_a_limit_of_its_own_and_a_request_without_a_key_has_none() {
    let server = server().await;
    let manager = connect(&server).await;
    let limiters = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap().with_grace(GRACE);
    let layer = RateLimitLayer::keyed(limiters, |parts| {
        parts.headers.get("x-customer").map(|customer| customer.to_str().unwrap().to_owned())
    });
    let layer = layer.with_policy_name("per customer").unwrap();
    let service = serve(hello().layer(layer)).await;
    for customer in ["anna", "bert/2"] {
        let field = format!("x-customer: {customer}\r\n");
        let admitted = get_with(service, "/", &field).await;
        assert_eq!(admitted.status, 200);
        assert_eq!(admitted.field("ratelimit-policy"), Some("\"per customer\";q=1;w=600"));
        assert_eq!(get_with(service, "/", &field).await.status, 429);
    }
    for _ in 0..3 {
        let unlimited = get(service, "/").await;
        assert_eq!((unlimited.status, unlimited.field("ratelimit-policy")), (200, None));
    }
}

#[tokio::test]
async fn a_key_that_can_be_none_is_a_bad_request_also_if_the_layer_fails_open() {
    let server = server().await;
    let manager = connect(&server).await;
    let limiters = KeyedRateLimiter::new(&manager, "/calls", 1, WINDOW).unwrap();
    let layer = RateLimitLayer::keyed(limiters, |parts| Some(parts.uri.path()[1..].to_owned())).fail_open();
    let service = serve(Router::new().fallback(async || "hello").layer(layer)).await;
    assert_eq!(get(service, "/").await.status, 400);
    assert_eq!(get(service, &format!("/{}", "x".repeat(5_000))).await.status, 400);
    assert_eq!(get(service, "/x").await.status, 200);
}

#[tokio::test]
async fn a_handler_finds_its_admission_in_the_request() {
    let server = server().await;
    let manager = connect(&server).await;
    let handler = async |Extension(admission): Extension<Arc<Admission>>| {
        format!("{} {}", admission.starts(), admission.is_fresh())
    };
    let layer = RateLimitLayer::new(limiter(&manager, 1));
    let service = serve(Router::new().route("/", on_get(handler)).layer(layer)).await;
    assert_eq!(get(service, "/").await.body, "1 true");
}

#[tokio::test]
async fn a_request_waits_until_there_is_room() {
    let server = server().await;
    let limiter = RateLimiter::new(&connect(&server).await, "/calls", 1, Duration::from_secs(1)).unwrap();
    let service = serve(hello().layer(RateLimitLayer::new(limiter).with_wait(WINDOW))).await;
    for answer in join_all((0..3).map(|_| get(service, "/"))).await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn a_request_does_not_wait_if_there_is_no_room_in_time() {
    let server = server().await;
    let manager = connect(&server).await;
    let service = serve(hello().layer(RateLimitLayer::new(limiter(&manager, 1)).with_wait(WINDOW / 2))).await;
    assert_eq!(get(service, "/").await.status, 200);
    assert_eq!(get(service, "/").await.status, 429);
}

#[tokio::test]
async fn a_request_that_is_dropped_while_it_waits_leaves_no_node() {
    let server = server().await;
    let manager = connect(&server).await;
    let layer = RateLimitLayer::new(limiter(&manager, 1)).with_wait(WINDOW * 2);
    let mut service = tower_layer::Layer::layer(&layer, hello());
    let request = || Request::new(axum::body::Body::empty());
    assert_eq!(service.call(request()).await.unwrap().status(), 200);
    let waiting = tokio::spawn(service.call(request()));
    let queued = server.wait_until(|machine| machine.tree().ephemeral_count() == 1);
    bounded(Timing::settle(), queued).await.expect("a waiter");
    waiting.abort();
    let gone = server.wait_until(|machine| machine.tree().ephemeral_count() == 0);
    bounded(Timing::settle(), gone).await.expect("no node");
}
