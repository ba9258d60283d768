//! Rate limits, permits, locks and leadership over all processes, as layers of
//! [tower](https://docs.rs/tower) for requests of [http](https://docs.rs/http) 1: for axum, tonic, hyper and
//! clients.
//!
//! The recipes are those of [lockkeeper](https://docs.rs/lockkeeper), on Apache ZooKeeper.
//!
//! * [`RateLimitLayer`]: a limited number of requests in any window of time, of all together or of each
//!   customer. Over the limit: 429.
//! * [`ConcurrencyLayer`]: a limited number of requests at the same time. Without a permit: 503, or 429.
//! * [`LockLayer`]: requests with the same key, such as an order, one after another.
//! * [`LeaderLayer`]: only the leader serves requests. Others answer 503, or send their callers to it.
//!
//! A layer answers by a response, so it composes with `axum::Router::layer`, and the error type of a service
//! stays as it is. It works with every type of body. When ZooKeeper does not answer, a layer fails closed:
//! 503. The first two can be told to fail open.
//!
//! A permit, a lock or a leadership is held until the body of the response has ended or was dropped. It is in
//! the extensions of the request, so that a handler can give its writes the fencing token. If it is lost, the
//! work on the request is dropped, and the response ends.
//!
//! A refusal has no body. A client of gRPC reads the status: 429 and 503 become `UNAVAILABLE`.
//!
//! # Examples
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let server = lockkeeper_testserver::TestServer::start().await?;
//! # let servers = server.connect_string();
//! use std::time::Duration;
//! use axum::Router;
//! use axum::routing::get;
//! use lockkeeper::{ConnectionManager, RateLimiter};
//! use lockkeeper_tower::RateLimitLayer;
//!
//! let manager = ConnectionManager::connect(&servers).await?; // host:port,host:port,…
//! let limiter = RateLimiter::new(&manager, "/limits/api", 100, Duration::from_secs(60))?;
//! let service: Router =
//!     Router::new().route("/", get(async || "hello")).layer(RateLimitLayer::new(limiter).fail_open());
//! # drop(service);
//! # Ok(())
//! # }
//! ```

#![cfg_attr(docsrs, feature(doc_cfg))]

mod body;
mod concurrency;
mod gate;
mod hold;
mod key;
mod leader;
mod lock;
#[cfg(feature = "metrics")]
pub mod metrics;
mod outage;
mod outcome;
mod rate_limit;
mod refusal;

pub use self::body::{BoxError, ResponseBody};
pub use self::concurrency::{ConcurrencyLayer, ConcurrencyService};
pub use self::gate::GateService;
pub use self::hold::HoldLost;
pub use self::leader::{LeaderLayer, LeaderService};
pub use self::lock::{LockLayer, LockService};
pub use self::rate_limit::{RateLimitLayer, RateLimitService};
