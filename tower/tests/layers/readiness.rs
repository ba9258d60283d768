//! The readiness of the inner service, its body and its errors.

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll};

use axum::body::Body;
use axum::http::{Request, Response};
use lockkeeper::RateLimiter;
use lockkeeper_tower::RateLimitLayer;
use tower_layer::Layer;
use tower_service::Service;

use crate::fixture::{WINDOW, connect, server};

/// A service whose clones have to be polled ready, each by itself, as a service that reserves room does.
#[derive(Default)]
struct Reserving {
    is_ready: bool,
    polls: Arc<AtomicU32>,
}

impl Clone for Reserving {
    fn clone(&self) -> Self {
        Self { is_ready: false, polls: Arc::clone(&self.polls) }
    }
}

impl Service<Request<Body>> for Reserving {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.polls.fetch_add(1, Ordering::Relaxed);
        self.is_ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<Body>) -> Self::Future {
        assert!(self.is_ready, "called before it was ready");
        self.is_ready = false;
        ready(Ok(Response::new(Body::empty())))
    }
}

#[tokio::test]
async fn the_service_that_was_polled_ready_gets_the_request() {
    let server = server().await;
    let limiter = RateLimiter::new(&connect(&server).await, "/calls", 9, WINDOW).unwrap();
    let inner = Reserving::default();
    let polls = Arc::clone(&inner.polls);
    let mut service = RateLimitLayer::new(limiter).layer(inner);
    for calls in 1..=3 {
        poll_fn(|context| Service::<Request<Body>>::poll_ready(&mut service, context)).await.unwrap();
        assert_eq!(polls.load(Ordering::Relaxed), calls);
        service.call(Request::new(Body::empty())).await.unwrap();
    }
}

/// A service whose body is no body of axum, and which fails.
#[derive(Clone)]
struct Failing;

impl Service<Request<u32>> for Failing {
    type Response = Response<String>;
    type Error = std::fmt::Error;
    type Future = Ready<Result<Response<String>, std::fmt::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::fmt::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<u32>) -> Self::Future {
        ready(if request.into_body() == 0 {
            Err(std::fmt::Error)
        } else {
            Ok(Response::new("hello".to_owned()))
        })
    }
}

#[tokio::test]
async fn every_type_of_body_passes_and_an_error_of_the_inner_service_stays_as_it_is() {
    let server = server().await;
    let limiter = RateLimiter::new(&connect(&server).await, "/calls", 2, WINDOW).unwrap();
    let mut service = RateLimitLayer::new(limiter).layer(Failing);
    let body = service.call(Request::new(7)).await.unwrap().into_body();
    assert_eq!(axum::body::to_bytes(Body::new(body), 100).await.unwrap(), "hello");
    assert_eq!(service.call(Request::new(0)).await.unwrap_err(), std::fmt::Error);
    assert_eq!(service.call(Request::new(7)).await.unwrap().status(), 429);
}
