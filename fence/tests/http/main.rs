#![doc = "The token of a request, from its sender to its receiver."]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a failed expectation is a failed test"
)]

mod log;
mod zookeeper;

use std::convert::Infallible;
use std::future::{Ready, poll_fn, ready};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};

use http::{Request, Response, StatusCode};
use lockkeeper_fence::http::{
    FENCING_TOKEN, FenceLayer, FenceStore, FencingTokenLayer, MemoryStore, SqlStore, header_value,
};
use lockkeeper_fence::sql::Fence;
use lockkeeper_fence::{FenceError, FencingToken};
use sqlx::sqlite::{SqliteConnectOptions, SqlitePoolOptions};
use tokio::sync::Notify;
use tower_layer::Layer;
use tower_service::Service;

use self::log::LoggedLines;

/// A service of the resource in the path of its requests, which answers with the token that it was given.
#[derive(Clone, Debug)]
struct Stock;

impl Service<Request<()>> for Stock {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Response<String>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        let token = request.extensions().get::<FencingToken>();
        ready(Ok(Response::new(token.map_or_else(String::new, FencingToken::to_string))))
    }
}

fn resource(parts: &http::request::Parts) -> Option<String> {
    (parts.method != http::Method::GET).then(|| parts.uri.path().to_owned())
}

/// What is between two processes: the extensions of a request do not pass it.
#[derive(Clone, Debug)]
struct Wire<S>(S);

impl<S: Service<Request<()>>> Service<Request<()>> for Wire<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<()>) -> S::Future {
        request.extensions_mut().clear();
        self.0.call(request)
    }
}

/// A request to `/train-7` with these values of the header.
fn post(values: &[&str]) -> Request<()> {
    let mut request = Request::post("/train-7");
    for value in values {
        request = request.header(FENCING_TOKEN, *value);
    }
    request.body(()).unwrap()
}

async fn answer<S>(service: &mut S, request: Request<()>) -> Response<String>
where
    S: Service<Request<()>, Response = Response<String>, Error = Infallible>,
{
    poll_fn(|context| service.poll_ready(context)).await.unwrap();
    service.call(request).await.unwrap()
}

#[tokio::test]
async fn a_token_reaches_the_service_and_a_stale_one_is_answered_409_with_the_newer() {
    let server = FenceLayer::new(MemoryStore::new(), resource).layer(Stock);
    let mut client = FencingTokenLayer::new().layer(Wire(server));
    let sent = |token: FencingToken| {
        let mut request = post(&["9"]);
        request.extensions_mut().insert(token);
        let mut client = client.clone();
        async move { answer(&mut client, request).await }
    };
    let newest = FencingToken::from_parts(1, 7, 3);
    for token in [FencingToken::new(900), newest, newest] {
        let admitted = sent(token).await;
        assert_eq!((admitted.status(), admitted.body()), (StatusCode::OK, &token.to_string()));
    }
    let refused = sent(FencingToken::new(901)).await;
    assert_eq!((refused.status(), refused.body().as_str()), (StatusCode::CONFLICT, ""));
    assert_eq!(refused.headers()[FENCING_TOKEN], header_value(newest));
    assert_eq!(refused.headers()[FENCING_TOKEN].to_str().unwrap().len(), 39);

    // Without a token among its extensions a request is as it was: this one has a header of its own.
    assert_eq!(answer(&mut client, post(&["9"])).await.status(), StatusCode::CONFLICT);
    let read = Request::get("/train-7").body(()).unwrap();
    assert_eq!(answer(&mut client, read).await.status(), StatusCode::OK, "a read is not fenced");
    let other = Request::post("/train-8").header(FENCING_TOKEN, "9").body(()).unwrap();
    assert_eq!(answer(&mut client, other).await.status(), StatusCode::OK, "another resource");
}

