use std::net::SocketAddr;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::get as on_get;
use axum::{Extension, Router};
use futures::StreamExt;
use futures::channel::{mpsc, oneshot};
use lockkeeper::{ConnectionManager, Lease, Semaphore};
use lockkeeper_tests::{Timing, bounded, eventually};
use lockkeeper_testserver::TestServer;
use lockkeeper_tower::ConcurrencyLayer;
use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::net::TcpStream;

use crate::answer::{get, send};
use crate::fixture::{connect, serve, server};

type Chunks = mpsc::UnboundedSender<Result<Bytes, std::io::Error>>;

/// The bodies that are being sent. A body ends when its sender is dropped.
#[derive(Clone, Default)]
struct Bodies(Arc<Mutex<Vec<Chunks>>>);

async fn stream(State(bodies): State<Bodies>) -> Response {
    let (chunks, body) = mpsc::unbounded();
    chunks.unbounded_send(Ok(Bytes::from_static(b"first"))).unwrap();
    bodies.0.lock().push(chunks);
    Response::new(Body::from_stream(body.map(|chunk| chunk)))
}

/// A service with one permit for the whole fleet, which answers with a body that has no end yet.
struct Fixture {
    server: TestServer,
    manager: ConnectionManager,
    bodies: Bodies,
    service: SocketAddr,
}

impl Fixture {
    async fn start() -> Self {
        let server = server().await;
        let manager = connect(&server).await;
        let layer = ConcurrencyLayer::new(Semaphore::new(&manager, "/permits", 1).unwrap());
        let bodies = Bodies::default();
        let handlers = Router::new().route("/", on_get(stream)).with_state(bodies.clone());
        let service = serve(handlers.layer(layer)).await;
        Self { server, manager, bodies, service }
    }

    /// A request whose body has begun.
    async fn begin(&self) -> TcpStream {
        let mut stream = send(self.service, "/", "").await;
        read_until(&mut stream, "first").await;
        stream
    }

    /// Waits until no permit is held.
    async fn becomes_free(&self) {
        let free = self.server.wait_until(|machine| machine.tree().ephemeral_count() == 0);
        bounded(Timing::settle(), free).await.expect("no lease");
    }
}

/// Reads until the answer has this text, and returns what was read. An end is an error.
async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let read = async {
        let mut answer = String::new();
        while !answer.contains(text) {
            let mut part = [0; 1_000];
            let length = stream.read(&mut part).await.unwrap();
            assert!(length > 0, "{answer:?} ends before {text:?}");
            answer.push_str(std::str::from_utf8(&part[..length]).unwrap());
        }
        answer
    };
    bounded(Timing::settle(), read).await.expect("an answer")
}

#[tokio::test]
async fn a_permit_is_held_until_the_body_of_the_response_has_ended() {
    let fixture = Fixture::start().await;
    let mut first = fixture.begin().await;
    for _ in 0..3 {
        let refused = get(fixture.service, "/").await;
        assert_eq!((refused.status, refused.retry_after()), (503, 1), "{refused:?}");
    }
    fixture.bodies.0.lock().clear();
    // The last chunk is empty.
    read_until(&mut first, "0\r\n\r\n").await;
    fixture.becomes_free().await;
    let mut second = fixture.begin().await;
    fixture.bodies.0.lock().clear();
    read_until(&mut second, "0\r\n\r\n").await;
}

#[tokio::test]
async fn a_refusal_is_429_if_the_layer_is_told_so() {
    let server = server().await;
    let semaphore = Semaphore::new(&connect(&server).await, "/permits", 1).unwrap();
    let _taken = semaphore.acquire().await.unwrap();
    let layer = ConcurrencyLayer::new(semaphore).with_too_many_requests();
    let service = serve(Router::new().route("/", on_get(async || "hello")).layer(layer)).await;
    let refused = get(service, "/").await;
    assert_eq!((refused.status, refused.retry_after()), (429, 1), "{refused:?}");
}

#[tokio::test]
async fn a_client_that_closes_its_connection_gives_its_permit_back() {
    let fixture = Fixture::start().await;
    let first = fixture.begin().await;
    assert_eq!(get(fixture.service, "/").await.status, 503);
    drop(first);
    // The service learns of the end when it writes.
    let chunks = fixture.bodies.0.lock().pop().unwrap();
    let written = async || chunks.unbounded_send(Ok(Bytes::from_static(b"more"))).is_err().then_some(());
    eventually("the body is dropped", Timing::settle(), written).await.unwrap();
    fixture.becomes_free().await;
    fixture.begin().await;
}

#[tokio::test]
async fn a_body_whose_permit_is_lost_ends_early() {
    let fixture = Fixture::start().await;
    let mut first = fixture.begin().await;
    for session in fixture.server.sessions() {
        assert!(fixture.server.expire(session));
    }
    let mut rest = String::new();
    let read = bounded(Timing::settle(), first.read_to_string(&mut rest)).await.expect("an end");
    assert!(read.is_err() || !rest.contains("0\r\n\r\n"), "{rest:?} is a whole body");
    drop(fixture.manager.connected().await);
    fixture.becomes_free().await;
}

#[tokio::test]
async fn a_request_whose_permit_is_lost_is_answered_503_and_its_work_is_dropped() {
    let server = server().await;
    let semaphore = Semaphore::new(&connect(&server).await, "/permits", 1).unwrap();
    let (begun, mut has_begun) = mpsc::unbounded();
    let (ended, has_ended) = oneshot::channel::<()>();
    let ended = Arc::new(Mutex::new(Some(ended)));
    let handler = async move |Extension(lease): Extension<Arc<Lease>>| {
        let _dropped_with_the_work = ended.lock().take();
        begun.unbounded_send(lease.permits()).unwrap();
        std::future::pending::<&str>().await
    };
    let router = Router::new().route("/", on_get(handler)).layer(ConcurrencyLayer::new(semaphore));
    let service = serve(router).await;
    let request = tokio::spawn(async move { get(service, "/").await });
    assert_eq!(bounded(Timing::settle(), has_begun.next()).await, Some(Some(1)));
    for session in server.sessions() {
        assert!(server.expire(session));
    }
    let answer = request.await.unwrap();
    assert_eq!((answer.status, answer.retry_after()), (503, 1), "{answer:?}");
    bounded(Timing::settle(), has_ended).await.expect("the work is dropped").unwrap_err();
}