#[tokio::test]
async fn a_header_that_is_no_token_is_answered_400_and_a_missing_one_428() {
    let mut service = FenceLayer::new(MemoryStore::new(), resource).layer(Stock);
    assert_eq!(answer(&mut service, post(&[])).await.status(), StatusCode::PRECONDITION_REQUIRED);
    let long = "0".repeat(40);
    for wrong in [&[""][..], &["0x2a.0"], &["-1"], &["1, 2"], &["5", "5"], &[&long], &["ü"]] {
        assert_eq!(answer(&mut service, post(wrong)).await.status(), StatusCode::BAD_REQUEST, "{wrong:?}");
    }
    let long_path = format!("/{}", "a".repeat(255));
    let long_path = Request::post(long_path).header(FENCING_TOKEN, "5").body(()).unwrap();
    assert_eq!(answer(&mut service, long_path).await.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn a_store_in_memory_serves_the_requests_of_a_resource_one_after_another() {
    let store = Arc::new(MemoryStore::new());
    let late = store.admit("stock", FencingToken::new(5)).await.unwrap();
    let mut newer = pin!(store.admit("stock", FencingToken::new(6)));
    // It waits for the answer to the older request, which may have yet to write.
    assert!(polled_once(newer.as_mut()).is_pending());
    drop(store.admit("another", FencingToken::new(1)).await.unwrap());
    drop(late);
    drop(newer.await.unwrap());
    assert!(store.admit("stock", FencingToken::new(5)).await.unwrap_err().is_stale());
}

/// A store that decides as it is told to.
#[derive(Clone, Debug, Default)]
struct Unsteady {
    fails: Arc<AtomicBool>,
}

impl FenceStore for Unsteady {
    type Admission = ();

    async fn admit(&self, resource: &str, _: FencingToken) -> Result<(), FenceError> {
        match self.fails.load(Ordering::Relaxed) {
            true => Err(FenceError::NotChecked {
                resource: resource.to_owned(),
                is_transient: false,
                source: "the disk is full".into(),
            }),
            false => Ok(()),
        }
    }
}

#[tokio::test]
async fn a_store_that_does_not_decide_is_logged_once_with_the_reason_and_when_it_decides_again() {
    let (lines, _logged) = LoggedLines::begin();
    let store = Unsteady::default();
    let service = FenceLayer::new(store.clone(), resource).layer(Stock);
    let post_twice = async |expected| {
        for mut service in [service.clone(), service.clone()] {
            assert_eq!(answer(&mut service, post(&["5"])).await.status(), expected);
        }
    };
    post_twice(StatusCode::OK).await;
    assert!(lines.read().is_empty(), "{:?}", lines.read());
    for _ in 0..2 {
        store.fails.store(true, Ordering::Relaxed);
        post_twice(StatusCode::SERVICE_UNAVAILABLE).await;
        store.fails.store(false, Ordering::Relaxed);
        post_twice(StatusCode::OK).await;
    }
    let read = lines.read();
    assert_eq!(read.len(), 4, "{read:?}");
    for lines in read.chunks(2) {
        assert!(lines[0].starts_with("WARN the store of a fence does not decide"), "{lines:?}");
        assert!(lines[0].contains("the disk is full"), "{lines:?}");
        assert!(lines[1].starts_with("INFO the store of a fence decides again undecided=2"), "{lines:?}");
    }
}

/// One poll.
fn polled_once<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// A service that counts its requests, and answers when it is allowed to.
#[derive(Clone, Debug, Default)]
struct Slow {
    allowed: Arc<Notify>,
    served: Arc<AtomicU32>,
}

impl Service<Request<()>> for Slow {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<String>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<()>) -> Self::Future {
        self.served.fetch_add(1, Ordering::Relaxed);
        let allowed = Arc::clone(&self.allowed);
        Box::pin(async move {
            allowed.notified().await;
            Ok(Response::new(String::new()))
        })
    }
}

#[tokio::test]
async fn the_resource_is_kept_until_the_service_has_answered() {
    let slow = Slow::default();
    let service = FenceLayer::new(MemoryStore::new(), resource).layer(slow.clone());
    let (mut first, mut second) = (service.clone(), service);
    let mut older = pin!(answer(&mut first, post(&["5"])));
    assert!(polled_once(older.as_mut()).is_pending());
    let mut newer = pin!(answer(&mut second, post(&["6"])));
    assert!(polled_once(newer.as_mut()).is_pending());
    assert_eq!(slow.served.load(Ordering::Relaxed), 1, "the older request has yet to be answered");
    slow.allowed.notify_one();
    assert_eq!(older.await.status(), StatusCode::OK);
    slow.allowed.notify_one();
    assert_eq!(newer.await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_store_in_a_database_remembers_and_a_database_that_fails_is_answered_503() {
    let memory = SqliteConnectOptions::new().in_memory(true);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(memory).await.unwrap();
    let mut service = FenceLayer::new(SqlStore::new(pool.clone()), resource).layer(Stock);
    assert_eq!(
        answer(&mut service, post(&["5"])).await.status(),
        StatusCode::SERVICE_UNAVAILABLE,
        "no table"
    );
    Fence::new().create_table(&mut *pool.acquire().await.unwrap()).await.unwrap();
    assert_eq!(answer(&mut service, post(&["5"])).await.status(), StatusCode::OK);
    let mut again = FenceLayer::new(SqlStore::new(pool), resource).layer(Stock);
    assert_eq!(answer(&mut again, post(&["4"])).await.status(), StatusCode::CONFLICT);
    assert_eq!(answer(&mut again, post(&["6"])).await.status(), StatusCode::OK);
}
